// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies of packets for "sextant capture", each with what the program did with it. A program is
 * loaded with capture_bytes above 0 only while a capture runs, and put in place of the plain
 * one by a link update; with 0 the verifier removes all of this.
 *
 * The frame is copied when it arrives, for it is rewritten on its way, and handed over with the
 * verdict when it leaves.
 */
#pragma once

#include "compat.h"

#define CAPTURE_MAX 4096 /* bytes of a frame; datapath.CaptureMax */

struct capture {
	__u64 time; /* nanoseconds of the monotonic clock */
	__u32 interface; /* where it arrived */
	__u32 length; /* of the frame as it arrived */
	__u32 kept; /* bytes of it that follow */
	__u32 verdict; /* enum xdp_action */
	__u32 reason; /* enum drop_reason */
	__u32 outcome; /* 1 + enum outcome; 0: none */
	__u64 lost; /* packets on this CPU that did not fit the ring buffer so far */
	__u8 bytes[CAPTURE_MAX];
};

#define CAPTURE_HEADER __builtin_offsetof(struct capture, bytes)

/* How many bytes of each frame are copied; 0: nothing is captured. */
const volatile __u32 capture_bytes = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct capture);
} capture_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* the loader makes room for a capture */
} captured SEC(".maps");

static __always_inline struct capture *capture_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&capture_scratch, &zero);
}

/* When a frame arrives. */
static __noinline int capture_begin(struct xdp_md *ctx)
{
	struct capture *c = capture_here();
	__u32 kept;

	if (!c)
		return 0;
	c->time = bpf_ktime_get_ns();
	c->interface = ctx->ingress_ifindex;
	c->length = bpf_xdp_get_buff_len(ctx);
	c->reason = 0;
	c->outcome = 0;
	c->kept = 0;
	kept = c->length < capture_bytes ? c->length : capture_bytes;
	if (kept > CAPTURE_MAX)
		kept = CAPTURE_MAX;
	/*
	 * Two comparisons of the same register, right here: Linux 6.1 forgets the bounds of a
	 * number that was put aside, and learns nothing from one that is not zero. No frame is
	 * shorter than its header.
	 */
	barrier_var(kept);
	if (kept > CAPTURE_MAX)
		return 0;
	barrier_var(kept);
	if (kept >= ETH_HLEN && !bpf_xdp_load_bytes(ctx, 0, c->bytes, kept))
		c->kept = kept;
	return 0;
}

/* What has been counted for the frame. */
static __noinline int capture_note(__u32 reason, __u32 outcome)
{
	struct capture *c = capture_here();

	if (c && reason)
		c->reason = reason;
	if (c && outcome)
		c->outcome = outcome;
	return 0;
}

/* When the program is done with it. */
static __noinline int capture_end(__u32 verdict)
{
	struct capture *c = capture_here();
	__u32 kept;

	if (!c)
		return 0;
	c->verdict = verdict;
	kept = c->kept;
	if (kept > CAPTURE_MAX)
		return 0;
	if (bpf_ringbuf_output(&captured, c, CAPTURE_HEADER + kept, 0))
		c->lost++;
	return 0;
}

/* A program's entry: its verdict, judged between the two. */
#define CAPTURED(ctx, judged)                  \
	({                                     \
		int verdict_;                  \
		if (capture_bytes)             \
			capture_begin(ctx);    \
		verdict_ = judged;             \
		if (capture_bytes)             \
			capture_end(verdict_); \
		verdict_;                      \
	})
