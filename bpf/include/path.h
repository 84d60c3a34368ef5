// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Paths from the edge to backends: SIDs that a packet visits before those of its chain. A path
 * leads to the chain's first; who refuses passes the packet on by routing's own way. A backend may
 * have two, of which the flow's hash chooses. Specification: docs/reference/dataplane.md, "Edge".
 */
#pragma once

#include "chain.h"

#define PATH_MAX_SIDS 4 /* they leave room for two candidates in one address */
#define PATHS_MAX 2 /* to a backend */
#define PATH_CHOICE_SHIFT 20 /* of the hash: above the flow label, below the bucket */

/* Some service has a path. Off, all about them goes from the program. */
const volatile bool has_paths = false;

struct path {
	__be16 ids[PATH_MAX_SIDS]; /* 0 behind the last */
	__u32 length; /* 0: the backend has none */
	__u32 paths; /* of the backend: how many, this one included */
};

/* As for struct chain. */
const struct path *path_type __attribute__((unused));

struct service_paths {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	/* the loader makes them: PATHS_MAX for each id up to the highest of a backend */
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct path));
	__uint(map_flags, BPF_F_INNER_MAP);
};

/* Paths per service, by the backend's id and choice. Replacing the inner map replaces all in one
 * step. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__array(values, struct service_paths);
} paths SEC(".maps");

static __always_inline bool service_has_paths(const struct service *service)
{
	return has_paths && unlikely(service->paths);
}

/* One of the paths to the first of a chain; 0: the service has none. */
static __always_inline const struct path *path_at(const struct service *service,
						  const struct chain *chain, __u32 choice)
{
	__u32 key = service->index;
	void *all = bpf_map_lookup_elem(&paths, &key);

	if (!all)
		return 0;
	key = PATHS_MAX * bpf_ntohs(chain->ids[0]) + choice % PATHS_MAX;
	return bpf_map_lookup_elem(all, &key);
}

/* The path of a flow to the first of a chain of which n are visited; 0: it has none, or it makes
 * more than so many SIDs. */
static __always_inline const struct path *
path_find(const struct service *service, const struct chain *chain, __u64 hash, __u32 n, __u32 most)
{
	const struct path *path;

	if (!service_has_paths(service))
		return 0;
	path = path_at(service, chain, hash >> PATH_CHOICE_SHIFT);
	if (!path || !path->length || path->length > PATH_MAX_SIDS || path->length + n > most)
		return 0;
	return path;
}

static __always_inline __u32 path_length(const struct path *path)
{
	return path ? path->length : 0;
}

/* The id of the SID that is visited at a place, of those of the path and the chain behind it. */
static __always_inline __be16 path_visited(const struct path *path, const struct chain *chain,
					   __u32 place)
{
	__u32 length = path_length(path), behind = place - length;

	if (place < length)
		return path && place < PATH_MAX_SIDS ? path->ids[place] : 0;
	barrier_var(behind); /* or else the verifier does not know its bounds */
	return behind < CHAIN_MAX ? chain->ids[behind] : 0;
}

/* With a segment routing header, the first destination is the path's first SID. */
static __always_inline bool path_first_segment(const struct path *path, struct address *destination)
{
	__u32 id = bpf_ntohs(path->ids[0]);
	struct address *sid = bpf_map_lookup_elem(&sids, &id);

	if (!sid || !sid->word[0]) /* never set */
		return false;
	*destination = *sid;
	return true;
}

/* Puts the path's ids between a carrier's block and its ids, which move up. */
static __always_inline void carrier_lead(struct address *carrier, const struct path *path)
{
	__u64 high = bpf_be64_to_cpu(carrier->word[0]), low = bpf_be64_to_cpu(carrier->word[1]),
	      lead = bpf_be64_to_cpu(*(const __u64 *)path->ids), first = high & 0xffffffff;
	__u32 half = path->length * 8; /* bits, twice: a word can't be shifted by all its 64 */

	high = (high ^ first) | first >> half >> half | lead >> 32;
	low = low >> half >> half | first << (64 - 2 * half) | lead << 32;
	carrier->word[0] = bpf_cpu_to_be64(high);
	carrier->word[1] = bpf_cpu_to_be64(low);
}

/* The first destination of a path whose chain is in a carrier of its own: block and path. */
static __always_inline void carrier_of_path(struct address *carrier, const struct path *path)
{
	__be32 *half = (__be32 *)carrier;
	const __be32 *ids = (const __be32 *)path->ids;

	half[1] = ids[0];
	half[2] = ids[1];
	half[3] = 0;
}
