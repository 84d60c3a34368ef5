// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Layer 4 of a client's packet. An ICMP error is a packet of the flow that it quotes, the other way
 * round: it hashes to the same chain, and the same host has the socket. RFC 792, RFC 4443.
 */
#pragma once

#include "ip.h"

#define ICMP_HEADER 8
#define ICMP_DEST_UNREACHABLE 3
#define ICMP_ECHO_REQUEST 8
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETER_PROBLEM 12
#define ICMPV6_DEST_UNREACHABLE 1
#define ICMPV6_ADDRESS_UNREACHABLE 3 /* code: also a problem of a link */
#define ICMPV6_PACKET_TOO_BIG 2
#define ICMPV6_TIME_EXCEEDED 3
#define ICMPV6_ERROR_LAST 4 /* the four errors are 1 to 4 */
#define ICMPV6_ECHO_REQUEST 128

/* Of the quoted transport header, what the least quotation holds (RFC 792): ports and TCP's
 * sequence number. */
struct quoted_transport {
	__u32 ports;
	__be32 sequence;
};

/* ICMP of the packet's own family. */
static __always_inline bool is_icmp(const struct packet *p)
{
	return p->flow.protocol == (p->flow.ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

static __always_inline bool is_icmp_error(__u8 type, bool ipv4)
{
	if (!ipv4)
		return type && type <= ICMPV6_ERROR_LAST;
	return type == ICMP_DEST_UNREACHABLE || type == ICMP_TIME_EXCEEDED ||
	       type == ICMP_PARAMETER_PROBLEM;
}

/* The quoted IPv4 header: it may be all there is of the packet. Leaves the cursor behind it. */
static __always_inline bool quoted_ipv4(struct cursor *c, struct flow *quoted)
{
	struct iphdr *ip = c->pos;
	__u32 header, total;

	if (!cursor_has(c, sizeof(*ip)))
		return false;
	header = ip->ihl * 4;
	total = bpf_ntohs(ip->tot_len);
	if (ip->version != 4 || header < sizeof(*ip) || !cursor_has(c, header) || total < header ||
	    ip->frag_off & bpf_htons(0x1fff))
		return false;
	quoted->source = address_from_ipv4(ip->saddr);
	quoted->destination = address_from_ipv4(ip->daddr);
	quoted->protocol = ip->protocol;
	if (c->left > total)
		c->left = total;
	cursor_skip(c, header);
	return true;
}

/* The quoted IPv6 header with its extension headers. */
static __always_inline bool quoted_ipv6(CONTEXT *ctx, struct cursor *c, struct flow *quoted)
{
	struct ipv6hdr *ip = c->pos;
	struct walk w = { .rule = SRH_IS_ROUTING_HEADER, .strict = true, .fragments = true };
	__u32 total;

	if (!cursor_has(c, sizeof(*ip)) || ip->version != 6)
		return false;
	quoted->source = address_load(&ip->saddr);
	quoted->destination = address_load(&ip->daddr);
	total = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	if (c->left > total)
		c->left = total;
	w.next = ip->nexthdr;
	w.offset = c->offset + sizeof(*ip);
	w.left = c->left - sizeof(*ip);
	if ((unlikely(is_extension(w.next)) && walk_extensions(ctx, &w)) || w.offset > OFFSET_MAX ||
	    w.fragment == FRAGMENT_LATER)
		return false;
	quoted->protocol = w.next;
	cursor_set(c, ctx, w.offset, w.left);
	return true;
}

/* Makes the packet, an ICMP error whose quotation is at offset, one of the quoted flow. Not
 * inlined, for the verifier's sake. */
__noinline int quote_parse(CONTEXT *ctx, struct packet *p, __u32 offset, __u32 left)
{
	struct quoted_transport *transport;
	struct flow quoted = {};
	struct cursor c;

	if (!p)
		return REASON_ICMP_QUOTE;
	cursor_set(&c, ctx, offset, left);
	if (!(p->flow.ipv4 ? quoted_ipv4(&c, &quoted) : quoted_ipv6(ctx, &c, &quoted)))
		return REASON_ICMP_QUOTE;
	transport = c.pos;
	if ((quoted.protocol != IPPROTO_TCP && quoted.protocol != IPPROTO_UDP) ||
	    !cursor_has(&c, sizeof(*transport)) ||
	    quoted.source.word[0] != p->flow.destination.word[0] ||
	    quoted.source.word[1] != p->flow.destination.word[1])
		return REASON_ICMP_QUOTE;
	p->flow.source = quoted.destination;
	p->flow.protocol = quoted.protocol;
	p->flow.ports = transport->ports >> 16 | transport->ports << 16;
	p->sequence = bpf_ntohl(transport->sequence);
	p->icmp = ICMP_QUOTES;
	return REASON_NONE;
}

static __always_inline int icmp_parse(CONTEXT *ctx, struct cursor *c, struct packet *p)
{
	__u8 *header = c->pos, request = p->flow.ipv4 ? ICMP_ECHO_REQUEST : ICMPV6_ECHO_REQUEST;

	if (!cursor_has(c, ICMP_HEADER))
		return REASON_BAD_TRANSPORT;
	p->transport = c->offset;
	if (is_icmp_error(header[0], p->flow.ipv4))
		return quote_parse(ctx, p, c->offset + ICMP_HEADER, c->left - ICMP_HEADER);
	p->icmp = header[0] == request && header[1] == 0 ? ICMP_ECHO : ICMP_OTHER;
	return REASON_NONE;
}

/*
 * A fragment. The first has to have the whole transport header, and no other may reach into it: RFC
 * 1858, RFC 3128, RFC 7112. A later one has no ports: which flow it is of, the first has told.
 */
static __always_inline int fragment_parse(struct cursor *c, struct packet *p)
{
	if (p->fragment == FRAGMENT_LATER) {
		if (p->flow.protocol == IPPROTO_TCP && p->fragment_bytes < sizeof(struct tcphdr))
			return REASON_TINY_FRAGMENT;
		return p->flow.ipv4 && p->flow.protocol != IPPROTO_TCP &&
				       p->flow.protocol != IPPROTO_UDP ?
			       REASON_FRAGMENT :
			       REASON_NONE;
	}
	if (p->flow.protocol == IPPROTO_TCP) {
		struct tcphdr *tcp = c->pos;

		if (tcp_parse(c, p))
			return REASON_NONE;
		return cursor_has(c, sizeof(*tcp)) && tcp->doff < 5 ? REASON_BAD_TRANSPORT :
								      REASON_TINY_FRAGMENT;
	}
	if (p->flow.protocol == IPPROTO_UDP) {
		struct udphdr *udp = c->pos;

		if (!cursor_has(c, sizeof(*udp)))
			return REASON_TINY_FRAGMENT;
		p->flow.ports = *(__u32 *)udp;
		return bpf_ntohs(udp->len) < sizeof(*udp) ? REASON_BAD_TRANSPORT : REASON_NONE;
	}
	return REASON_FRAGMENT;
}

/* Reads the ports, also those that an ICMP error quotes. A packet that already has an error keeps
 * it, and has no ports. */
static __always_inline void transport_parse(CONTEXT *ctx, struct cursor *c, struct packet *p)
{
	if (p->error)
		return;
	if (unlikely(p->fragment))
		p->error = fragment_parse(c, p);
	else if (likely(p->flow.protocol == IPPROTO_TCP))
		p->error = tcp_parse(c, p) ? REASON_NONE : REASON_BAD_TRANSPORT;
	else if (p->flow.protocol == IPPROTO_UDP)
		p->error = udp_parse(c, p) ? REASON_NONE : REASON_BAD_TRANSPORT;
	else if (is_icmp(p))
		p->error = icmp_parse(ctx, c, p);
}
