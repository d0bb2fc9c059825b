/* Probing of this machine's compute devices: which there are depends on the machine; that every entry is sound does not.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <glib.h>
#include <string.h>

#include "ox-backend.h"

/* Part of the leak checker when there is one. Real drivers leak; test-backend-drivers looks for leaks of our own. */
void __lsan_disable (void) __attribute__ ((weak));

static void
test_probe (void)
{
  OxDevice devices[8], again[8];
  size_t n = ox_backend_probe (devices, G_N_ELEMENTS (devices));

  g_test_message ("%zu devices", n);
  for (size_t i = 0; i < MIN (n, G_N_ELEMENTS (devices)); i++) {
    g_test_message ("%s: %s, %s, %.1f GiB", ox_device_api_name (devices[i].api), devices[i].name,
                    devices[i].is_software ? "software" : "hardware", (double) devices[i].memory / 0x1p30);
    g_assert_cmpuint (strnlen (devices[i].name, sizeof devices[i].name), <, sizeof devices[i].name);
    g_assert_cmpuint (devices[i].memory, >, 0);
    if (strstr (devices[i].name, "llvmpipe") != NULL)
      g_assert_true (devices[i].is_software);
  }
  /* The same machine, the same answer. */
  memset (again, 0, sizeof again);
  g_assert_cmpuint (ox_backend_probe (again, G_N_ELEMENTS (again)), ==, n);
  for (size_t i = 0; i < MIN (n, G_N_ELEMENTS (devices)); i++)
    g_assert_cmpstr (again[i].name, ==, devices[i].name);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (__lsan_disable != NULL)
    __lsan_disable ();
  g_test_add_func ("/backend/probe", test_probe);
  return g_test_run ();
}
