// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A host that sends its flows over several paths, one flowlet after the other. flowlet_send, at TC
 * egress, gives each packet the list of segments of its flow's path as outer destination.
 * flowlet_heard, at TC ingress, sees what is acknowledged: that is how paths are measured. Switches
 * keep nothing, and neither sockets nor routes change. Specification: docs/howto/flowlets.md.
 */
#define FOR_TC
#include "include/flowlet.h"
#include "include/flowlet_packet.h"
#include "include/mss.h"

#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

const volatile struct flowlet_settings settings = {};

/* ===== Tables ===== */

#define FLOWLET_GROUPS_MAX 256
#define FLOWLET_PATHS 1024 /* of all groups */

/* A prefix of destinations. */
struct flowlet_destination {
	__u32 bits;
	__u8 address[16];
};

/* Longest prefix to the number of a group. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct flowlet_destination);
	__type(value, __u32);
} flowlet_destinations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWLET_GROUPS_MAX);
	__type(key, __u32);
	__type(value, struct flowlet_group);
} flowlet_groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWLET_PATHS);
	__type(key, __u32);
	__type(value, struct flowlet_path);
} flowlet_paths SEC(".maps");

/* By the numbers of paths. CPUs write them without a lock: a sum that is lost decays. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWLET_PATHS);
	__type(key, __u32);
	__type(value, struct flowlet_measure);
} flowlet_measures SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* sized by the agent */
	__type(key, struct flowlet_key);
	__type(value, struct flowlet_flow);
} flowlet_flows SEC(".maps");

/* Packets by what became of them, datapath.FlowletCounters. */
enum flowlet_outcome {
	FLOWLET_SENT = 0, /* over a path */
	FLOWLET_TOO_LONG, /* for it: by the kernel's route */
	FLOWLET_PATHLESS, /* all paths of the group are down: by the kernel's route */
	FLOWLET_OUTCOMES,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FLOWLET_OUTCOMES);
	__type(key, __u32);
	__type(value, __u64);
} flowlet_outcomes SEC(".maps");

static __always_inline void outcome_count(__u32 outcome)
{
	__u64 *counter = bpf_map_lookup_elem(&flowlet_outcomes, &outcome);

	if (counter)
		*counter += 1;
}

/* ===== Choice ===== */

/* The group of the other end; 0: none. */
static __always_inline struct flowlet_group *group_of(const struct flowlet_packet *p)
{
	struct {
		__u32 bits;
		__be32 address[4];
	} key = { .bits = 128 };
	__u32 *number;

	key.address[0] = bpf_htonl(p->key.remote[0] >> 32);
	key.address[1] = bpf_htonl((__u32)p->key.remote[0]);
	key.address[2] = bpf_htonl(p->key.remote[1] >> 32);
	key.address[3] = bpf_htonl((__u32)p->key.remote[1]);
	number = bpf_map_lookup_elem(&flowlet_destinations, &key);
	return number ? bpf_map_lookup_elem(&flowlet_groups, number) : 0;
}

struct choosing {
	struct flowlet_group *group;
	__u64 now;
	__u64 least; /* round trip that is known of any path */
	__u64 most;
	__u64 cost;
	__u64 hash;
	__u32 usable; /* how many paths */
	__u32 best;
	__u32 left; /* path that the flow leaves; FLOWLET_NO_PATH: none */
	bool tries; /* the packet is one that is acknowledged */
	__u32 random; /* which of the usable ones is taken, if not by measure */
};

/* Whether a path is out of use. By hash of the flow alone, silence does not count, as with ECMP. */
static __always_inline bool path_out(const struct flowlet_path *p, const struct flowlet_measure *m,
				     const struct choosing *c)
{
	if (settings.choice == FLOWLET_BY_FLOW)
		return p->down;
	return flowlet_broken(p, m, c->tries, c->now);
}

/* Looks at one path: which can be used, and what their round trips are. */
static long path_look(__u32 i, void *arg)
{
	struct choosing *c = arg;
	struct flowlet_measure *m;
	struct flowlet_path *p;
	__u32 number;
	__u64 delay;

	if (i >= c->group->paths || i >= FLOWLET_PATHS_MAX)
		return 1;
	number = c->group->path[i & (FLOWLET_PATHS_MAX - 1)];
	p = bpf_map_lookup_elem(&flowlet_paths, &number);
	m = bpf_map_lookup_elem(&flowlet_measures, &number);
	if (!p || !m || path_out(p, m, c))
		return 0;
	c->usable += number != c->left;
	delay = flowlet_delay(p, m, c->now);
	if (delay && (!c->least || delay < c->least))
		c->least = delay;
	if (delay > c->most)
		c->most = delay;
	return 0;
}

