// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * INT-MD 2.1 (P4.org) between the outer headers of SRv6 and the packet in them:
 *
 *   IPv6 | extension headers, SRH | UDP | shim (NPT 2) | INT-MD | stack | inner packet
 *
 * Headers are copied, changed and stored back: whatever is inserted or removed lies behind them.
 */
#pragma once

#include "compat.h"

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#ifndef IPPROTO_ETHERNET
#define IPPROTO_ETHERNET 143
#endif

#define INT_WORD 4
#define INT_TYPE_MD 1
#define INT_NPT_UDP 2 /* a UDP header of its own */
#define INT_VERSION 2
#define INT_HEADER_WORDS (sizeof(struct int_md) / INT_WORD)
#define INT_WORDS_MAX 255 /* of header and stack */
#define INT_HOP_WORDS 31 /* mask of what each node pushes */
#define INT_EXCEEDED_HOPS 4 /* E */
#define INT_EXCEEDED_MTU 2 /* M */
#define INT_DISCARD 8 /* D */
/* Domain of this program: the low octet of DS Flags counts the slots that the source left free at
 * the top of the stack. */
#define INT_DOMAIN 0x534d

enum int_instruction {
	INT_NODE = 0x8000,
	INT_INTERFACES = 0x4000,
	INT_LATENCY = 0x2000,
	INT_QUEUE = 0x1000,
	INT_INGRESS_TIME = 0x0800,
	INT_EGRESS_TIME = 0x0400,
	INT_WIDE_INTERFACES = 0x0200,
	INT_UTILIZATION = 0x0100,
	INT_WIDE = INT_INGRESS_TIME | INT_EGRESS_TIME | INT_WIDE_INTERFACES, /* 8 octets each */
	INT_KNOWN = 0xff00,
};

struct int_shim {
	__u8 type; /* 4 bits, NPT 2, reserved 2 */
	__u8 words; /* of header and stack */
	__u8 reserved;
	__u8 protocol; /* of the inner packet */
};

struct int_md {
	__u8 flags; /* version 4, D, E, M, reserved */
	__u8 reserved;
	__u8 hop_words; /* 5 bits */
	__u8 remaining; /* nodes that may still push */
	__be16 instructions;
	__be16 domain;
	__be16 ds_instruction;
	__be16 ds_flags;
};

/* What stands between the outer headers and the stack. */
struct int_headers {
	struct udphdr udp;
	struct int_shim shim;
	struct int_md md;
};

#define INT_EXTENSIONS 3 /* extension headers that are walked */
#define INT_OUTER 256 /* octets of outer headers that are copied */
#define INT_ROOM_WORDS 64 /* words of stack that a source inserts, at most */
#define INT_HEAD (INT_OUTER + sizeof(struct int_headers))
#define INT_REACH 4096 /* beyond the longest hop-by-hop header */
#define INT_SCRATCH 1024 /* a power of two above INT_HEAD and INT_ROOM_WORDS */

struct int_scratch {
	__u8 octets[INT_SCRATCH]; /* the packet from its IPv6 header on */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct int_scratch);
} int_scratches SEC(".maps");

/* What a node knows of itself and of a packet. */
struct int_observation {
	__u64 latency_ns; /* beyond 32 bits: unknown */
	__u32 node;
	__u32 ingress;
	__u32 egress;
	__u32 queue; /* octets; all ones: unknown */
	__u32 utilization;
	__u32 reserved; /* all of what a global function is handed is initialized */
};

struct int_outer {
	__u32 length; /* of all headers */
	__u32 next_at; /* where the last of them says what follows */
	__u32 protocol; /* what follows */
};

/* 1 to limit octets, a power of two: the size of a copy as the verifier of Linux 6.1 understands
 * it. */
static __always_inline __u32 some(__u32 octets, __u32 limit)
{
	octets--;
	barrier_var(octets); /* or else clang leaves the bound out */
	return (octets & (limit - 1)) + 1;
}

/* Copies so many octets from the IPv6 header on. */
static __always_inline bool int_copy(struct __sk_buff *skb, struct int_scratch *s, __u32 octets)
{
	return octets && octets <= INT_HEAD &&
	       !bpf_skb_load_bytes(skb, sizeof(struct ethhdr), s->octets,
				   some(octets, INT_SCRATCH / 2));
}

/* The octet at an offset from the IPv6 header on. The bound is where the verifier wants it. */
static __always_inline __u8 *octet_at(struct int_scratch *s, __u32 at)
{
	barrier_var(at);
	return s->octets + (at & (INT_SCRATCH - 1));
}

static __always_inline __u32 get16(const struct int_scratch *s, __u32 at)
{
	barrier_var(at);
	at &= INT_SCRATCH - 2;
	return s->octets[at] << 8 | s->octets[at + 1];
}

static __always_inline void put16(struct int_scratch *s, __u32 at, __u32 value)
{
	barrier_var(at);
	at &= INT_SCRATCH - 2;
	s->octets[at] = value >> 8;
	s->octets[at + 1] = value;
}

static __always_inline void put32(struct int_scratch *s, __u32 at, __u32 value)
{
	barrier_var(at);
	*(__be32 *)(s->octets + (at & (INT_SCRATCH - INT_WORD))) = bpf_htonl(value);
}

/* Where the part of the packet begins and ends that the program reaches: loaded anew each time, so
 * that clang does not keep half of a pointer. */
static __always_inline void *packet_start(const struct __sk_buff *skb)
{
	return (void *)(long)*(const volatile __u32 *)&skb->data;
}

static __always_inline void *packet_end(const struct __sk_buff *skb)
{
	return (void *)(long)*(const volatile __u32 *)&skb->data_end;
}

