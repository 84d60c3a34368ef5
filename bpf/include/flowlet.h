// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Flowlets of a host: what is known of flows and of paths, and which path a flow takes. Numbers are
 * those of acknowledgements, so that no path is measured by packets of its own.
 * Specification: docs/howto/flowlets.md.
 */
#pragma once

#include "compat.h"

#define FLOWLET_PATHS_MAX 16 /* of a group */
#define FLOWLET_NO_PATH 0xffffffff
#define FLOWLET_HEAVY 2800 /* octets that a receiver acknowledges at once: two segments */
#define FLOWLET_SEGMENT 1500 /* octets that a choice is about to add */
#define FLOWLET_FORGETS 8 /* round trips in which octets decay that are never acknowledged */
#define FLOWLET_AGE 100000000ULL /* ns for which a measured round trip holds */
#define FLOWLET_LEAST_SILENCE 1000000ULL /* ns: less may be the machine's own pauses */
#define FLOWLET_RETRIES 4 /* patiences until a silent path is tried; then twice as many */
#define FLOWLET_RETRY 1000000000ULL /* ns after which it is at the latest */
#define FLOWLET_LOST 65536 /* the share of segments that came again, as 1 */

enum flowlet_choice {
	FLOWLET_BY_FLOW = 0, /* one path for a flow, by hash */
	FLOWLET_AT_RANDOM, /* any path for each flowlet */
	FLOWLET_BY_MEASURE,
};

/* What the programs are loaded for. */
struct flowlet_settings {
	__u64 source[2]; /* of outer headers */
	__u64 gap; /* ns without a packet that end a flowlet, at least */
	enum flowlet_choice choice;
	__u8 hop_limit;
	__u8 reserved[3];
};

/* A group of paths to the same destinations. */
struct flowlet_group {
	__u32 paths;
	__u32 mtu; /* that fits all of them, outer header included */
	__u32 path[FLOWLET_PATHS_MAX];
};

/* A path, as the agent knows it. */
struct flowlet_path {
	__u64 sid[2]; /* the list of segments: outer destination */
	__u64 delay; /* ns there and back, by probes; 0: not known */
	__u32 interface; /* to its first segment; 0: not known */
	__u32 mtu;
	__u32 down;
	__u32 reserved;
};

/* What the programs find out about a path. */
struct flowlet_measure {
	__s64 octets; /* under way: sent, and not acknowledged */
	__u64 at; /* when that was */
	__u64 round_trip; /* ns, smoothed; 0: not known */
	__u64 variation; /* of round_trip, ns, smoothed */
	__u64 measured; /* when it was */
	__u64 silent; /* since when a segment waits that is acknowledged at once; 0: none does */
	__u64 came; /* when the path was last known to bring anything */
	__u64 packets; /* that were sent */
	__u64 bytes;
	__u64 moves; /* flows that came from another path */
	__u64 left; /* flows that left as nothing was heard */
	__u32 lost; /* of FLOWLET_LOST, smoothed */
	__u32 tries; /* of the path since it was heard */
};

/* A flow, as the host sees it. */
struct flowlet_key {
	__u64 local[2]; /* IPv4 as ::ffff:0:0/96 */
	__u64 remote[2];
	__u16 local_port;
	__u16 remote_port;
	__u32 protocol;
};

/* What is known of a flow. Times are those of the monotonic clock, in ns. */
struct flowlet_flow {
	__u64 last; /* when it sent */
	__u64 timed_at; /* when the segment was sent that measures a round trip; 0: there is none */
	__u64 next_at; /* the same of the segment that measures the next one */
	__u64 heard; /* when it was acknowledged */
	__u32 timed; /* where these segments end */
	__u32 next;
	__u32 end; /* of what was sent */
	__u32 acknowledged;
	__u32 kernel_hash; /* that the kernel changes when it takes the path for broken */
	__u32 path;
	__u32 former; /* path of what was sent before since */
	__u32 since; /* where what was sent over path begins */
	__u32 resent; /* where what was sent again ends */
	__u32 tcp; /* the sequence numbers are known */
	__u32 received; /* where what the other end sent ends */
	__u32 receives; /* that is known */
};

/* What a packet tells. */
struct flowlet_packet {
	struct flowlet_key key;
	__u32 transport; /* offset */
	__u32 payload; /* offset */
	__u32 length; /* of the IP packet */
	__u32 sequence;
	__u32 acknowledges;
	__u8 traffic_class;
	__u8 flags; /* of TCP */
	bool ipv4;
	bool tcp;
};

#define FLOWLET_FIN 0x01
#define FLOWLET_SYN 0x02
#define FLOWLET_RST 0x04
#define FLOWLET_ACK 0x10

/* ===== Hashes ===== */

static __always_inline __u64 flowlet_mix(__u64 x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ x >> 32;
}

static __always_inline __u64 flowlet_hash(const struct flowlet_key *k)
{
	__u64 x = flowlet_mix(k->local[0]);

	x = flowlet_mix(x ^ k->local[1]);
	x = flowlet_mix(x ^ k->remote[0]);
	x = flowlet_mix(x ^ k->remote[1]);
	return flowlet_mix(
		x ^ ((__u64)k->protocol << 32 | (__u32)k->local_port << 16 | k->remote_port));
}