/* Compares one path. Of equal ones, the flow's hash decides. */
static long path_compare(__u32 i, void *arg)
{
	struct choosing *c = arg;
	struct flowlet_measure *m;
	struct flowlet_path *p;
	__u64 cost, turn;
	__u32 number, at;

	if (i >= c->group->paths || i >= FLOWLET_PATHS_MAX)
		return 1;
	turn = i + (c->hash >> 32) % c->group->paths;
	at = turn >= c->group->paths ? turn - c->group->paths : turn;
	number = c->group->path[at & (FLOWLET_PATHS_MAX - 1)];
	p = bpf_map_lookup_elem(&flowlet_paths, &number);
	m = bpf_map_lookup_elem(&flowlet_measures, &number);
	if (!p || !m || p->down || (c->usable && (number == c->left || path_out(p, m, c))))
		return 0;
	if (settings.choice != FLOWLET_BY_MEASURE) {
		c->best = number;
		return !c->random--;
	}
	cost = flowlet_cost(p, m, c->least, c->now);
	if (c->best == FLOWLET_NO_PATH || cost < c->cost) {
		c->best = number;
		c->cost = cost;
	}
	return 0;
}

/* A path for the flow's next flowlet. Not inlined, for the verifier's sake. */
static __noinline __u32 path_choose(struct choosing *c)
{
	c->best = FLOWLET_NO_PATH;
	if (!c->group->paths)
		return c->best;
	if (settings.choice == FLOWLET_AT_RANDOM)
		c->hash = flowlet_mix(c->hash ^ c->now);
	if (settings.choice != FLOWLET_BY_MEASURE)
		c->random = c->usable ? (__u32)c->hash % c->usable : 0;
	bpf_loop(FLOWLET_PATHS_MAX, path_compare, c, 0);
	return c->best;
}

/* Whether the group has the flow's path. */
static __always_inline bool group_has(const struct flowlet_group *g, __u32 path)
{
	bool has = false;

	for (int i = 0; i < FLOWLET_PATHS_MAX; i++)
		has |= i < g->paths && g->path[i] == path;
	return has;
}

/* Why a flow may take another path now. */
enum flowlet_reason {
	FLOWLET_STAYS = 0,
	FLOWLET_BEGINS, /* a flowlet: what was sent has arrived, or will before what is sent now */
	FLOWLET_LEAVES, /* the path seems broken, or is not there any more */
};

static __always_inline enum flowlet_reason flowlet_now(const struct flowlet_flow *f,
						       const struct flowlet_packet *p,
						       const struct choosing *c, __u32 hash,
						       bool again)
{
	struct flowlet_measure *m;
	struct flowlet_path *path;
	__u32 number = f->path;
	__u64 gap = settings.gap;

	if (!group_has(c->group, number))
		return FLOWLET_LEAVES;
	path = bpf_map_lookup_elem(&flowlet_paths, &number);
	m = bpf_map_lookup_elem(&flowlet_measures, &number);
	if (!path || !m || path->down)
		return FLOWLET_LEAVES;
	if (settings.choice == FLOWLET_BY_FLOW)
		return FLOWLET_STAYS;
	if (settings.choice == FLOWLET_BY_MEASURE) {
		if (flowlet_broken(path, m, c->tries, c->now) ||
		    (hash && f->kernel_hash && hash != f->kernel_hash))
			return FLOWLET_LEAVES;
		if (again && m->round_trip && flowlet_since(f->heard, c->now) > flowlet_patience(m))
			return FLOWLET_LEAVES;
		if (p->tcp && !flowlet_under_way(f) && payload_carried(p))
			return FLOWLET_BEGINS;
		if (c->most - c->least > gap)
			gap = c->most - c->least;
	}
	if (flowlet_left_behind(f))
		return FLOWLET_STAYS; /* until the last change of paths is over */
	return flowlet_since(f->last, c->now) > gap ? FLOWLET_BEGINS : FLOWLET_STAYS;
}

/* ===== Sending ===== */

struct outer {
	struct ethhdr eth;
	struct ipv6_bytes ip;
} __attribute__((packed));

/* Puts the outer header in front: H.Encaps.Red with one SID. Returns false, with the packet as it
 * was, if it can't be. */
