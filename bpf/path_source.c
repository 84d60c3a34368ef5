// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A source that chooses its path: the first rule that a socket of the cgroup matches gives it a
 * path through routers with controllable load balancing. Where they read source ports,
 * path_connect4 and path_connect6 bind the socket to one that takes the path. Where they read flow
 * labels, the socket keeps the path, and path_label writes such a label into each of its packets as
 * it leaves. Ports and labels are tried as routers decode them, from a random one on, so that
 * connections of one path differ.
 */
#include "include/compat.h"
#include "include/cflb.h"

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>

enum path_family {
	PATH_IPV4 = 0,
	PATH_IPV6,
	PATH_FAMILIES,
};

#define PATH_HOPS_MAX 32
#define PATH_TRIES_MAX 16 /* ports that are taken, before the socket is left alone */
#define PATH_SKIP_MAX 64 /* ports that a try passes by */

struct path_hop {
	__u8 hop_limit; /* with which the router receives the packet */
	__u8 index; /* of the next hop that it is to take */
};

#define PATH_RULES_MAX 16
#define PATH_LEVELS_MAX 16 /* cgroups above that of a process, that rules may name */
#define PATH_COMMAND 2 /* words of 8 octets */

/* Which sockets take which path. */
struct path_rule {
	__u64 cgroup; /* of the process, or one above it; 0: any */
	__u64 command[PATH_COMMAND]; /* name of the thread; zeros: any */
	__u64 destination[2]; /* of IPv4, the first */
	__u64 mask[2];
	__u32 user;
	__u16 ports_first; /* of destinations */
	__u16 ports_last;
	__u8 any_user;
	__u8 protocol; /* 0: any */
	__u8 families; /* bits by enum path_family */
	__u8 hops; /* 0: the sockets are left alone */
	struct path_hop path[PATH_HOPS_MAX];
	__u32 reserved;
};

struct path_settings {
	struct cflb_network networks[PATH_FAMILIES];
	__u64 netns_cookie; /* of the sockets; 0: any */
	__u64 source[2]; /* of IPv6 */
	__u32 source4; /* host byte order; 0: IPv4 is left alone */
	__u32 ports_from;
	__u32 ports; /* how many there are to choose from */
	__u32 reserved;
};

const volatile struct path_settings settings = {};

/* The rules, in two banks of which one holds: the other is written while this one is read. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * PATH_RULES_MAX);
	__type(key, __u32);
	__type(value, struct path_rule);
} path_rules SEC(".maps");

/* Which rules hold: the number of the first, and above 32 bits how many there are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} path_bank SEC(".maps");

/* Sockets by what became of them, datapath.PathSourceCounters. */
enum path_outcome {
	PATH_STEERED = 0,
	PATH_NO_PORT, /* no port that is free, or no flow label, takes the path */
	PATH_BOUND, /* the application has chosen a port */
	PATH_UNMATCHED, /* no rule is about it */
	PATH_OUTCOMES,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PATH_OUTCOMES);
	__type(key, __u32);
	__type(value, __u64);
} path_outcomes SEC(".maps");

static __always_inline void outcome_count(__u32 outcome)
{
	__u64 *counter = bpf_map_lookup_elem(&path_outcomes, &outcome);

	if (counter)
		*counter += 1;
}

/* ===== Rules ===== */

static __always_inline bool is_below(__u64 cgroup)
{
	for (int level = 0; level < PATH_LEVELS_MAX; level++)
		if (bpf_get_current_ancestor_cgroup_id(level) == cgroup)
			return true;
	return false;
}

/* The path of a socket whose packets carry flow labels. */
struct path_flow {
	__u64 destination[2]; /* of packets that take it */
	struct path_hop path[PATH_HOPS_MAX];
	__u64 label; /* the last one, and above PATH_LABEL bits the hash of the ends it is for */
	__u32 hops; /* 0: none */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct path_flow);
} path_flows SEC(".maps");

struct path_search {
	__u64 destination[2]; /* of IPv4, the first */
	__u64 hash; /* over the fields that can't be chosen */
	__u32 family;
	__u32 first; /* number of the first rule */
	__u16 destination_port;
	__u8 protocol;
	__u8 hops; /* of the rule that was found; 0: the socket is left alone */
	struct path_hop path[PATH_HOPS_MAX];
	__u32 next; /* port to try, from ports_from */
	__u32 skip; /* how many that take the path are passed by, if there are more */
	__u32 found; /* 0: none */
};

