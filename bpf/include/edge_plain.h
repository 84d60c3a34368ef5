// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The plain packet: TCP or UDP of a client in one piece, without VLAN tags, options and extension
 * headers, to a service whose chain and next hop are at hand. The steps are those of the general
 * way (bpf/edge.c), which takes over wherever one of them is not so. As nothing else is possible
 * here, the compiler keeps what it knows of the packet in registers: docs/results/benchmarks.md.
 */
#pragma once

#include "edge_encap.h"
#include "edge_work.h"
#include "former.h"
#include "options.h"
#include "service_cache.h"

/* What is left to the general way. Of those that are parsed, the packet is in edge_work. */
enum plain {
	NOT_PLAIN = -1,
	PLAIN_UNSERVED = -2, /* parsed: it has no service */
	PLAIN_SERVED = -3, /* parsed: within the limit of its service */
	PLAIN_ADMITTED = -4, /* within the limit of its service */
};

/* Bytes of an IP header's packet that are read before its protocol is known: ports and length. */
#define PLAIN_TRANSPORT 8

/* The others are told apart first, before anything is done that they have no use for. In a
 * condition of its own: a part of another one would be put in a register. */
static __always_inline bool plain_protocol(__u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
}

/*
 * An IPv4 header without options, of a whole packet with a hop left, in words: its sum needs them
 * all. left: bytes of the frame from here.
 */
static __always_inline bool plain_ipv4_parse(const void *ip, __u32 left, struct packet *p)
{
	const __u32 *word = ip;
	__u32 first = word[0]; /* version and header length, type of service, total length */
	__u32 hops = word[2]; /* time to live, protocol, checksum */
	__u32 total = bpf_ntohs(first >> 16);

	p->flow.protocol = hops >> 8;
	if (!plain_protocol(p->flow.protocol))
		return false;
	if (unlikely((first & 0xff) != IPV4_WITHOUT_OPTIONS) ||
	    unlikely(total < sizeof(struct iphdr) + PLAIN_TRANSPORT) || unlikely(total > left) ||
	    unlikely(word[1] & (__u32)bpf_htons(0x3fff) << 16) || unlikely((hops & 0xff) <= 1) ||
	    unlikely(!ipv4_sum_is_plainly_right((__u64)first + word[1] + hops + word[3] + word[4])))
		return false;
	p->length = total;
	p->traffic_class = first >> 8;
	p->flow.source = address_from_ipv4(word[3]);
	p->flow.destination = address_from_ipv4(word[4]);
	p->flow.ipv4 = true;
	return true;
}

/* Whether a packet is of the domain or to it. Not inlined, for it is rare: see plain_border. */
static __noinline bool plain_is_inside(__u64 source_high, __u64 source_low, __u64 high, __u64 low)
{
	struct address source = { { source_high, source_low } }, destination = { { high, low } };

	return infrastructure_contains(&settings.domain.infrastructure, &source) ||
	       is_sid_of_domain(&settings.domain, &source) ||
	       is_sid_of_domain(&settings.domain, &destination);
}

/* Whether the border of the domain has nothing to say about a packet from outside. */
static __always_inline bool plain_border(const struct flow *f)
{
	const struct address *from = &f->source, *to = &f->destination;

	if (likely(!may_be_inside(from) && !may_be_inside(to)))
		return true;
	return !plain_is_inside(from->word[0], from->word[1], to->word[0], to->word[1]);
}

/* An IPv6 header of a packet from outside with a hop left. */
static __always_inline bool plain_ipv6_parse(const void *ip, __u32 left, struct packet *p)
{
	__u64 first = *(const __u64 *)ip; /* all before the addresses */
	__u32 total = sizeof(struct ipv6hdr) + bpf_ntohs(first >> 32);

	p->flow.protocol = first >> 48;
	if (settings.side == SIDE_INTERNAL || !plain_protocol(p->flow.protocol))
		return false;
	if (unlikely((first & 0xf0) != 0x60) || unlikely(total > left) ||
	    unlikely(first >> 56 <= 1))
		return false;
	p->length = total;
	p->traffic_class = bpf_ntohs(first) >> 4;
	p->flow.source = address_load(ip + 8);
	p->flow.destination = address_load(ip + 24);
	p->flow.ipv4 = false;
	return plain_border(&p->flow);
}

