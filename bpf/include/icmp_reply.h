// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the edge says in a VIP's name: echo replies, and the Packet Too Big of RFC 4443 section 3.2
 * or the Fragmentation Needed of RFC 1191, its own and those that it translates for routers of the
 * SR domain (RFC 2473 section 8).
 */
#pragma once

#include "counters.h"
#include "transport.h"
#include "limit.h"
#include "nexthop.h"
#include "mss.h"
#include "service.h"
#include "srh.h"

#define ICMPV4_QUOTE_MAX 548 /* RFC 1812 section 4.3.2.3: 576 bytes in all */
#define ICMPV6_QUOTE_MAX 1232 /* RFC 4443 section 2.4: the minimum MTU in all */
#define ICMP_FRAG_NEEDED 4
#define ICMPV4_TOS 0xc0 /* internetwork control, RFC 1812 section 4.3.2.5 */
#define IPV6_MTU_MIN 1280 /* RFC 8200 section 5 */
#define IPV4_LOOPBACK 127 /* first octet */
#define IPV4_MULTICAST 224 /* and all behind it: class E, broadcast */
#define CSUM_DIFF_MAX 512 /* bytes that one call of the helper takes */

/* An ICMP error about a packet, of which the first bytes go back to its sender. */
struct icmp_error {
	struct address vip;
	struct address client;
	__u32 before; /* bytes in front of the quoted packet */
	__u32 quoted; /* bytes of it */
	__u32 mtu; /* 0: the error names none */
	__be16 type_code;
	__u8 hop_limit;
	bool ipv4;
};

struct icmp_header {
	__be16 type_code;
	__be16 checksum;
	__be32 rest; /* the MTU (IPv4: behind 16 bits of 0), or identifier and sequence */
};

/* What is summed: an ICMP message. */
struct message {
	struct icmp_header icmp;
	__u8 quote[ICMPV6_QUOTE_MAX];
};

/*
 * What is limited apart from each other, so that a flood of one kind leaves the others their
 * tokens.
 */
enum answer_kind {
	ANSWER_ECHO,
	ANSWER_TOO_BIG,
	ANSWER_TIME_EXCEEDED,
	ANSWER_UNREACHABLE,
	ANSWER_KINDS = 4 /* a power of two, so that a masked kind is in range */,
};

/* What is being said. It is not on the stack, which is full. */
struct answering {
	__u64 due[ANSWER_KINDS]; /* of the next answer */
	struct frame frame; /* L2 of the answer */
	struct icmp_error about;
	struct message message;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct answering);
} answers SEC(".maps");

/* Per kind and CPU, from the loader: as net.ipv4.icmp_msgs_per_sec, RFC 4443 section 2.4 (f). */
const volatile struct limit answer_limit = {};

static __always_inline struct answering *answering_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&answers, &zero);
}

static __always_inline __be16 checksum_fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* The message's sum, in parts that the helper takes. Its length is a multiple of 4. */
static __always_inline __u32 message_sum(struct message *m, __u32 length, __u32 seed)
{
	void *part = m;

#pragma unroll
	for (int i = 0; i < 3; i++) {
		__u32 size = length > CSUM_DIFF_MAX ? CSUM_DIFF_MAX : length;

		if (i == 2 && size > sizeof(*m) - 2 * CSUM_DIFF_MAX)
			break;
		if (size)
			seed = bpf_csum_diff(0, 0, part, size, seed);
		length -= size;
		part += CSUM_DIFF_MAX;
	}
	return seed;
}

struct pseudo_header {
	struct address source, destination;
	__be32 length;
	__be32 next;
};

