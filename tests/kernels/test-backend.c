/* Probing of compute devices. Which devices there are depends on the machine; that every entry is sound does not.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <glib.h>
#include <string.h>

#include "ox-backend.h"

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

static void
test_capacity (void)
{
  OxDevice device[2];
  size_t n = ox_backend_probe (NULL, 0);

  memset (device, 0x55, sizeof device);
  g_assert_cmpuint (ox_backend_probe (device, 1), ==, n);
  for (size_t i = 0; i < sizeof device[1]; i++)
    g_assert_cmphex (((unsigned char *) &device[1])[i], ==, 0x55);
}

static void
test_names (void)
{
  g_assert_cmpstr (ox_device_api_name (OX_DEVICE_VULKAN), ==, "Vulkan");
  g_assert_cmpstr (ox_device_api_name (OX_DEVICE_CUDA), ==, "CUDA");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/backend/probe", test_probe);
  g_test_add_func ("/backend/capacity", test_capacity);
  g_test_add_func ("/backend/names", test_names);
  return g_test_run ();
}