/* A whole TCP or UDP header in the left bytes of a packet. */
static __always_inline bool plain_transport_parse(const void *transport, const void *end,
						  __u32 left, struct packet *p)
{
	__u32 header;

	p->flow.ports = *(const __u32 *)transport;
	if (p->flow.protocol == IPPROTO_TCP) {
		if (unlikely(transport + sizeof(struct tcphdr) > end))
			return false;
		header = *(const __u16 *)(transport + TCP_FLAGS_OFFSET - 1);
		p->tcp_flags = header >> 8;
		header = (header & 0xf0) >> 2;
		return likely(header >= sizeof(struct tcphdr)) && likely(header <= left);
	}
	header = bpf_ntohs(((const struct udphdr *)transport)->len);
	return likely(header >= sizeof(struct udphdr)) && likely(header <= left);
}

/* Length of the IP header of a packet of a family. */
static __always_inline __u32 plain_header(bool ipv4)
{
	return ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

/* The packet of a family behind the Ethernet header, of which only the first piece is looked at. */
static __always_inline bool plain_parse(struct xdp_md *ctx, bool ipv4, struct packet *p)
{
	void *end = (void *)(long)ctx->data_end, *ip = (void *)(long)ctx->data + ETH_HLEN;
	void *transport = ip + plain_header(ipv4);
	__u32 left = end - ip;

	if (unlikely(transport + PLAIN_TRANSPORT > end))
		return false;
	return (ipv4 ? plain_ipv4_parse(ip, left, p) : plain_ipv6_parse(ip, left, p)) &&
	       plain_transport_parse(transport, end, p->length - plain_header(ipv4), p);
}

/* Offset of the transport header of a packet that plain_parse has found. */
static __always_inline __u32 plain_transport(const struct packet *p)
{
	return ETH_HLEN + plain_header(p->flow.ipv4);
}

/* Counts a hop of the packet, whose IP header is there. */
static __always_inline void plain_hop_count(void *ip, const struct packet *p)
{
	if (p->flow.ipv4)
		ipv4_hop_count(ip);
	else
		((struct ipv6hdr *)ip)->hop_limit--;
}

/* Whether what the configuration asks for a service can be done here. */
static __always_inline bool plain_serves(const struct cached_service *cached)
{
	return !cached->service.quic && !(former.on && cached->service.former_buckets);
}

/* Puts the packet where the general way has it, which then need not parse it again. All that the
 * edge wants to know of TCP are its ports and flags. */
static __always_inline int plain_leave(struct xdp_md *ctx, struct packet *p, int verdict)
{
	struct edge_work *work = edge_work_here();
	void *data = (void *)(long)ctx->data;

	if (!work || data + ETH_HLEN > (void *)(long)ctx->data_end)
		return XDP_ABORTED; /* never: plain_parse has read it */
	p->ip = ETH_HLEN;
	p->transport = plain_transport(p);
	work->packet = *p;
	work->frame.addresses = *(const struct eth_addresses *)data;
	work->frame.tags_length = 0;
	work->frame.ethertype = *(const __be16 *)(data + ETH_ADDRESSES);
	return verdict;
}

/* Chain, path and first destination. */
static __always_inline bool plain_chain(const struct packet *p, struct encap *w)
{
	w->chain = chain_find(w->service, w->hash);
	if (!w->chain)
		return false;
	w->visits = chain_visits(w->chain, p);
	if (flow_cache.sets && w->visits > 1 && p->flow.protocol == IPPROTO_TCP && !is_first_syn(p))
		w->chain = cached_chain(w->chain, w->visits, w->hash, &w->cache_event);
	return encap_begin(w);
}

/* Sends the packet in a carrier: all lengths are constant, and each word is written once. */
static __always_inline int plain_send_carrier(struct xdp_md *ctx, const struct packet *p,
					      const struct encap *w)
{
	struct address source;
	__u64 first, *outer;
	void *data, *ip;

	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(struct ipv6hdr)))
		return drop(REASON_NO_HEADROOM);
	data = (void *)(long)ctx->data;
	outer = data + ETH_HLEN;
	ip = outer + sizeof(struct ipv6hdr) / sizeof(*outer);
	if (ip + plain_header(p->flow.ipv4) > (void *)(long)ctx->data_end)
		return XDP_ABORTED; /* never: it has just been made longer */
	plain_hop_count(ip, p);
	*(struct eth_addresses *)data = w->hop->addresses;
	*(__be16 *)(data + ETH_ADDRESSES) = bpf_htons(ETH_P_IPV6);
	first = outer_settings.hop_limit << 8 | (p->flow.ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6);
	first = first << 16 | bpf_htons(p->length);
	outer[0] = first << 32 |
		   bpf_htonl(6 << 28 | edge_traffic_class(p) << 20 | flow_label(w->hash));
	source = outer_source(p, &settings.domain.source);
	address_store(outer + 1, &source);
	address_store(outer + 3, &w->destination);
	traffic_count(w->service->index, bpf_ntohs(w->chain->ids[0]), p->length);
	return next_hop_send(ctx, w->hop); /* all that are remembered can be sent to */
}

