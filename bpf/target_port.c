// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sockets that listen on another port than the one that clients of a service connect to.
 * TCP: target_arrive (TC ingress) looks up the listener of the target port when a first SYN comes,
 * and target_lookup (sk_lookup) gives it the connection. No packet is changed: the connection has
 * the service's port, by which the host's program finds it. UDP, where a socket has one port:
 * target_arrive and target_leave (TC egress) replace the port in datagrams. Where several ports of
 * a service lead to one socket, each client's answers come from the port that it asked last.
 */
#define FOR_TC

#include "include/ip.h"

#include <linux/pkt_cls.h>

#define TARGETS_MAX 1024
#define ASKED_MAX 16384

/* An address and port of this host. */
struct target_key {
	struct address address;
	__be16 port;
	__u8 protocol;
	__u8 ipv4; /* 1: the address is an IPv4 one */
	__u32 reserved;
};

struct target {
	struct address address; /* of the listener, if it is bound to one */
	__be16 port;
	__u16 shared; /* UDP: not 0: other ports lead to the same socket */
	__u16 reserved[2];
};

/* UDP: the port that clients know. */
struct target_source {
	__be16 port;
	__u16 shared; /* not 0: it is one of several, see asked */
};

/* UDP: a client's socket, and one of this host. */
struct asked_key {
	struct address client;
	struct target_key socket;
	__be16 port; /* of the client */
	__u16 reserved[3];
};

/* By what clients connect to. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS_MAX);
	__type(key, struct target_key);
	__type(value, struct target);
} targets SEC(".maps");

/* UDP: ports that clients know, by what sockets send from. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS_MAX);
	__type(key, struct target_key);
	__type(value, struct target_source);
} target_sources SEC(".maps");

/* UDP: the port that a client asked last, where several lead to one socket. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ASKED_MAX);
	__type(key, struct asked_key);
	__type(value, __be16);
} target_asked SEC(".maps");

/* Listeners, by what clients connect to. The kernel removes those that close. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, TARGETS_MAX);
	__type(key, struct target_key);
	__type(value, __u64);
} target_listeners SEC(".maps");

/* Reads a TCP segment, or a UDP datagram or its first fragment; false: it is something else. */
static __always_inline bool segment_parse(struct __sk_buff *skb, struct packet *p)
{
	struct cursor c = cursor_at_start(skb);
	struct frame f;
	__u32 srh = 0;

	if (frame_parse(&c, &f))
		return false;
	if (f.ethertype == bpf_htons(ETH_P_IP)) {
		if (ipv4_parse(&c, p))
			return false;
	} else if (f.ethertype != bpf_htons(ETH_P_IPV6) || ipv6_parse(&c, p) ||
		   (is_extension(p->flow.protocol) &&
		    packet_walk(skb, &c, p, SRH_IS_ROUTING_HEADER, false, &srh))) {
		return false;
	}
	if (p->fragment == FRAGMENT_LATER)
		return false;
	if (p->flow.protocol == IPPROTO_TCP)
		return tcp_parse(&c, p);
	if (p->flow.protocol != IPPROTO_UDP || !cursor_has(&c, sizeof(struct udphdr)))
		return false;
	p->transport = c.offset;
	p->flow.ports = *(__u32 *)c.pos;
	return true;
}

static __always_inline void port_replace(struct __sk_buff *skb, const struct packet *p, __u32 field,
					 __be16 from, __be16 to)
{
	if (!bpf_l4_csum_replace(skb, p->transport + offsetof(struct udphdr, check), from, to,
				 BPF_F_MARK_MANGLED_0 | sizeof(to)))
		bpf_skb_store_bytes(skb, p->transport + field, &to, sizeof(to), 0);
}

/* Remembers which port a client asks of those that lead to one socket. */
static __always_inline void asked_note(const struct packet *p, const struct target_key *key,
				       const struct target *target)
{
	struct asked_key asked = { .client = p->flow.source, .port = p->flow.ports };
	__be16 port = key->port;

	asked.socket = *key;
	asked.socket.port = target->port;
	bpf_map_update_elem(&target_asked, &asked, &port, BPF_ANY);
}

/* The port from which a client expects the answer of a socket. */
static __always_inline __be16 asked_port(const struct packet *p, const struct target_key *socket,
					 const struct target_source *source)
{
	struct asked_key asked = { .client = p->flow.destination, .port = p->flow.ports >> 16 };
	__be16 *port = NULL;

	asked.socket = *socket;
	if (source->shared)
		port = bpf_map_lookup_elem(&target_asked, &asked);
	return port ? *port : source->port;
}

/* A socket that a TCP segment from a port of its source would find at an address and port of this
 * host. */
