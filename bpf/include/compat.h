// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the kernel's UAPI headers of 6.1 (Debian 12) do not have, and the few
 * kernel structures that are read with CO-RE relocations.
 */
#pragma once

#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* The headers of this folder serve programs of XDP, and one of TC that says so. Both are given data
 * and data_end. */
#ifdef FOR_TC
#define CONTEXT struct __sk_buff
#define frame_bytes(ctx) ((ctx)->len)
#else
#define CONTEXT struct xdp_md
#define frame_bytes(ctx) bpf_xdp_get_buff_len(ctx)
#endif

/* The end of the frame, read from the context itself: in large functions the compiler keeps a
 * pointer to the field, which the verifier refuses. */
static __always_inline void *frame_end(CONTEXT *ctx)
{
	barrier_var(ctx);
	return (void *)(long)ctx->data_end;
}

#define AF_INET 2
#define AF_INET6 10

/* enum tcp states, include/net/tcp_states.h */
#define TCP_STATE_ESTABLISHED 1
#define TCP_STATE_TIME_WAIT 6
#define TCP_STATE_CLOSE_WAIT 8
#define TCP_STATE_LISTEN 10
#define TCP_STATE_NEW_SYN_RECV 12

/* include/linux/tcp.h: the two initial sequence numbers of a request socket. */
struct tcp_request_sock {
	__u32 rcv_isn;
	__u32 snt_isn;
} __attribute__((preserve_access_index));

/* include/net/sock.h, include/linux/tcp.h: the numbers of a socket in TIME-WAIT. */
struct sock_common {
	__u32 skc_tw_rcv_nxt;
	__u32 skc_tw_snd_nxt;
} __attribute__((preserve_access_index));

struct tcp_timewait_sock {
	__u32 tw_rcv_wnd;
} __attribute__((preserve_access_index));

/* Reads a kernel object as the type of a BTF id: Linux 6.2. */
extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym __weak;

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
