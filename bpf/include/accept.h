// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether this host takes a new connection: the acceptance policies of SRLB
 * (Desmouceaux et al., Algorithms 1 and 2), and one that needs no tuning.
 * accept.Policy is the same in Go, and says why.
 */
#pragma once

#include "compat.h"
#include "service.h"

enum accept_kind {
	ACCEPT_ALWAYS = 0,
	ACCEPT_STATIC, /* SR_c: while fewer than threshold connections are busy */
	ACCEPT_DYNAMIC, /* SR_dyn: the threshold moves so that about half is accepted */
	ACCEPT_AVERAGE, /* unless busier than hosts are in the mean */
};

struct accept_policy {
	enum accept_kind kind;
	__u32 threshold; /* static: c; dynamic: the initial c */
	__u32 window; /* dynamic: offers between two adjustments */
	__u32 workers; /* dynamic: upper bound of c */
	__u32 low_permille; /* dynamic: c rises if fewer were accepted */
	__u32 high_permille; /* dynamic: c falls if more were accepted */
	__u32 cores; /* average: connections count per core; 0 is 1 */
	__u32 reported; /* enum load_source: busy is what is reported, not the connections that are
			   counted */
};

#define LEVELS_MAX 3

/* What has been learnt. Survives a restart of the agent. */
struct accept_state {
	struct bpf_spin_lock lock;
	__u32 threshold;
	__u32 attempts;
	__u32 accepted;
	__u32 levels[LEVELS_MAX]; /* load that a connection meets with 0, 1, 2 candidates left; 0:
				     not known */
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
#define FORGET_SHIFT 4
#define AGREE_SHIFT 1
#define FRACTION_SHIFT 4
#define BUSY_MAX (1 << 15)

#define NOTE_MANTISSA_BITS 8
#define NOTE_MAX 0xfff
#define NOTE_UNIT_SHIFT 5

/* Half a connection is added: of two idle hosts the one with more cores is less loaded. */
static __always_inline __u32 level_of(const struct accept_policy *p, __u32 connections)
{
	__u32 cores = p->cores ? p->cores : 1;

	if (connections > BUSY_MAX)
		connections = BUSY_MAX;
	return ((2 * connections + 1) << (LEVEL_ONE_SHIFT - 1)) / cores;
}

/*
 * What follows has no branches, because the verifier would follow each of them with all that comes
 * behind it, and no calls, because a lock is held. The assembly keeps the compiler from finding the
 * branches again.
 */

/* 1 if x is not 0, else 0. */
static __always_inline __u32 is_some(__u32 x)
{
	__u32 negative = -x;

	asm volatile("" : "+r"(negative));
	return (x | negative) >> 31;
}

/*
 * Moves a mean by 1/2^shift of the distance to a value, all of it if nothing was known, and not at
 * all if the value is 0: it is not known.
 */
static __always_inline __u32 level_towards(__u32 level, __u32 value, __u32 shift)
{
	__s64 step = ((__s64)value - (__s64)level) >> (shift * is_some(level));

	return level + step * is_some(value);
}

static __always_inline __u32 lesser(__u32 a, __u32 b)
{
	__s64 above = (__s64)a - (__s64)b, mask = above >> 63;

	asm volatile("" : "+r"(mask));
	return b + (above & mask);
}

/* A level as 12 bits, never 0: four of exponent, eight of mantissa, plus 1. Not inlined, for the
 * verifier's sake. */
__noinline __u32 note_of(__u32 level)
{
	__u32 value = level >> NOTE_UNIT_SHIFT, exponent = 0, note;

	for (__u32 i = 0; i < 19; i++) { /* value has 27 bits at most, and 9 of them are kept */
		if (value >> exponent < 2 << NOTE_MANTISSA_BITS)
			break;
		exponent++;
	}
	note = value;
	if (value >= 1 << NOTE_MANTISSA_BITS)
		note = (exponent + 1) << NOTE_MANTISSA_BITS |
		       ((value >> exponent) - (1 << NOTE_MANTISSA_BITS));
	return (note < NOTE_MAX - 1 ? note : NOTE_MAX - 1) + 1;
}

static __always_inline __u32 note_level(__u32 note)
{
	__u32 value, exponent;

	if (!note)
		return 0;
	note--;
	value = note & ((1 << NOTE_MANTISSA_BITS) - 1);
	exponent = note >> NOTE_MANTISSA_BITS;
	if (exponent)
		value = (value + (1 << NOTE_MANTISSA_BITS)) << (exponent - 1);
	value <<= NOTE_UNIT_SHIFT;
	return value ? value : 1;
}

static __always_inline __u32 accept_average(struct accept_state *s, const struct accept_policy *p,
					    __u32 connections, const struct offer *o)
{
	__u32 load = level_of(p, connections), told = note_level(o->told), meets = load, limit,
	      mean;
	__u32 equal = level_of(p, 0) >> (FRACTION_SHIFT - 1);

	bpf_spin_lock(&s->lock);
	s->levels[0] = level_towards(s->levels[0], told, AGREE_SHIFT);
	for (int i = 0; i < LEVELS_MAX; i++) {
		s->levels[i] = level_towards(s->levels[i], meets, FORGET_SHIFT);
		meets = lesser(meets, s->levels[i]);
	}
	mean = s->levels[0];
	limit = o->left > 2 ? s->levels[2] : o->left > 1 ? s->levels[1] : mean;
	bpf_spin_unlock(&s->lock);
	return !o->left || load <= limit + equal ? ACCEPTED : note_of(mean);
}

/* Whether the service's policy learns from connections that it must accept too. */
static __always_inline bool accept_learns(__u32 service)
{
	struct accept_policy *policy = bpf_map_lookup_elem(&accept_policies, &service);

	return policy && policy->kind == ACCEPT_AVERAGE;
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
	switch (o->left ? policy->kind : ACCEPT_ALWAYS) {
	case ACCEPT_STATIC:
		return *connections < (__s32)policy->threshold ? ACCEPTED : 0;
	case ACCEPT_DYNAMIC:
		return accept_dynamic(state, policy, *connections) ? ACCEPTED : 0;
	default:
		return ACCEPTED;
	}
}
