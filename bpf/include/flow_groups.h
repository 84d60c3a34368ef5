// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Groups of weighted paths, by destination, in front of the rules of a head-end: a flow that begins
 * chooses a path by weight, and keeps it whatever weights come later. With a flowlet time it
 * chooses again after each pause that is longer (Vanini et al., "Let it flow", 2017). Weights are
 * some time old; how much goes out over the first link of each path is known at once. A controller
 * writes the groups; without one they end when their time is over. srpolicy.Choose in Go.
 */
#pragma once

#include "counters.h"
#include "flow_paths.h"
#include "meter.h"

#define GROUP_LISTS 16
#define GROUP_WAYS 64 /* first segments, by which octets are counted */
#define GROUP_DRAWS 8
#define WAY_MEMORY 500000 /* ns: time constant of a way's rate, of groups without flowlets */
#define WAY_MEMORY_MOST 1000000000 /* ns: of all, so that meter_read's products fit */
#define GROUP_STEP 0x9e3779b97f4a7c15ULL /* of the hash, from two draws to the next */
#define GROUP_TURN 0xd1342543de82ef95ULL /* from one choice of a flow to the next */
#define TCP_OPENS_OR_ENDS 0x06 /* SYN, RST */

/* Whether there are groups: else the verifier removes all of this. */
const volatile bool has_flow_groups = false;

struct group_prefix {
	__u32 bits; /* of what follows */
	__u8 ipv4;
	__u8 destination[16]; /* IPv4-mapped if need be */
	__u8 reserved[3];
};

#define GROUP_PREFIX_BITS (8 + 128)

struct flow_group {
	__u64 until; /* CLOCK_MONOTONIC, ns */
	__u64 flowlet; /* ns; 0: flows keep their paths */
	__u32 shares[GROUP_LISTS]; /* flows up to this hash take the list */
	__u32 list[GROUP_LISTS]; /* in flow_lists */
	__u32 up; /* a bit for each list that flows may keep */
	__u8 lists;
	__u8 reserved[3];
};

/* An update replaces a group in one step: packets see the old one or the new one. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1); /* the loader sets it */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct group_prefix);
	__type(value, struct flow_group);
} flow_groups SEC(".maps");

/* The path of a flow that began here. */
struct flow_choice {
	__u64 last; /* packet: CLOCK_MONOTONIC, ns; of groups with a flowlet time */
	__u16 turn; /* how often it chose again */
	__u8 list; /* of the group */
	__u8 reserved[5];
};

/* The flow that rested longest gives way, and chooses again if it goes on: paths that a controller
 * gave are in a table of their own. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* the loader sets it */
	__type(key, struct flow_key);
	__type(value, struct flow_choice);
} flow_choices SEC(".maps");

/* What goes out over a first segment, by flows that chose and by those that were given a path. */
struct way {
	__u64 octets;
	struct meter meter;
};

struct flow_ways {
	struct way of[GROUP_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow_ways);
} flow_ways SEC(".maps");

/* The group of the packet's destination, or none. Not inlined, to spare the stack. */
static __noinline struct flow_group *flow_group_of(const struct packet *p)
{
	struct group_prefix key = { .bits = GROUP_PREFIX_BITS, .ipv4 = p->flow.ipv4 };
	struct flow_group *group;

	__builtin_memcpy(key.destination, &p->flow.destination, sizeof(key.destination));
	group = bpf_map_lookup_elem(&flow_groups, &key);
	return group && group->until > bpf_ktime_get_coarse_ns() ? group : 0;
}

