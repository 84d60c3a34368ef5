// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ways to find the connection of a packet to a VRF, one program each, on the physical interface:
 * those that vrf_stray.c takes and those that it does not. They parse alike and differ in what they
 * ask. Figures: docs/howto/routers.md, "What each way costs". Only the bench loads this object.
 */
#include "include/inner.h"
#include "include/socket.h"

struct ways {
	__u64 netns_cookie; /* of the namespace with the sockets */
	__u32 netns; /* its id in the interface's */
	__u32 device; /* the VRF device to which the sockets are bound; 0: the VRF is the namespace
		       */
	__u32 nowhere; /* the verdict on a packet whose connection is not found */
};

const volatile struct ways settings = {};

/* ===== A table of connections, kept by sockops ===== */

#define CONNECTIONS_MAX (1 << 16)
#define TCP_STATE_CLOSE 7

struct connection {
	struct address client;
	struct address server;
	__u32 ports; /* as in struct flow: client, server */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CONNECTIONS_MAX);
	__type(key, struct connection);
	__type(value, __u32);
} connections SEC(".maps");

/* The context is read in 32-bit words: volatile keeps the compiler from joining them. */
static __always_inline struct address address_of(volatile __u32 *word)
{
	return (struct address){ { (__u64)word[0] | (__u64)word[1] << 32,
				   (__u64)word[2] | (__u64)word[3] << 32 } };
}

/* Is the socket of the VRF? */
static __always_inline bool is_of_vrf(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;

	return ops->family == AF_INET6 && sk && sk->bound_dev_if == settings.device &&
	       bpf_get_netns_cookie(ops) == settings.netns_cookie;
}

/* Keeps the table: in when a server's connection is established, out when it is closed. IPv6, as
 * the bench's are. */
SEC("sockops")
int keep(struct bpf_sock_ops *ops)
{
	struct connection key = {};
	__u32 there = 1;

	if (ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB &&
	    (ops->op != BPF_SOCK_OPS_STATE_CB || ops->args[1] != TCP_STATE_CLOSE))
		return 1;
	if (!is_of_vrf(ops))
		return 1;
	key.client = address_of(ops->remote_ip6);
	key.server = address_of(ops->local_ip6);
	key.ports = ops->remote_port >> 16 | (__u32)bpf_htons(ops->local_port) << 16;
	if (ops->op == BPF_SOCK_OPS_STATE_CB) {
		bpf_map_delete_elem(&connections, &key);
		return 1;
	}
	bpf_map_update_elem(&connections, &key, &there, BPF_ANY);
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
	return 1;
}

static __always_inline bool is_in_table(const struct packet *p)
{
	struct connection key = { p->flow.source, p->flow.destination, p->flow.ports };

	return bpf_map_lookup_elem(&connections, &key);
}

/* ===== Ways ===== */

/* The TCP packet behind the outer headers. */
static __always_inline bool arrived(struct xdp_md *ctx, struct packet *p)
{
	struct cursor c = cursor_at_start(ctx);
	struct frame f;
	__u8 next;

	if (frame_parse(&c, &f) || f.ethertype != bpf_htons(ETH_P_IPV6) || ipv6_parse(&c, p))
		return false;
	next = p->flow.protocol;
	*p = (struct packet){};
	return !inner_parse(ctx, &c, next, p) && p->flow.protocol == IPPROTO_TCP;
}

static __always_inline int verdict(bool found)
{
	return found ? XDP_PASS : settings.nowhere;
}

/* The kernel alone. */
SEC("xdp.frags")
int pass_all(struct xdp_md *ctx)
{
	return XDP_PASS;
}

/* What all ways have in common. */
SEC("xdp.frags")
int parse_alone(struct xdp_md *ctx)
{
	struct packet p = {};

	return verdict(arrived(ctx, &p));
}

/* Asks from the physical interface, in its namespace. */
SEC("xdp.frags")
int ask_here(struct xdp_md *ctx)
{
	struct packet p = {};

	return verdict(arrived(ctx, &p) && connection_is_here(ctx, &p));
}

/* Asks by the id of a namespace. */
SEC("xdp.frags")
int ask_netns(struct xdp_md *ctx)
{
	struct packet p = {};

	return verdict(arrived(ctx, &p) && connection_is_in(ctx, &p, settings.netns));
}

/* Asks the table of connections. */
SEC("xdp.frags")
int ask_table(struct xdp_md *ctx)
{
	struct packet p = {};

	return verdict(arrived(ctx, &p) && is_in_table(&p));
}

char _license[] SEC("license") = "Dual BSD/GPL";
