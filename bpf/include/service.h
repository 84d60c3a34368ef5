// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How a service is named in the maps of edge and host. */
#pragma once

#include "flow.h"

#define SERVICES_MAX 1024 /* of a host; the loader gives an edge as many as it needs */

/* Port 0: any port. Port and protocol 0, edge only: the entry that marks the address as a VIP. */
struct service_key {
	struct address vip;
	__be16 port;
	__u8 protocol;
	__u8 ipv4; /* 1: an IPv4 packet. The mapped address in an IPv6 packet is another one. */
	__u8 reserved[4];
};

/* A key in whole words: what reads it would wait for bytes that are put down one by one. kind: its
 * port, protocol and family, as they lie there. */
static __always_inline struct service_key service_key_of(const struct address *vip, __u32 kind)
{
	struct service_key key;

	key.vip = *vip;
	*(__u64 *)&key.port = kind;
	return key;
}

/* Port, protocol and family of a flow's destination, as they lie in a service's key. */
static __always_inline __u32 service_kind(const struct flow *f)
{
	return f->ports >> 16 | (__u32)f->protocol << 16 | (__u32)f->ipv4 << 24;
}

struct service {
	__u32 index; /* of its policy and counters */
	__u32 buckets; /* edge: of its table of chains; 0: it has none */
	__u32 former_buckets; /* edge: of the former table; 0: there is none */
	__u16 quic; /* UDP that is QUIC */
	__u8 limited; /* edge: how many new connections it may get */
	__u8 paths; /* edge: enum service_path_bits */
	__u32 paths_at; /* edge: where its paths begin */
	__u32 table; /* edge: where its table begins in its block */
	__u32 former_table;
	__u16 block;
	__u16 former_block;
};

/* Bits of a service: whether some of its backends have a path, and which packets go over two. */
enum service_path_bits {
	SERVICE_PATHS = 1,
	SERVICE_COPIES_ALL = 2,
	SERVICE_COPIES_SYN = 4, /* of TCP that open a connection */
	SERVICE_COPIES_DATA = 8, /* of TCP with payload */
};

/* As for struct chain. */
const enum service_path_bits *service_path_bits_type __attribute__((unused));

#define SERVICE_COPIES (SERVICE_COPIES_ALL | SERVICE_COPIES_SYN | SERVICE_COPIES_DATA)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4 * SERVICES_MAX);
	__type(key, struct service_key);
	__type(value, struct service);
} services SEC(".maps");

/* By exact port, then by any port. The key is left with the port that was looked up last. */
static __always_inline struct service *service_by_port(struct service_key *key)
{
	struct service *service = bpf_map_lookup_elem(&services, key);

	if (service)
		return service;
	key->port = 0;
	return bpf_map_lookup_elem(&services, key);
}