/* Writes the IPv6 header, and returns the sum of the pseudo header. */
static __always_inline __u32 answer_ipv6(struct ipv6hdr *ip, const struct icmp_error *e,
					 __u32 length)
{
	struct pseudo_header pseudo = {
		.source = e->vip,
		.destination = e->client,
		.length = bpf_htonl(length),
		.next = bpf_htonl(IPPROTO_ICMPV6),
	};

	*(__be32 *)ip = bpf_htonl(6 << 28);
	ip->payload_len = bpf_htons(length);
	ip->nexthdr = IPPROTO_ICMPV6;
	ip->hop_limit = e->hop_limit;
	address_store(&ip->saddr, &e->vip);
	address_store(&ip->daddr, &e->client);
	return bpf_csum_diff(0, 0, (__be32 *)&pseudo, sizeof(pseudo), 0);
}

static __always_inline void answer_ipv4(struct iphdr *ip, const struct icmp_error *e, __u32 length)
{
	struct iphdr header = {
		.version = 4,
		.ihl = 5,
		.tos = ICMPV4_TOS,
		.tot_len = bpf_htons(sizeof(*ip) + length),
		.frag_off = bpf_htons(0x4000),
		.ttl = e->hop_limit,
		.protocol = IPPROTO_ICMP,
		.saddr = e->vip.word[1] >> 32,
		.daddr = e->client.word[1] >> 32,
	};

	header.check = checksum_fold(bpf_csum_diff(0, 0, (__be32 *)&header, sizeof(header), 0));
	*ip = header;
}

/* Makes the frame the ICMP error that is to be said. Not inlined, for the verifier's sake. */
__noinline int error_write(struct xdp_md *ctx)
{
	struct answering *a = answering_here();
	__u32 l2, header, quoted, sum = 0;
	struct icmp_header *icmp;
	struct ipv6hdr *ip;
	struct icmp_error *e;
	struct frame *f;

	if (!a)
		return -1;
	f = &a->frame;
	e = &a->about;
	l2 = frame_l2_length(f);
	header = e->ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	quoted = e->quoted;
	if (bpf_xdp_adjust_tail(ctx, (int)(e->before + quoted) - (int)bpf_xdp_get_buff_len(ctx)) ||
	    bpf_xdp_adjust_head(ctx, (int)e->before - (int)(l2 + header + sizeof(*icmp))))
		return -1;
	/* Two comparisons of the same register, right here: Linux 6.1 forgets the bounds of a
	 * number that was put aside. */
	barrier_var(quoted);
	if (quoted > ICMPV6_QUOTE_MAX)
		return -1;
	barrier_var(quoted);
	if (quoted < sizeof(struct iphdr) ||
	    bpf_xdp_load_bytes(ctx, l2 + header + sizeof(*icmp), a->message.quote, quoted))
		return -1;
	f->ethertype = e->ipv4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	if (!frame_write(f, (void *)(long)ctx->data, (void *)(long)ctx->data_end))
		return -1;
	ip = (void *)(long)ctx->data + (l2 & OFFSET_MAX);
	if ((void *)(ip + 1) + sizeof(*icmp) > (void *)(long)ctx->data_end)
		return -1;
	a->message.icmp.type_code = e->type_code;
	a->message.icmp.checksum = 0;
	a->message.icmp.rest = bpf_htonl(e->mtu);
	if (e->ipv4) {
		answer_ipv4((void *)ip, e, sizeof(*icmp) + quoted);
		icmp = (void *)ip + sizeof(struct iphdr);
	} else {
		sum = answer_ipv6(ip, e, sizeof(*icmp) + quoted);
		icmp = (void *)(ip + 1);
	}
	*icmp = a->message.icmp;
	icmp->checksum = checksum_fold(message_sum(&a->message, sizeof(*icmp) + quoted, sum));
	return 0;
}

/* How much of a packet is quoted: a multiple of 4, for the checksum's sake. */
static __always_inline __u32 quote_length(__u32 length, bool ipv4)
{
	__u32 most = ipv4 ? ICMPV4_QUOTE_MAX : ICMPV6_QUOTE_MAX;

	return (length < most ? length : most) & ~3;
}

