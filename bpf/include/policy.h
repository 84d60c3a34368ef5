// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * SR policies (RFC 9256) at the head-end: rules that choose traffic, and for each
 * what its active candidate path does. The table is replaced as a whole.
 */
#pragma once

#include "match.h"
#include "transport.h"
#include "redundancy.h"

#define RULES_MAX 128
#define POLICIES_MAX 256
#define LISTS_MAX 8 /* segment lists of a policy */
#define HEADER_WORDS 24 /* of 8 bytes: 192, what fits a driver's headroom */
#define SCHEDULE_MAX 64

enum action {
	ACTION_NONE = 0, /* no rule here */
	ACTION_PATH, /* the one list */
	ACTION_SPLIT_FLOW, /* a list per flow, by weight */
	ACTION_SPLIT_PACKET, /* the lists in turn, by weight */
	ACTION_MIRROR, /* all lists */
	ACTION_DROP, /* no valid path, and the policy says drop (RFC 9256 section 8.2) */
} __attribute__((packed)); /* one byte */

/* A segment list, as the outer headers of a packet that takes it; the program fills in what is the
 * packet's. */
struct list {
	__u64 header[HEADER_WORDS];
	__u16 hop; /* under which the next hop of its first segment is remembered */
	__u8 words; /* of the header */
	__u8 next; /* offset of the byte that names the inner protocol */
	enum redundancy redundancy;
	__u8 number_at[2]; /* words which hold the number; 0: none */
	__u8 reserved;
};

struct rule {
	struct match match;
	__u32 policy; /* of counters and numbers */
	__u16 mtu; /* of the packets that fit all lists; 0: not known */
	enum action action;
	__u8 lists;
	__u32 shares[LISTS_MAX]; /* SPLIT_FLOW: flows up to this hash take the list */
	__u8 schedule[SCHEDULE_MAX]; /* SPLIT_PACKET: lists in turn */
	__u8 turns; /* of the schedule */
	__u8 reserved[3];
	__u32 table; /* which one it is of: each has another number */
	struct list list[LISTS_MAX];
};

/* Nothing else brings the type into the object's BTF, of which its Go twin is made. */
const struct rule *rule_type __attribute__((unused));

struct rules {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RULES_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct rule));
};

/* The table in use. Replacing the inner map replaces all rules and their lists in one step. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct rules);
} steering SEC(".maps");

/* Numbers of a policy's packets. They run on when the table is replaced. */
struct sequence {
	__u64 next;
	__u64 turn;
	__u32 epoch; /* which life of the sender they are of */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, POLICIES_MAX);
	__type(key, __u32);
	__type(value, struct sequence);
} sequences SEC(".maps");

static __always_inline void upper_parse(struct cursor *c, struct packet *p)
{
	bool whole = !p->fragment;

	if (p->error && p->error != REASON_IP_OPTIONS)
		return;
	if (whole && likely(p->flow.protocol == IPPROTO_TCP))
		tcp_parse(c, p);
	else if (whole && p->flow.protocol == IPPROTO_UDP)
		udp_parse(c, p);
	else if (p->fragment != FRAGMENT_LATER && is_icmp(p) && cursor_has(c, ICMP_HEADER) &&
		 is_icmp_error(*(__u8 *)c->pos, p->flow.ipv4))
		p->icmp = ICMP_OTHER;
}

/*
 * Reads the ports; a packet that has none that can be read is steered by its addresses, protocol
 * and class. An ICMP error goes where its own addresses say, not with the flow that it quotes. A
 * fragment has no ports, the first neither: all of a packet go one way. What they say of the upper
 * layer may differ in IPv6 (RFC 8200 section 4.5), so their protocol is the fragment header's.
 */
static __always_inline void ports_parse(struct cursor *c, struct packet *p)
{
	upper_parse(c, p);
	if (unlikely(p->fragment) && !p->flow.ipv4)
		p->flow.protocol = IPPROTO_FRAGMENT;
}

static __always_inline bool rule_matches(const struct match *m, const struct packet *p)
{
	if (m->protocol && m->protocol != p->flow.protocol)
		return false;
	if (m->family && m->family != (p->flow.ipv4 ? 4 : 6))
		return false;
	if (m->dscp != DSCP_ANY && m->dscp != p->traffic_class >> 2)
		return false;
	return prefix_matches(&m->destination, &p->flow.destination) &&
	       prefix_matches(&m->source, &p->flow.source) &&
	       port_matches(m->source_ports, p->flow.ports) &&
	       port_matches(m->destination_ports, p->flow.ports >> 16);
}

/* The table in use. It may be another one when it is asked for again. */
static __always_inline void *rules_now(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&steering, &zero);
}

static __always_inline struct rule *rule_at(void *rules, __u32 index)
{
	return rules ? bpf_map_lookup_elem(rules, &index) : 0;
}

/* The number of the first rule that chooses the packet, and in the upper half that of its table;
 * or RULES_MAX. Not inlined, for the verifier's sake: so it can't be given the table. */
__noinline __u64 rule_find(const struct packet *p)
{
	void *rules = rules_now();

	if (!p)
		return RULES_MAX;
	for (__u32 i = 0; i < RULES_MAX; i++) {
		struct rule *r = rule_at(rules, i);

		if (!r || r->action == ACTION_NONE)
			return RULES_MAX;
		if (rule_matches(&r->match, p))
			return (__u64)r->table << 32 | i;
	}
	return RULES_MAX;
}

/*
 * The first rule that chooses the packet, and its number; or none. If the table is replaced between
 * the search and the look at what was found, the new one is searched. It is not replaced twice
 * within one packet: the kernel ends a replacement when all programs have ended that may have met
 * the old one (maybe_wait_bpf_programs).
 */
static __always_inline struct rule *rule_choose(const struct packet *p, __u32 *index)
{
	__u64 found = rule_find(p);
	struct rule *r = rule_at(rules_now(), found);

	if (r && r->table != found >> 32) {
		found = rule_find(p);
		r = rule_at(rules_now(), found);
	}
	*index = found;
	return r;
}

static __always_inline bool rule_mirrors(const struct rule *r, __u32 policy)
{
	return r->policy == policy && r->action == ACTION_MIRROR;
}

/* A rule that mirrors for a policy, if possible the one of this number; or none. Not inlined, for
 * the verifier's sake. */
static __noinline struct rule *rule_of_policy(__u32 policy, __u32 index)
{
	void *rules = rules_now();
	struct rule *r = rule_at(rules, index);

	if (r && rule_mirrors(r, policy))
		return r;
	for (__u32 i = 0; i < RULES_MAX; i++) {
		r = rule_at(rules, i);
		if (!r || r->action == ACTION_NONE)
			return 0;
		if (rule_mirrors(r, policy))
			return r;
	}
	return 0;
}
