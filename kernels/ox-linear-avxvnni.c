/* Linear layers for avxvnni.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

const OxLinearSet ox_linear_avx_vnni = { NULL, NULL, NULL };
