/* Whether there is memory for what comes next.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-memory.h"

#include <sys/mman.h>

gboolean
ox_memory_check (guint64 bytes, const char *what, GError **error)
{
  void *memory = MAP_FAILED;

  if (bytes == 0)
    return TRUE;
  /* Not by malloc: what it has once given back changes how it takes from then on. */
  if (bytes <= G_MAXSIZE / 2)
    memory = mmap (NULL, (gsize) bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    g_autofree char *size = g_format_size (bytes);

    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory for %s (%s)", what, size);
    return FALSE;
  }
  munmap (memory, (gsize) bytes);
  return TRUE;
}
