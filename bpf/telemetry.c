// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * In-band network telemetry: INT-MD 2.1 in the SRv6 encapsulation, or IOAM or Path Tracing in
 * hop-by-hop options. telemetry_source (TC egress) inserts the header into some packets,
 * telemetry_transit (TC egress) adds what the node knows, telemetry_sink (TC ingress) takes all of
 * it out and hands it to user space. Dropped are, at the sink, probes and what carries telemetry
 * from outside of the domain.
 * Specification: docs/reference/telemetry.md.
 */
#include "include/telemetry_int.h"

static __always_inline int insert(struct __sk_buff *skb, const struct int_outer *o,
				  const struct telemetry_class *class)
{
	__u32 instructions = class->instructions, hop = int_words(instructions);
	__u32 slots = class->slots, hops = class->hops, port = source_port(skb), room, more, length,
	      free;
	struct int_headers *h;
	__be32 *to;

	room = hop * (1 + slots);
	if (!hop || !hops || hop > INT_HOP_WORDS || room > INT_ROOM_WORDS)
		return TC_ACT_UNSPEC;
	more = sizeof(*h) + INT_WORD * room;
	if (!fits(skb, more))
		return outcome_count(TELEMETRY_MTU);
	if (!make_room(skb, more, o->length - sizeof(struct ipv6hdr)))
		return outcome_count(TELEMETRY_REFUSED);
	length = payload_length(skb);
	h = int_behind(skb, o, sizeof(*h));
	if (!h || !next_write(skb, o, IPPROTO_UDP))
		return TC_ACT_SHOT; /* what was made is there */
	h->udp.source = bpf_htons(port);
	h->udp.dest = bpf_htons(settings.port);
	h->udp.len = bpf_htons(length + sizeof(struct ipv6hdr) - o->length);
	h->udp.check = 0;
	h->shim = (struct int_shim){ .type = INT_TYPE_MD << 4 | INT_NPT_UDP << 2,
				     .words = INT_HEADER_WORDS + room,
				     .protocol = o->protocol };
	h->md = (struct int_md){ .flags = INT_VERSION << 4,
				 .hop_words = hop,
				 .remaining = hops - 1,
				 .instructions = bpf_htons(instructions),
				 .domain = slots ? bpf_htons(INT_DOMAIN) : 0,
				 .ds_flags = bpf_htons(slots) };
	to = (__be32 *)(h + 1);
	free = hop * slots;
	for (__u32 i = 0; i < INT_ROOM_WORDS; i++) {
		if (i >= free || (void *)(to + i + 1) > packet_end(skb))
			break;
		to[i] = ~0;
	}
	words_write_at(skb, sizeof(struct ethhdr) + AT_STACK(o) + INT_WORD * free, hop,
		       instructions);
	return outcome_count(TELEMETRY_INSERTED);
}

/* Whether a packet of this protocol_of is not encapsulated and may get telemetry: it is from a host
 * of the domain to another, before which a sink is. */
static __always_inline bool is_plain(struct __sk_buff *skb, __u32 protocol)
{
	return settings.plain && settings.encoding != ENCODING_INT && !is_inner(protocol) &&
	       protocol != IPPROTO_NONE && has_prefix(skb, DESTINATION_AT, PREFIX_PLAIN) &&
	       has_prefix(skb, SOURCE_AT, PREFIX_PLAIN);
}

/* Whether a chosen packet has telemetry of any form, or no place for that of this source. */
static __always_inline bool has_no_place(struct __sk_buff *skb, const struct int_outer *o)
{
	struct hop_option option = {};

	if (!is_inner(o->protocol) &&
	    !(is_plain(skb, protocol_of(skb)) && int_find(skb, o) == CARRIES_NOTHING))
		return true;
	if (!hop_options(skb, &option))
		return false;
	if (settings.encoding != ENCODING_INT)
		return true;
	hop_option_find(skb, &option);
	return option.kind;
}

/* Inserts telemetry into a chosen packet, if it has a place for it. A function of its own: its
 * registers would cost packets that are not chosen. */
static __noinline int chosen(struct __sk_buff *skb, const struct telemetry_class *class)
{
	struct int_outer o = {};
	struct int_scratch *s;
	__u32 zero = 0;

	s = bpf_map_lookup_elem(&int_scratches, &zero);
	if (!s || !class)
		return TC_ACT_UNSPEC;
	if (!int_walk(skb, &o) || has_no_place(skb, &o))
		return outcome_count(TELEMETRY_CARRIES);
	if (skb->gso_size)
		return outcome_count(TELEMETRY_SEGMENTED);
	return settings.encoding == ENCODING_INT ? insert(skb, &o, class) :
						   option_insert(skb, s, class);
}

