// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The IPv4 header of a packet that is forwarded: its checksum (RFC 1812 section 5.2.2) and its
 * options (RFC 7126).
 */
#pragma once

#include "ip.h"

#define OPTION_END 0
#define OPTION_NOP 1
#define OPTION_LOOSE_SOURCE_ROUTE 131
#define OPTION_STRICT_SOURCE_ROUTE 137
#define IPV4_OPTIONS_MAX 40

struct ipv4_options {
	__u8 octets[64]; /* 40 at most; a power of two, so that a masked index is in range */
	__u32 length;
	__u32 at; /* the next option */
	bool wrong;
};

/* Looks at one option. Returns 1 to stop. */
static long option_step(__u32 step, struct ipv4_options *o)
{
	__u32 at = o->at;
	__u8 kind, length;

	if (at >= o->length)
		return 1;
	kind = o->octets[at & 63];
	if (kind == OPTION_END)
		return 1;
	if (kind == OPTION_NOP) {
		o->at++;
		return 0;
	}
	length = at + 1 < o->length ? o->octets[(at + 1) & 63] : 0;
	o->wrong = length < 2 || at + length > o->length || kind == OPTION_LOOSE_SOURCE_ROUTE ||
		   kind == OPTION_STRICT_SOURCE_ROUTE;
	o->at += length;
	return o->wrong;
}

/*
 * The sum of a header without options, or of the part before them, with the carries in the upper
 * half.
 */
static __always_inline __u64 ipv4_sum(const struct iphdr *ip)
{
	const __u32 *word = (const __u32 *)ip;

	return (__u64)word[0] + word[1] + word[2] + word[3] + word[4];
}

/* With its checksum, a header adds up to a negative zero: RFC 1071. */
static __always_inline bool ipv4_sum_is_right(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* The same in fewer steps. Of the few sums that carry again, false says nothing. */
static __always_inline bool ipv4_sum_is_plainly_right(__u64 sum)
{
	sum += sum >> 32;
	return ((sum ^ sum >> 16) & 0xffff) == 0xffff; /* the halves add up to 0xffff */
}

/*
 * Judges a header with options, of which sum is the part before them. Not inlined, for the
 * verifier's sake.
 */
__noinline int ipv4_options_check(struct xdp_md *ctx, __u32 offset, __u32 length, __u64 sum)
{
	struct ipv4_options o = {};

	/*
	 * Two comparisons of the same register: Linux 6.1 forgets the bounds of a number that was
	 * put aside.
	 */
	barrier_var(length);
	if (length > IPV4_OPTIONS_MAX)
		return REASON_TRUNCATED;
	barrier_var(length);
	if (length < 4 || bpf_xdp_load_bytes(ctx, offset, o.octets, length))
		return REASON_TRUNCATED;
	/* What is behind the options is 0. */
	if (!ipv4_sum_is_right(sum +
			       (__u32)bpf_csum_diff(0, 0, (__be32 *)o.octets, IPV4_OPTIONS_MAX, 0)))
		return REASON_BAD_CHECKSUM;
	o.length = length;
	bpf_loop(IPV4_OPTIONS_MAX, option_step, &o, 0);
	return o.wrong ? REASON_IP_OPTIONS : REASON_NONE;
}

/*
 * Parses the IPv4 header of a packet that may be forwarded. Returns 0 or the reason to drop at
 * once.
 */
static __always_inline int ipv4_forward_parse(struct xdp_md *ctx, struct cursor *c,
					      struct packet *p)
{
	const struct iphdr *ip = c->pos;
	int reason = ipv4_parse(c, p);
	__u32 behind = p->ip + sizeof(*ip);

	if (reason)
		return reason;
	if (likely(c->offset == behind))
		return ipv4_sum_is_right(ipv4_sum(ip)) ? REASON_NONE : REASON_BAD_CHECKSUM;
	reason = ipv4_options_check(ctx, behind, c->offset - behind, ipv4_sum(ip));
	if (reason != REASON_IP_OPTIONS)
		return reason;
	p->error = reason;
	return REASON_NONE;
}