static __always_inline bool rule_matches(const struct path_rule *r, const struct path_search *s)
{
	__u64 command[PATH_COMMAND] = {};

	if (!(r->families & 1 << s->family) || (r->protocol && r->protocol != s->protocol) ||
	    s->destination_port < r->ports_first || s->destination_port > r->ports_last ||
	    (s->destination[0] ^ r->destination[0]) & r->mask[0] ||
	    (s->destination[1] ^ r->destination[1]) & r->mask[1])
		return false;
	if (!r->any_user && r->user != (__u32)bpf_get_current_uid_gid())
		return false;
	if (r->command[0]) {
		bpf_get_current_comm(command, sizeof(command));
		if (command[0] != r->command[0] || command[1] != r->command[1])
			return false;
	}
	return !r->cgroup || is_below(r->cgroup);
}

/* Tries a rule. Returns 1 if it is about the socket. */
static long rule_try(__u32 number, void *search)
{
	struct path_search *s = search;
	__u32 key = s->first + number;
	const struct path_rule *r = bpf_map_lookup_elem(&path_rules, &key);

	if (!r || !rule_matches(r, s))
		return 0;
	s->hops = r->hops;
	__builtin_memcpy(s->path, r->path, sizeof(s->path));
	return 1;
}

/* Finds the path of the first rule that a socket matches. */
static __always_inline void rule_find(struct path_search *s)
{
	__u32 zero = 0;
	const volatile __u64 *bank = bpf_map_lookup_elem(&path_bank, &zero);
	__u64 now;

	if (!bank)
		return;
	now = *bank;
	s->first = now;
	bpf_loop(now >> 32 & (2 * PATH_RULES_MAX - 1), rule_try, s, 0);
}

/* Whether routers take the path of packets with these controllable fields. */
static __always_inline bool takes_path(const volatile struct cflb_network *n, __u64 value,
				       const struct path_hop *path, __u32 hops, __u64 hash)
{
	__u64 selector = cflb_decrypt(n, value);
	__u32 differs = 0;

	if (selector >= n->limit)
		return false;
	for (__u32 i = 0; i < PATH_HOPS_MAX; i++) {
		if (i >= hops)
			break;
		differs |= cflb_digit(n, selector, path[i].hop_limit, hash) ^ path[i].index;
	}
	return !differs;
}

/* ===== Ports ===== */

/* Tries the next port. Returns 1 if it takes the path and none is to be passed by. */
static __always_inline long port_try(const volatile struct cflb_network *n, struct path_search *s)
{
	__u32 port = settings.ports_from + s->next;
	__u64 value = port;

	s->next = s->next + 1 < settings.ports ? s->next + 1 : 0;
	if (cflb_has_destination_port(n->fields))
		value = value << CFLB_PORT | s->destination_port;
	if (!takes_path(n, value, s->path, s->hops, s->hash))
		return 0;
	s->found = port;
	return !s->skip--;
}

static long port_try4(__u32 number, void *search)
{
	return port_try(&settings.networks[PATH_IPV4], search);
}

static long port_try6(__u32 number, void *search)
{
	return port_try(&settings.networks[PATH_IPV6], search);
}

/*
 * Ports from a random one on. Ports behind a gap are found more often than others, so later tries
 * pass by some: else they would find those again that are taken first.
 */
static __always_inline void search_elsewhere(struct path_search *s, __u32 attempt)
{
	s->found = 0;
	s->next = settings.ports ? bpf_get_prandom_u32() % settings.ports : 0;
	s->skip = attempt ? bpf_get_prandom_u32() % PATH_SKIP_MAX : 0;
}

/* ===== Flow labels ===== */

#define PATH_LABEL CFLB_LABEL
#define PATH_LABELS (1 << PATH_LABEL)

struct label_search {
	struct path_flow *flow;
	__u64 ports; /* as they stand below the label in the controllable fields */
	__u64 hash; /* over the fields that can't be chosen */
	__u32 bits; /* of ports */
	__u32 next; /* label to try */
	__u32 found; /* 0: none */
};

/* Tries the next label. Returns 1 if it takes the path. */
static long label_try(__u32 number, void *search)
{
	const volatile struct cflb_network *n = &settings.networks[PATH_IPV6];
	struct label_search *s = search;
	__u32 label = s->next++ & (PATH_LABELS - 1);

	if (!label || !takes_path(n, (__u64)label << (s->bits & 63) | s->ports, s->flow->path,
				  s->flow->hops, s->hash))
		return 0;
	s->found = label;
	return 1;
}