/* Gives a packet of a class telemetry, if it is to have it. A function of its own, as those that
 * follow: what they need would cost packets that are not chosen. */
static __noinline int source_of(struct __sk_buff *skb, struct telemetry_choice *choice,
				const struct telemetry_class *class, __u32 drawn)
{
	return choice && class && is_chosen(choice, class, drawn) ? chosen(skb, class) :
								    TC_ACT_UNSPEC;
}

/* The number of the class of a packet of which the first words of a class do not say enough;
 * TELEMETRY_CLASSES: none. */
static __always_inline __u32 class_of_any(struct __sk_buff *skb, const struct telemetry_list *list,
					  __u32 current, bool plain)
{
	const struct telemetry_class *class = list->classes;
	struct flow_fields f;

	if (!class->looks)
		return 0;
	if (!flow_fields(skb, &f))
		return class_of(skb, current, plain);
	for (__u32 i = 0; i < TELEMETRY_CLASSES; i++, class ++)
		if (fields_match(class, f.head, f.ports) &&
		    (!class->more || more_matches(class, &f)))
			return i;
	return TELEMETRY_CLASSES;
}

/* Gives any packet telemetry, if its class is to have it. */
static __noinline int source_any(struct __sk_buff *skb, struct telemetry_choice *choice,
				 __u32 drawn)
{
	__u32 protocol = protocol_of(skb), current = list_current(), number;
	struct telemetry_list *list = list_of(current);

	if (!choice || (!is_inner(protocol) && !may_carry(protocol) && !is_plain(skb, protocol)))
		return TC_ACT_UNSPEC;
	number = class_of_any(skb, list, current, is_plain(skb, protocol));
	if (number >= TELEMETRY_CLASSES)
		return TC_ACT_UNSPEC;
	return source_of(skb, choice, class_at(list, number), drawn);
}

/* Whether the packet is encapsulated, and right behind its IPv6 header. */
static __always_inline bool is_encapsulated(struct __sk_buff *skb)
{
	struct ipv6hdr *ip = packet_start(skb) + sizeof(struct ethhdr);

	return (void *)(ip + 1) + 2 <= packet_end(skb) && is_inner(ip->nexthdr);
}

/* Leaves a packet as it is. Otherwise clang keeps the verdict in a register that is saved. */
static __always_inline int leave(void)
{
	int verdict = TC_ACT_UNSPEC;

	barrier_var(verdict);
	return verdict;
}

static __always_inline struct telemetry_choice *choice_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&telemetry_choices, &zero);
}

/* Gives a packet of a class telemetry, if it is its turn, or chance has it so. */
static __always_inline int source_class(struct __sk_buff *skb, const struct telemetry_class *class)
{
	struct telemetry_choice *choice = choice_here();

	if (!choice)
		return leave();
	if (unlikely(!class->one_in))
		return source_of(skb, choice, class, 0);
	return unlikely(is_its_turn(choice, class)) ? chosen(skb, class) : leave();
}

/* Gives a packet telemetry, if chance has it so, where no class takes turns. */
static __always_inline int source_by_chance(struct __sk_buff *skb, __u32 ceiling)
{
	struct telemetry_choice *choice = choice_here();
	__u32 drawn;

	if (!choice)
		return leave();
	drawn = chance(choice);
	return drawn > ceiling ? leave() : source_any(skb, choice, drawn);
}

SEC("tc")
int telemetry_source(struct __sk_buff *skb)
{
	struct telemetry_class *class;
	struct telemetry_list *list;
	struct flow_fields f;

	if (!is_ipv6(skb))
		return leave();
	list = list_of(list_current());
	if (list->ceiling != CEILING_NONE) /* before the packet is looked at, which costs more */
		return source_by_chance(skb, list->ceiling);
	class = list->classes;
	barrier_var(class);
	if (unlikely(!class->looks) && is_encapsulated(skb))
		return source_class(skb, class);
	if (unlikely(!flow_fields(skb, &f)))
		return source_any(skb, choice_here(), 0);
	for (__u32 i = 0; i < TELEMETRY_CLASSES; i++, class ++) {
		barrier_var(
			class); /* or clang keeps two variables of the loop, and spills others */
		if (likely(fields_match(class, f.head, f.ports)) &&
		    (likely(!class->more) || likely(more_matches(class, &f))))
			return source_class(skb, class);
	}
	return leave();
}

