// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Layers 3 and 4: IPv4 with options, IPv6 with extension headers, TCP and UDP.
 * The order of the checks, and the reason for each refusal: docs/reference/dataplane.md.
 */
#pragma once

#include "flow.h"
#include "frame.h"

#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#define EXTENSIONS_MAX 8

#define ROUTING_TYPE_SRH 4

/* TLVs of an SRH. */
#define TLV_PAD1 0 /* has no length */
#define TLV_PADN 4
#define PADN_MAX 5
#define TLV_HMAC 5
#define TLV_HMAC_LENGTH 38 /* of a digest of 32 bytes */

#define TCP_FLAGS_OFFSET 13
#define TCP_FLAG_SYN 0x02
#define TCP_FLAG_RST 0x04
#define TCP_FLAG_ACK 0x10

#define ECN_MASK 3

#define IPV4_WITHOUT_OPTIONS 0x45 /* version and header length */

/* What an ICMP packet is, of the IP header's own family. */
enum icmp_kind {
	ICMP_NONE = 0, /* not ICMP */
	ICMP_QUOTES, /* an error: the flow is the one that it quotes, seen from the client */
	ICMP_ECHO, /* an echo request */
	ICMP_OTHER,
} __attribute__((packed)); /* one byte */

enum fragment_kind {
	FRAGMENT_NONE = 0, /* a whole packet */
	FRAGMENT_FIRST,
	FRAGMENT_LATER, /* without a transport header */
} __attribute__((packed)); /* one byte */

/* One IP packet, parsed. It holds no pointers, so that it can be given to functions which the
 * verifier checks by themselves. */
struct packet {
	struct flow flow;
	__u32 ip; /* offset of the IP header from the start of the frame */
	__u32 transport; /* offset of the TCP, UDP or ICMP header */
	__u32 length; /* by the IP header, which it includes */
	__u32 sequence; /* TCP */
	__u32 acknowledgement; /* TCP */
	__u8 traffic_class; /* or type of service */
	__u8 tcp_flags;
	__u8 error; /* a reason, if the packet is for us: see docs/reference/dataplane.md,
		       "Edge" */
	enum icmp_kind icmp;
	__u32 fragment_id;
	__u16 fragment_bytes; /* of data: how many the first fragment has, or how many are before a
				 later one */
	enum fragment_kind fragment;
	__u8 reserved;
};

/* What to do with a routing header of type 4. */
enum srh_rule {
	SRH_IS_ROUTING_HEADER, /* like any other routing header */
	SRH_REFUSED, /* drop: it comes from outside the SR domain */
	SRH_WANTED, /* remember it */
};

/* The walk over IPv6 extension headers: where it starts, and where it ends. Offsets are from the
 * start of the frame. */
struct walk {
	__u32 offset; /* of the header that next names */
	__u32 left; /* bytes of the packet from there */
	__u32 srh; /* offset of the SRH; 0: none */
	__u8 next; /* the upper layer at the end */
	__u8 error; /* REASON_ROUTING_HEADER or REASON_FRAGMENT, the first met */
	__u8 rule; /* enum srh_rule */
	bool strict; /* an error drops at once */
	bool fragments; /* one of a packet is no error */
	enum fragment_kind fragment; /* what was met, as in struct packet */
	__u16 fragment_bytes;
	__u32 fragment_id;
};

struct routing_header {
	__u8 next;
	__u8 length;
	__u8 type;
	__u8 segments_left;
	__u8 last_entry; /* the SRH's from here on: RFC 8754 section 2 */
	__u8 flags;
	__be16 tag;
};

struct fragment_header {
	__u8 next;
	__u8 reserved;
	__be16 offset;
	__be32 identification;
};

/* A whole packet in one fragment, RFC 6946. */
static __always_inline bool is_atomic_fragment(const struct fragment_header *h)
{
	return !(h->offset & bpf_htons(0xfff9));
}

static __always_inline bool is_extension(__u8 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_DSTOPTS || next == IPPROTO_ROUTING ||
	       next == IPPROTO_FRAGMENT;
}

