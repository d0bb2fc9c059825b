/* A libcuda.so.1 for test-backend-drivers: two devices, and errors on demand (environment FAKE_ERROR, a function's name).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <stdlib.h>
#include <string.h>

int cuInit (unsigned flags);
int cuDeviceGetCount (int *count);
int cuDeviceGet (int *device, int ordinal);
int cuDeviceGetName (char *name, int length, int device);
int cuDeviceTotalMem_v2 (size_t *bytes, int device);

static int
fails (const char *function)
{
  const char *name = getenv ("FAKE_ERROR");
  return name != NULL && strcmp (name, function) == 0;
}

int
cuInit (unsigned flags)
{
  return fails ("cuInit") ? 100 : 0;
}

int
cuDeviceGetCount (int *count)
{
  *count = 2;
  return fails ("cuDeviceGetCount") ? 999 : 0;
}

int
cuDeviceGet (int *device, int ordinal)
{
  *device = ordinal + 40;
  return fails ("cuDeviceGet") ? 101 : 0;
}

/* The second device's name fills the buffer without a terminator, as a careless driver might. */
int
cuDeviceGetName (char *name, int length, int device)
{
  memset (name, device == 40 ? 0 : 'x', (size_t) length);
  if (device == 40)
    memcpy (name, "Fake GPU", 8);
  return 0;
}

int
cuDeviceTotalMem_v2 (size_t *bytes, int device)
{
  *bytes = (size_t) (device - 39) << 30;
  return fails ("cuDeviceTotalMem_v2") && device == 40 ? 1 : 0;
}
