// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The queue that a packet is about to enter, read from the kernel's own structures at TC egress.
 */
#pragma once

#include "compat.h"

/* include/net/sch_generic.h: struct Qdisc.flags */
#define TCQ_F_MQROOT 0x8
#define TCQ_F_CPUSTATS 0x20

struct gnet_stats_queue {
	__u32 backlog; /* octets */
} __attribute__((preserve_access_index));

struct Qdisc {
	unsigned int flags;
	struct gnet_stats_queue qstats;
} __attribute__((preserve_access_index));

struct net_device {
	struct Qdisc *qdisc;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

/* The kernel's structure behind a program's context: Linux 6.2. */
extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;

#define QUEUE_UNKNOWN 0xffffffff
#define QUEUE_MAX 0xffffff

/* Octets that wait in the root qdisc, the packet not counted. Unknown where the kernel sums them up
 * only when asked: with a queue per CPU (pfifo_fast) or per hardware queue (mq). */
static __always_inline __u32 queue_of(struct __sk_buff *ctx)
{
	struct Qdisc *qdisc;
	struct sk_buff *skb;
	__u32 backlog;

	if (!bpf_cast_to_kern_ctx)
		return QUEUE_UNKNOWN;
	skb = bpf_cast_to_kern_ctx(ctx);
	qdisc = skb->dev->qdisc;
	if (!qdisc || qdisc->flags & (TCQ_F_MQROOT | TCQ_F_CPUSTATS))
		return QUEUE_UNKNOWN;
	backlog = qdisc->qstats.backlog;
	return backlog > QUEUE_MAX ? QUEUE_MAX : backlog;
}