static __always_inline int routing_header_check(const struct routing_header *h, struct walk *w)
{
	if (h->type == ROUTING_TYPE_SRH && w->rule == SRH_REFUSED)
		return REASON_SRV6_FROM_OUTSIDE;
	if (h->type == ROUTING_TYPE_SRH && w->rule == SRH_WANTED) {
		if (w->srh || 2 * (h->last_entry + 1) > h->length ||
		    h->segments_left > h->last_entry + 1)
			return REASON_BAD_SRH;
		w->srh = w->offset;
		return REASON_NONE;
	}
	if (h->segments_left && !w->error)
		w->error = REASON_ROUTING_HEADER;
	return REASON_NONE;
}

/* The packet ends within its extension headers: a first fragment should have them all, RFC 7112. */
static __always_inline int walk_cut_off(struct walk *w)
{
	if (w->fragment != FRAGMENT_FIRST)
		return REASON_TRUNCATED;
	if (!w->error)
		w->error = REASON_TINY_FRAGMENT;
	return w->strict ? w->error : REASON_NONE;
}

/* A fragment header of a packet that is not whole. Returns whether the walk goes on behind it. */
static __always_inline bool fragment_visit(const struct fragment_header *h, struct walk *w)
{
	__u16 before = bpf_ntohs(h->offset) & 0xfff8;

	if (!w->fragments || w->fragment) {
		if (!w->error)
			w->error = REASON_FRAGMENT;
		return false;
	}
	w->fragment = before ? FRAGMENT_LATER : FRAGMENT_FIRST;
	w->fragment_bytes = before ? before : w->left - sizeof(*h);
	w->fragment_id = h->identification;
	if (before)
		w->next = h->next; /* of the first fragment's headers, as a rule */
	return !before;
}

/*
 * Walks the extension headers. Returns 0 or the reason to drop at once; softer errors are left in
 * w->error. A function of its own, not inlined: the verifier looks at its loop once, not once per
 * caller and path.
 */
__noinline int walk_extensions(CONTEXT *ctx, struct walk *w)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (!w)
		return REASON_TRUNCATED;
	/* Unrolled: Linux 6.1 refuses a loop that it is fallen back into, and how clang lays one
	 * out is its own affair. */
#pragma clang loop unroll(full)
	for (int i = 0; i <= EXTENSIONS_MAX; i++) {
		struct cursor c = { .end = end, .left = w->left };
		struct routing_header *h;
		__u32 length;
		int reason;

		if (!is_extension(w->next))
			return REASON_NONE;
		if (i == EXTENSIONS_MAX)
			return REASON_EXTENSION_CHAIN;
		if (w->offset > OFFSET_MAX)
			return REASON_TRUNCATED;
		h = c.pos = data + w->offset;
		if (!cursor_has(&c, 8))
			return walk_cut_off(w);
		length = w->next == IPPROTO_FRAGMENT ? 8 : (h->length + 1) * 8;
		if (!cursor_has(&c, length))
			return walk_cut_off(w);
		if (w->next == IPPROTO_ROUTING) {
			reason = routing_header_check(h, w);
			if (reason)
				return reason;
		} else if (w->next == IPPROTO_FRAGMENT &&
			   !is_atomic_fragment((struct fragment_header *)h) &&
			   !fragment_visit((struct fragment_header *)h, w)) {
			return w->strict ? w->error : REASON_NONE;
		}
		if (w->strict && w->error)
			return w->error;
		w->next = h->next;
		w->offset += length;
		w->left -= length;
	}
	return REASON_NONE;
}

/* Walks from the cursor to the upper layer, and puts what was found into the packet. */
static __always_inline int packet_walk(CONTEXT *ctx, struct cursor *c, struct packet *p,
				       enum srh_rule rule, bool strict, __u32 *srh)
{
	struct walk w = {
		.offset = c->offset,
		.left = c->left,
		.next = p->flow.protocol,
		.rule = rule,
		.strict = strict,
		.fragments = rule != SRH_WANTED,
	};
	int reason = walk_extensions(ctx, &w);

	if (reason)
		return reason;
	if (w.offset > OFFSET_MAX)
		return REASON_TRUNCATED;
	cursor_set(c, ctx, w.offset, w.left);
	p->flow.protocol = w.next;
	p->error = w.error;
	p->fragment = w.fragment;
	p->fragment_bytes = w.fragment_bytes;
	p->fragment_id = w.fragment_id;
	*srh = w.srh;
	return REASON_NONE;
}

