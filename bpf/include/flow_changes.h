// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Changes of paths that come from a controller as datagrams, ahead of its stream: a filter of the
 * socket writes the path of a flow as the datagram comes, where the agent would have to wake up
 * first. It makes the change after the last one only, of a segment list that is known, and only
 * while the agent allows it: everything else is left to the agent, which gets all datagrams.
 * agent/southbound has the format.
 */
#pragma once

#include "flow_paths.h"

#include <linux/udp.h>

#define CHANGE_SEGMENTS 6
#define CHANGE_WORDS 19 /* of 8 octets, in front of the code */
#define CHANGE_STREAMS 64
#define NS_PER_MS 1000000

/* As in the datagram, in the order of the network. */
struct flow_change {
	__be64 number;
	struct flow_key flow;
	__be32 hold_ms;
	__be32 reserved;
	struct address segments[CHANGE_SEGMENTS]; /* :: behind the last one */
};

struct change_datagram {
	union {
		struct flow_change change;
		__u64 words[CHANGE_WORDS];
	};
	__u64 code; /* SipHash-2-4 of what precedes it, under the stream's key */
};

_Static_assert(sizeof(struct flow_change) == CHANGE_WORDS * sizeof(__u64), "words of a change");

/* What the agent says of a stream of changes. */
struct change_stream {
	struct secret key;
	__u64 applied; /* number of the last change that the agent has made */
	__u64 least_hold_ms; /* for which a path is held at least */
};

/* By the cookie of the socket; none: the agent makes all changes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CHANGE_STREAMS);
	__type(key, __u64);
	__type(value, struct change_stream);
} change_streams SEC(".maps");

/* Number of the last change that the filter has made, by the cookie of the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CHANGE_STREAMS);
	__type(key, __u64);
	__type(value, __u64);
} changes_made SEC(".maps");

struct change_segments {
	struct address segments[CHANGE_SEGMENTS];
};

/* The place in flow_lists of a list of segments. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* as flow_lists */
	__type(key, struct change_segments);
	__type(value, __u32);
} flow_places SEC(".maps");

static __always_inline __u64 change_code(const struct secret *key, const __u64 *words)
{
	struct sip s = {
		.v0 = key->k0 ^ 0x736f6d6570736575ULL,
		.v1 = key->k1 ^ 0x646f72616e646f6dULL,
		.v2 = key->k0 ^ 0x6c7967656e657261ULL,
		.v3 = key->k1 ^ 0x7465646279746573ULL,
	};
	__u64 word;

	for (int i = 0; i <= CHANGE_WORDS; i++) {
		word = i < CHANGE_WORDS ? words[i] : (__u64)(CHANGE_WORDS * sizeof(word)) << 56;
		s.v3 ^= word;
		sip_round(&s);
		sip_round(&s);
		s.v0 ^= word;
	}
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* The list of a change that is to be made, or none. */
static __always_inline __u32 *change_list(const struct change_datagram *d,
					  const struct change_stream *stream, __u64 next)
{
	struct secret key = stream->key;

	if (bpf_be64_to_cpu(d->change.number) != next ||
	    bpf_ntohl(d->change.hold_ms) < stream->least_hold_ms ||
	    change_code(&key, d->words) != d->code)
		return 0;
	return bpf_map_lookup_elem(&flow_places, d->change.segments);
}

/* Leaves all datagrams to the agent, too: it answers the controller. */
SEC("socket")
int flow_change(struct __sk_buff *skb)
{
	struct change_stream *stream;
	struct change_datagram d;
	struct flow_path path = {};
	__u64 cookie, *made, next;
	__u32 *list;

	if (!has_flow_paths || skb->len != sizeof(struct udphdr) + sizeof(d))
		return skb->len;
	cookie = bpf_get_socket_cookie(skb);
	stream = bpf_map_lookup_elem(&change_streams, &cookie);
	made = bpf_map_lookup_elem(&changes_made, &cookie);
	if (!stream || !made || bpf_skb_load_bytes(skb, sizeof(struct udphdr), &d, sizeof(d)))
		return skb->len;
	next = (*made > stream->applied ? *made : stream->applied) + 1;
	list = change_list(&d, stream, next);
	if (!list)
		return skb->len;
	path.list = *list;
	path.until = bpf_ktime_get_coarse_ns() + (__u64)bpf_ntohl(d.change.hold_ms) * NS_PER_MS;
	if (!bpf_map_update_elem(&flow_paths, &d.change.flow, &path, BPF_ANY))
		*made = next;
	return skb->len;
}