static __always_inline struct bpf_sock *socket_at(struct __sk_buff *skb, const struct packet *p,
						  __be16 from, const struct address *address,
						  __be16 port)
{
	struct bpf_sock_tuple tuple __attribute__((aligned(8))) = {};

	if (p->flow.ipv4) {
		tuple.ipv4.saddr = p->flow.source.word[1] >> 32;
		tuple.ipv4.daddr = address->word[1] >> 32;
		tuple.ipv4.sport = from;
		tuple.ipv4.dport = port;
		return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
	address_store(tuple.ipv6.saddr, &p->flow.source);
	address_store(tuple.ipv6.daddr, address);
	tuple.ipv6.sport = from;
	tuple.ipv6.dport = port;
	return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
}

/*
 * Gives a SYN to a listener of Multipath TCP, which does not belong into maps of sockets, unless
 * the connection has begun already.
 */
static __always_inline void listener_assign(struct __sk_buff *skb, const struct packet *p,
					    const struct target_key *key, struct bpf_sock *listener)
{
	struct bpf_sock *begun = socket_at(skb, p, p->flow.ports, &key->address, key->port);

	if (begun)
		bpf_sk_release(begun);
	else
		bpf_sk_assign(skb, listener, 0);
}

/*
 * The listener of a target port, or none. A client may have, or have had, a connection to the
 * target port itself from the same port: that would be found in its place. No connection comes from
 * port 0.
 */
static __always_inline struct bpf_sock *
target_listener(struct __sk_buff *skb, const struct packet *p, const struct target *target)
{
	struct bpf_sock *sk = socket_at(skb, p, p->flow.ports, &target->address, target->port);

	if (!sk || sk->state == TCP_STATE_LISTEN)
		return sk;
	bpf_sk_release(sk);
	return socket_at(skb, p, 0, &target->address, target->port);
}

static __always_inline void listener_find(struct __sk_buff *skb, const struct packet *p,
					  const struct target_key *key, const struct target *target)
{
	struct bpf_sock *sk = target_listener(skb, p, target), *known;

	if (!sk)
		return;
	if (sk->state == TCP_STATE_LISTEN) {
		known = bpf_map_lookup_elem(&target_listeners, key);
		if (known != sk && (bpf_skc_to_mptcp_sock(sk) ||
				    bpf_map_update_elem(&target_listeners, key, sk, BPF_ANY)))
			listener_assign(skb, p, key, sk);
		if (known)
			bpf_sk_release(known);
	}
	bpf_sk_release(sk);
}

/* ===== Programs ===== */

SEC("tc")
int target_arrive(struct __sk_buff *skb)
{
	struct target_key key = {};
	struct packet p = {};
	struct target *target;

	if (!segment_parse(skb, &p))
		return TC_ACT_UNSPEC;
	key.address = p.flow.destination;
	key.port = p.flow.ports >> 16;
	key.protocol = p.flow.protocol;
	key.ipv4 = p.flow.ipv4;
	target = bpf_map_lookup_elem(&targets, &key);
	if (!target)
		return TC_ACT_UNSPEC;
	if (p.flow.protocol == IPPROTO_UDP) {
		if (target->shared)
			asked_note(&p, &key, target);
		port_replace(skb, &p, offsetof(struct udphdr, dest), key.port, target->port);
	} else if (is_first_syn(&p)) {
		listener_find(skb, &p, &key, target);
	}
	return TC_ACT_UNSPEC;
}

SEC("tc")
int target_leave(struct __sk_buff *skb)
{
	struct target_key key = {};
	struct packet p = {};
	struct target_source *source;

	if (!segment_parse(skb, &p) || p.flow.protocol != IPPROTO_UDP)
		return TC_ACT_UNSPEC;
	key.address = p.flow.source;
	key.port = p.flow.ports;
	key.protocol = p.flow.protocol;
	key.ipv4 = p.flow.ipv4;
	source = bpf_map_lookup_elem(&target_sources, &key);
	if (source)
		port_replace(skb, &p, offsetof(struct udphdr, source), key.port,
			     asked_port(&p, &key, source));
	return TC_ACT_UNSPEC;
}

SEC("sk_lookup")
int target_lookup(struct bpf_sk_lookup *ctx)
{
	struct target_key key = {
		.protocol = ctx->protocol,
		.port = bpf_htons(ctx->local_port),
		.ipv4 = ctx->family == AF_INET,
	};
	struct target *target;
	struct bpf_sock *sk;

	if (ctx->protocol != IPPROTO_TCP)
		return SK_PASS;
	if (key.ipv4) {
		key.address = address_from_ipv4(ctx->local_ip4);
	} else {
		__u32 *word = (__u32 *)&key.address;

		word[0] = ctx->local_ip6[0];
		word[1] = ctx->local_ip6[1];
		word[2] = ctx->local_ip6[2];
		word[3] = ctx->local_ip6[3];
	}
	target = bpf_map_lookup_elem(&targets, &key);
	if (!target)
		return SK_PASS;
	sk = bpf_map_lookup_elem(&target_listeners, &key);
	if (!sk)
		return SK_PASS;
	if (sk->src_port == bpf_ntohs(target->port))
		bpf_sk_assign(ctx, sk, 0); /* if it fails, nobody listens for the packet */
	bpf_sk_release(sk);
	return SK_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