/* Checks the IPv4 header at the cursor and limits the cursor to the packet, behind the header. */
static __always_inline int ipv4_parse(struct cursor *c, struct packet *p)
{
	struct iphdr *ip = c->pos;
	__u32 header, total;

	if (!cursor_has(c, sizeof(*ip)))
		return REASON_TRUNCATED;
	header = ip->ihl * 4;
	if (ip->version != 4 || header < sizeof(*ip))
		return REASON_BAD_IP_HEADER;
	if (!cursor_has(c, header))
		return REASON_TRUNCATED;
	total = bpf_ntohs(ip->tot_len);
	if (total < header || total > c->left)
		return REASON_BAD_LENGTH;

	p->ip = c->offset;
	p->length = total;
	p->traffic_class = ip->tos;
	p->flow.source = address_from_ipv4(ip->saddr);
	p->flow.destination = address_from_ipv4(ip->daddr);
	p->flow.protocol = ip->protocol;
	p->flow.ipv4 = true;
	if (unlikely(ip->frag_off & bpf_htons(0x3fff))) {
		__u16 before = bpf_ntohs(ip->frag_off)
			       << 3; /* in units of 8 bytes behind three flags */

		p->fragment = before ? FRAGMENT_LATER : FRAGMENT_FIRST;
		p->fragment_bytes = before ? before : total - header;
		p->fragment_id = ip->id;
	}
	c->left = total;
	cursor_skip(c, header);
	return REASON_NONE;
}

/* Checks the IPv6 header at the cursor and limits the cursor to the packet, behind the header. */
static __always_inline int ipv6_parse(struct cursor *c, struct packet *p)
{
	struct ipv6hdr *ip = c->pos;
	__u32 total;

	if (!cursor_has(c, sizeof(*ip)))
		return REASON_TRUNCATED;
	if (ip->version != 6)
		return REASON_BAD_IP_HEADER;
	total = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	if (total > c->left)
		return REASON_BAD_LENGTH;

	p->ip = c->offset;
	p->length = total;
	p->traffic_class = bpf_ntohs(*(__be16 *)ip) >> 4;
	p->flow.source = address_load(&ip->saddr);
	p->flow.destination = address_load(&ip->daddr);
	p->flow.protocol = ip->nexthdr;
	p->flow.ipv4 = false;
	c->left = total;
	cursor_skip(c, sizeof(*ip));
	return REASON_NONE;
}

static __always_inline bool tcp_parse(struct cursor *c, struct packet *p)
{
	struct tcphdr *tcp = c->pos;

	if (!cursor_has(c, sizeof(*tcp)) || tcp->doff < 5 || tcp->doff * 4 > c->left)
		return false;
	p->transport = c->offset;
	p->tcp_flags = ((__u8 *)tcp)[TCP_FLAGS_OFFSET];
	p->sequence = bpf_ntohl(tcp->seq);
	p->acknowledgement = bpf_ntohl(tcp->ack_seq);
	p->flow.ports = *(__u32 *)tcp;
	return true;
}

static __always_inline bool udp_parse(struct cursor *c, struct packet *p)
{
	struct udphdr *udp = c->pos;
	__u32 length;

	if (!cursor_has(c, sizeof(*udp)))
		return false;
	length = bpf_ntohs(udp->len);
	if (length < sizeof(*udp) || length > c->left)
		return false;
	p->transport = c->offset;
	p->flow.ports = *(__u32 *)udp;
	return true;
}

/* A packet that opens a connection. */
static __always_inline bool is_first_syn(const struct packet *p)
{
	return (p->tcp_flags & (TCP_FLAG_SYN | TCP_FLAG_ACK)) == TCP_FLAG_SYN;
}

/* Its answer. */
static __always_inline bool is_syn_ack(const struct packet *p)
{
	return (p->tcp_flags & (TCP_FLAG_SYN | TCP_FLAG_ACK)) == (TCP_FLAG_SYN | TCP_FLAG_ACK);
}
