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

/* u64_stats_t of 64-bit machines, by the names of its parts. */
struct atomic64 {
	__s64 counter;
} __attribute__((preserve_access_index));

struct local {
	struct atomic64 a;
} __attribute__((preserve_access_index));

struct local64 {
	struct local a;
} __attribute__((preserve_access_index));

struct u64_stats {
	struct local64 v;
} __attribute__((preserve_access_index));

/* Linux 5.16 */
struct gnet_stats_basic_sync {
	struct u64_stats bytes;
} __attribute__((preserve_access_index));

struct Qdisc {
	void *enqueue; /* NULL: noqueue, which counts nothing */
	unsigned int flags;
	struct gnet_stats_basic_sync bstats;
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

/* The root qdisc of the packet's interface. NULL where the kernel sums up what it counts only when
 * asked: with counters per CPU (pfifo_fast) or a queue per hardware queue (mq). */
static __always_inline struct Qdisc *root_qdisc(struct __sk_buff *ctx)
{
	struct Qdisc *qdisc;
	struct sk_buff *skb;

	if (!bpf_cast_to_kern_ctx)
		return NULL;
	skb = bpf_cast_to_kern_ctx(ctx);
	qdisc = skb->dev->qdisc;
	return qdisc && !(qdisc->flags & (TCQ_F_MQROOT | TCQ_F_CPUSTATS)) ? qdisc : NULL;
}

/* Octets that wait in the root qdisc, the packet not counted. */
static __always_inline __u32 queue_of(struct __sk_buff *ctx)
{
	struct Qdisc *qdisc = root_qdisc(ctx);
	__u32 backlog;

	if (!qdisc)
		return QUEUE_UNKNOWN;
	backlog = qdisc->qstats.backlog;
	return backlog > QUEUE_MAX ? QUEUE_MAX : backlog;
}