static __always_inline bool outer_put(struct __sk_buff *skb, const struct flowlet_packet *p,
				      const struct flowlet_path *path, __u32 label)
{
	__u32 segment = skb->gso_size ? skb->gso_size + p->payload - ETH_HLEN : p->length;
	__u64 flags = BPF_F_ADJ_ROOM_ENCAP_L3_IPV6;
	struct outer outer = {};

	if (segment + sizeof(outer.ip) <= path->mtu)
		flags |= BPF_F_ADJ_ROOM_FIXED_GSO;
	else if (!skb->gso_size || !p->tcp)
		return false;
	if (bpf_skb_load_bytes(skb, 0, &outer.eth, sizeof(outer.eth)) ||
	    bpf_skb_adjust_room(skb, sizeof(outer.ip), BPF_ADJ_ROOM_MAC, flags))
		return false;
	outer.eth.h_proto = bpf_htons(ETH_P_IPV6);
	outer.ip.word = bpf_htonl(6u << 28 | (__u32)p->traffic_class << 20 | label);
	outer.ip.payload = bpf_htons(p->length > 0xffff ? 0 : p->length);
	outer.ip.next = p->ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6;
	outer.ip.hop_limit = settings.hop_limit;
	outer.ip.source[0] = bpf_cpu_to_be64(settings.source[0]);
	outer.ip.source[1] = bpf_cpu_to_be64(settings.source[1]);
	outer.ip.destination[0] = bpf_cpu_to_be64(path->sid[0]);
	outer.ip.destination[1] = bpf_cpu_to_be64(path->sid[1]);
	return !bpf_skb_store_bytes(skb, 0, &outer, sizeof(outer), 0);
}

/* Notes what a packet of TCP adds to its flow and path. */
static __always_inline void tcp_sent(struct flowlet_flow *f, struct flowlet_measure *m, __u32 ends,
				     __u64 now)
{
	__s32 fresh = ends - f->end;

	if (fresh <= 0)
		return;
	m->lost -= m->lost >> 6;
	flowlet_count(m, fresh, now);
	f->end = ends;
	if (!flowlet_heavy(f))
		return;
	if (!m->silent)
		m->silent = now;
	if (!f->timed_at) {
		f->timed_at = now;
		f->timed = ends;
	} else if (!f->next_at && flowlet_since(f->timed_at, now) >= m->round_trip / 2) {
		f->next_at = now;
		f->next = ends;
	}
}

/* A segment comes again: the path lost it that it was sent over. */
static __always_inline void tcp_lost(struct flowlet_flow *f, __u32 ends)
{
	__u32 number = (__s32)(ends - f->since) > 0 ? f->path : f->former;
	struct flowlet_measure *m = bpf_map_lookup_elem(&flowlet_measures, &number);

	if (m)
		m->lost += (FLOWLET_LOST - m->lost) >> 6;
	f->timed_at = f->next_at = 0; /* acknowledged may be either: Karn and Partridge 1987 */
	if ((__s32)(ends - f->resent) > 0)
		f->resent = ends;
}

static __always_inline struct flowlet_flow *flow_of(const struct flowlet_key *key, __u64 now)
{
	struct flowlet_flow fresh = {
		.path = FLOWLET_NO_PATH, .former = FLOWLET_NO_PATH, .last = now, .heard = now
	};
	struct flowlet_flow *f = bpf_map_lookup_elem(&flowlet_flows, key);

	if (f)
		return f;
	bpf_map_update_elem(&flowlet_flows, key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flowlet_flows, key);
}

/* The flow takes another path, or its first one. What it left on a broken path is sent again over
 * the new one, and acknowledged there. */
static __always_inline void path_change(struct flowlet_flow *f, __u32 path, enum flowlet_reason why)
{
	struct flowlet_measure *m = bpf_map_lookup_elem(&flowlet_measures, &path);

	if (m && f->path != FLOWLET_NO_PATH)
		m->moves++;
	f->former = why == FLOWLET_BEGINS ? f->path : FLOWLET_NO_PATH;
	f->since = why == FLOWLET_BEGINS ? f->end : f->acknowledged;
	f->timed_at = f->next_at = 0; /* they measure the other path */
	f->path = path;
}

/* A flow's packet chooses its path. */
static __noinline void flow_choose(struct flowlet_flow *f, struct flowlet_packet *p,
				   struct choosing *c, __u32 hash, bool again)
{
	__u32 before = f->path, path;
	struct flowlet_measure *m;
	enum flowlet_reason why;

