// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The bench's driver for programs of TC. Like bench.c it writes the frame anew and tail-calls the
 * program under test: vrf_ask, to which the packet looks as if stray_lead had sent it, and those of
 * in-band telemetry. Only tests load this object.
 */
#define FOR_TC

#include "include/bench_driver.h"
#include "include/meter.h"

#include <linux/pkt_cls.h>

/* Gives the frame the length again that it had before the last repeat: what became more or less is
 * behind its Ethernet header. */
static __always_inline bool length_renew(struct __sk_buff *skb)
{
	int more = ETH_HLEN + driver.count * sizeof(__u64) - skb->len;

	return !more || !bpf_skb_adjust_room(skb, more, BPF_ADJ_ROOM_MAC, 0);
}

SEC("tc")
int drive(struct __sk_buff *skb)
{
	skb->tc_index = 1; /* ask for the VRF of number 0 */
	if (!length_renew(skb) || !frame_renew(skb, next_flow()))
		return TC_ACT_SHOT;
	bpf_tail_call(skb, &target, 0);
	return TC_ACT_SHOT;
}

/* What the driver costs: a target that does nothing. */
SEC("tc")
int nothing(struct __sk_buff *skb)
{
	return TC_ACT_UNSPEC;
}

/* The yardstick of telemetry: 40 octets more behind the Ethernet header, without a look at the
 * packet. */
SEC("tc")
int bare(struct __sk_buff *skb)
{
	return bpf_skb_adjust_room(skb, 40, BPF_ADJ_ROOM_MAC, 0) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

/* One read of the clock that nodes of Path Tracing write. */
SEC("tc")
int clock(struct __sk_buff *skb)
{
	return bpf_ktime_get_tai_ns() ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

struct meter_question {
	struct meter meter;
	__u64 octets;
	__u64 now;
	__u64 constant;
};

/* Reads a meter, for the comparison with Go. */
SEC("syscall")
int meter_ask(struct meter_question *q)
{
	struct meter m = q->meter;

	meter_read(&m, q->octets, q->now, q->constant);
	q->meter = m;
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
