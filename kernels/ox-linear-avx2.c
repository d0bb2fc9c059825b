/* Linear layers for avx2.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

const OxLinearSet ox_linear_avx2 = { NULL, NULL, NULL };
