// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Health checks on their way to a backend's SID: an encapsulation of a route (lwt_xmit), which puts
 * an IPv6 header in front of each packet that the route leads. The mark of the packet says which
 * SID is meant, so one route of a VIP serves all its backends.
 */
#include "include/compat.h"

#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#define IPV4_TTL_OFFSET 8
#define IPV6_HOP_LIMIT_OFFSET 7

/* The outer addresses of a mark. */
struct check_way {
	struct in6_addr source;
	struct in6_addr sid;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* set when it is loaded */
	__type(key, __u32);
	__type(value, struct check_way);
} check_ways SEC(".maps");

/* A packet whose mark is not known is dropped: it must not reach the VIP another way. */
SEC("lwt_xmit")
int check_path(struct __sk_buff *skb)
{
	const __u8 *inner = (void *)(long)skb->data;
	struct ipv6hdr outer = { .payload_len = bpf_htons(skb->len) };
	__u32 mark = skb->mark;
	const struct check_way *way = bpf_map_lookup_elem(&check_ways, &mark);

	if (!way || (void *)(inner + sizeof(struct iphdr)) > (void *)(long)skb->data_end)
		return BPF_DROP;
	if (inner[0] >> 4 == 6) {
		/* Traffic class and flow label are those of the packet, but for the 12 bits of the
		 * label in which the host would read a note of another host. */
		__builtin_memcpy(&outer, inner, sizeof(__u32));
		outer.flow_lbl[0] &= 0xf0;
		outer.flow_lbl[1] = 0;
		outer.nexthdr = IPPROTO_IPV6;
		outer.hop_limit = inner[IPV6_HOP_LIMIT_OFFSET];
	} else {
		outer.version = 6;
		outer.nexthdr = IPPROTO_IPIP;
		outer.hop_limit = inner[IPV4_TTL_OFFSET];
	}
	outer.saddr = way->source;
	outer.daddr = way->sid;
	if (bpf_lwt_push_encap(skb, BPF_LWT_ENCAP_IP, &outer, sizeof(outer)))
		return BPF_DROP;
	return BPF_LWT_REROUTE;
}

char _license[] SEC("license") = "Dual BSD/GPL";
