// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether this host takes a new connection: the acceptance policies of SRLB
 * (Desmouceaux et al., Algorithms 1 and 2), and two that need no tuning.
 * acceptance.Policy is the same in Go, and says why.
 */
#pragma once

#include "accept_delay.h"
#include "accept_level.h"
#include "compat.h"
#include "service.h"

enum accept_kind {
	ACCEPT_ALWAYS = 0,
	ACCEPT_STATIC, /* SR_c: while fewer than threshold connections are busy */
	ACCEPT_DYNAMIC, /* SR_dyn: the threshold moves so that about half is accepted */
	ACCEPT_AVERAGE, /* unless busier than hosts are in the mean */
	ACCEPT_DELAY, /* unless a connection takes longer here than on hosts in the mean */
};

struct accept_policy {
	enum accept_kind kind;
	__u32 threshold; /* static: c; dynamic: the initial c */
	__u32 window; /* dynamic: offers between two adjustments */
	__u32 workers; /* dynamic: upper bound of c */
	__u32 low_permille; /* dynamic: c rises if fewer were accepted */
	__u32 high_permille; /* dynamic: c falls if more were accepted */
	__u32 cores; /* average, delay: connections count per core; 0 is 1 */
	__u32 reported; /* enum load_source: busy is what is reported, not the connections that are
			   counted */
	__u32 power; /* delay: how steeply it grows once connections share the cores */
};

/* What has been learnt. Survives a restart of the agent. */
struct accept_state {
	struct bpf_spin_lock lock;
	__u32 threshold;
	__u32 attempts; /* dynamic: offers; delay: those refused */
	__u32 accepted;
	__u32 levels[LEVELS_MAX]; /* load that a connection meets with 0, 1, 2, ... candidates left;
				     0: not known */
	__u32 usual; /* delay: ticks that a core works on a connection, in the mean of all hosts */
	struct pace pace; /* delay: of this host */
};

/* A new connection that this host is offered. */
struct offer {
	__u32 left; /* candidates after this one */
	__u32 told; /* the note of the candidate before; 0: none */
};

/* The answer to an offer: this, or the note for the next candidate. */
#define ACCEPTED 0x10000

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct accept_policy);
} accept_policies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct accept_state);
} accept_states SEC(".maps");

/* Connections in ESTABLISHED or CLOSE_WAIT per service, kept by host_sockets. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, __s32);
} busy SEC(".maps");

/* Busy as the agent reports it, for services whose load is not that of their connections. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, __s32);
} reported SEC(".maps");

/* Reported by a server that wants no new connections, whatever the policy. */
#define REPORTED_FULL 0x7fffffff

static __always_inline bool accept_dynamic(struct accept_state *s, const struct accept_policy *p,
					   __s32 connections)
{
	bool accepted;

	bpf_spin_lock(&s->lock);
	s->attempts++;
	if (s->attempts >= p->window) {
		if (s->accepted * 1000 < p->window * p->low_permille && s->threshold < p->workers)
			s->threshold++;
		else if (s->accepted * 1000 > p->window * p->high_permille && s->threshold > 0)
			s->threshold--;
		s->attempts = 0;
		s->accepted = 0;
	}
	accepted = connections < (__s32)s->threshold;
	if (accepted)
		s->accepted++;
	bpf_spin_unlock(&s->lock);
	return accepted;
}

/* ===== Average: levels are connections per core in 1/65536 ===== */

#define LEVEL_ONE_SHIFT 16
#define FRACTION_SHIFT 4

#define NOTE_MANTISSA_BITS 8
#define NOTE_MAX 0xfff
#define NOTE_UNIT_SHIFT 5

static __always_inline __u32 accept_cores(const struct accept_policy *p)
{
	return p->cores ? p->cores : 1;
}

/* Half a connection is added: of two idle hosts the one with more cores is less loaded. */
static __always_inline __u32 level_of(const struct accept_policy *p, __u32 connections)
{
	if (connections > BUSY_MAX)
		connections = BUSY_MAX;
	return ((2 * connections + 1) << (LEVEL_ONE_SHIFT - 1)) / accept_cores(p);
}

/* A level as 12 bits, never 0: four of exponent, eight of mantissa, plus 1. */
static __always_inline __u32 note_of(__u32 level)
{
	__u32 note = level_short(level >> NOTE_UNIT_SHIFT, NOTE_MANTISSA_BITS);

	return (note < NOTE_MAX - 1 ? note : NOTE_MAX - 1) + 1;
}

static __always_inline __u32 note_level(__u32 note)
{
	__u32 level;

	if (!note)
		return 0;
	level = level_long(note - 1, NOTE_MANTISSA_BITS) << NOTE_UNIT_SHIFT;
	return level ? level : 1;
}

static __always_inline __u32 accept_average(struct accept_state *s, const struct accept_policy *p,
					    __u32 connections, const struct offer *o)
{
	__u32 load = level_of(p, connections), told = note_level(o->told), limit, mean;
	__u32 equal = level_of(p, 0) >> (FRACTION_SHIFT - 1);

	bpf_spin_lock(&s->lock);
	s->levels[0] = level_towards(s->levels[0], told, AGREE_SHIFT);
	levels_meet(s->levels, load);
	mean = s->levels[0];
	limit = levels_limit(s->levels, o->left);
	bpf_spin_unlock(&s->lock);
	return !o->left || load <= limit + equal ? ACCEPTED : note_of(mean);
}

