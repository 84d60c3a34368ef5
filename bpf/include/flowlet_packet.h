// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a packet of a host's flow tells, read where the skb may not be linear.
 */
#pragma once

#include "flowlet.h"

#include <linux/if_ether.h>
#include <linux/in.h>

struct ipv4_bytes {
	__u8 version_length;
	__u8 tos;
	__be16 total;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__be16 check;
	__be32 source;
	__be32 destination;
};

struct ipv6_bytes {
	__be32 word;
	__be16 payload;
	__u8 next;
	__u8 hop_limit;
	__be64 source[2];
	__be64 destination[2];
};

struct tcp_bytes {
	__be16 source;
	__be16 destination;
	__be32 sequence;
	__be32 acknowledges;
	__u8 offset;
	__u8 flags;
	__be16 window;
	__be16 check;
	__be16 urgent;
};

#define FLOWLET_IPV4_MAPPED 0xffff00000000ULL

/* The ends of a packet, as the host sees them: of one that arrives, they are reversed. */
static __always_inline void ends_set(struct flowlet_key *k, const __u64 source[2],
				     const __u64 destination[2], bool arrives)
{
	k->local[0] = arrives ? destination[0] : source[0];
	k->local[1] = arrives ? destination[1] : source[1];
	k->remote[0] = arrives ? source[0] : destination[0];
	k->remote[1] = arrives ? source[1] : destination[1];
}

static __always_inline bool ipv4_read(struct __sk_buff *skb, __u32 at, struct flowlet_packet *p,
				      bool arrives)
{
	struct ipv4_bytes ip;
	__u64 source[2] = {}, destination[2] = {};

	if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)) || ip.version_length >> 4 != 4 ||
	    (ip.version_length & 15) < 5)
		return false;
	source[1] = FLOWLET_IPV4_MAPPED | bpf_ntohl(ip.source);
	destination[1] = FLOWLET_IPV4_MAPPED | bpf_ntohl(ip.destination);
	ends_set(&p->key, source, destination, arrives);
	p->key.protocol = ip.protocol;
	p->traffic_class = ip.tos;
	p->ipv4 = true;
	/* of a fragment, the ports may be in another one: it is a flow of its addresses */
	p->transport = ip.fragment & bpf_htons(0x3fff) ? 0 : at + (ip.version_length & 15) * 4;
	return true;
}

static __always_inline bool ipv6_read(struct __sk_buff *skb, __u32 at, struct flowlet_packet *p,
				      bool arrives)
{
	struct ipv6_bytes ip;
	__u64 source[2], destination[2];

	if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)) || bpf_ntohl(ip.word) >> 28 != 6)
		return false;
	source[0] = bpf_be64_to_cpu(ip.source[0]);
	source[1] = bpf_be64_to_cpu(ip.source[1]);
	destination[0] = bpf_be64_to_cpu(ip.destination[0]);
	destination[1] = bpf_be64_to_cpu(ip.destination[1]);
	ends_set(&p->key, source, destination, arrives);
	p->key.protocol = ip.next;
	p->traffic_class = bpf_ntohl(ip.word) >> 20;
	p->ipv4 = false;
	p->transport = at + sizeof(ip);
	return true;
}

static __always_inline void transport_read(struct __sk_buff *skb, struct flowlet_packet *p,
					   bool arrives)
{
	struct tcp_bytes tcp;

	p->payload = p->transport;
	if (!p->transport || (p->key.protocol != IPPROTO_TCP && p->key.protocol != IPPROTO_UDP) ||
	    bpf_skb_load_bytes(skb, p->transport, &tcp, 4))
		return;
	p->key.local_port = bpf_ntohs(arrives ? tcp.destination : tcp.source);
	p->key.remote_port = bpf_ntohs(arrives ? tcp.source : tcp.destination);
	if (p->key.protocol != IPPROTO_TCP ||
	    bpf_skb_load_bytes(skb, p->transport, &tcp, sizeof(tcp)))
		return;
	p->tcp = true;
	p->sequence = bpf_ntohl(tcp.sequence);
	p->acknowledges = bpf_ntohl(tcp.acknowledges);
	p->flags = tcp.flags;
	p->payload = p->transport + (tcp.offset >> 4) * 4;
}

static __always_inline bool packet_read(struct __sk_buff *skb, __u32 at, bool ipv4,
					struct flowlet_packet *p, bool arrives)
{
	if (ipv4 ? !ipv4_read(skb, at, p, arrives) : !ipv6_read(skb, at, p, arrives))
		return false;
	p->length = skb->len - at;
	return true;
}

/* Whether there is anything behind the headers. */
static __always_inline bool payload_carried(const struct flowlet_packet *p)
{
	return p->length + ETH_HLEN > p->payload;
}

/* Where a segment ends: SYN and FIN take a number each. */
static __always_inline __u32 segment_end(const struct flowlet_packet *p)
{
	__u32 payload = p->length + ETH_HLEN - p->payload;

	if (p->payload > p->length + ETH_HLEN)
		payload = 0;
	return p->sequence + payload + !!(p->flags & FLOWLET_SYN) + !!(p->flags & FLOWLET_FIN);
}

/* Whether it is acknowledged when it arrives: acknowledgements and resets are not. */
static __always_inline bool is_answered(const struct flowlet_packet *p, __u32 ends)
{
	return p->tcp && !(p->flags & FLOWLET_RST) && ends != p->sequence;
}

/* The hash of the flow's socket; 0: not known. A reset may come from no socket, or from one whose
 * flow is over, and has a hash of its own, which says nothing of the path. */
static __always_inline __u32 kernel_hash(const struct __sk_buff *skb,
					 const struct flowlet_packet *p)
{
	return p->tcp && p->flags & FLOWLET_RST ? 0 : skb->hash;
}

/* Reads what the host will see, behind an outer header that the kernel takes off. */
static __always_inline bool arrival_read(struct __sk_buff *skb, struct flowlet_packet *p)
{
	bool ipv4 = skb->protocol == bpf_htons(ETH_P_IP);

	if (!ipv4 && skb->protocol != bpf_htons(ETH_P_IPV6))
		return false;
	if (!packet_read(skb, ETH_HLEN, ipv4, p, true))
		return false;
	if (p->ipv4 || (p->key.protocol != IPPROTO_IPV6 && p->key.protocol != IPPROTO_IPIP))
		return true;
	return packet_read(skb, ETH_HLEN + sizeof(struct ipv6_bytes),
			   p->key.protocol == IPPROTO_IPIP, p, true);
}

/* Notes what a segment of the other end brings. Returns whether it is new. */
static __always_inline bool octets_received(struct flowlet_flow *f, const struct flowlet_packet *p)
{
	__u32 ends = segment_end(p);

	if (!payload_carried(p) || (f->receives && (__s32)(ends - f->received) <= 0))
		return false;
	f->received = ends;
	f->receives = 1;
	return true;
}
