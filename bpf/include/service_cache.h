// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The services that a CPU's packets found lately. A look-up in the hash table costs an eighth of
 * the edge's time; this one compares three words. An entry holds for the epoch in which it was
 * found: the agent raises fib_epoch when it has changed a service.
 */
#pragma once

#include "edge.h"
#include "nexthop.h"
#include "service.h"

#define SERVICE_CACHE_BITS 6

struct cached_service {
	struct service_key key;
	struct service service;
	__u32 epoch;
	struct nh destination; /* for the flow hash */
};

struct service_cache {
	struct cached_service entries[1 << SERVICE_CACHE_BITS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct service_cache);
} service_caches SEC(".maps");

/* Where a service is, if it is cached. The multiplier is 2^32 times the golden section. */
static __always_inline struct cached_service *service_cache_place(__u64 low, __u16 port)
{
	__u32 zero = 0, mixed = low ^ low >> 32 ^ port;
	struct service_cache *cache = bpf_map_lookup_elem(&service_caches, &zero);

	return cache ? &cache->entries[mixed * 0x9e3779b1 >> (32 - SERVICE_CACHE_BITS)] : 0;
}

/*
 * Caches the service of a destination, if there is one. kind: its port, protocol and family, as
 * service_kind has them. Not inlined: it is rare, and has the key on a stack of its own.
 */
__noinline int service_refill(__u64 high, __u64 low, __u32 kind, __u32 epoch)
{
	struct address vip = { { high, low } };
	struct service_key key = service_key_of(&vip, kind);
	struct cached_service *cached = service_cache_place(low, key.port);
	struct service *service = service_by_port(&key);

	if (!cached || !service)
		return 0;
	key.port = kind;
	cached->key = key;
	cached->service = *service;
	if (settings.domain.secret.function == FLOW_HASH_NH)
		cached->destination = nh_destination(&settings.domain.secret, &key.vip);
	cached->epoch = epoch;
	return 1;
}

static __always_inline bool cached_service_is(const struct cached_service *cached,
					      const struct flow *f, __u32 epoch)
{
	return cached->epoch == epoch && cached->key.vip.word[1] == f->destination.word[1] &&
	       cached->key.vip.word[0] == f->destination.word[0] &&
	       *(const __u32 *)&cached->key.port == service_kind(f);
}

/* The service of a flow's destination in the epoch; 0: there is none. */
static __always_inline struct cached_service *service_cached(const struct flow *f, __u32 epoch)
{
	struct cached_service *cached;

	cached = service_cache_place(f->destination.word[1], f->ports >> 16);
	if (!cached || likely(cached_service_is(cached, f, epoch)))
		return cached;
	if (!service_refill(f->destination.word[0], f->destination.word[1], service_kind(f), epoch))
		return 0;
	return cached_service_is(cached, f, epoch) ? cached : 0;
}

/* The hash of a flow to a cached service. */
static __always_inline __u64 service_flow_hash(const struct cached_service *cached,
					       const struct flow *f)
{
	if (settings.domain.secret.function == FLOW_HASH_SIPHASH)
		return flow_siphash(&settings.domain.secret, f);
	return flow_nh(&settings.domain.secret, f, &cached->destination);
}