/* The free slot that the node writes to, from the stack on; -1: there is none. */
static __always_inline int slot_of(const struct int_headers *h, __u32 hop)
{
	__u32 free = bpf_ntohs(h->md.ds_flags) & 0xff;

	if (h->md.domain != bpf_htons(INT_DOMAIN) || !free ||
	    hop * free > h->shim.words - INT_HEADER_WORDS)
		return -1;
	return INT_WORD * hop * (free - 1);
}

/*
 * Writes into a free slot, so far from the start of the stack. False if it is written already. The
 * header of a packet that is forwarded has no checksum of hardware any more, and UDP has none.
 */
static __always_inline bool write_in_place(struct __sk_buff *skb, const struct int_outer *o,
					   __u32 slot, __u32 hop)
{
	struct int_headers *h;
	__be32 *to;

	if (slot >= INT_WORD * (INT_WORDS_MAX + 1) ||
	    !reach(skb, sizeof(struct ethhdr) + o->length + sizeof(*h) + slot + INT_WORD * hop))
		return false;
	h = int_behind(skb, o, sizeof(*h));
	if (!h)
		return false;
	barrier_var(slot);
	to = (void *)(h + 1) + (slot & (INT_WORD * INT_WORDS_MAX));
	if ((void *)(to + 1) > packet_end(skb) || *to != (__be32)~0)
		return false;
	words_write(skb, to, hop, bpf_ntohs(h->md.instructions));
	h->md.remaining--;
	h->md.ds_flags -= bpf_htons(1);
	return true;
}

static __always_inline int push(struct __sk_buff *skb, const struct int_outer *o,
				struct int_headers *h)
{
	__u32 hop = h->md.hop_words & INT_HOP_WORDS, words = h->shim.words, more = INT_WORD * hop;
	__u32 instructions = bpf_ntohs(h->md.instructions), length = bpf_ntohs(h->udp.len);
	__u32 remaining = h->md.remaining;
	int slot = slot_of(h, hop);

	if (!remaining) {
		h->md.flags |= INT_EXCEEDED_HOPS;
		return outcome_count(TELEMETRY_HOPS);
	}
	if (slot >= 0 && write_in_place(skb, o, slot, hop))
		return outcome_count(TELEMETRY_IN_PLACE);
	if (words + hop > INT_WORDS_MAX || !fits(skb, more)) {
		h = int_behind(skb, o, sizeof(*h));
		if (h)
			h->md.flags |= INT_EXCEEDED_MTU;
		return outcome_count(TELEMETRY_MTU);
	}
	if (!make_room(skb, more, o->length - sizeof(struct ipv6hdr) + sizeof(*h)))
		return outcome_count(TELEMETRY_REFUSED);
	h = int_behind(skb, o, sizeof(*h));
	if (!h)
		return TC_ACT_SHOT;
	h->udp.len = bpf_htons(length + more);
	h->shim.words = words + hop;
	h->md.remaining = remaining - 1;
	words_write(skb, (__be32 *)(h + 1), hop, instructions);
	return outcome_count(TELEMETRY_PUSHED);
}

SEC("tc")
int telemetry_transit(struct __sk_buff *skb)
{
	struct int_outer o = {};
	struct int_headers *h;
	struct hop_option option = {};
	struct ioam_trace trace = {};
	enum carrying carries = CARRIES_NOTHING;
	__u32 protocol;

	if (!is_ipv6(skb))
		return TC_ACT_UNSPEC;
	protocol = protocol_of(skb);
	if (!may_carry(protocol))
		return TC_ACT_UNSPEC;
	if (protocol == IPPROTO_HOPOPTS) {
		if (option_transit_plain(skb))
			return TC_ACT_UNSPEC;
		carries = option_find(skb, &option, &trace);
	}
	if (carries == CARRIES_TELEMETRY)
		return option_transit(skb, &option, &trace);
	if (carries == CARRIES_NOTHING) {
		if (!int_walk(skb, &o))
			return TC_ACT_UNSPEC;
		carries = int_find(skb, &o);
	}
	if (carries == CARRIES_NOTHING)
		return TC_ACT_UNSPEC;
	if (carries == CARRIES_OUTSIDE)
		return outcome_count(TELEMETRY_OUTSIDE);
	if (carries == CARRIES_BROKEN)
		return outcome_count(TELEMETRY_BROKEN);
	if (skb->gso_size)
		return outcome_count(TELEMETRY_SEGMENTED);
	h = int_behind(skb, &o, sizeof(*h));
	return h ? push(skb, &o, h) : TC_ACT_UNSPEC;
}

