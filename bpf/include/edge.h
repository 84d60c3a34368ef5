// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the edge is told by its configuration. */
#pragma once

#include "guard.h"
#include "srh.h"

struct edge_settings {
	struct domain domain;
	struct address shadow; /* the SID to which hosts send strays; 0: none */
	__be16 last_offer; /* behind a backend's SID: deliver, whatever you know */
	enum encapsulation encapsulation;
	enum side side;
	__u8 reserved[4];
};

const volatile struct edge_settings settings = {};

/* What outer headers have: config.EdgeOuter, field by field. */
struct edge_outer {
	__u8 hop_limit;
};

const volatile struct edge_outer outer_settings = {};