/* ===== Delay: levels are ticks ===== */

#define DELAY_ACCEPTED (1ull << 33)
#define DELAY_USUAL (1ull << 32)

/*
 * DELAY_ACCEPTED, or the level that the next candidate is told, with DELAY_USUAL if it is of what
 * is usual; 0 for none. Not inlined, for the verifier's sake.
 */
__noinline __u64 accept_delay(__u32 service, __u32 connections, __u32 left, __u32 note)
{
	const struct accept_policy *p = bpf_map_lookup_elem(&accept_policies, &service);
	struct accept_state *s = bpf_map_lookup_elem(&accept_states, &service);
	__u32 told = delay_note_level(note), of_usual = -(note >> NOTE_USUAL_SHIFT & 1);
	__u32 cores, each, delay, limit, mean, usual, refused;
	__u64 longer, now;

	if (!p || !s)
		return DELAY_ACCEPTED;
	cores = accept_cores(p);
	longer = delay_longer(lesser(connections, BUSY_MAX), cores, p->power);
	now = bpf_ktime_get_ns();
	bpf_spin_lock(&s->lock);
	pace_until(&s->pace, now, pace_working(connections, cores));
	s->levels[0] = level_towards(s->levels[0], told & ~of_usual, AGREE_SHIFT);
	s->usual = level_towards(s->usual, told & of_usual, AGREE_SHIFT);
	each = pace_each(&s->pace, s->usual);
	s->usual = level_towards(s->usual, each, FORGET_SHIFT);
	delay = delay_of(each, longer);
	levels_meet(s->levels, delay);
	limit = levels_limit(s->levels, left);
	refused = is_above(delay, limit) & is_some(left) & is_some(each);
	s->attempts += refused;
	usual = s->usual;
	mean = s->levels[0];
	told = s->attempts;
	bpf_spin_unlock(&s->lock);
	if (!each)
		return !left || connections < cores ? DELAY_ACCEPTED : 0;
	if (!refused)
		return DELAY_ACCEPTED;
	return told % 2 ? mean : usual | DELAY_USUAL;
}

static __always_inline __u32 delay_answer(__u64 told)
{
	if (told & DELAY_ACCEPTED)
		return ACCEPTED;
	if (!(__u32)told)
		return 0;
	return delay_note(told) | (told & DELAY_USUAL ? 1 << NOTE_USUAL_SHIFT : 0);
}

/* Called before the number of a service's connections changes, since one begins or ends. */
static __always_inline void accept_moves(__u32 service, __s32 connections, bool ends)
{
	struct accept_policy *p = bpf_map_lookup_elem(&accept_policies, &service);
	struct accept_state *s = bpf_map_lookup_elem(&accept_states, &service);
	__u64 now, working;

	if (!p || !s || p->kind != ACCEPT_DELAY)
		return;
	working = pace_working(connections > 0 ? connections : 0, accept_cores(p));
	now = bpf_ktime_get_ns();
	bpf_spin_lock(&s->lock);
	pace_until(&s->pace, now, working);
	s->pace.done += (__u64)ends << DONE_ONE_SHIFT;
	bpf_spin_unlock(&s->lock);
}

/* Whether the service's policy learns from connections that it must accept too. */
static __always_inline bool accept_learns(__u32 service)
{
	struct accept_policy *policy = bpf_map_lookup_elem(&accept_policies, &service);

	return policy && (policy->kind == ACCEPT_AVERAGE || policy->kind == ACCEPT_DELAY);
}

/* The answer to one new connection: ACCEPTED, or the note for the next candidate (0: none). */
static __always_inline __u32 accept_decide(__u32 service, const struct offer *o)
{
	struct accept_policy *policy = bpf_map_lookup_elem(&accept_policies, &service);
	struct accept_state *state = bpf_map_lookup_elem(&accept_states, &service);
	__s32 *connections;

	if (!policy || !state)
		return ACCEPTED;
	connections = policy->reported ? bpf_map_lookup_elem(&reported, &service) :
					 bpf_map_lookup_elem(&busy, &service);
	if (!connections)
		return ACCEPTED;
	if (policy->reported && *connections == REPORTED_FULL)
		return o->left ? 0 : ACCEPTED;
	if (policy->kind == ACCEPT_AVERAGE)
		return accept_average(state, policy, *connections > 0 ? *connections : 0, o);
	if (policy->kind == ACCEPT_DELAY)
		return delay_answer(accept_delay(service, *connections > 0 ? *connections : 0,
						 o->left, o->told));
	switch (o->left ? policy->kind : ACCEPT_ALWAYS) {
	case ACCEPT_STATIC:
		return *connections < (__s32)policy->threshold ? ACCEPTED : 0;
	case ACCEPT_DYNAMIC:
		return accept_dynamic(state, policy, *connections) ? ACCEPTED : 0;
	default:
		return ACCEPTED;
	}
}
