// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The flow cache: which backend took a connection, as its SYN-ACK told on its way through
 * End.LEARN. Eight bytes per flow, in sets of four; what does not fit replaces what rested longest.
 * It is a hint: the backend that it names goes to the front of the bucket's chain, if it is in
 * there, and all others stay behind it. forward.FlowCache is the same in Go.
 */
#pragma once

#include "chain.h"
#include "ip.h"

#define FLOW_WAYS 4

struct flow_cache_settings {
	struct address sid; /* End.LEARN; 0: there is none */
	__u32 sets; /* 0: nothing is learnt */
	__u32 rest_shift; /* how many jiffies one step of rest is, as a power of two */
};

const volatile struct flow_cache_settings flow_cache = {};

/*
 * From the top: 32 bits of the flow hash, those that choose the bucket; 16 of the backend's id, 0
 * for none; 16 of the time of the latest packet. A word is written as a whole, so that CPUs need no
 * lock: of two that write, one is lost.
 */
struct flow_set {
	__u64 ways[FLOW_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets the number of sets */
	__type(key, __u32);
	__type(value, struct flow_set);
} flows SEC(".maps");

enum cache_event {
	CACHE_HIT = 0, /* a packet went to the backend that the cache names first */
	CACHE_MISS, /* nothing was known about its flow */
	CACHE_STALE, /* the backend that the cache names is none of the bucket's any more */
	CACHE_STORED, /* a SYN-ACK came, and its owner was noted */
	CACHE_REFUSED_UNNAMED, /* a SYN-ACK came that names no owner */
	CACHE_REFUSED_STRANGER, /* a SYN-ACK came whose owner is none of the bucket's backends */
	CACHE_EVENT_COUNT,
};

#define CACHE_EVENT_NONE CACHE_EVENT_COUNT /* nothing to count: the map has no such entry */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CACHE_EVENT_COUNT);
	__type(key, enum cache_event);
	__type(value, __u64);
} cache_events SEC(".maps");

static __always_inline void cache_count(enum cache_event event)
{
	__u64 *counter;

	if (!flow_cache.sets)
		return;
	counter = bpf_map_lookup_elem(&cache_events, &event);
	if (counter)
		(*counter)++;
}

static __always_inline bool is_learn(const struct address *destination)
{
	return flow_cache.sets && destination->word[0] == flow_cache.sid.word[0] &&
	       destination->word[1] == flow_cache.sid.word[1];
}

/* Where the outer packet comes from: a SYN from End.LEARN, so that its answer can go there; all
 * else from the edge's source. */
static __always_inline struct address outer_source(const struct packet *p,
						   const volatile struct address *source)
{
	if (likely(!flow_cache.sets)) {
		struct address own = address_read(source);

		/* Or else the compiler chooses where to read, for all that have no cache. */
		barrier_var(own.word[0]);
		return own;
	}
	return address_read(p->flow.protocol == IPPROTO_TCP && is_first_syn(p) ? &flow_cache.sid :
										 source);
}

static __always_inline struct flow_set *flow_set_of(__u64 hash)
{
	__u32 index = (hash & 0xffffffff) * flow_cache.sets >> 32;

	return bpf_map_lookup_elem(&flows, &index);
}

static __always_inline __u16 flow_time(void)
{
	return bpf_jiffies64() >> flow_cache.rest_shift;
}

static __always_inline __u64 flow_word(__u64 hash, __u16 owner, __u16 time)
{
	return (hash >> 32) << 32 | (__u32)owner << 16 | time;
}

static __always_inline __u16 flow_word_owner(__u64 word)
{
	return word >> 16;
}

/* The backend that the cache names for a flow, 0: none. Not inlined, for the verifier's sake. */
__noinline int flow_owner(__u64 hash)
{
	struct flow_set *set = flow_set_of(hash);
	__u16 now = flow_time();

	if (!set)
		return 0;
#pragma unroll
	for (int i = 0; i < FLOW_WAYS; i++) {
		volatile __u64 *way = &set->ways[i];
		__u64 word = *way;

		if (word >> 32 != hash >> 32 || !flow_word_owner(word))
			continue;
		if ((__u16)word != now)
			*way = flow_word(hash, flow_word_owner(word), now);
		return flow_word_owner(word);
	}
	return 0;
}

/* Notes the owner of a flow: in its own place, else in an empty one, else where the rest was
 * longest. */
__noinline int flow_remember(__u64 hash, __u32 owner)
{
	struct flow_set *set = flow_set_of(hash);
	__u32 place = hash >> 32 & (FLOW_WAYS - 1), longest = 0;
	__u16 now = flow_time();

	if (!set)
		return 0;
#pragma unroll
	for (int i = 0; i < FLOW_WAYS; i++) {
		__u64 word = *(volatile __u64 *)&set->ways[i];
		__u32 rest = (__u16)(now - (__u16)word);

		if (!flow_word_owner(word))
			rest = 0x10000;
		else if (word >> 32 == hash >> 32)
			rest = 0x20000;
		if (rest > longest) {
			longest = rest;
			place = i;
		}
	}
	*(volatile __u64 *)&set->ways[place & (FLOW_WAYS - 1)] = flow_word(hash, owner, now);
	return 0;
}

#define OWNER_LEADS 0x100 /* beside the event: owners has another chain */

/*
 * Makes the chain in owners with the backend in front that the flow cache names, if that is one of
 * the first n and not in front anyway. Returns the event. Not static, so that the verifier looks
 * at it once.
 */
__noinline int owner_lead(const struct chain *chain, __u32 n, __u64 hash)
{
	__u32 owner = flow_owner(hash);
	struct chain *moved = chain_of_owner();
	__be16 id = bpf_htons(owner);
	bool behind = false;

	if (!chain || !owner || !moved)
		return CACHE_MISS;
	if (chain->ids[0] == id)
		return CACHE_HIT;
	moved->ids[0] = id;
#pragma unroll
	for (int i = 1; i < CHAIN_MAX; i++) {
		moved->ids[i] = behind ? chain->ids[i] : chain->ids[i - 1];
		behind |= i < n && chain->ids[i] == id;
	}
	moved->length = chain->length;
	return behind ? CACHE_HIT | OWNER_LEADS : CACHE_STALE;
}

/* The chain as the flow cache has it, and the event, which is to be counted. No host is left out:
 * each that would be reached without the cache is reached with it, one hop later at most. */
static __always_inline struct chain *cached_chain(struct chain *chain, __u32 n, __u64 hash,
						  __u32 *event)
{
	__u32 said = owner_lead(chain, n, hash);
	struct chain *moved = said & OWNER_LEADS ? chain_of_owner() : 0;

	*event = said & (OWNER_LEADS - 1);
	return moved ? moved : chain;
}
