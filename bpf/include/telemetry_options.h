// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What source, transit and sink do with telemetry in hop-by-hop options. */
#pragma once

#include "ioam.h"
#include "path_tracing.h"
#include "telemetry_class.h"
#include "telemetry_node.h"
#include "telemetry_report.h"

/* Where an option's data begins, and the nodes' in a trace. */
#define AT_DATA(o) ((o)->at + 2)
#define AT_NODES(o) (AT_DATA(o) + IOAM_HEADER)

/* Words that each node takes of a trace whose fields agree. */
static __always_inline __u32 trace_words(const struct ioam_trace *trace)
{
	return (trace->words >> 3) + (ioam_type(trace) & IOAM_OPAQUE ? 1 : 0);
}

/* Whether the fields of a trace agree; Linux drops what does not start at 4 octets. */
static __always_inline bool is_whole(const struct hop_option *o, const struct ioam_trace *trace)
{
	__u32 room = o->length - IOAM_HEADER;

	return trace->words >> 3 == ioam_words(ioam_type(trace)) && room % INT_WORD == 0 &&
	       INT_WORD * (trace->remaining & IOAM_REMAINING) <= room &&
	       (o->at - HOP_OPTIONS_AT) % INT_WORD == 0;
}

/* Finds telemetry in the hop-by-hop options; a trace of another namespace is nothing to this
 * domain. */
static __noinline enum carrying option_find(struct __sk_buff *skb, struct hop_option *o,
					    struct ioam_trace *trace)
{
	struct ioam_trace *there;
	bool broken = false;

	hop_option_find(skb, o);
	if (!o || !trace || !o->kind || !reach(skb, HOP_OPTIONS_AT + o->header))
		return CARRIES_NOTHING;
	if (o->kind == OPTION_IOAM) {
		there = packet_at(skb, AT_DATA(o), sizeof(*trace));
		broken = o->length < IOAM_HEADER || !there;
		if (!broken)
			*trace = *there;
		if (!broken && (trace->kind != IOAM_PREALLOCATED ||
				trace->namespace != bpf_htons(settings.namespace)))
			return CARRIES_NOTHING;
		broken = broken || !is_whole(o, trace);
	}
	if (!is_trusted(skb))
		return CARRIES_OUTSIDE;
	return broken ? CARRIES_BROKEN : CARRIES_TELEMETRY;
}

static __always_inline __u32 hop_limit_of(struct __sk_buff *skb)
{
	struct ipv6hdr *ip = packet_start(skb) + sizeof(struct ethhdr);

	return (void *)(ip + 1) <= packet_end(skb) ? ip->hop_limit : 0;
}

/* What the node knows for a trace of a type. */
static __always_inline void trace_observe(struct __sk_buff *skb, __u32 type,
					  struct ioam_observation *o)
{
	bool timed = type & (IOAM_SECONDS | IOAM_FRACTION);

	o->hop_limit = hop_limit_of(skb);
	observe(skb, timed || type & IOAM_DELAY ? INT_LATENCY : 0, &o->seen);
	if (timed)
		o->tai_offset_s = *(volatile __s32 *)&telemetry_lists.tai_offset_s;
}

/* ===== Source ===== */

/* Inserts an option with room for the nodes of the class, the source's own part written. */
static __always_inline int option_insert(struct __sk_buff *skb, struct int_scratch *s,
					 const struct telemetry_class *class)
{
	__u32 type = ioam_type_of(class->instructions), words = ioam_words(type);
	__u32 hops = class->hops, at = sizeof(struct ipv6hdr) + 6, length, header;
	bool traced = settings.encoding == ENCODING_IOAM;
	struct ioam_observation seen = {};

	length = traced ? IOAM_HEADER + INT_WORD * words * hops : MIDPOINT * hops;
	header = (6 + length + 7) & ~7;
	if (!hops || (traced && !words) || header > HOP_OPTIONS_MAX)
		return TC_ACT_UNSPEC;
	if (!fits(skb, header))
		return outcome_count(TELEMETRY_MTU);
	if (!int_copy(skb, s, sizeof(struct ipv6hdr)))
		return outcome_count(TELEMETRY_REFUSED);
	hop_option_write(s, traced ? OPTION_IOAM : OPTION_PATH_TRACING, length, header);
	length_add(s, 4, header);
	if (traced) {
		put16(s, at + 2, settings.namespace);
		put16(s, at + 4, words << 11 | words * (hops - 1));
		put32(s, at + 6, type << 8);
		trace_observe(skb, type, &seen);
		ioam_write(s, at + IOAM_HEADER + INT_WORD * words * (hops - 1), type, &seen);
	} else {
		midpoint_write(octet_at(s, at), skb->ifindex, settings.shift);
	}
	if (!store(skb, s, header, sizeof(struct ipv6hdr) + header))
		return outcome_count(TELEMETRY_REFUSED);
	return outcome_count(TELEMETRY_INSERTED);
}

