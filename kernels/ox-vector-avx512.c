/* Vector operations for avx512.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

void
ox_vector_init_avx512 (OxKernels *table)
{
}