/* ===== Paths ===== */

/* CPUs read the clock and write its times without a lock: a time may be a little ahead. */
static __always_inline __u64 flowlet_since(__u64 then, __u64 now)
{
	return now > then ? now - then : 0;
}

/* The round trip of a path: by probes, else by acknowledgements of late; 0: not known. */
static __always_inline __u64 flowlet_delay(const struct flowlet_path *p,
					   const struct flowlet_measure *m, __u64 now)
{
	if (p->delay)
		return p->delay;
	return flowlet_since(m->measured, now) <= FLOWLET_AGE ? m->round_trip : 0;
}

/* Octets under way: those that are never acknowledged decay, as sim/packet has it. */
static __always_inline __u64 flowlet_octets(const struct flowlet_measure *m, __u64 round_trip,
					    __u64 now)
{
	__u64 octets = m->octets > 0 ? m->octets : 0, span = FLOWLET_FORGETS * round_trip;
	__u64 since = flowlet_since(m->at, now);

	if (octets > 0xffffffff)
		octets = 0xffffffff;
	if (!round_trip)
		span = FLOWLET_AGE;
	if (span > 0xffffffff)
		span = 0xffffffff;
	return since < span ? octets - octets * since / span : 0;
}

/* Adds octets, or takes them away. */
static __always_inline void flowlet_count(struct flowlet_measure *m, __s64 octets, __u64 now)
{
	__s64 is = flowlet_octets(m, m->round_trip, now);

	m->octets = is + octets > 0 ? is + octets : 0;
	m->at = now;
}

/*
 * How old a segment may be that is not acknowledged: as much more than a round trip as queues make
 * it vary (RFC 6298), or a quarter. Segments are timed each half round trip, so a path whose round
 * trip is steady is left some two after it broke: docs/results/together.md has what was measured.
 */
static __always_inline __u64 flowlet_patience(const struct flowlet_measure *m)
{
	__u64 more = m->round_trip / 4;

	if (more < 4 * m->variation)
		more = 4 * m->variation;
	return m->round_trip + (more < FLOWLET_LEAST_SILENCE ? FLOWLET_LEAST_SILENCE : more);
}

/* How long a path is silent until a packet tries it. Full queues are silent, too, so the first try
 * is soon; each that nothing answers doubles the wait. */
static __always_inline __u64 flowlet_retry(const struct flowlet_measure *m)
{
	__u64 wait = (FLOWLET_RETRIES * flowlet_patience(m)) << (m->tries & 7);

	return wait < FLOWLET_RETRY ? wait : FLOWLET_RETRY;
}

/*
 * Whether a path is taken for broken. A queue that fills makes segments late, but goes on bringing
 * what was sent before; so nothing at all may have come for half a round trip, either. After a
 * while, one packet that is acknowledged may try.
 */
static __always_inline bool flowlet_broken(const struct flowlet_path *p,
					   const struct flowlet_measure *m, bool tries, __u64 now)
{
	__u64 silence = m->silent ? flowlet_since(m->silent, now) : 0;

	if (p->down)
		return true;
	return m->round_trip && silence > flowlet_patience(m) &&
	       flowlet_since(m->came, now) >= m->round_trip / 2 &&
	       (!tries || silence < flowlet_retry(m));
}

/* What a segment would meet on a path: octets under way, times delay, more where segments are
 * lost. Units of 64 octets and of 1,024 ns, so that the product fits. */
static __always_inline __u64 flowlet_cost(const struct flowlet_path *p,
					  const struct flowlet_measure *m, __u64 least, __u64 now)
{
	__u64 delay = flowlet_delay(p, m, now), octets;

	octets = flowlet_octets(m, m->round_trip, now) + FLOWLET_SEGMENT;
	if (!delay)
		delay = least;
	delay = (delay >> 10) + 1;
	if (delay > 0x7fffff)
		delay = 0x7fffff;
	return (octets >> 6) * delay * (256 + (m->lost >> 4));
}

/* ===== Flows ===== */

/* Octets that are under way. */
static __always_inline __u32 flowlet_under_way(const struct flowlet_flow *f)
{
	return f->tcp ? f->end - f->acknowledged : 0;
}

/* Octets under way over the former path. */
static __always_inline __u32 flowlet_left_behind(const struct flowlet_flow *f)
{
	__s32 behind = f->since - f->acknowledged;

	return f->tcp && behind > 0 ? behind : 0;
}

/* Whether a receiver that has what was sent over the path acknowledges at once. */
static __always_inline bool flowlet_heavy(const struct flowlet_flow *f)
{
	return flowlet_under_way(f) - flowlet_left_behind(f) >= FLOWLET_HEAVY;
}

/* A packet tries a path that was silent: to others it stays broken until it is heard. */
static __always_inline void flowlet_try(struct flowlet_measure *m, __u64 now)
{
	if (!m->silent || flowlet_since(m->silent, now) < flowlet_retry(m))
		return;
	m->silent = now - flowlet_patience(m) - 1;
	m->tries += m->tries < 7;
}
