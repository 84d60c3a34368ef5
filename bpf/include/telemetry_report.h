// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the sink notes of packets, and hands to user space. */
#pragma once

#include "telemetry_flow.h"
#include "telemetry_outcome.h"

#define TELEMETRY_CAPTURE 512

/* A packet that came to the sink, and why it is told of. */
struct telemetry_event {
	__u64 time_ns; /* TAI */
	__u64 gap_ns; /* since the packet before */
	__u32 interface; /* on which it came */
	__u32 reasons; /* enum telemetry_reason */
	__u32 reserved;
	__u32 length; /* octets that follow the flow */
	struct telemetry_flow_key flow; /* version 0: none */
	__u8 octets[TELEMETRY_CAPTURE]; /* from the outer IPv6 header on */
};

/* Nothing else brings the type into the object's BTF, of which its Go twin is made. */
const struct telemetry_event *telemetry_event_type __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} telemetry_events SEC(".maps");

/* Hands the packet's headers to user space. */
static __noinline int report(struct __sk_buff *skb, __u32 reasons, __u64 gap,
			     const struct telemetry_flow_key *flow)
{
	__u32 length = skb->len - sizeof(struct ethhdr);
	struct telemetry_event *event;

	if (length > TELEMETRY_CAPTURE)
		length = TELEMETRY_CAPTURE;
	if (!length || !flow)
		return outcome_count(TELEMETRY_LOST);
	event = bpf_ringbuf_reserve(&telemetry_events, sizeof(*event), 0);
	if (!event)
		return outcome_count(TELEMETRY_LOST);
	event->time_ns = bpf_ktime_get_tai_ns();
	event->gap_ns = gap;
	event->interface = skb->ifindex;
	event->reasons = reasons;
	event->reserved = 0;
	event->length = length;
	event->flow = *flow;
	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), event->octets,
			       some(length, TELEMETRY_CAPTURE)))
		event->length = 0;
	bpf_ringbuf_submit(event, 0);
	for (__u32 bit = 0; bit < TELEMETRY_REASONS; bit++) {
		__u32 key = bit; /* whose address clang may take: the verifier counts with bit */
		__u64 *counter = bpf_map_lookup_elem(&telemetry_reasons, &key);

		if (counter)
			*counter += reasons >> bit & 1;
	}
	return TC_ACT_UNSPEC;
}

/* Notes the packet for its flow, and reports it if that is worth it. The inner packet is at an
 * offset from the start of the frame. */
static __noinline int watch(struct __sk_buff *skb, __u32 at, __u32 protocol,
			    struct telemetry_sight *sight)
{
	struct telemetry_flow_key key = {};
	struct telemetry_flow *flow = 0;
	struct telemetry_watch *w;
	__u32 zero = 0, reasons;

	w = bpf_map_lookup_elem(&telemetry_watches, &zero);
	if (!w || !w->reasons || !sight)
		return 0;
	sight->now_ns = bpf_ktime_get_ns();
	reasons = sight->carries ? TELEMETRY_EACH : 0;
	if (inner_flow(skb, at, protocol, &key, &sight->tcp))
		reasons |= flow_see(&key, w, sight, &flow);
	reasons &= w->reasons;
	if (!reasons)
		return 0;
	if (flow && flow->report_ns && since(sight->now_ns, flow->report_ns) < w->flow_interval_ns)
		return outcome_count(TELEMETRY_FLOW_LIMIT);
	if (!budget_take(sight->now_ns, w->limit))
		return outcome_count(TELEMETRY_LIMIT);
	if (flow)
		flow->report_ns = sight->now_ns;
	return report(skb, reasons, sight->gap_ns, &key);
}

/* Whether the sink wants to see packets without telemetry, too. */
static __always_inline bool watches(void)
{
	__u32 zero = 0;
	struct telemetry_watch *w = bpf_map_lookup_elem(&telemetry_watches, &zero);

	return w && w->reasons;
}