/* The label with which a packet takes the path of its socket; 0: there is none. */
static __always_inline __u32 label_of(struct path_flow *flow, const struct cflb_packet *p)
{
	const volatile struct cflb_network *n = &settings.networks[PATH_IPV6];
	__u64 addresses = cflb_addresses(n->seed, p), ends, known = flow->label;
	struct label_search s = { .flow = flow, .next = bpf_get_prandom_u32() };

	ends = cflb_absorb(addresses,
			   (__u64)p->protocol << 32 | p->source_port << 16 | p->destination_port);
	if (known && (known ^ ends) >> PATH_LABEL == 0)
		return known & (PATH_LABELS - 1);
	if (n->fields != CFLB_FLOW_LABEL) {
		s.ports = p->source_port;
		s.bits = CFLB_PORT;
	}
	if (cflb_has_destination_port(n->fields)) {
		s.ports = s.ports << CFLB_PORT | p->destination_port;
		s.bits += CFLB_PORT;
	}
	s.hash = cflb_uncontrolled(n, p, addresses);
	bpf_loop(PATH_LABELS, label_try, &s, 0);
	if (!s.found)
		outcome_count(PATH_NO_PORT);
	flow->label = ends >> PATH_LABEL << PATH_LABEL | s.found;
	return s.found;
}

/* Reads what a router reads of a packet of the socket. False if it takes no path. */
static __always_inline bool packet_read(struct __sk_buff *skb, const struct path_flow *flow,
					struct cflb_packet *p)
{
	const volatile struct cflb_network *n = &settings.networks[PATH_IPV6];
	struct {
		struct ipv6hdr ip;
		__be16 source_port;
		__be16 destination_port;
	} h = {};
	const __be64 *address = (const __be64 *)&h.ip.saddr;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &h.ip, sizeof(h.ip)) || h.ip.version != 6)
		return false;
	if (h.ip.nexthdr == IPPROTO_TCP || h.ip.nexthdr == IPPROTO_UDP)
		p->ports = !bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(h.ip), &h.source_port, 4);
	if (n->fields != CFLB_FLOW_LABEL && !p->ports)
		return false;
#pragma unroll
	for (int i = 0; i < 4; i++)
		p->address[i] = bpf_be64_to_cpu(address[i]);
	p->protocol = h.ip.nexthdr;
	p->source_port = bpf_ntohs(h.source_port);
	p->destination_port = bpf_ntohs(h.destination_port);
	return p->address[2] == flow->destination[0] && p->address[3] == flow->destination[1];
}

/*
 * Writes the label over the one that the kernel chose, which it changes when packets are not
 * acknowledged (net.core.txrehash): the socket keeps its path.
 */
SEC("tc")
int path_label(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct cflb_packet p = {};
	struct path_flow *flow;
	__be32 word;
	__u32 label;

	if (!sk || skb->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_UNSPEC;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return TC_ACT_UNSPEC;
	flow = bpf_sk_storage_get(&path_flows, sk, 0, 0);
	if (!flow || !flow->hops || !packet_read(skb, flow, &p) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN, &word, sizeof(word)))
		return TC_ACT_UNSPEC;
	label = label_of(flow, &p);
	if (!label)
		return TC_ACT_UNSPEC;
	word = (word & bpf_htonl(~(PATH_LABELS - 1))) | bpf_htonl(label);
	bpf_skb_store_bytes(skb, ETH_HLEN, &word, sizeof(word), 0); /* in no transport checksum */
	return TC_ACT_UNSPEC;
}

/* ===== Sockets ===== */

static __always_inline bool is_controlled(const volatile struct cflb_network *n)
{
	return n->fields == CFLB_SOURCE_PORT || n->fields == CFLB_BOTH_PORTS;
}

/* Finds the rule of a socket. Returns false if it is left alone. */
static __always_inline bool socket_find(struct bpf_sock_addr *ctx, struct path_search *s,
					const struct cflb_packet *p)
{
	if (settings.netns_cookie && bpf_get_netns_cookie(ctx) != settings.netns_cookie)
		return false;
	s->destination_port = p->destination_port;
	s->protocol = p->protocol;
	rule_find(s);
	if (s->hops)
		return true;
	outcome_count(PATH_UNMATCHED);
	return false;
}

/* Begins to look for a port. Returns false if the socket is left alone. */
static __always_inline bool search_begin(struct bpf_sock_addr *ctx, struct path_search *s,
					 const struct cflb_packet *p)
{
	const volatile struct cflb_network *n;

	if (!socket_find(ctx, s, p))
		return false;
	if (ctx->sk && ctx->sk->src_port) {
		outcome_count(PATH_BOUND);
		return false;
	}
	n = &settings.networks[s->family & (PATH_FAMILIES - 1)];
	s->hash = cflb_uncontrolled(n, p, cflb_addresses(n->seed, p));
	return true;
}