/* Takes telemetry out of a packet that was noted. Helpers write: the packet may have a checksum of
 * hardware, which they keep right. */
static __always_inline int take_out(struct __sk_buff *skb, const struct int_outer *o, __u32 less)
{
	struct int_headers *h = int_behind(skb, o, sizeof(*h));
	__u32 zero = 0, protocol;
	struct int_scratch *s = bpf_map_lookup_elem(&int_scratches, &zero);

	if (!s || !h)
		return outcome_count(TELEMETRY_REFUSED);
	if (h->md.flags & INT_DISCARD)
		return refuse(TELEMETRY_DISCARDED, REASON_TELEMETRY_PROBE);
	protocol = h->shim.protocol;
	if (!int_copy(skb, s, o->length))
		return outcome_count(TELEMETRY_REFUSED);
	*octet_at(s, o->next_at) = protocol;
	length_add(s, 4, -less);
	if (!store(skb, s, -less, o->length))
		return outcome_count(TELEMETRY_REFUSED);
	return outcome_count(TELEMETRY_REMOVED);
}

/* Takes the telemetry out of a packet that carries it behind its outer headers. */
static __always_inline int sink(struct __sk_buff *skb, const struct int_outer *o)
{
	struct int_headers *h = int_behind(skb, o, sizeof(*h));
	struct telemetry_sight sight = { .carries = 1 };
	struct int_stack stack;
	__u32 less, protocol;

	if (!h)
		return TC_ACT_UNSPEC;
	protocol = h->shim.protocol;
	stack = (struct int_stack){ .at = sizeof(struct ethhdr) + AT_STACK(o),
				    .words = h->shim.words - INT_HEADER_WORDS,
				    .hop = h->md.hop_words & INT_HOP_WORDS };
	stack_of_int(&stack, bpf_ntohs(h->md.instructions));
	less = sizeof(*h) + INT_WORD * stack.words;
	if (watches()) {
		if (h->md.domain == bpf_htons(INT_DOMAIN))
			stack_skip(&stack, bpf_ntohs(h->md.ds_flags) & 0xff);
		stack_see(skb, &stack, &sight);
		watch(skb, sizeof(struct ethhdr) + o->length + less, protocol, &sight);
	}
	return take_out(skb, o, less);
}

/* Notes a packet without telemetry for its flow, if it is of the domain. */
static __always_inline void note(struct __sk_buff *skb, const struct int_outer *o)
{
	struct telemetry_sight sight = {};

	if (is_inner(o->protocol) && is_inside(skb))
		watch(skb, sizeof(struct ethhdr) + o->length, o->protocol, &sight);
	else if (!is_inner(o->protocol) && settings.plain && is_trusted(skb))
		watch(skb, sizeof(struct ethhdr), IPPROTO_IPV6, &sight);
}

SEC("tc")
int telemetry_sink(struct __sk_buff *skb)
{
	struct hop_option option = {};
	struct ioam_trace trace = {};
	struct int_outer o = {};
	enum carrying carries = CARRIES_NOTHING;
	__u32 protocol;

	if (!is_ipv6(skb))
		return TC_ACT_UNSPEC;
	protocol = protocol_of(skb);
	if (protocol == IPPROTO_NONE ||
	    (!may_carry(protocol) && !((is_inner(protocol) || settings.plain) && watches())))
		return TC_ACT_UNSPEC;
	if (!has_prefix(skb, DESTINATION_AT, PREFIX_SINK))
		return TC_ACT_UNSPEC;
	if (protocol == IPPROTO_HOPOPTS)
		carries = option_find(skb, &option, &trace);
	if (carries == CARRIES_TELEMETRY)
		return option_sink(skb, &option, &trace);
	if (carries == CARRIES_NOTHING) {
		if (!int_walk(skb, &o))
			return TC_ACT_UNSPEC;
		carries = int_find(skb, &o);
		if (carries == CARRIES_NOTHING) {
			note(skb, &o);
			return TC_ACT_UNSPEC;
		}
	}
	if (carries == CARRIES_OUTSIDE)
		return refuse(TELEMETRY_OUTSIDE, REASON_OUTSIDE_DOMAIN);
	if (carries == CARRIES_BROKEN)
		return outcome_count(TELEMETRY_BROKEN);
	if (skb->gso_size)
		return outcome_count(TELEMETRY_SEGMENTED);
	return sink(skb, &o);
}

char _license[] SEC("license") = "Dual BSD/GPL";
