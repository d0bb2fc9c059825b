/* Linear layers for avx512vnni.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

const OxLinearSet ox_linear_avx512_vnni = { NULL, NULL, NULL };
