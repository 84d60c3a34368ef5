// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Is the connection of this TCP packet on this host? Asks the kernel's socket
 * table of a namespace: BPF_F_CURRENT_NETNS is the one that the interface is in.
 * A listener alone is no connection, unless its SYN cookie vouches for the packet.
 */
#pragma once

#include "fragment.h"

static __always_inline struct bpf_sock *socket_lookup(CONTEXT *ctx, const struct packet *p,
						      __s64 netns)
{
	struct bpf_sock_tuple tuple __attribute__((aligned(8))) = {};

	if (p->flow.ipv4) {
		tuple.ipv4.saddr = p->flow.source.word[1] >> 32;
		tuple.ipv4.daddr = p->flow.destination.word[1] >> 32;
		tuple.ipv4.sport = p->flow.ports;
		tuple.ipv4.dport = p->flow.ports >> 16;
		return bpf_skc_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv4), netns, 0);
	}
	address_store(tuple.ipv6.saddr, &p->flow.source);
	address_store(tuple.ipv6.daddr, &p->flow.destination);
	tuple.ipv6.sport = p->flow.ports;
	tuple.ipv6.dport = p->flow.ports >> 16;
	return bpf_skc_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv6), netns, 0);
}

/* An ACK without state: did this host's listener make the cookie that it acknowledges? */
static __always_inline bool cookie_vouches(CONTEXT *ctx, struct bpf_sock *listener,
					   const struct packet *p)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct tcphdr *tcp = data + (p->transport & OFFSET_MAX);
	struct ipv6hdr *ip = data + (p->ip & OFFSET_MAX);
	__u32 ip_length = p->flow.ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);

	if ((p->tcp_flags & (TCP_FLAG_ACK | TCP_FLAG_SYN | TCP_FLAG_RST)) != TCP_FLAG_ACK)
		return false;
	/* A TCP header follows the IP header, so an IPv6 header's length is there for IPv4 as well.
	 */
	if ((void *)(tcp + 1) > end || (void *)(ip + 1) > end)
		return false;
	return bpf_tcp_check_syncookie(listener, ip, ip_length, tcp, sizeof(*tcp)) == 0;
}

/* The initial sequence numbers of a half-open connection. */
struct initial_numbers {
	__u32 received;
	__u32 sent;
};

/*
 * Those of a request socket. bpf_skc_to_tcp_request_sock knows requests of plain TCP only, and a
 * listener that speaks MPTCP (a Go server does by default) has others of the same layout.
 */
static __always_inline bool numbers_of_request(struct bpf_sock *sk, struct initial_numbers *numbers)
{
	struct tcp_request_sock *request;

	if (bpf_rdonly_cast) {
		request = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_request_sock));
		numbers->received = request->rcv_isn;
		numbers->sent = request->snt_isn;
		return true;
	}
	/* Linux 6.1: a pointer to a socket takes no offset. Read from the stack, it is a number,
	 * which does. */
	return !bpf_probe_read_kernel(&request, sizeof(request), &sk) &&
	       !bpf_core_read(&numbers->received, sizeof(numbers->received), &request->rcv_isn) &&
	       !bpf_core_read(&numbers->sent, sizeof(numbers->sent), &request->snt_isn);
}

/* A half-open connection is here only for packets that continue it: the same client may have been
 * answered by another host. */
static __always_inline bool request_fits(struct bpf_sock *sk, const struct packet *p)
{
	struct initial_numbers numbers = {};

	if (!numbers_of_request(sk, &numbers))
		return true; /* unknown: it is likelier to be here than elsewhere */
	if (p->icmp == ICMP_QUOTES) /* of our SYN-ACK */
		return p->sequence == numbers.sent;
	if (is_first_syn(p))
		return true;
	if (p->tcp_flags & TCP_FLAG_ACK)
		return p->acknowledgement == numbers.sent + 1;
	return (p->tcp_flags & TCP_FLAG_RST) && p->sequence == numbers.received + 1;
}

/* What a socket in TIME-WAIT still expects: tcp_timewait_sock. */
struct final_numbers {
	__u32 received_next;
	__u32 window; /* advertised behind it, in bytes */
	__u32 sent_next; /* the peer has acknowledged all before it */
};

static __always_inline bool numbers_of_timewait(struct bpf_sock *sk, struct final_numbers *numbers)
{
	struct tcp_timewait_sock *tw;
	struct sock_common *common;

	if (bpf_rdonly_cast) {
		tw = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_timewait_sock));
		common = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct sock_common));
		numbers->received_next = common->skc_tw_rcv_nxt;
		numbers->sent_next = common->skc_tw_snd_nxt;
		numbers->window = tw->tw_rcv_wnd;
		return true;
	}
	/* Linux 6.1, as for requests. */
	if (bpf_probe_read_kernel(&tw, sizeof(tw), &sk))
		return false;
	common = (void *)tw; /* the first member of each socket */
	return !bpf_core_read(&numbers->received_next, sizeof(__u32), &common->skc_tw_rcv_nxt) &&
	       !bpf_core_read(&numbers->sent_next, sizeof(__u32), &common->skc_tw_snd_nxt) &&
	       !bpf_core_read(&numbers->window, sizeof(__u32), &tw->tw_rcv_wnd);
}

/*
 * A socket in TIME-WAIT (the kernel keeps orphans in FIN-WAIT-2 as such, too) takes what its own
 * peer can still send: the port may be in use again, by a connection of another host. Its FIN has
 * been acknowledged, so each segment of the peer acknowledges just that; a FIN may be one beyond
 * the window. A SYN opens another connection (RFC 6191), and ICMP errors are ignored.
 */
static __always_inline bool timewait_fits(struct bpf_sock *sk, const struct packet *p)
{
	struct final_numbers numbers = {};

	if (p->icmp == ICMP_QUOTES || (p->tcp_flags & TCP_FLAG_SYN))
		return false;
	if (!numbers_of_timewait(sk, &numbers))
		return false;
	/* RFC 5961 section 3.2. An answer to a segment of ours acknowledges nothing. */
	if ((p->tcp_flags & TCP_FLAG_RST) && p->sequence == numbers.received_next)
		return true;
	return (p->tcp_flags & TCP_FLAG_ACK) && p->acknowledgement == numbers.sent_next &&
	       (__s32)(p->sequence - (numbers.received_next + numbers.window)) <= 1;
}

/* Not inlined, for the verifier's sake. */
__noinline int connection_is_in(CONTEXT *ctx, const struct packet *p, __s64 netns)
{
	struct bpf_sock *sk;
	bool here = true;

	if (!p)
		return false;
	if (p->fragment == FRAGMENT_LATER)
		return fragment_is_known(p);
	sk = socket_lookup(ctx, p, netns);
	if (!sk)
		return false;
	if (sk->state == TCP_STATE_LISTEN)
		here = cookie_vouches(ctx, sk, p);
	else if (sk->state == TCP_STATE_NEW_SYN_RECV)
		here = request_fits(sk, p);
	else if (sk->state == TCP_STATE_TIME_WAIT)
		here = timewait_fits(sk, p);
	bpf_sk_release(sk);
	return here;
}

static __always_inline bool connection_is_here(CONTEXT *ctx, const struct packet *p)
{
	return connection_is_in(ctx, p, BPF_F_CURRENT_NETNS);
}
