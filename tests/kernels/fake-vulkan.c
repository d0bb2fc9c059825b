/* A libvulkan.so.1 for test-backend-drivers: a discrete device and a software one; errors on demand (environment FAKE_ERROR, a
 * function's name) and missing functions (FAKE_HIDDEN).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <stdlib.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

PFN_vkVoidFunction vkGetInstanceProcAddr (VkInstance instance, const char *name);

static VkBool32
named (const char *variable, const char *function)
{
  const char *name = getenv (variable);
  return name != NULL && strcmp (name, function) == 0;
}

/* An instance is an allocation, so that a leak of one is seen. */
static VkResult
create_instance (const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator, VkInstance *instance)
{
  if (named ("FAKE_ERROR", "vkCreateInstance"))
    return VK_ERROR_INCOMPATIBLE_DRIVER;
  *instance = (VkInstance) malloc (64);
  return VK_SUCCESS;
}

static void
destroy_instance (VkInstance instance, const VkAllocationCallbacks *allocator)
{
  free (instance);
}

static VkResult
enumerate (VkInstance instance, uint32_t *n, VkPhysicalDevice *devices)
{
  if (named ("FAKE_ERROR", "vkEnumeratePhysicalDevices"))
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  if (devices == NULL) {
    *n = 2;
    return VK_SUCCESS;
  }
  for (uint32_t i = 0; i < *n && i < 2; i++)
    devices[i] = (VkPhysicalDevice) (uintptr_t) (i + 1);
  return VK_SUCCESS;
}

static void
get_properties (VkPhysicalDevice device, VkPhysicalDeviceProperties *properties)
{
  memset (properties, 0, sizeof *properties);
  if ((uintptr_t) device == 1) {
    properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    strcpy (properties->deviceName, "Fake Radeon");
  } else {
    properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_CPU;
    memset (properties->deviceName, 'y', sizeof properties->deviceName);
  }
}

static void
get_memory (VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties *memory)
{
  memset (memory, 0, sizeof *memory);
  memory->memoryHeapCount = 2;
  memory->memoryHeaps[0].size = (VkDeviceSize) 32 << 30;
  memory->memoryHeaps[1].size = (VkDeviceSize) 8 << 30;
  memory->memoryHeaps[1].flags = (uintptr_t) device == 1 ? VK_MEMORY_HEAP_DEVICE_LOCAL_BIT : 0;
}

PFN_vkVoidFunction
vkGetInstanceProcAddr (VkInstance instance, const char *name)
{
  static const struct {
    const char *name;
    PFN_vkVoidFunction function;
  } functions[] = {
    { "vkCreateInstance", (PFN_vkVoidFunction) create_instance },
    { "vkDestroyInstance", (PFN_vkVoidFunction) destroy_instance },
    { "vkEnumeratePhysicalDevices", (PFN_vkVoidFunction) enumerate },
    { "vkGetPhysicalDeviceProperties", (PFN_vkVoidFunction) get_properties },
    { "vkGetPhysicalDeviceMemoryProperties", (PFN_vkVoidFunction) get_memory },
  };

  if (named ("FAKE_HIDDEN", name))
    return NULL;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    if (strcmp (functions[i].name, name) == 0)
      return functions[i].function;
  return NULL;
}