	c->left = FLOWLET_NO_PATH;
	bpf_loop(FLOWLET_PATHS_MAX, path_look, c, 0);
	why = flowlet_now(f, p, c, hash, again);
	if (why == FLOWLET_STAYS)
		return;
	m = bpf_map_lookup_elem(&flowlet_measures, &before);
	if (why == FLOWLET_LEAVES) {
		if (m)
			m->left++;
		c->left = before;
		c->usable = 0;
		bpf_loop(FLOWLET_PATHS_MAX, path_look, c, 0);
	}
	path = path_choose(c);
	if (path != before)
		path_change(f, path, why);
}

/* Notes the packet, and sends it over its flow's path. */
static __noinline int packet_send(struct __sk_buff *skb, struct flowlet_packet *p,
				  struct flowlet_group *group)
{
	__u32 ends = segment_end(p), number, interface, label, segments, hash = kernel_hash(skb, p);
	struct choosing c = { .group = group,
			      .now = bpf_ktime_get_ns(),
			      .tries = is_answered(p, ends) };
	struct flowlet_flow *f = flow_of(&p->key, c.now);
	struct flowlet_measure *m;
	struct flowlet_path *path;
	bool again;

	if (!f)
		return TC_ACT_UNSPEC;
	if (p->tcp && (!f->tcp || (p->flags & FLOWLET_SYN && p->sequence != f->acknowledged))) {
		f->end = f->acknowledged = f->since = f->resent = p->sequence;
		f->tcp = 1;
	}
	again = c.tries && (__s32)(ends - f->end) <= 0;
	if (again)
		tcp_lost(f, ends);
	c.hash = flowlet_hash(&p->key);
	label = c.hash & 0xfffff;
	flow_choose(f, p, &c, hash, again);
	if (hash)
		f->kernel_hash = hash;
	f->last = c.now;
	number = f->path;
	path = bpf_map_lookup_elem(&flowlet_paths, &number);
	m = bpf_map_lookup_elem(&flowlet_measures, &number);
	if (!path || !m) {
		outcome_count(FLOWLET_PATHLESS);
		return TC_ACT_UNSPEC;
	}
	interface = path->interface;
	segments = skb->gso_segs; /* the kernel counts anew once the packet is longer */
	if (!outer_put(skb, p, path, label)) {
		outcome_count(FLOWLET_TOO_LONG);
		return TC_ACT_UNSPEC;
	}
	if (p->tcp) {
		if (c.tries)
			flowlet_try(m, c.now);
		tcp_sent(f, m, ends, c.now);
	} else {
		flowlet_count(m, p->length / FLOWLET_FORGETS, c.now); /* nothing takes it away */
	}
	m->packets += segments ? segments : 1;
	m->bytes += p->length;
	outcome_count(FLOWLET_SENT);
	return interface ? bpf_redirect_neigh(interface, 0, 0, 0) : TC_ACT_UNSPEC;
}

/* Whether it has an outer header already: it has been here, or another role sends it. */
static __always_inline bool is_encapsulated(const struct flowlet_packet *p)
{
	return !p->ipv4 && p->key.local[0] == settings.source[0] &&
	       p->key.local[1] == settings.source[1] &&
	       (p->key.protocol == IPPROTO_ROUTING || p->key.protocol == IPPROTO_IPIP ||
		p->key.protocol == IPPROTO_IPV6);
}