static __always_inline int plain_send(struct xdp_md *ctx, const struct packet *p,
				      const struct encap *w)
{
	struct frame f = { .addresses = w->hop->addresses };
	void *ip = (void *)(long)ctx->data + ETH_HLEN;

	if (ip + plain_header(p->flow.ipv4) > (void *)(long)ctx->data_end)
		return XDP_ABORTED; /* never: plain_parse has read it */
	plain_hop_count(ip, p);
	return encap_send(ctx, &f, sizeof(struct ethhdr), p, w);
}

/*
 * The packet to its service. encapsulation: that of the settings, but if it is the carrier, the
 * compiler knows it. PLAIN_ADMITTED: something is not at hand, and nothing was written yet.
 */
static __always_inline int plain_forward(struct xdp_md *ctx, enum encapsulation encapsulation,
					 const struct packet *p,
					 const struct cached_service *cached, __u32 epoch)
{
	struct encap w = { .plain = true,
			   .encapsulation = encapsulation,
			   .cache_event = CACHE_EVENT_NONE,
			   .service = &cached->service };

	w.hash = service_flow_hash(cached, &p->flow);
	if (unlikely(!plain_chain(p, &w)))
		return PLAIN_ADMITTED;
	w.hop = next_hop_remembered(encap_first(&w), w.hash, epoch);
	if (unlikely(!w.hop) || unlikely(!encap_fits(&w, p)))
		return PLAIN_ADMITTED;
	cache_count(w.cache_event);
	return encapsulation == ENCAPSULATION_CARRIER ? plain_send_carrier(ctx, p, &w) :
							plain_send(ctx, p, &w);
}

/*
 * The packet of a family. A packet over the limit of its service is dropped before anything else is
 * asked: they come in floods. found: the service of PLAIN_SERVED, and nothing else.
 */
static __always_inline int plain_judge(struct xdp_md *ctx, bool ipv4,
				       const struct cached_service **found)
{
	const struct cached_service *cached;
	struct packet p = {};
	__u32 epoch;

	if (unlikely(!plain_parse(ctx, ipv4, &p)))
		return NOT_PLAIN;
	epoch = fib_epoch_now();
	cached = service_cached(&p.flow, epoch);
	if (unlikely(!cached))
		return plain_leave(ctx, &p, PLAIN_UNSERVED);
	if (!syn_admit(&p, &cached->service))
		return drop(REASON_NEW_CONNECTIONS);
	if (unlikely(!plain_serves(cached)) ||
	    copies_wanted(ctx, &cached->service, &p, ETH_HLEN, plain_transport(&p))) {
		*found = cached;
		return plain_leave(ctx, &p, PLAIN_SERVED);
	}
	if (settings.encapsulation == ENCAPSULATION_CARRIER)
		return plain_forward(ctx, ENCAPSULATION_CARRIER, &p, cached, epoch);
	return plain_forward(ctx, settings.encapsulation, &p, cached, epoch);
}

/* Each family has a way of its own: what is constant there takes no instruction, and the verifier
 * need not follow the other's states. */
static __always_inline int edge_plain(struct xdp_md *ctx, const struct cached_service **found)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__be16 *ethertype = data + ETH_ADDRESSES;

	if (unlikely(data + ETH_HLEN + sizeof(struct iphdr) + PLAIN_TRANSPORT > end))
		return NOT_PLAIN;
	if (*ethertype == bpf_htons(ETH_P_IP))
		return plain_judge(ctx, true, found);
	return *ethertype == bpf_htons(ETH_P_IPV6) ? plain_judge(ctx, false, found) : NOT_PLAIN;
}
