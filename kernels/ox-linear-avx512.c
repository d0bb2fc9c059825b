/* Linear layers for avx512.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

const OxLinearSet ox_linear_avx512 = { NULL, NULL, NULL };