SEC("tc")
int flowlet_send(struct __sk_buff *skb)
{
	struct flowlet_packet p = {};
	struct flowlet_group *group;
	bool ipv4 = skb->protocol == bpf_htons(ETH_P_IP);

	if (!ipv4 && skb->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_UNSPEC;
	if (!packet_read(skb, ETH_HLEN, ipv4, &p, false) || is_encapsulated(&p))
		return TC_ACT_UNSPEC;
	group = group_of(&p);
	if (!group)
		return TC_ACT_UNSPEC;
	transport_read(skb, &p, false);
	return packet_send(skb, &p, group);
}

/* ===== Hearing ===== */

/*
 * What is acknowledged is no longer under way over a path. What was sent at a time is heard of, so
 * nothing waits that was sent before; waits is when the flow sent what it now waits for, or 0.
 */
static __always_inline void path_heard(__u32 number, __u32 octets, bool came, __u64 sent,
				       __u64 waits, __u64 now)
{
	struct flowlet_measure *m = bpf_map_lookup_elem(&flowlet_measures, &number);

	if (!m)
		return;
	if (octets)
		flowlet_count(m, -(__s64)octets, now);
	if (came)
		m->came = now;
	if (!m->silent || sent >= m->silent) {
		m->silent = waits;
		m->tries = 0;
	}
}

/* A segment was acknowledged that measures the round trip: the next one takes its place. */
static __always_inline void round_trip_note(struct flowlet_flow *f, __u64 now)
{
	__u32 number = f->path;
	struct flowlet_measure *m = bpf_map_lookup_elem(&flowlet_measures, &number);
	__u64 took = flowlet_since(f->timed_at, now), off;

	f->timed_at = f->next_at;
	f->timed = f->next;
	f->next_at = 0;
	if (f->timed_at && (__s32)(f->acknowledged - f->timed) >= 0)
		f->timed_at = 0;
	if (!m || took > 0xffffffff)
		return;
	m->measured = now;
	if (!m->round_trip) {
		m->round_trip = took;
		m->variation = took / 4; /* not half: few are timed, and it falls by and by */
		return;
	}
	off = took > m->round_trip ? took - m->round_trip : m->round_trip - took;
	m->variation = m->variation - (m->variation >> 2) + (off >> 2);
	m->round_trip = m->round_trip - (m->round_trip >> 3) + (took >> 3);
}

/*
 * When the flow sent what a segment of the other end tells of that acknowledges nothing new; 0: it
 * tells of nothing. A duplicate acknowledgement, RFC 5681 section 2, comes a round trip behind what
 * arrived. Octets of the other end come if acknowledgements of this host arrived a round trip ago.
 */
static __always_inline __u64 told_of(const struct flowlet_flow *f, const struct flowlet_packet *p,
				     bool octets, __u64 now)
{
	__u32 number = f->path;
	struct flowlet_measure *m;
	__u64 ago;

	m = bpf_map_lookup_elem(&flowlet_measures, &number);
	if (!m)
		return 0;
	ago = now - m->round_trip;
	if (flowlet_under_way(f))
		return payload_carried(p) ? 0 : ago;
	if (!octets)
		return 0;
	return f->last < ago ? f->last : ago;
}

/* An acknowledgement arrives. */
static __noinline int acknowledged(const struct flowlet_packet *p)
{
	struct flowlet_flow *f = bpf_map_lookup_elem(&flowlet_flows, &p->key);
	__u64 now = bpf_ktime_get_ns(), waits = 0, sent = 0;
	__u32 newly, behind;
	bool once, octets, came;

	if (!f || !f->tcp)
		return 0;
	newly = p->acknowledges - f->acknowledged;
	if (newly > flowlet_under_way(f))
		return 0; /* of an earlier connection, or older than what is known */
	octets = octets_received(f, p);
	behind = flowlet_left_behind(f);
	once = (__s32)(f->acknowledged - f->resent) >= 0;
	f->heard = now;
	f->acknowledged = p->acknowledges;
	if (once)
		f->resent = f->acknowledged; /* left far behind, it would be ahead again */
	if (f->timed_at && (__s32)(f->acknowledged - f->timed) >= 0) {
		sent = f->timed_at;
		round_trip_note(f, now);
	}
	/* What was sent once, the former path brought; what came again, this one may have. */
	if (behind && newly)
		path_heard(f->former, newly < behind ? newly : behind, once, once ? now : 0, 0,
			   now);
	if (newly < behind)
		return 0;
	f->since = f->acknowledged;
	if (!newly)
		sent = told_of(f, p, octets, now);
	else if (!flowlet_under_way(f))
		sent = f->last;
	if (flowlet_heavy(f))
		waits = f->timed_at ? f->timed_at : f->last < now ? f->last : now;
	came = newly ? newly > behind && once : sent;
	path_heard(f->path, newly - behind, came, sent, waits, now);
	return 0;
}

SEC("tc")
int flowlet_heard(struct __sk_buff *skb)
{
	struct flowlet_packet p = {};
	struct flowlet_group *group;
	__u32 headers;

	if (!arrival_read(skb, &p))
		return TC_ACT_UNSPEC;
	transport_read(skb, &p, true);
	if (!p.tcp)
		return TC_ACT_UNSPEC;
	if (p.flags & FLOWLET_ACK)
		acknowledged(&p);
	if (!(p.flags & FLOWLET_SYN))
		return TC_ACT_UNSPEC;
	group = group_of(&p);
	headers = sizeof(struct ipv6_bytes) + sizeof(struct tcphdr) +
		  (p.ipv4 ? sizeof(struct ipv4_bytes) : sizeof(struct ipv6_bytes));
	if (!group || group->mtu <= headers ||
	    bpf_skb_pull_data(skb, p.payload < skb->len ? p.payload : skb->len))
		return TC_ACT_UNSPEC;
	/* what this host sends has to fit behind the outer header */
	mss_clamp_skb(skb, p.transport, group->mtu - headers);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual BSD/GPL";
