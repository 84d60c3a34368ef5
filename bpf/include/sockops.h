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
	service = socket_service(ops);
	connections = service ? bpf_map_lookup_elem(&busy, &service) : 0;
	if (connections) {
		accept_moves(service, *connections, !after);
		__sync_fetch_and_add(connections, after ? 1 : -1);
	}
	return 1;
}
