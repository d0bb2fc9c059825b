/* Probing of compute devices against drivers of our own (fake-vulkan.c, fake-cuda.c, found through LD_LIBRARY_PATH), so that
 * every answer a driver may give is tried on any machine.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <glib.h>
#include <string.h>

#include "ox-backend.h"

/* Devices of both fake drivers together; without Vulkan's headers there is only CUDA. */
#define N_VULKAN (OX_TEST_VULKAN ? 2u : 0u)
#define N_CUDA 2u

static void
test_all (void)
{
  OxDevice d[8];

  g_assert_cmpuint (ox_backend_probe (d, G_N_ELEMENTS (d)), ==, N_VULKAN + N_CUDA);
#if OX_TEST_VULKAN
  g_assert_cmpstr (d[0].name, ==, "Fake Radeon");
  g_assert_cmpint (d[0].api, ==, OX_DEVICE_VULKAN);
  g_assert_false (d[0].is_software);
  g_assert_cmpuint (d[0].memory, ==, (guint64) 8 << 30);
  /* A name that fills its array, and no memory of its own. */
  g_assert_cmpuint (strlen (d[1].name), ==, 255);
  g_assert_true (d[1].is_software);
  g_assert_cmpuint (d[1].memory, ==, (guint64) 32 << 30);
#endif
  g_assert_cmpstr (d[N_VULKAN].name, ==, "Fake GPU");
  g_assert_cmpint (d[N_VULKAN].api, ==, OX_DEVICE_CUDA);
  g_assert_cmpuint (d[N_VULKAN].memory, ==, (guint64) 1 << 30);
  g_assert_cmpuint (strlen (d[N_VULKAN + 1].name), ==, 255);
  g_assert_cmpuint (d[N_VULKAN + 1].memory, ==, (guint64) 2 << 30);
}

static void
test_failures (void)
{
  static const struct {
    const char *variable, *function;
    unsigned n_vulkan, n_cuda;
  } cases[] = {
    { "FAKE_ERROR", "cuInit", N_VULKAN, 0 },
    { "FAKE_ERROR", "cuDeviceGetCount", N_VULKAN, 0 },
    { "FAKE_ERROR", "cuDeviceGet", N_VULKAN, 0 },
    { "FAKE_ERROR", "cuDeviceTotalMem_v2", N_VULKAN, 1 },
    { "FAKE_ERROR", "vkCreateInstance", 0, N_CUDA },
    { "FAKE_ERROR", "vkEnumeratePhysicalDevices", 0, N_CUDA },
    { "FAKE_HIDDEN", "vkCreateInstance", 0, N_CUDA },
    { "FAKE_HIDDEN", "vkEnumeratePhysicalDevices", 0, N_CUDA },
    { "FAKE_HIDDEN", "vkGetPhysicalDeviceProperties", 0, N_CUDA },
    { "FAKE_HIDDEN", "vkGetPhysicalDeviceMemoryProperties", 0, N_CUDA },
  };

  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    OxDevice devices[8];
    g_setenv (cases[i].variable, cases[i].function, TRUE);
    g_assert_cmpuint (ox_backend_probe (devices, G_N_ELEMENTS (devices)), ==, cases[i].n_vulkan + cases[i].n_cuda);
    g_unsetenv (cases[i].variable);
  }
}

static void
test_capacity (void)
{
  OxDevice devices[2];

  memset (devices, 0x55, sizeof devices);
  g_assert_cmpuint (ox_backend_probe (devices, 1), ==, N_VULKAN + N_CUDA);
  for (size_t i = 0; i < sizeof devices[1]; i++)
    g_assert_cmphex (((unsigned char *) &devices[1])[i], ==, 0x55);
  g_assert_cmpuint (ox_backend_probe (NULL, 0), ==, N_VULKAN + N_CUDA);
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
  g_test_add_func ("/backend/all", test_all);
  g_test_add_func ("/backend/failures", test_failures);
  g_test_add_func ("/backend/capacity", test_capacity);
  g_test_add_func ("/backend/names", test_names);
  return g_test_run ();
}
