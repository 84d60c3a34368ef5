// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A router whose sources choose among its equal-cost next hops: controllable per-flow load
 * balancing. cflb forwards at XDP what it can; cflb_hash leaves forwarding to the kernel and sets
 * the hash by which the kernel takes a next hop (fib_multipath_hash_policy=1). Both keep no state
 * per flow. Specification: docs/howto/cflb.md.
 */
#include "include/compat.h"
#include "include/cflb.h"

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>

/* ===== Configuration ===== */

enum cflb_family {
	CFLB_IPV4 = 0,
	CFLB_IPV6,
	CFLB_FAMILIES,
};

struct cflb_settings {
	struct cflb_network networks[CFLB_FAMILIES];
	__u32 router;
	__u32 reserved;
};

const volatile struct cflb_settings settings = {};

/* ===== Tables ===== */

#define CFLB_ROUTES 65536 /* for each family */
#define CFLB_GROUPS 1024

struct cflb_route4 {
	__u32 bits;
	__be32 address;
};

struct cflb_route6 {
	__u32 bits;
	__u8 address[16];
};

/* Longest prefix to group, 0: the kernel's affair. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, CFLB_ROUTES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct cflb_route4);
	__type(value, __u32);
} cflb_routes4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, CFLB_ROUTES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct cflb_route6);
	__type(value, __u32);
} cflb_routes6 SEC(".maps");

/* A group that changes gets a new number, to which the routes are switched. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CFLB_GROUPS);
	__type(key, __u32);
	__type(value, struct cflb_group);
} cflb_groups SEC(".maps");

/* Interfaces that cflb can send by. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 256);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} ports SEC(".maps");

/* Packets by how their next hop was chosen. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CFLB_CHOICES);
	__type(key, __u32);
	__type(value, __u64);
} cflb_choices SEC(".maps");

static __always_inline void choice_count(__u32 choice, __u32 packets)
{
	__u64 *counter = bpf_map_lookup_elem(&cflb_choices, &choice);

	if (counter)
		*counter += packets;
}

/* ===== Steps ===== */

struct ports {
	__be16 source;
	__be16 destination;
};

static __always_inline void ports_read(struct cflb_packet *p, const void *transport,
				       const void *end)
{
	const struct ports *ports = transport;

	if ((p->protocol != IPPROTO_TCP && p->protocol != IPPROTO_UDP) ||
	    (const void *)(ports + 1) > end)
		return;
	p->source_port = bpf_ntohs(ports->source);
	p->destination_port = bpf_ntohs(ports->destination);
	p->ports = true;
}

/* Whether the sum over an IPv4 header without options, its checksum included, is right. */
static __always_inline bool ipv4_sum_is_right(const struct iphdr *ip)
{
	const __u32 *word = (const __u32 *)ip;
	__u64 sum = (__u64)word[0] + word[1] + word[2] + word[3] + word[4]; /* of 35 bits */

	sum = (sum & 0xffff) + (sum >> 16); /* of 20 */
	sum = (sum & 0xffff) + (sum >> 16); /* up to 0xffff + 0xf */
	return sum == 0xffff;
}

/* Reads an IPv4 header. Returns the packet's length, 0 if the kernel has to look at it. */
static __always_inline __u32 ipv4_read(struct cflb_packet *p, const struct iphdr *ip,
				       const void *end)
{
	__u32 source;

	if ((const void *)(ip + 1) > end || *(const __u8 *)ip != 0x45 || ip->ttl <= 1 ||
	    !ipv4_sum_is_right(ip))
		return 0;
	source = bpf_ntohl(ip->saddr);
	if (!(source >> 24) || source >> 24 == 127 || source >> 29 == 7)
		return 0;
	p->ipv4 = true;
	p->address[0] = (__u64)source << 32 | bpf_ntohl(ip->daddr);
	p->protocol = ip->protocol;
	p->hop_limit = ip->ttl;
	if (!(ip->frag_off & bpf_htons(0x3fff)))
		ports_read(p, ip + 1, end);
	return bpf_ntohs(ip->tot_len) >= sizeof(*ip) ? bpf_ntohs(ip->tot_len) : 0;
}

/* The same for IPv6. Hop-by-hop options and link-local sources are the kernel's affair. */
static __always_inline __u32 ipv6_read(struct cflb_packet *p, const struct ipv6hdr *ip,
				       const void *end)
{
	const __be64 *address = (const __be64 *)&ip->saddr;

	if ((const void *)(ip + 1) > end || ip->version != 6 || ip->hop_limit <= 1 || !ip->nexthdr)
		return 0;
#pragma unroll
	for (int i = 0; i < 4; i++)
		p->address[i] = bpf_be64_to_cpu(address[i]);
	if (p->address[0] >> 54 == 0x3fa || p->address[0] >> 56 == 0xff || !p->address[0])
		return 0;
	p->protocol = ip->nexthdr;
	p->hop_limit = ip->hop_limit;
	p->label = bpf_ntohl(*(const __be32 *)ip) & 0xfffff;
	ports_read(p, ip + 1, end);
	return sizeof(*ip) + bpf_ntohs(ip->payload_len);
}

static __always_inline __u32 packet_read(struct cflb_packet *p, const void *data, const void *end,
					 enum cflb_family family)
{
	return family == CFLB_IPV4 ? ipv4_read(p, data, end) : ipv6_read(p, data, end);
}

