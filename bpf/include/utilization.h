// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How much of a link's rate is used, for packets that ask: by the octets that the root qdisc of the
 * interface has sent, where it counts them, and else as user space measured.
 */
#pragma once

#include "meter.h"
#include "queue.h"

#define UTILIZATION_UNKNOWN 0xffffffff
#define PER_MILLION 1000000

/* Of an interface, known to user space. */
struct telemetry_rate {
	__u64 rate; /* octets per 2^METER_UNIT ns */
	__u64 constant; /* of the meter, ns */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32); /* index of the interface */
	__type(value, struct telemetry_rate);
} telemetry_rates SEC(".maps");

/* Begin with the first packet that asks. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32); /* index of the interface */
	__type(value, struct meter);
} telemetry_meters SEC(".maps");

/* How much of the rate of an interface is used, in parts per million: user space writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32); /* its index */
	__type(value, __u32);
} telemetry_utilization SEC(".maps");

/* As user space measured. */
static __always_inline __u32 utilization_looked_up(__u32 interface)
{
	__u32 *ppm = bpf_map_lookup_elem(&telemetry_utilization, &interface);

	return ppm ? *ppm : UTILIZATION_UNKNOWN;
}

/* By what the qdisc has sent; unknown to the first packet. */
static __always_inline __u32 utilization_metered(__u32 interface, const struct telemetry_rate *link,
						 __u64 octets)
{
	struct meter *m = bpf_map_lookup_elem(&telemetry_meters, &interface);
	__u64 now = bpf_ktime_get_ns(), rate;

	if (!m) {
		struct meter begun = { .at = now, .octets = octets };

		bpf_map_update_elem(&telemetry_meters, &interface, &begun, BPF_NOEXIST);
		return UTILIZATION_UNKNOWN;
	}
	rate = meter_read(m, octets, now, link->constant);
	return rate < link->rate ? rate * PER_MILLION / link->rate : PER_MILLION;
}

static __always_inline __u32 utilization_of(struct __sk_buff *ctx)
{
	__u32 interface = ctx->ifindex;
	struct telemetry_rate *link = bpf_map_lookup_elem(&telemetry_rates, &interface);
	struct Qdisc *qdisc = link && link->rate ? root_qdisc(ctx) : NULL;

	if (!qdisc || !qdisc->enqueue)
		return utilization_looked_up(interface);
	return utilization_metered(interface, link, qdisc->bstats.bytes.v.a.a.counter);
}
