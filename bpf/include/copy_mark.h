// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How a copy of a packet is told from the other one. */
#pragma once

/* The last identifier behind the SIDs of a carrier, if it is one of these two, says which copy. */
#define COPY_MARK 0xfffe
#define COPIES_MAX 2