/* Spreads the hash over all bits, other than tables and flow label do (splitmix64). */
static __always_inline __u64 group_mix(__u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* The list that a hash draws by weight. Global, so that the verifier follows it once. */
__noinline __u32 group_draw(const struct flow_group *group, __u32 hash)
{
	__u32 i;

	if (!group)
		return 0;
	for (i = 0; i < GROUP_LISTS - 1; i++)
		if (i + 1 >= group->lists || hash <= group->shares[i])
			break;
	return i;
}

static __always_inline struct way *way_of(struct flow_ways *ways, const struct list *list)
{
	return &ways->of[list->hop & (GROUP_WAYS - 1)];
}

/* Counts a packet that goes out over a list. */
static __always_inline void way_count(const struct list *list, __u32 octets)
{
	__u32 zero = 0;
	struct flow_ways *ways = bpf_map_lookup_elem(&flow_ways, &zero);

	if (ways)
		__sync_fetch_and_add(&way_of(ways, list)->octets, octets);
}

/* How much goes out over the first segment of a list. Global, so that the verifier follows it
 * once. */
__noinline __u64 way_rate(__u32 index, __u64 now, __u64 memory)
{
	const struct list *list = bpf_map_lookup_elem(&flow_lists, &index);
	__u32 zero = 0;
	struct flow_ways *ways = bpf_map_lookup_elem(&flow_ways, &zero);
	struct way *way;

	if (!list || !ways)
		return ~0ULL;
	way = way_of(ways, list);
	return meter_read(&way->meter, way->octets, now, memory);
}

/* srpolicy.WayMemory in Go. */
static __always_inline __u64 way_memory(const struct flow_group *group)
{
	__u64 half = group->flowlet / 2;

	if (!group->flowlet)
		return WAY_MEMORY;
	return half < WAY_MEMORY_MOST ? half : WAY_MEMORY_MOST;
}

/* Of lists that are drawn by weight, the first one over whose first segment the least goes out. */
static __always_inline __u32 group_choose(const struct flow_group *group, __u64 hash, __u64 now)
{
	__u64 rate, least = ~0ULL, memory = way_memory(group);
	__u32 drawn, chosen = 0;

	for (int i = 0; i < GROUP_DRAWS; i++) {
		if (!(i & 1))
			hash = group_mix(hash + GROUP_STEP);
		drawn = group_draw(group, i & 1 ? hash : hash >> 32) & (GROUP_LISTS - 1);
		rate = way_rate(group->list[drawn], now, memory);
		if (rate < least) {
			least = rate;
			chosen = drawn;
		}
	}
	return chosen;
}

/* Whether a flow paused for so long that its packets can't overtake those before. When its last
 * packet came is not known if its group had no flowlet time then. */
static __always_inline bool flowlet_ends(const struct flow_group *group, struct flow_choice *choice,
					 __u64 now)
{
	__s64 pause = choice->last ? now - choice->last : 0;

	if (!group->flowlet)
		return false;
	choice->last = now;
	return pause > (__s64)group->flowlet;
}

/*
 * The path of a packet's flow: the one that it has, or one that it chooses. Nothing is remembered
 * of a packet that opens or ends a connection, so that floods of these, and the answers to them,
 * leave flows where they are. Not inlined, to spare the stack.
 */
static __noinline __u32 flow_choose(const struct flow_group *group, const struct packet *p,
				    __u64 hash)
{
	struct flow_key key = flow_key_of(p);
	struct flow_choice *known = bpf_map_lookup_elem(&flow_choices, &key);
	struct flow_choice fresh = {};
	__u32 place;

	if (group->flowlet)
		fresh.last = bpf_ktime_get_ns();
	if (known) {
		place = known->list & (GROUP_LISTS - 1);
		if (group->up >> place & 1 && !flowlet_ends(group, known, fresh.last))
			return group->list[place];
		fresh.turn = known->turn + 1;
	}
	place = group_choose(group, hash + fresh.turn * GROUP_TURN, bpf_ktime_get_ns());
	if (!(p->tcp_flags & TCP_OPENS_OR_ENDS)) {
		fresh.list = place;
		bpf_map_update_elem(&flow_choices, &key, &fresh, BPF_ANY);
	}
	return group->list[place & (GROUP_LISTS - 1)];
}