/* ===== Transit =====
 * The header of a packet that is forwarded has no checksum of hardware any more. */

/* Writes what the node knows, of so many words, at an offset from the start of the frame. */
static __always_inline bool trace_write(struct __sk_buff *skb, __u32 at, __u32 words, __u32 type)
{
	struct ioam_observation seen = {};
	struct int_scratch *s;
	__u32 zero = 0;
	__be32 *to;

	trace_observe(skb, type, &seen);
	to = packet_at(skb, at, INT_WORD * IOAM_SHORT_WORDS);
	if (to && !(type & ~IOAM_SHORT)) {
		ioam_write_short(to, type, &seen);
		return true;
	}
	s = bpf_map_lookup_elem(&int_scratches, &zero);
	if (!s)
		return false;
	ioam_write(s, 0, type, &seen);
	return !words || !bpf_skb_store_bytes(skb, at, s->octets, some(INT_WORD * words, 128), 0);
}

/* Writes into the part of a trace that is free, from its end on. */
static __always_inline int trace_fill(struct __sk_buff *skb, const struct hop_option *o,
				      const struct ioam_trace *trace)
{
	__u32 type = ioam_type(trace), words = trace_words(trace);
	__u32 remaining = trace->remaining & IOAM_REMAINING;
	struct ioam_trace *there = packet_at(skb, AT_DATA(o), sizeof(*trace));

	if (!there)
		return outcome_count(TELEMETRY_REFUSED);
	if (words > remaining) {
		there->words |= IOAM_OVERFLOW;
		return outcome_count(TELEMETRY_HOPS);
	}
	there->remaining -= words;
	if (!trace_write(skb, AT_NODES(o) + INT_WORD * (remaining - words), words, type))
		return outcome_count(TELEMETRY_REFUSED);
	return outcome_count(TELEMETRY_IN_PLACE);
}

/* Shifts what nodes wrote by one, so that the oldest falls out when there is no room, and writes
 * in front. */
static __always_inline int midpoint_push(struct __sk_buff *skb, const struct hop_option *o)
{
	__u32 octets = midpoints_octets(o->length);
	__u8 *to;

	if (octets < MIDPOINT)
		return outcome_count(TELEMETRY_HOPS);
	if (octets > MIDPOINTS_MAX + MIDPOINT || !midpoints_shift(skb, AT_DATA(o), octets))
		return outcome_count(TELEMETRY_REFUSED);
	to = packet_at(skb, AT_DATA(o), MIDPOINT);
	if (!to)
		return outcome_count(TELEMETRY_REFUSED);
	midpoint_write(to, skb->ifindex, settings.shift);
	return outcome_count(TELEMETRY_IN_PLACE);
}

/* Writes what the node knows into an option that carries telemetry. */
static __always_inline int option_write(struct __sk_buff *skb, const struct hop_option *o,
					const struct ioam_trace *trace)
{
	if (skb->gso_size)
		return outcome_count(TELEMETRY_SEGMENTED);
	return o->kind == OPTION_IOAM ? trace_fill(skb, o, trace) : midpoint_push(skb, o);
}

static __noinline int option_transit(struct __sk_buff *skb, const struct hop_option *o,
				     const struct ioam_trace *trace)
{
	return o && trace ? option_write(skb, o, trace) : TC_ACT_UNSPEC;
}

/* First octet of trace types that a plain trace may have. */
#define IOAM_PLAIN (IOAM_SHORT >> 16)

/*
 * Finds an option where sources of this program put it: behind two octets of padding. A trace has
 * short fields alone. What follows the option does not matter to a transit.
 */
static __always_inline bool option_find_plain(struct __sk_buff *skb, struct hop_option *o,
					      struct ioam_trace *trace)
{
	struct ipv6hdr *ip = packet_start(skb) + sizeof(struct ethhdr);
	__u64 *octets = (void *)(ip + 1), first, second;
	__u32 payload;

