// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the edge says in a VIP's name: echo replies, and the Packet Too Big of RFC 4443 section 3.2 or the Fragmentation
 * Needed of RFC 1191, its own and those that it translates for routers of the SR domain (RFC 2473 section 8).
 */
#pragma once

#include "counters.h"
#include "transport.h"
#include "limit.h"
#include "mss.h"
#include "service.h"
#include "srh.h"

#define ICMPV4_QUOTE_MAX 548 /* RFC 1812 section 4.3.2.3: 576 bytes in all */
#define ICMPV6_QUOTE_MAX 1232 /* RFC 4443 section 2.4: the minimum MTU in all */
#define ICMP_FRAG_NEEDED 4
#define ICMPV4_TOS 0xc0 /* internetwork control, RFC 1812 section 4.3.2.5 */
#define CSUM_DIFF_MAX 512 /* bytes that one call of the helper takes */

/* A Packet Too Big about the packet that starts at, of which quoted bytes go back to its sender. */
struct too_big {
	struct address vip;
	struct address client;
	__u32 before; /* bytes in front of the quoted packet */
	__u32 quoted; /* bytes of it */
	__u32 mtu;
	__u8 hop_limit;
	bool ipv4;
};

struct icmp_header {
	__be16 type_code;
	__be16 checksum;
	__be32 mtu; /* IPv4: 16 bits of 0, 16 bits of MTU */
};

/* What is summed: an ICMP message. */
struct message {
	struct icmp_header icmp;
	__u8 quote[ICMPV6_QUOTE_MAX];
};

/* What is being said. It is not on the stack, which is full. */
struct answering {
	__u64 due; /* of the next Packet Too Big */
	struct frame frame; /* L2 of the answer */
	struct too_big about;
	struct message message;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct answering);
} answers SEC(".maps");

/* Per CPU, from the loader. */
const volatile struct limit too_big_limit = {};

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
static __always_inline __u32 answer_ipv6(struct ipv6hdr *ip, const struct too_big *t, __u32 length)
{
	struct pseudo_header pseudo = {
		.source = t->vip,
		.destination = t->client,
		.length = bpf_htonl(length),
		.next = bpf_htonl(IPPROTO_ICMPV6),
	};

	*(__be32 *)ip = bpf_htonl(6 << 28);
	ip->payload_len = bpf_htons(length);
	ip->nexthdr = IPPROTO_ICMPV6;
	ip->hop_limit = t->hop_limit;
	address_store(&ip->saddr, &t->vip);
	address_store(&ip->daddr, &t->client);
	return bpf_csum_diff(0, 0, (__be32 *)&pseudo, sizeof(pseudo), 0);
}

static __always_inline void answer_ipv4(struct iphdr *ip, const struct too_big *t, __u32 length)
{
	struct iphdr header = {
		.version = 4,
		.ihl = 5,
		.tos = ICMPV4_TOS,
		.tot_len = bpf_htons(sizeof(*ip) + length),
		.frag_off = bpf_htons(0x4000),
		.ttl = t->hop_limit,
		.protocol = IPPROTO_ICMP,
		.saddr = t->vip.word[1] >> 32,
		.daddr = t->client.word[1] >> 32,
	};

	header.check = checksum_fold(bpf_csum_diff(0, 0, (__be32 *)&header, sizeof(header), 0));
	*ip = header;
}

/* Makes the frame the Packet Too Big that is to be said. Not inlined, for the verifier's sake. */
__noinline int too_big_write(struct xdp_md *ctx)
{
	struct answering *a = answering_here();
	__u32 l2, header, quoted, sum = 0;
	struct icmp_header *icmp;
	struct ipv6hdr *ip;
	struct too_big *t;
	struct frame *f;

	if (!a)
		return -1;
	f = &a->frame;
	t = &a->about;
	l2 = frame_l2_length(f);
	header = t->ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	quoted = t->quoted;
	if (bpf_xdp_adjust_tail(ctx, (int)(t->before + quoted) - (int)bpf_xdp_get_buff_len(ctx)) ||
	    bpf_xdp_adjust_head(ctx, (int)t->before - (int)(l2 + header + sizeof(*icmp))))
		return -1;
	/* Two comparisons of the same register, right here: Linux 6.1 forgets the bounds of a number that was put aside. */
	barrier_var(quoted);
	if (quoted > ICMPV6_QUOTE_MAX)
		return -1;
	barrier_var(quoted);
	if (quoted < sizeof(struct iphdr) ||
	    bpf_xdp_load_bytes(ctx, l2 + header + sizeof(*icmp), a->message.quote, quoted))
		return -1;
	f->ethertype = t->ipv4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	if (!frame_write(f, (void *)(long)ctx->data, (void *)(long)ctx->data_end))
		return -1;
	ip = (void *)(long)ctx->data + (l2 & OFFSET_MAX);
	if ((void *)(ip + 1) + sizeof(*icmp) > (void *)(long)ctx->data_end)
		return -1;
	a->message.icmp.type_code = t->ipv4 ? bpf_htons(ICMP_DEST_UNREACHABLE << 8 | ICMP_FRAG_NEEDED) :
					      bpf_htons(ICMPV6_PACKET_TOO_BIG << 8);
	a->message.icmp.checksum = 0;
	a->message.icmp.mtu = bpf_htonl(t->mtu);
	if (t->ipv4) {
		answer_ipv4((void *)ip, t, sizeof(*icmp) + quoted);
		icmp = (void *)ip + sizeof(struct iphdr);
	} else {
		sum = answer_ipv6(ip, t, sizeof(*icmp) + quoted);
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

/* Nobody to answer: RFC 1812 section 4.3.2.7, RFC 4443 section 2.4 (e). */
static __always_inline bool is_no_sender(const struct address *a, bool ipv4)
{
	__u8 first = ipv4 ? a->word[1] >> 32 : a->word[0];

	return ipv4 ? first == 0 || first >= 224 : first == 0xff || (a->word[0] == 0 && a->word[1] == 0);
}

/* Tells the client that its packet may have mtu bytes. It goes back the way that the packet came. */
static __always_inline int too_big_answer(struct xdp_md *ctx, const struct frame *f, const struct packet *p, __u32 mtu,
					  __u8 hop_limit)
{
	struct answering *a = answering_here();

	if (!a || p->icmp || p->fragment == FRAGMENT_LATER || is_no_sender(&p->flow.source, p->flow.ipv4) ||
	    !limit_allows(&too_big_limit, &a->due, bpf_ktime_get_ns()))
		return drop(REASON_PACKET_TOO_BIG);
	frame_turn(&a->frame, f);
	a->about.vip = p->flow.destination;
	a->about.client = p->flow.source;
	a->about.before = p->ip;
	a->about.quoted = quote_length(p->length, p->flow.ipv4);
	a->about.mtu = mtu;
	a->about.hop_limit = hop_limit;
	a->about.ipv4 = p->flow.ipv4;
	if (too_big_write(ctx))
		return drop(REASON_PACKET_TOO_BIG);
	count_in(&outcomes, OUTCOME_TOO_BIG_ANSWERED);
	return XDP_TX;
}

/* Turns an echo request, which has neither options nor extension headers, into its reply. Not inlined, for the verifier's sake. */
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
	count_in(&outcomes, OUTCOME_ECHOED);
	return XDP_TX;
}

static __always_inline int echo_reply(struct xdp_md *ctx, const struct frame *f, const struct packet *p, __u8 hop_limit)
{
	struct answering *a = answering_here();

	if (a)
		frame_turn(&a->frame, f);
	return echo_turn(ctx, p, hop_limit);
}