/*
 * The address of one host, which can be answered: RFC 1812 sections 4.3.2.7 and 5.3.7, RFC 4443
 * section 2.4 (e). The first half of ::, ::1 and IPv4-mapped addresses is 0; 64:ff9b::/96 is a
 * translator's.
 */
static __always_inline bool is_single_host(const struct address *a, bool ipv4)
{
	__u8 first = ipv4 ? a->word[1] >> 32 : a->word[0];

	return ipv4 ? first && first != IPV4_LOOPBACK && first < IPV4_MULTICAST :
		      first != 0xff && a->word[0];
}

/* Whether there may be an answer, which goes from one address to the other: not to itself. */
static __always_inline bool is_answerable(const struct address *from, const struct address *to,
					  bool ipv4)
{
	return is_single_host(from, ipv4) && is_single_host(to, ipv4) &&
	       (from->word[0] != to->word[0] || from->word[1] != to->word[1]);
}

/* Whether a frame was for this node alone: RFC 1812 section 4.3.2.7, RFC 4443 section 2.4 (e.4). */
static __always_inline bool is_unicast_frame(const struct frame *f)
{
	return !(f->addresses.word[0] & 1); /* the group bit of the destination's first byte */
}

/* As ticks tell it: reading the clock takes as long as an echo reply. */
static __always_inline __u64 answer_time(void)
{
	return bpf_jiffies64() * (1000000000 / jiffies_per_second);
}

static __always_inline bool answer_take_token(struct answering *a, enum answer_kind kind)
{
	return limit_allows(&answer_limit, &a->due[kind & (ANSWER_KINDS - 1)], answer_time());
}

static __always_inline __be16 error_type(enum answer_kind kind, bool ipv4)
{
	if (kind == ANSWER_UNREACHABLE)
		return bpf_htons(ICMPV6_DEST_UNREACHABLE << 8 | ICMPV6_ADDRESS_UNREACHABLE);
	if (kind == ANSWER_TIME_EXCEEDED)
		return bpf_htons((ipv4 ? ICMP_TIME_EXCEEDED : ICMPV6_TIME_EXCEEDED) << 8);
	return ipv4 ? bpf_htons(ICMP_DEST_UNREACHABLE << 8 | ICMP_FRAG_NEEDED) :
		      bpf_htons(ICMPV6_PACKET_TOO_BIG << 8);
}

static __always_inline enum drop_reason error_reason(enum answer_kind kind)
{
	if (kind == ANSWER_UNREACHABLE)
		return REASON_BELOW_MIN_MTU;
	return kind == ANSWER_TIME_EXCEEDED ? REASON_HOP_LIMIT : REASON_PACKET_TOO_BIG;
}

/*
 * How a packet of that length is told that only mtu bytes fit. No IPv6 sender goes below 1,280 (RFC
 * 8201 section 4), so it is never told less; what is no longer and does not fit can't be carried,
 * as by a link with a problem (RFC 4443 section 3.1).
 */
static __always_inline enum answer_kind too_big_kind(__u32 length, bool ipv4, __u32 *mtu)
{
	if (ipv4 || *mtu >= IPV6_MTU_MIN)
		return ANSWER_TOO_BIG;
	*mtu = length > IPV6_MTU_MIN ? IPV6_MTU_MIN : 0;
	return *mtu ? ANSWER_TOO_BIG : ANSWER_UNREACHABLE;
}

/*
 * Tells the sender why its packet goes no further: that it may have mtu bytes, or that it has made
 * too many hops. The error goes back the way that the packet came. If there can be none, the packet
 * is dropped for the reason.
 */