	if ((void *)(octets + 2) > packet_end(skb) || ip->version != 6)
		return false;
	payload = bpf_ntohs(ip->payload_len);
	first = octets[0]; /* the header's next and length, padding, kind, length, 2 of its data */
	second = octets[1]; /* of a trace, from its namespace on */
	o->header = 8 + 8 * (first >> 8 & 0xff);
	o->kind = first >> 32 & 0xff;
	o->length = first >> 40 & 0xff;
	o->at = HOP_OPTIONS_AT + 4;
	if ((first >> 16 & 0xffff) != OPTION_PADN || 6 + o->length > o->header ||
	    o->header > payload || HOP_OPTIONS_AT + payload > skb->len ||
	    packet_end(skb) - packet_start(skb) < HOP_OPTIONS_AT + o->header || !is_trusted(skb))
		return false;
	if (o->kind == OPTION_PATH_TRACING)
		return true;
	*trace = (struct ioam_trace){ .namespace = second,
				      .words = second >> 16,
				      .remaining = second >> 24,
				      .type = { second >> 32 & IOAM_PLAIN } };
	return o->kind == OPTION_IOAM && first >> 56 == IOAM_PREALLOCATED &&
	       (second >> 32 & 0xffffff & ~IOAM_PLAIN) == 0 && o->length >= IOAM_HEADER &&
	       trace->namespace == bpf_htons(settings.namespace) && is_whole(o, trace);
}

/* The same as option_find and option_transit for what most options are; false: nothing is done. */
static __always_inline bool option_transit_plain(struct __sk_buff *skb)
{
	struct hop_option o = {};
	struct ioam_trace trace = {};

	if (!option_find_plain(skb, &o, &trace))
		return false;
	option_write(skb, &o, &trace);
	return true;
}

/* ===== Sink ===== */

/* What the nodes said of the way. An opaque snapshot, whose length each node chooses, hides it. */
static __always_inline void option_see(struct __sk_buff *skb, const struct hop_option *o,
				       const struct ioam_trace *trace,
				       struct telemetry_sight *sight)
{
	__u32 type, free;
	struct int_stack stack = { .node_mask = IOAM_NODE_MASK };

	if (o->kind == OPTION_PATH_TRACING) {
		if (midpoints_see(skb, o, &sight->path))
			sight->has |= TELEMETRY_HAS_PATH;
		return;
	}
	type = ioam_type(trace);
	if (type & IOAM_OPAQUE)
		return;
	free = trace->remaining & IOAM_REMAINING;
	stack.at = AT_NODES(o) + INT_WORD * free;
	stack.words = (o->length - IOAM_HEADER) / INT_WORD - free;
	stack.hop = ioam_words(type);
	stack.queue_mask = ~0;
	stack.has = (type & IOAM_NODE ? TELEMETRY_HAS_PATH : 0) |
		    (type & IOAM_QUEUE ? TELEMETRY_HAS_QUEUE : 0);
	stack.queue_at = ioam_words(type & ~(IOAM_QUEUE | (IOAM_QUEUE - 1)));
	stack_see(skb, &stack, sight);
}

/*
 * Takes the whole header out; beside other options, the telemetry and the padding around it, but
 * for what keeps those behind at multiples of 8 octets: Linux drops a packet with more than 7 of
 * padding in a row.
 */
static __always_inline int option_take_out(struct __sk_buff *skb, const struct hop_option *o)
{
	__u32 zero = 0, less = o->header, kept = sizeof(struct ipv6hdr), padding = 0;
	struct int_scratch *s = bpf_map_lookup_elem(&int_scratches, &zero);

	if (!o->alone) {
		kept = o->from - sizeof(struct ethhdr);
		padding = (o->to - o->from) & 7;
		less = o->to - o->from - padding;
	}
	if (!s || !int_copy(skb, s, kept))
		return outcome_count(TELEMETRY_REFUSED);
	if (o->alone) {
		*octet_at(s, __builtin_offsetof(struct ipv6hdr, nexthdr)) = o->next;
	} else {
		*octet_at(s, sizeof(struct ipv6hdr) + 1) -= less / 8;
		for (int i = 0; i < 8; i++)
			*octet_at(s, kept + i) = 0;
		padding_write(s, kept, padding);
	}
	length_add(s, 4, -less);
	if (!store(skb, s, -less, kept + padding))
		return outcome_count(TELEMETRY_REFUSED);
	return outcome_count(TELEMETRY_REMOVED);
}

/* Notes a packet whose option carries telemetry, and takes that out. */
static __noinline int option_sink(struct __sk_buff *skb, const struct hop_option *o,
				  const struct ioam_trace *trace)
{
	struct telemetry_sight sight = { .carries = 1 };
	struct int_outer outer = {};

	if (!o || !trace)
		return TC_ACT_UNSPEC;
	if (skb->gso_size)
		return outcome_count(TELEMETRY_SEGMENTED);
	if (watches() && int_walk(skb, &outer)) {
		option_see(skb, o, trace, &sight);
		if (is_inner(outer.protocol))
			watch(skb, sizeof(struct ethhdr) + outer.length, outer.protocol, &sight);
		else
			watch(skb, sizeof(struct ethhdr), IPPROTO_IPV6, &sight);
	}
	return option_take_out(skb, o);
}
