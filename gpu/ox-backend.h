/* Compute devices beside the processor: what this machine has, found without linking to any driver.
 *
 * Plain C11. Nothing here prints, exits or asserts; a driver that is missing or that answers with an error is a machine
 * without that device.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  OX_DEVICE_VULKAN,
  OX_DEVICE_CUDA,
} OxDeviceApi;

typedef struct {
  char name[256]; /* the driver's own words, "NVIDIA GeForce RTX 3060" */
  OxDeviceApi api;
  bool is_software; /* a renderer on the processor, such as llvmpipe: never faster than our own kernels */
  uint64_t memory;  /* bytes of the device's own memory; of the shared memory when it has none */
} OxDevice;

/* "Vulkan", "CUDA" */
const char *ox_device_api_name (OxDeviceApi api);

/* Loads the Vulkan and CUDA drivers when they are installed and lists their devices, Vulkan's first. A device that both
 * drivers offer is listed by both. Stores at most @capacity devices in @devices and returns how many there are in all; 0 when
 * there is no driver. May take some hundred milliseconds, so call it once and not on the main thread. */
size_t ox_backend_probe (OxDevice *devices, size_t capacity);

#ifdef __cplusplus
}
#endif
