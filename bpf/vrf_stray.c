// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Takes strays away beside a router that owns the SIDs (FRRouting and the kernel's seg6local):
 * End.DT4/6/46.COND of VRF-shadowing for SIDs that the kernel decapsulates. What is no stray goes
 * on to the kernel; nothing is ever dropped here. Specification: docs/reference/dataplane.md,
 * "Strays beside a router".
 */
#include "include/guard.h"
#include "include/inner.h"
#include "include/stray.h"
#include "include/decap.h"

#include <linux/pkt_cls.h>

/* ===== Configuration ===== */

struct stray_settings {
	struct domain domain;
};

const volatile struct stray_settings settings = {};

/* ===== Tables ===== */

#define STRAY_SIDS_MAX 256

enum stray_family {
	STRAY_IPV4 = 1,
	STRAY_IPV6 = 2,
};

struct stray_sid_key {
	__u32 bits; /* of the prefix */
	__u32 address[4];
};

struct stray_sid {
	__u32 vrf; /* its number */
	__u32 families; /* that the SID decapsulates: enum stray_family */
};

/* The kernel's SIDs that lead into a VRF. The agent follows the kernel's routes. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, STRAY_SIDS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct stray_sid_key);
	__type(value, struct stray_sid);
} stray_sids SEC(".maps");

/* ===== Steps ===== */

/* What stray tells stray_lead about a frame that it has decapsulated. */
struct stray_note {
	__u16 vrf;
	__u16 stray; /* 1: it is one; 0: the VRF is to be asked */
};

static __always_inline struct stray_sid *sid_of(const struct address *destination)
{
	struct stray_sid_key key = { .bits = 128 };

	key.address[0] = destination->word[0];
	key.address[1] = destination->word[0] >> 32;
	key.address[2] = destination->word[1];
	key.address[3] = destination->word[1] >> 32;
	return bpf_map_lookup_elem(&stray_sids, &key);
}

/* What remains of the outer headers once they are read. */
struct outer {
	__u32 length; /* of all of them */
	__u32 vrf;
	__u8 next;
	__u8 traffic_class;
};

/* Whether the frame is for a SID of a VRF, and nothing is odd about its outer headers. Leaves the
 * cursor behind them. */
static __always_inline bool outer_parse(struct xdp_md *ctx, struct cursor *c, struct packet *p,
					struct outer *outer)
{
	struct stray_sid *sid;
	__u32 srh = 0;

	if (ipv6_parse(c, p))
		return false;
	sid = sid_of(&p->flow.destination);
	if (!sid || !infrastructure_contains(&settings.domain.infrastructure, &p->flow.source))
		return false;
	if (is_extension(p->flow.protocol) && packet_walk(ctx, c, p, SRH_WANTED, true, &srh))
		return false;
	if (segments_left(ctx, srh))
		return false;
	outer->length = p->length - c->left;
	outer->vrf = sid->vrf;
	outer->next = p->flow.protocol;
	outer->traffic_class = p->traffic_class;
	return (outer->next == IPPROTO_IPIP && sid->families & STRAY_IPV4) ||
	       (outer->next == IPPROTO_IPV6 && sid->families & STRAY_IPV6);
}

/*
 * Decapsulates for stray_lead. A driver that keeps no notes for it leaves the frame as it is: then
 * strays are the kernel's, as without this program.
 */
static __always_inline int lead(struct xdp_md *ctx, struct frame *f, const struct outer *outer,
				const struct packet *inner, bool stray)
{
	struct stray_note *note;
	__u32 tags = f->tags_length;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*note)))
		return pass();
	note = (void *)(long)ctx->data_meta;
	if ((void *)(note + 1) > (void *)(long)ctx->data)
		return pass();
	*note = (struct stray_note){ .vrf = outer->vrf, .stray = stray };
	if (ecn_take(ctx, inner, outer->traffic_class)) {
		bpf_xdp_adjust_meta(ctx, sizeof(*note));
		return pass();
	}
	if (stray) {
		hops_write(ctx, inner, STRAY_HOPS - 1);
		stray_count(outer->vrf, STRAY_AWAY, 1, inner->length);
	}
	f->tags_length = 0; /* a VRF has no VLANs */
	return decapsulate(ctx, f, inner, outer->length + tags);
}

/* ===== Programs ===== */

SEC("xdp.frags")
int stray(struct xdp_md *ctx)
{
	struct cursor c = cursor_at_start(ctx);
	struct outer outer = {};
	struct packet p = {}; /* the outer one, then the inner one: the stack is small */
	enum stray_verdict verdict = STRAY_HERE;
	struct stray_vrf *vrf;
	struct frame f;

	if (frame_parse(&c, &f) || f.ethertype != bpf_htons(ETH_P_IPV6) ||
	    !outer_parse(ctx, &c, &p, &outer))
		return pass();
	p = (struct packet){};
	if (inner_parse(ctx, &c, outer.next, &p) || !continues(&p))
		return pass();
	vrf = bpf_map_lookup_elem(&stray_vrfs, &outer.vrf);
	if (!vrf || !vrf->backup)
		return pass();
	if (vrf->interface) /* whose sockets can be asked for only there */
		return lead(ctx, &f, &outer, &p, false);
	if (!connection_is_in(ctx, &p, vrf->netns)) {
		if (hops_read(ctx, &p) >= STRAY_HOPS)
			return lead(ctx, &f, &outer, &p, true);
		verdict = STRAY_RETURNED;
	}
	stray_count(outer.vrf, verdict, 1, p.length);
	if (verdict == STRAY_HERE && unlikely(p.fragment == FRAGMENT_FIRST))
		fragment_remember(&p);
	return pass();
}

/* Leads what stray has decapsulated to where it is received (TC ingress). */
SEC("tc")
int stray_lead(struct __sk_buff *skb)
{
	struct stray_note *note = (void *)(long)skb->data_meta;
	struct stray_vrf *vrf;
	__u32 number;
	bool stray;

	if ((void *)(note + 1) > (void *)(long)skb->data)
		return TC_ACT_UNSPEC;
	number = note->vrf;
	stray = note->stray;
	vrf = bpf_map_lookup_elem(&stray_vrfs, &number);
	if (!vrf || !vrf->backup)
		return TC_ACT_SHOT; /* the VRF went just now */
	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return TC_ACT_SHOT;
	skb->tc_index = stray ? 0 : number + 1; /* by which vrf_ask knows what to ask for */
	if (bpf_skb_store_bytes(skb, 0, stray ? vrf->backup_address : vrf->address, ETH_ALEN, 0))
		return TC_ACT_SHOT;
	return bpf_redirect(stray ? vrf->backup : vrf->interface, BPF_F_INGRESS);
}

char _license[] SEC("license") = "Dual BSD/GPL";