static __always_inline int error_answer(struct xdp_md *ctx, const struct frame *f,
					const struct packet *p, enum answer_kind kind, __u32 mtu,
					__u8 hop_limit)
{
	struct answering *a = answering_here();
	enum drop_reason reason;

	if (kind == ANSWER_TOO_BIG)
		kind = too_big_kind(p->length, p->flow.ipv4, &mtu);
	reason = error_reason(kind);
	if (!a || p->icmp || p->fragment == FRAGMENT_LATER || !is_unicast_frame(f) ||
	    !is_answerable(&p->flow.destination, &p->flow.source, p->flow.ipv4))
		return drop(reason);
	if (!answer_take_token(a, kind))
		return drop(REASON_ICMP_LIMIT);
	frame_turn(&a->frame, f);
	a->about.vip = p->flow.destination;
	a->about.client = p->flow.source;
	a->about.before = p->ip;
	a->about.quoted = quote_length(p->length, p->flow.ipv4);
	a->about.mtu = mtu;
	a->about.type_code = error_type(kind, p->flow.ipv4);
	a->about.hop_limit = hop_limit;
	a->about.ipv4 = p->flow.ipv4;
	if (error_write(ctx))
		return drop(reason);
	if (kind == ANSWER_TOO_BIG)
		count_in(&outcomes, OUTCOME_TOO_BIG_ANSWERED);
	else
		count_in(&drops, reason);
	return XDP_TX;
}

/* Turns an echo request, which has neither options nor extension headers, into its reply. Not
 * inlined, for the verifier's sake. */
__noinline int echo_turn(struct xdp_md *ctx, const struct packet *p, __u32 hop_limit)
{
	struct answering *a = answering_here();
	void *end = (void *)(long)ctx->data_end;
	struct icmp_header *icmp;
	struct ipv6hdr *ip;
	__be16 before;

	if (!a || !p)
		return XDP_ABORTED;
	ip = (void *)(long)ctx->data + (p->ip & OFFSET_MAX);
	icmp = (void *)(long)ctx->data + (p->transport & OFFSET_MAX);
	if ((void *)(icmp + 1) > end || (void *)ip + sizeof(struct iphdr) > end ||
	    !frame_write(&a->frame, (void *)(long)ctx->data, end))
		return drop(REASON_TRUNCATED);
	if (p->flow.ipv4) {
		struct iphdr *ip4 = (void *)ip;
		__be32 source = ip4->saddr;
		__be16 *ttl = (__be16 *)&ip4->ttl;

		ip4->saddr = ip4->daddr;
		ip4->daddr = source;
		before = *ttl;
		ip4->ttl = hop_limit;
		ip4->check = checksum_replace(ip4->check, before, *ttl);
	} else if ((void *)(ip + 1) <= end) {
		ip->hop_limit = hop_limit;
		address_store(&ip->saddr, &p->flow.destination);
		address_store(&ip->daddr, &p->flow.source);
	}
	before = icmp->type_code;
	icmp->type_code = p->flow.ipv4 ? 0 : bpf_htons((ICMPV6_ECHO_REQUEST + 1) << 8);
	icmp->checksum = checksum_replace(icmp->checksum, before, icmp->type_code);
	/*
	 * A message of zeros adds up to a positive zero, which RFC 1624 rules out. Without
	 * identifier and sequence it is one.
	 */
	if (p->flow.ipv4 && !icmp->checksum && !icmp->rest)
		icmp->checksum = 0xffff;
	count_in(&outcomes, OUTCOME_ECHOED);
	return XDP_TX;
}

static __always_inline int echo_reply(struct xdp_md *ctx, const struct frame *f,
				      const struct packet *p, __u8 hop_limit)
{
	struct answering *a = answering_here();

	if (!a || !is_unicast_frame(f) ||
	    !is_answerable(&p->flow.destination, &p->flow.source, p->flow.ipv4))
		return drop(REASON_UNANSWERABLE);
	if (!answer_take_token(a, ANSWER_ECHO))
		return drop(REASON_ICMP_LIMIT);
	frame_turn(&a->frame, f);
	return echo_turn(ctx, p, hop_limit);
}
