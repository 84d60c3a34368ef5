// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a sockops program tells about a TCP socket: its service, and whether it is busy. */
#pragma once

#include "accept.h"
#include "service.h"
#include "signals.h"

/* The service of a local socket, 0: none. */
static __always_inline __u32 socket_service(struct bpf_sock_ops *ops)
{
	struct service_key key = {
		.port = bpf_htons(ops->local_port),
		.protocol = IPPROTO_TCP,
	};
	struct service *service;

	if (ops->family == AF_INET) {
		key.vip = address_from_ipv4(ops->local_ip4);
		key.ipv4 = 1;
	} else {
		/* The context is read in 32-bit words: volatile keeps the compiler from joining
		 * them. */
		volatile __u32 *word = ops->local_ip6;

		key.vip.word[0] = (__u64)word[0] | (__u64)word[1] << 32;
		key.vip.word[1] = (__u64)word[2] | (__u64)word[3] << 32;
		key.ipv4 = is_ipv4_mapped(&key.vip); /* an IPv6 socket that serves IPv4 */
	}
	service = service_by_port(&key);
	return service ? service->index : 0;
}

static __always_inline bool is_busy_state(__u32 state)
{
	return state == TCP_STATE_ESTABLISHED || state == TCP_STATE_CLOSE_WAIT;
}

/*
 * The sockets that are counted in busy, and for which service. A socket tells of its states for as
 * long as it lives, also to programs that were loaded since, and after its service was deleted: it
 * is taken away from what it was added to, or from nothing.
 */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} counted SEC(".maps");

/* The service for which a socket counts from now on, 0: none. */
static __always_inline __u32 busy_begins(struct bpf_sock_ops *ops)
{
	__u32 service = socket_service(ops);
	struct bpf_sock *sk = ops->sk;

	if (!service || !sk ||
	    !bpf_sk_storage_get(&counted, sk, &service, BPF_SK_STORAGE_GET_F_CREATE))
		return 0;
	return service;
}

/* The service for which a socket counted until now, 0: none. */
static __always_inline __u32 busy_ends(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	__u32 *counts, service;

	if (!sk)
		return 0;
	counts = bpf_sk_storage_get(&counted, sk, 0, 0);
	if (!counts)
		return 0;
	service = *counts;
	bpf_sk_storage_delete(&counted, sk);
	return service;
}

/* Counts what happens to the sockets of a namespace: connections that are opened, and those that
 * are busy. */
static __always_inline int socket_count(struct bpf_sock_ops *ops, __u64 netns_cookie)
{
	bool before, after;
	struct host_signals *s;
	__u32 service;
	__s32 *connections;

	if (ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		if (bpf_get_netns_cookie(ops) != netns_cookie)
			return 1;
		service = socket_service(ops);
		if (!service)
			return 1;
		bpf_sock_ops_cb_flags_set(ops,
					  ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
		s = bpf_map_lookup_elem(&signals, &service);
		if (s)
			s->established++;
		return 1;
	}
	if (ops->op != BPF_SOCK_OPS_STATE_CB)
		return 1;
	before = is_busy_state(ops->args[0]);
	after = is_busy_state(ops->args[1]);
	if (before == after || bpf_get_netns_cookie(ops) != netns_cookie)
		return 1;
	service = after ? busy_begins(ops) : busy_ends(ops);
	connections = service ? bpf_map_lookup_elem(&busy, &service) : 0;
	if (connections) {
		accept_moves(service, *connections, !after);
		__sync_fetch_and_add(connections, after ? 1 : -1);
	}
	return 1;
}