SEC("cgroup/connect4")
int path_connect4(struct bpf_sock_addr *ctx)
{
	struct cflb_packet p = { .ipv4 = true, .protocol = ctx->protocol, .ports = true };
	struct sockaddr_in source = { .sin_family = AF_INET };
	__u32 to = bpf_ntohl(ctx->user_ip4);
	struct path_search s = { .family = PATH_IPV4, .destination = { to } };

	if (!settings.source4 || to >> 24 == 127 || !is_controlled(&settings.networks[PATH_IPV4]))
		return 1;
	p.address[0] = (__u64)settings.source4 << 32 | to;
	p.destination_port = bpf_ntohs(ctx->user_port);
	if (!search_begin(ctx, &s, &p))
		return 1;
	source.sin_addr.s_addr = bpf_htonl(settings.source4);
	for (int i = 0; i < PATH_TRIES_MAX; i++) {
		search_elsewhere(&s, i);
		bpf_loop(settings.ports, port_try4, &s, 0);
		if (!s.found)
			break;
		source.sin_port = bpf_htons(s.found);
		if (!bpf_bind(ctx, (struct sockaddr *)&source, sizeof(source))) {
			outcome_count(PATH_STEERED);
			return 1;
		}
	}
	outcome_count(PATH_NO_PORT);
	return 1;
}

/* Gives the socket the path of its rule, for packets to where it is connected or sends. */
static __always_inline void path_keep(struct bpf_sock_addr *ctx, struct path_search *s,
				      const struct cflb_packet *p)
{
	struct path_flow *flow;
	bool steered = socket_find(ctx, s, p);

	if (!ctx->sk)
		return;
	flow = bpf_sk_storage_get(&path_flows, ctx->sk, 0,
				  steered ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	if (!flow)
		return;
	flow->hops = 0;
	if (!steered)
		return;
	if (flow->destination[0] != s->destination[0] ||
	    flow->destination[1] != s->destination[1] ||
	    __builtin_memcmp(flow->path, s->path, sizeof(s->path)))
		flow->label = 0;
	flow->destination[0] = s->destination[0];
	flow->destination[1] = s->destination[1];
	__builtin_memcpy(flow->path, s->path, sizeof(s->path));
	flow->hops = s->hops;
	outcome_count(PATH_STEERED);
}

/* Reads where an IPv6 socket is connected or sends. False if it is left alone. */
static __always_inline bool destination_read(struct bpf_sock_addr *ctx, struct path_search *s,
					     struct cflb_packet *p)
{
	p->address[2] = (__u64)bpf_ntohl(ctx->user_ip6[0]) << 32 | bpf_ntohl(ctx->user_ip6[1]);
	p->address[3] = (__u64)bpf_ntohl(ctx->user_ip6[2]) << 32 | bpf_ntohl(ctx->user_ip6[3]);
	p->destination_port = bpf_ntohs(ctx->user_port);
	s->destination[0] = p->address[2];
	s->destination[1] = p->address[3];
	return p->address[2]; /* 0: the loopback address, and IPv4 in IPv6 */
}

/* A datagram of a socket that is not connected. Attached where routers read flow labels. */
SEC("cgroup/sendmsg6")
int path_sendmsg6(struct bpf_sock_addr *ctx)
{
	struct cflb_packet p = { .protocol = ctx->protocol, .ports = true };
	struct path_search s = { .family = PATH_IPV6 };

	if (destination_read(ctx, &s, &p))
		path_keep(ctx, &s, &p);
	return 1;
}

SEC("cgroup/connect6")
int path_connect6(struct bpf_sock_addr *ctx)
{
	struct cflb_packet p = { .protocol = ctx->protocol, .ports = true };
	struct sockaddr_in6 source = { .sin6_family = AF_INET6 };
	struct path_search s = { .family = PATH_IPV6 };

	if (!destination_read(ctx, &s, &p))
		return 1;
	if (cflb_has_label(settings.networks[PATH_IPV6].fields)) {
		path_keep(ctx, &s, &p);
		return 1;
	}
	p.address[0] = settings.source[0];
	p.address[1] = settings.source[1];
	if (!p.address[0] || !is_controlled(&settings.networks[PATH_IPV6]))
		return 1;
	if (!search_begin(ctx, &s, &p))
		return 1;
	source.sin6_addr.s6_addr32[0] = bpf_htonl(p.address[0] >> 32);
	source.sin6_addr.s6_addr32[1] = bpf_htonl((__u32)p.address[0]);
	source.sin6_addr.s6_addr32[2] = bpf_htonl(p.address[1] >> 32);
	source.sin6_addr.s6_addr32[3] = bpf_htonl((__u32)p.address[1]);
	for (int i = 0; i < PATH_TRIES_MAX; i++) {
		search_elsewhere(&s, i);
		bpf_loop(settings.ports, port_try6, &s, 0);
		if (!s.found)
			break;
		source.sin6_port = bpf_htons(s.found);
		if (!bpf_bind(ctx, (struct sockaddr *)&source, sizeof(source))) {
			outcome_count(PATH_STEERED);
			return 1;
		}
	}
	outcome_count(PATH_NO_PORT);
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
