// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The listener's accept queue as a load: connections that are established and that the server has
 * not fetched yet. It is read when a new connection is offered, so that nothing in the server is
 * configured, and it is never out of date.
 */
#pragma once

#include "accept.h"
#include "socket.h"

/* accept_policy.reported: how busy a service is for its policy. */
enum load_source {
	LOAD_CONNECTIONS = 0,
	LOAD_REPORTED, /* what the agent reports */
	LOAD_ACCEPT_QUEUE,
};

/* include/net/sock.h: connections that wait for accept(). */
struct sock {
	__u32 sk_ack_backlog;
} __attribute__((preserve_access_index));

/* Reports the queue of the service's listener, if its policy is to decide by that. Not inlined, for
 * the verifier's sake. */
static __noinline int backlog_report(struct xdp_md *ctx, const struct packet *p, __u32 service)
{
	struct accept_policy *policy = bpf_map_lookup_elem(&accept_policies, &service);
	__s32 *depth = bpf_map_lookup_elem(&reported, &service);
	struct tcp_sock *tcp;
	struct bpf_sock *sk;

	if (!policy || !depth || policy->reported != LOAD_ACCEPT_QUEUE)
		return 0;
	sk = socket_lookup(ctx, p, BPF_F_CURRENT_NETNS);
	if (!sk)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp)
		*depth = ((struct sock *)tcp)->sk_ack_backlog;
	bpf_sk_release(sk);
	return 0;
}
