// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the drivers of the bench share: the frame that is written anew at each repeat of
 * BPF_PROG_TEST_RUN, with the next flow's source, and the program under test. Method:
 * docs/results/benchmarks.md.
 */
#pragma once

#include "frame.h"

#define FRAME_WORDS 30 /* behind the L2 header */
#define PORTS_LOG2 12 /* flows that differ in the port alone; then the address changes */

/*
 * The frame, in words of 8 bytes behind its Ethernet header. Stores of this size and place forward
 * to any load of an address or a port: others would stall the program under test as no packet from
 * a network card does.
 */
struct driver {
	__u64 words[FRAME_WORDS];
	struct eth_addresses addresses;
	__be16 ethertype;
	__u16 reserved;
	__u32 count; /* of words */
	__u32 source; /* the word whose upper half is the end of the source address */
	__u32 ports; /* offset of the source port in the frame */
	__u32 flows; /* visited in turn, stride apart */
	__u32 stride;
	__u32 flow; /* the next one */
};

struct driver driver = {};

/* The program under test. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} target SEC(".maps");

static __always_inline __u32 next_flow(void)
{
	__u32 flow = driver.flow, next = flow + driver.stride;

	driver.flow = next < driver.flows ? next : next - driver.flows;
	return flow;
}

static __always_inline void ethernet_write(void *data, const struct eth_addresses *addresses,
					   __be16 ethertype)
{
	*(struct eth_addresses *)data = *addresses;
	*(__be16 *)(data + ETH_ADDRESSES) = ethertype;
}

/* The outer header of the yardsticks, 40 constant bytes behind the Ethernet header of a frame. */
static __always_inline bool bare_header_write(void *data, void *end)
{
	__u64 *outer = data + ETH_HLEN;

	if ((void *)(outer + 5) > end)
		return false;
	outer[0] = bpf_cpu_to_be64(6ULL << 60 | 72 << 16 | 41 << 8 | 64);
	outer[1] = bpf_cpu_to_be64(0xfd00005e00000000);
	outer[2] = bpf_cpu_to_be64(0xe1);
	outer[3] = bpf_cpu_to_be64(0xfcbbbb0000010002);
	outer[4] = 0;
	return true;
}

/*
 * The word of an IPv4 header that holds checksum and source, whose sum is right again when the
 * source is that of another flow. All in the byte order of the wire, which the sum does not depend
 * on (RFC 1071).
 */
static __always_inline __u64 checksum_word_renew(__u64 word, __u32 added)
{
	__u32 sum = (__u16) ~(word >> 16) + (added & 0xffff) + (added >> 16);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (word & ~0xffff0000ULL) | (__u64)(__u16)~sum << 16;
}

/* The whole frame anew, from the flow of this number. */
static __always_inline bool frame_renew(CONTEXT *ctx, __u32 flow)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__be16 *port = data + (driver.ports & 0xff);
	__u64 *word = data + ETH_HLEN;
	__u32 source = driver.source, added;
	__u64 renewed;

	if (data + ETH_HLEN > end)
		return false;
	ethernet_write(data, &driver.addresses, driver.ethertype);
	for (int i = 0; i < FRAME_WORDS; i++) {
		if (i >= driver.count || (void *)(word + i + 1) > end)
			break;
		word[i] = driver.words[i];
	}
	if (source >= FRAME_WORDS || (void *)(word + source + 1) > end || (void *)(port + 1) > end)
		return false;
	added = bpf_htonl(flow >> PORTS_LOG2);
	renewed = driver.words[source] + ((__u64)added << 32);
	word[source] = driver.ethertype == bpf_htons(ETH_P_IP) ?
			       checksum_word_renew(renewed, added) :
			       renewed;
	*port += bpf_htons(flow & ((1 << PORTS_LOG2) - 1));
	return true;
}
