/* hwloc's static archive asks libudev for the properties of disks. nlaunch takes glibc alone from the system,
 * and needs no disks from hwloc: with a udev that cannot be had, hwloc reads what it needs from /sys. */
#include <stddef.h>

__attribute__((visibility("hidden"))) void* udev_new(void);
__attribute__((visibility("hidden"))) void* udev_unref(void* udev);
__attribute__((visibility("hidden"))) void* udev_device_new_from_subsystem_sysname(void* udev,
                                                                                   const char* subsystem,
                                                                                   const char* name);
__attribute__((visibility("hidden"))) const char* udev_device_get_property_value(void* device,
                                                                                 const char* key);
__attribute__((visibility("hidden"))) void* udev_device_unref(void* device);

void* udev_new(void) {
  return NULL;
}

void* udev_unref(void* udev) {
  (void)udev;
  return NULL;
}

void* udev_device_new_from_subsystem_sysname(void* udev, const char* subsystem, const char* name) {
  (void)udev, (void)subsystem, (void)name;
  return NULL;
}

const char* udev_device_get_property_value(void* device, const char* key) {
  (void)device, (void)key;
  return NULL;
}

void* udev_device_unref(void* device) {
  (void)device;
  return NULL;
}
