/* Golden cases as tests: every result is printed, and has to be fine.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "golden/ox-golden.h"

/* Runs the case at @path, relative to the folder of test data, and fails unless all of at least @n_least results are fine. */
void ox_golden_check (const char *path, guint n_least);
/* An OxGoldenFunc that prints. */
void ox_golden_check_message (const OxGoldenResult *result, gpointer user_data);