/* The group of the packet's destination, 0 if the kernel decides. */
static __always_inline struct cflb_group *group_of(const struct cflb_packet *p)
{
	__u32 *number;

	if (p->ipv4) {
		struct cflb_route4 key = { .bits = 32, .address = bpf_htonl((__u32)p->address[0]) };

		number = bpf_map_lookup_elem(&cflb_routes4, &key);
	} else {
		struct {
			__u32 bits;
			__u32 address[4];
		} key = { .bits = 128 };

		key.address[0] = bpf_htonl(p->address[2] >> 32);
		key.address[1] = bpf_htonl((__u32)p->address[2]);
		key.address[2] = bpf_htonl(p->address[3] >> 32);
		key.address[3] = bpf_htonl((__u32)p->address[3]);
		number = bpf_map_lookup_elem(&cflb_routes6, &key);
	}
	if (!number || !*number)
		return 0;
	return bpf_map_lookup_elem(&cflb_groups, number);
}

/* Both Ethernet addresses, as three words: struct ethhdr is packed, so the compiler would copy
 * octets. */
static __always_inline void ethernet_write(struct ethhdr *eth, const struct cflb_next_hop *hop)
{
	const __u32 *from = (const __u32 *)hop->destination;
	__u32 *to = (__u32 *)(void *)eth;

	to[0] = from[0];
	to[1] = from[1];
	to[2] = from[2];
}

/* One hop less: TTL, protocol and checksum are one word, and as the TTL loses 1 the checksum gains
 * 1 (RFC 1624). */
static __always_inline void hop_count(void *ip, bool ipv4)
{
	__u32 *word = (__u32 *)&((struct iphdr *)ip)->ttl;
	__u64 sum = *word + 0xffffULL;

	if (!ipv4) {
		((struct ipv6hdr *)ip)->hop_limit--;
		return;
	}
	if (sum >= 0xffff0000)
		sum += 0x10000;
	*word = sum;
}

/* ===== Programs ===== */

static __always_inline int frame_forward(struct xdp_md *ctx, struct ethhdr *eth, const void *end,
					 enum cflb_family family)
{
	struct cflb_packet p = {};
	struct cflb_group *group;
	struct cflb_next_hop *hop;
	enum cflb_choice choice;
	__u32 length, index;

	length = packet_read(&p, eth + 1, end, family);
	if (!length ||
	    (length > end - (void *)(eth + 1) && length > bpf_xdp_get_buff_len(ctx) - sizeof(*eth)))
		return XDP_PASS;
	group = group_of(&p);
	if (!group || !group->count)
		return XDP_PASS;
	index = cflb_next_hop_of(&settings.networks[family], settings.router, &p, group, &choice);
	if (index >= CFLB_NEXT_HOPS)
		return XDP_PASS;
	hop = &group->hops[index];
	if (!hop->ready || length > hop->mtu)
		return XDP_PASS;
	choice_count(choice, 1);
	ethernet_write(eth, hop);
	if ((void *)(eth + 1) + sizeof(struct iphdr) > end ||
	    (!p.ipv4 && (void *)(eth + 1) + sizeof(struct ipv6hdr) > end))
		return XDP_ABORTED; /* was read above, which the verifier has forgotten */
	hop_count(eth + 1, p.ipv4);
	if (hop->interface == ctx->ingress_ifindex)
		return XDP_TX;
	return bpf_redirect_map(&ports, hop->interface, 0);
}

/* Each family has instructions of its own: what it lacks takes no registers and no branches. */
SEC("xdp.frags")
int cflb(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	__be16 ethertype;

	if ((void *)(eth + 1) > end || eth->h_dest[0] & 1)
		return XDP_PASS;
	ethertype = *(__be16 *)((void *)eth + 2 * ETH_ALEN);
	if (ethertype == bpf_htons(ETH_P_IP))
		return frame_forward(ctx, eth, end, CFLB_IPV4);
	if (ethertype == bpf_htons(ETH_P_IPV6))
		return frame_forward(ctx, eth, end, CFLB_IPV6);
	return XDP_PASS;
}

/* Headers are looked at where the skb is linear: so far at least, if the packet is so long. */
#define CFLB_HEADERS (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + sizeof(struct ports))

static __always_inline void hash_set(struct __sk_buff *skb, enum cflb_family family)
{
	struct cflb_packet p = {};
	struct cflb_group *group;
	enum cflb_choice choice;
	__u32 length, index;

	length = packet_read(&p, (void *)(long)skb->data + sizeof(struct ethhdr),
			     (void *)(long)skb->data_end, family);
	if (!length || length > skb->len - sizeof(struct ethhdr))
		return;
	group = group_of(&p);
	if (!group || !group->count)
		return;
	index = cflb_next_hop_of(&settings.networks[family], settings.router, &p, group, &choice);
	if (index >= CFLB_NEXT_HOPS)
		return;
	choice_count(choice, skb->gso_segs ? skb->gso_segs : 1);
	bpf_set_hash(skb, group->kernel_hash[index]);
}

SEC("tc")
int cflb_hash(struct __sk_buff *skb)
{
	if (skb->data_end - skb->data < CFLB_HEADERS)
		bpf_skb_pull_data(skb, skb->len < CFLB_HEADERS ? skb->len : CFLB_HEADERS);
	if (skb->protocol == bpf_htons(ETH_P_IP))
		hash_set(skb, CFLB_IPV4);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		hash_set(skb, CFLB_IPV6);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual BSD/GPL";
