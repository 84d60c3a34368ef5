// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The bench's driver for programs of TC. Like bench.c it writes the frame anew and tail-calls the
 * program under test, which is vrf_ask: the packet looks as if stray_lead had sent it. Only the
 * bench loads this object.
 */
#define FOR_TC

#include "include/bench_driver.h"

#include <linux/pkt_cls.h>

SEC("tc")
int drive(struct __sk_buff *skb)
{
	skb->tc_index = 1; /* ask for the VRF of number 0 */
	if (!frame_renew(skb, next_flow()))
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

char _license[] SEC("license") = "Dual BSD/GPL";
