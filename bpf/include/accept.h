// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether this host takes a new connection: the acceptance policies of SRLB
 * (Desmouceaux et al., Algorithms 1 and 2). accept.Policy is the same in Go.
 */
#pragma once

#include "compat.h"
#include "service.h"

enum accept_kind {
	ACCEPT_ALWAYS = 0,
	ACCEPT_STATIC, /* SR_c: while fewer than threshold connections are busy */
	ACCEPT_DYNAMIC, /* SR_dyn: the threshold moves so that about half is accepted */
};

struct accept_policy {
	enum accept_kind kind;
	__u32 threshold; /* static: c; dynamic: the initial c */
	__u32 window; /* dynamic: offers between two adjustments */
	__u32 workers; /* dynamic: upper bound of c */
	__u32 low_permille; /* dynamic: c rises if fewer were accepted */
	__u32 high_permille; /* dynamic: c falls if more were accepted */
};

/* What SR_dyn has learnt. Survives a restart of the agent. */
struct accept_state {
	struct bpf_spin_lock lock;
	__u32 threshold;
	__u32 attempts;
	__u32 accepted;
};

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

static __always_inline bool accept_dynamic(struct accept_state *s, const struct accept_policy *p, __s32 connections)
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

/* The decision for one new connection that still has another candidate. */
static __always_inline bool accept_decide(__u32 service)
{
	struct accept_policy *policy = bpf_map_lookup_elem(&accept_policies, &service);
	struct accept_state *state = bpf_map_lookup_elem(&accept_states, &service);
	__s32 *connections = bpf_map_lookup_elem(&busy, &service);

	if (!policy || !state || !connections)
		return true;
	switch (policy->kind) {
	case ACCEPT_STATIC:
		return *connections < (__s32)policy->threshold;
	case ACCEPT_DYNAMIC:
		return accept_dynamic(state, policy, *connections);
	default:
		return true;
	}
}
