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
	__u8 hop_limit;
	enum side side;
	__u8 reserved[3];
};

const volatile struct edge_settings settings = {};
