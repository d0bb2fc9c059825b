/* Networks against transformers' float32: logits of every position, every layer, greedy continuation, rotary angles.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-golden-check.h"

static void
test_gemma3 (void)
{
  ox_golden_check ("text/gemma3", 31);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/golden/text/gemma3", test_gemma3);
  return g_test_run ();
}
