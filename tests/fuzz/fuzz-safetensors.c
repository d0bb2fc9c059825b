/* libFuzzer target: the safetensors reader.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-io-check.h"

int LLVMFuzzerTestOneInput (const guint8 *data, gsize size);

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);

  ox_exercise_safetensors (bytes);
  return 0;
}