/* Makes the program reach so many octets of the packet, or all if it has fewer. Pointers into it
 * are to be taken anew. */
static __always_inline bool reach(struct __sk_buff *skb, __u32 octets)
{
	if (octets > skb->len)
		octets = skb->len;
	return packet_end(skb) - packet_start(skb) >= octets || !bpf_skb_pull_data(skb, octets);
}

/* Walks the outer headers, which the program reaches from then on, and INT_HEAD in all. False if
 * they are not whole, or the packet is shorter than it says. */
static __always_inline bool int_walk(struct __sk_buff *skb, struct int_outer *o)
{
	__u32 at = sizeof(struct ipv6hdr), length = skb->len - sizeof(struct ethhdr);
	void *data, *end;
	struct ipv6hdr *ip;
	__u8 *next;

	if (!reach(skb, sizeof(struct ethhdr) + INT_HEAD))
		return false;
	data = packet_start(skb);
	end = packet_end(skb);
	ip = data + sizeof(struct ethhdr);
	if ((void *)(ip + 1) > end || ip->version != 6 ||
	    sizeof(struct ipv6hdr) + bpf_ntohs(ip->payload_len) > length)
		return false;
	length = sizeof(struct ipv6hdr) + bpf_ntohs(ip->payload_len);
	o->next_at = __builtin_offsetof(struct ipv6hdr, nexthdr);
	o->protocol = ip->nexthdr;
#pragma unroll
	for (int i = 0; i < INT_EXTENSIONS; i++) {
		if (o->protocol != IPPROTO_ROUTING && o->protocol != IPPROTO_DSTOPTS &&
		    o->protocol != IPPROTO_HOPOPTS)
			break;
		if (at > INT_OUTER - 8)
			return false;
		next = data + sizeof(struct ethhdr) + at;
		if ((void *)(next + 8) > end)
			return false;
		o->next_at = at;
		o->protocol = next[0];
		at += 8 + 8 * next[1];
		if (at > INT_OUTER)
			return false;
	}
	o->length = at;
	return at <= length && data + sizeof(struct ethhdr) + at <= end;
}

/* What is behind the outer headers, 0 if the program does not reach so many octets of it. */
static __always_inline void *int_behind(struct __sk_buff *skb, const struct int_outer *o,
					__u32 octets)
{
	void *behind = packet_start(skb) + sizeof(struct ethhdr);
	__u32 length = o->length;

	barrier_var(length);
	if (length > INT_OUTER)
		return 0;
	behind += length;
	return behind + octets <= packet_end(skb) ? behind : 0;
}

/* What is at an offset from the start of the frame, 0 if the program does not reach so many octets
 * of it. */
static __always_inline void *packet_at(const struct __sk_buff *skb, __u32 at, __u32 octets)
{
	void *data = packet_start(skb);

	barrier_var(at);
	if (at >= INT_REACH)
		return 0;
	data += at;
	return data + octets <= packet_end(skb) ? data : 0;
}

static __always_inline bool is_inner(__u32 protocol)
{
	return protocol == IPPROTO_IPV6 || protocol == IPPROTO_IPIP || protocol == IPPROTO_ETHERNET;
}

/* Words of 4 octets that the metadata takes: the wide ones count twice. */
static __always_inline __u32 int_words(__u32 instructions)
{
	return __builtin_popcount((instructions & 0xffff) | (instructions & INT_WIDE) << 16);
}

static __always_inline __u32 int_narrow(__u32 number)
{
	return number > 0xffff ? 0xffff : number;
}

/* Both interfaces in a word: 65,535 for larger numbers. */
static __always_inline __u32 int_interfaces(const struct int_observation *o)
{
	return int_narrow(o->ingress) << 16 | int_narrow(o->egress);
}

/*
 * Writes what a node pushes: baseline metadata in the order of their bits. What is not known,
 * reserved or of another domain is all ones. Global, for the verifier.
 */
__noinline int int_write(struct int_scratch *s, __u32 at, __u32 words, __u32 instructions,
			 const struct int_observation *o)
{
	__u64 now = 0, in = ~0ULL;
	bool timed;

	if (!s || !o)
		return 0;
	timed = o->latency_ns <= 0xffffffff;
	if (words != int_words(instructions & INT_KNOWN)) {
		for (int i = 0; i < INT_HOP_WORDS; i++) {
			if (i >= words)
				break;
			put32(s, at + INT_WORD * i, ~0);
		}
	}
	if (instructions & (INT_INGRESS_TIME | INT_EGRESS_TIME))
		now = bpf_ktime_get_tai_ns();
	if (timed)
		in = now - o->latency_ns;
	if (instructions & INT_NODE) {
		put32(s, at, o->node);
		at += INT_WORD;
	}
	if (instructions & INT_INTERFACES) {
		put32(s, at, int_interfaces(o));
		at += INT_WORD;
	}
	if (instructions & INT_LATENCY) {
		put32(s, at, timed ? o->latency_ns : ~0U);
		at += INT_WORD;
	}
	if (instructions & INT_QUEUE) {
		put32(s, at, o->queue);
		at += INT_WORD;
	}
	if (instructions & INT_INGRESS_TIME) {
		put32(s, at, in >> 32);
		put32(s, at + INT_WORD, in);
		at += 2 * INT_WORD;
	}
	if (instructions & INT_EGRESS_TIME) {
		put32(s, at, now >> 32);
		put32(s, at + INT_WORD, now);
		at += 2 * INT_WORD;
	}
	if (instructions & INT_WIDE_INTERFACES) {
		put32(s, at, o->ingress);
		put32(s, at + INT_WORD, o->egress);
		at += 2 * INT_WORD;
	}
	if (instructions & INT_UTILIZATION)
		put32(s, at, o->utilization);
	return 0;
}
