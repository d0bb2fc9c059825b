/* Compute devices: Vulkan and CUDA probed through dlopen().
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-backend.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifdef OX_HAVE_VULKAN_HEADERS
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>
#endif

typedef struct {
  OxDevice *devices;
  size_t capacity, n;
} DeviceList;

const char *
ox_device_api_name (OxDeviceApi api)
{
  return api == OX_DEVICE_CUDA ? "CUDA" : "Vulkan";
}

static void
add_device (DeviceList *list, OxDeviceApi api, const char *name, bool is_software, uint64_t memory)
{
  if (list->n < list->capacity) {
    OxDevice *device = &list->devices[list->n];
    size_t length = strnlen (name, sizeof device->name - 1);

    *device = (OxDevice) { .api = api, .is_software = is_software, .memory = memory };
    memcpy (device->name, name, length);
  }
  list->n++;
}

/* Opens a driver. It stays open for the life of the process: drivers keep threads and exit handlers, and unloading one that
 * has been used is a known way to crash. */
static void *
open_driver (const char *soname)
{
  return dlopen (soname, RTLD_NOW | RTLD_LOCAL);
}

/* ---- Vulkan ----------------------------------------------------------------------------------------------------------- */

#ifdef OX_HAVE_VULKAN_HEADERS

/* The largest heap that is the device's own; the largest of all when none is marked so. */
static uint64_t
vulkan_memory (const VkPhysicalDeviceMemoryProperties *memory)
{
  uint64_t own = 0, any = 0;

  for (uint32_t i = 0; i < memory->memoryHeapCount && i < VK_MAX_MEMORY_HEAPS; i++) {
    uint64_t size = memory->memoryHeaps[i].size;
    if ((memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && size > own)
      own = size;
    if (size > any)
      any = size;
  }
  return own > 0 ? own : any;
}

static void
list_vulkan_devices (DeviceList *list, PFN_vkGetInstanceProcAddr get, VkInstance instance)
{
  PFN_vkEnumeratePhysicalDevices enumerate =
    (PFN_vkEnumeratePhysicalDevices) get (instance, "vkEnumeratePhysicalDevices");
  PFN_vkGetPhysicalDeviceProperties get_properties =
    (PFN_vkGetPhysicalDeviceProperties) get (instance, "vkGetPhysicalDeviceProperties");
  PFN_vkGetPhysicalDeviceMemoryProperties get_memory =
    (PFN_vkGetPhysicalDeviceMemoryProperties) get (instance, "vkGetPhysicalDeviceMemoryProperties");
  VkPhysicalDevice *handles;
  uint32_t n = 0;
  VkResult result;

  if (enumerate == NULL || get_properties == NULL || get_memory == NULL)
    return;
  if (enumerate (instance, &n, NULL) != VK_SUCCESS || n == 0)
    return;
  handles = calloc (n, sizeof *handles);
  if (handles == NULL)
    return;
  result = enumerate (instance, &n, handles);
  for (uint32_t i = 0; (result == VK_SUCCESS || result == VK_INCOMPLETE) && i < n; i++) {
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;

    memset (&properties, 0, sizeof properties);
    memset (&memory, 0, sizeof memory);
    get_properties (handles[i], &properties);
    get_memory (handles[i], &memory);
    properties.deviceName[sizeof properties.deviceName - 1] = 0;
    add_device (list, OX_DEVICE_VULKAN, properties.deviceName, properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU,
                vulkan_memory (&memory));
  }
  free (handles);
}

static void
probe_vulkan (DeviceList *list)
{
  void *driver = open_driver ("libvulkan.so.1");
  PFN_vkGetInstanceProcAddr get;
  PFN_vkCreateInstance create;
  PFN_vkDestroyInstance destroy;
  VkInstance instance = VK_NULL_HANDLE;
  VkApplicationInfo application = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                    .pApplicationName = "oxinfer",
                                    .apiVersion = VK_API_VERSION_1_1 };
  VkInstanceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application };

  if (driver == NULL)
    return;
  get = (PFN_vkGetInstanceProcAddr) dlsym (driver, "vkGetInstanceProcAddr");
  if (get == NULL)
    return;
  create = (PFN_vkCreateInstance) get (VK_NULL_HANDLE, "vkCreateInstance");
  if (create == NULL || create (&info, NULL, &instance) != VK_SUCCESS || instance == VK_NULL_HANDLE)
    return;
  list_vulkan_devices (list, get, instance);
  destroy = (PFN_vkDestroyInstance) get (instance, "vkDestroyInstance");
  if (destroy != NULL)
    destroy (instance, NULL);
}

#else

static void
probe_vulkan (DeviceList *list)
{
}

#endif

/* ---- CUDA ------------------------------------------------------------------------------------------------------------- */

/* The part of the driver API that is needed, from NVIDIA's "CUDA Driver API" reference. 0 is success everywhere. */
typedef int (*CuInit) (unsigned flags);
typedef int (*CuDeviceGetCount) (int *count);
typedef int (*CuDeviceGet) (int *device, int ordinal);
typedef int (*CuDeviceGetName) (char *name, int length, int device);
typedef int (*CuDeviceTotalMem) (size_t *bytes, int device);

static void
probe_cuda (DeviceList *list)
{
  void *driver = open_driver ("libcuda.so.1");
  CuInit init;
  CuDeviceGetCount get_count;
  CuDeviceGet get;
  CuDeviceGetName get_name;
  CuDeviceTotalMem get_memory;
  int n = 0;

  if (driver == NULL)
    return;
  init = (CuInit) dlsym (driver, "cuInit");
  get_count = (CuDeviceGetCount) dlsym (driver, "cuDeviceGetCount");
  get = (CuDeviceGet) dlsym (driver, "cuDeviceGet");
  get_name = (CuDeviceGetName) dlsym (driver, "cuDeviceGetName");
  get_memory = (CuDeviceTotalMem) dlsym (driver, "cuDeviceTotalMem_v2");
  if (init == NULL || get_count == NULL || get == NULL || get_name == NULL || get_memory == NULL)
    return;
  if (init (0) != 0 || get_count (&n) != 0)
    return;
  for (int i = 0; i < n; i++) {
    char name[256] = "";
    size_t bytes = 0;
    int device;

    if (get (&device, i) != 0 || get_name (name, sizeof name, device) != 0 || get_memory (&bytes, device) != 0)
      continue;
    name[sizeof name - 1] = 0;
    add_device (list, OX_DEVICE_CUDA, name, false, bytes);
  }
}

size_t
ox_backend_probe (OxDevice *devices, size_t capacity)
{
  DeviceList list = { devices, capacity, 0 };

  probe_vulkan (&list);
  probe_cuda (&list);
  return list.n;
}
