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

#define PATH_PLACES 1024 /* the loader makes as many as are needed, a power of two */
#define PATH_STEPS 16 /* from its own place, that a backend's paths can be away */

struct path {
	__be16 ids[PATH_MAX_SIDS]; /* 0 behind the last */
	__u32 owner; /* the backend's id, and above it by how many steps it is away; 0: free */
	__u8 length; /* 0: the backend has none */
	__u8 paths; /* of the backend: how many, this one included */
	__u16 away; /* how many backends have this place, and are away from it */
} __attribute__((aligned(8))); /* it is read in words */

/* As for struct chain. */
const struct path *path_type __attribute__((unused));

/*
 * Paths of all services: a service says where its set begins, and a backend's id how far behind
 * that its place is, which has its PATHS_MAX paths. Sets may interleave, as no two of them begin at
 * one place. An array without another one in it needs no call of the kernel's functions. A set is
 * written before a service names it, and overwritten only when no packet is under way that has
 * found the service before.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PATH_PLACES *PATHS_MAX);
	__type(key, __u32);
	__type(value, struct path);
	__uint(map_flags, BPF_F_MMAPABLE);
} paths SEC(".maps");

/* All places less one. */
const volatile __u32 paths_mask = PATH_PLACES - 1;

static __always_inline bool service_has_paths(const struct service *service)
{
	return has_paths && unlikely(service->paths);
}

static __always_inline const struct path *path_place(__u32 place, __u32 choice)
{
	__u32 key = (place & paths_mask) * PATHS_MAX + choice % PATHS_MAX;

	return bpf_map_lookup_elem(&paths, &key);
}

/* By how many steps the paths of a backend are away from their place; 0: it has none. Not inlined:
 * it is rare. */
__noinline int path_steps(__u32 place, __u32 id)
{
	for (__u32 steps = 1; steps < PATH_STEPS; steps++) {
		const struct path *path = path_place(place + steps, 0);

		if (path && path->owner == (steps << 16 | id))
			return steps;
	}
	return 0;
}

/* One of the paths to the first of a chain; 0: it has none. */
static __always_inline const struct path *path_at(const struct service *service,
						  const struct chain *chain, __u32 choice)
{
	__u32 id = bpf_ntohs(chain->ids[0]), place = service->paths_at + id, steps;
	const struct path *path = path_place(place, choice);

	if (!path || likely(path->owner == id))
		return path;
	steps = path->away ? path_steps(place, id) : 0;
	return steps ? path_place(place + steps, choice) : 0;
}

/* The path of a flow to the first of a chain of which n are visited; 0: it has none, or it makes
 * more than so many SIDs. */
static __always_inline const struct path *
path_find(const struct service *service, const struct chain *chain, __u64 hash, __u32 n, __u32 most)
{
	const struct path *path = path_at(service, chain, hash >> PATH_CHOICE_SHIFT);

	/* One comparison says that it is neither empty nor too long. */
	return path && path->length - 1U < most - n && path->length <= PATH_MAX_SIDS ? path : 0;
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

/* Puts the path's ids between a carrier's block and its ids, which move up. In words as they lie in
 * memory, where what comes later has the higher bits. */
static __always_inline void carrier_lead(struct address *carrier, const struct path *path)
{
	__u64 block = (__u32)carrier->word[0], first = carrier->word[0] ^ block,
	      lead = *(const __u64 *)path->ids;
	__u32 half = path->length * 8; /* bits, twice: a word can't be shifted by all its 64 */

	carrier->word[0] = block | lead << 32 | first << half << half;
	carrier->word[1] = carrier->word[1] << half << half | first >> (64 - 2 * half) | lead >> 32;
	/* As in carrier_of, also for those without a path. */
	barrier_var(carrier->word[0]);
	barrier_var(carrier->word[1]);
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
