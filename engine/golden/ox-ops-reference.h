/* A second table of operations: float64 and plain loops, for tests.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-ops.h"

/* Every operation as its formula reads, over float64 activations and state, with weights as the files hold them. Slow: for networks of
 * toy size. A network that gives the same on this table and on a fast one touches no memory behind the table's back; where they
 * differ, the fast table is wrong, and a trace of both tells in which layer.
 *
 * Keys and values that are to be kept in less than float32 are rounded to that; nothing else is rounded before it is read back. */
OxOps *ox_ops_reference_new (void);
