// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where packets enter a VRF: here the kernel finds sockets that are bound to it, as it does for the
 * VRF's own packets. What vrf_stray.c has led here and has no connection is received on the backup
 * device instead. Specification: docs/reference/dataplane.md, "Strays beside a router".
 */
#define FOR_TC

#include "include/stray.h"
#include "include/transport.h"

#include <linux/pkt_cls.h>

/* Headers are looked at where the skb is linear: so far at least, if the packet is so long. */
#define HEADERS_MAX 256

/* The packet behind the Ethernet header. What vrf_stray.c has parsed parses again. */
static __always_inline bool skb_parse(struct __sk_buff *skb, struct packet *p)
{
	struct cursor c = cursor_at_start(skb);
	struct frame f;
	__u32 srh;

	if (frame_parse(&c, &f))
		return false;
	if (f.ethertype == bpf_htons(ETH_P_IP)) {
		if (ipv4_parse(&c, p))
			return false;
	} else {
		if (ipv6_parse(&c, p))
			return false;
		if (unlikely(is_extension(p->flow.protocol)) &&
		    packet_walk(skb, &c, p, SRH_IS_ROUTING_HEADER, true, &srh))
			return false;
	}
	transport_parse(skb, &c, p);
	return !p->error;
}

SEC("tc")
int vrf_ask(struct __sk_buff *skb)
{
	__u32 number = skb->tc_index - 1, packets = skb->gso_segs;
	struct packet p = {};
	enum stray_verdict verdict;
	struct stray_vrf *vrf;

	if (!skb->tc_index)
		return TC_ACT_UNSPEC; /* not from stray_lead */
	skb->tc_index = 0;
	vrf = bpf_map_lookup_elem(&stray_vrfs, &number);
	if (!vrf || !vrf->backup)
		return TC_ACT_UNSPEC;
	if (skb->data_end - skb->data < HEADERS_MAX)
		bpf_skb_pull_data(skb, skb->len < HEADERS_MAX ? skb->len : HEADERS_MAX);
	if (!skb_parse(skb, &p))
		return TC_ACT_UNSPEC;
	if (connection_is_here(skb, &p))
		verdict = STRAY_HERE;
	else
		verdict = hops_read(skb, &p) < STRAY_HOPS ? STRAY_RETURNED : STRAY_AWAY;
	stray_count(number, verdict, packets ? packets : 1, p.length);
	if (verdict == STRAY_HERE && unlikely(p.fragment == FRAGMENT_FIRST))
		fragment_remember(&p);
	if (verdict != STRAY_AWAY)
		return TC_ACT_UNSPEC;
	hops_write(skb, &p, STRAY_HOPS - 1);
	if (bpf_skb_store_bytes(skb, 0, vrf->backup_address, ETH_ALEN, 0))
		return TC_ACT_SHOT;
	return bpf_redirect(vrf->backup, BPF_F_INGRESS);
}

char _license[] SEC("license") = "Dual BSD/GPL";
