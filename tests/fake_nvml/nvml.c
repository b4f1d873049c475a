/* Four GPUs on one board with NVSwitches, as NVML of driver 570 and later describes them. FAKE_NVML says how
 * they are: "sick" (each in another way), "lost" (the last one), "hangs" (nvmlInit_v2 never returns),
 * "wedged" (the GPUs can be counted, but not asked); otherwise all is well. FAKE_NVML_PID is a process that
 * holds GPU 2. Built with OLD_DRIVER it has the functions of driver 470 alone. The declarations are those of
 * nvml.h of CUDA 12.9. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  INVALID_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  INSUFFICIENT_SIZE = 7,
  GPU_IS_LOST = 15,
  VERSION_MISMATCH = 25
};
enum { GPUS = 4, LINKS = 18 };
static const unsigned long long GIB = 1ULL << 30;

static int gpus[GPUS] = {0, 1, 2, 3};

static int is(const char* state) {
  const char* now = getenv("FAKE_NVML");
  return now != NULL && strcmp(now, state) == 0;
}
static int number(const void* device) {
  return *(const int*)device;
}
static int sick(const void* device, int gpu) {
  return is("sick") && number(device) == gpu;
}
static int holder(void) {
  const char* pid = getenv("FAKE_NVML_PID");
  return pid == NULL ? 0 : atoi(pid);
}

EXPORT int nvmlInit_v2(void) {
  while (is("hangs")) pause();
  return SUCCESS;
}
EXPORT const char* nvmlErrorString(int error) {
  return error == GPU_IS_LOST        ? "GPU is lost"
         : error == VERSION_MISMATCH ? "Argument version mismatch"
                                     : "Unknown Error";
}
EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned length) {
#ifdef OLD_DRIVER
  snprintf(text, length, "470.256.02");
#else
  snprintf(text, length, "570.158.01");
#endif
  return SUCCESS;
}
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
#ifdef OLD_DRIVER
  *version = 11040;
#else
  *version = 13000;
#endif
  return SUCCESS;
}
EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = GPUS;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (is("lost") && index == GPUS - 1) return GPU_IS_LOST;
  *device = &gpus[index];
  return SUCCESS;
}

struct pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};
EXPORT int nvmlDeviceGetPciInfo_v3(void* device, struct pci* pci) {
  snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%X:00.0", 0x1B + 0x10 * number(device));
  return SUCCESS;
}
EXPORT int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  snprintf(text, length, "GPU-%08d-0000-0000-0000-000000000000", number(device));
  return SUCCESS;
}
EXPORT int nvmlDeviceGetName(void* device, char* text, unsigned length) {
  (void)device;
  snprintf(text, length, "NVIDIA H100 80GB HBM3");
  return SUCCESS;
}

struct memory {
  unsigned long long total, free, used;
};
EXPORT int nvmlDeviceGetMemoryInfo(void* device, struct memory* memory) {
  memory->total = 80 * GIB;
  memory->used = (sick(device, 2) ? 38 : sick(device, 3) ? 9 : 0) * GIB;
  memory->free = memory->total - memory->used;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* count) {
  while (is("wedged")) pause();
  *count = sick(device, 1) && type == 1 && counter == 0 ? 2 : 0;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected,
                                     unsigned* pending, unsigned* failed) {
  *corrected = *failed = 0;
  *uncorrected = *pending = sick(device, 1) ? 1 : 0;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* mask) {
  *mask = sick(device, 2) ? 0x48 : 0x1;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *current = *pending = sick(device, 0) ? 1 : 0;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetComputeMode(void* device, unsigned* mode) {
  *mode = sick(device, 3) ? 3 : 0;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetPersistenceMode(void* device, unsigned* mode) {
  (void)device;
  *mode = 1;
  return SUCCESS;
}
struct utilization {
  unsigned gpu, memory;
};
EXPORT int nvmlDeviceGetUtilizationRates(void* device, struct utilization* use) {
  use->gpu = number(device) == 3 ? 0 : 100;
  use->memory = 0;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 70000 + 60000 * (number(device) != 3);
  return SUCCESS;
}
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  (void)device;
  *milliwatts = 700000;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* width) {
  *width = sick(device, 3) ? 8 : 16;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* width) {
  (void)device;
  *width = 16;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  if (link >= LINKS) return INVALID_ARGUMENT;
  *active = !(sick(device, 2) && link == 5);
  return SUCCESS;
}

struct process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
static int running(void* device, unsigned* count, struct process* processes) {
  const unsigned there = sick(device, 2) && holder() != 0;
  if (*count < there) return INSUFFICIENT_SIZE;
  *count = there;
  if (there) *processes = (struct process){(unsigned)holder(), 38 * GIB, ~0U, ~0U};
  return SUCCESS;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, struct process* processes) {
  return running(device, count, processes);
}

#ifndef OLD_DRIVER
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, struct process* processes) {
  return running(device, count, processes);
}

struct sram {
  unsigned version;
  unsigned long long counts[11];
  unsigned threshold_exceeded;
};
EXPORT int nvmlDeviceGetSramEccErrorStatus(void* device, struct sram* sram) {
  if (sram->version != (sizeof(*sram) | 1U << 24)) return VERSION_MISMATCH;
  sram->threshold_exceeded = sick(device, 0) ? 1 : 0;
  return SUCCESS;
}

struct value {
  unsigned id, scope;
  long long timestamp, latency;
  unsigned type;
  int result;
  unsigned long long value;
};
EXPORT int nvmlDeviceGetFieldValues(void* device, int count, struct value* values) {
  for (struct value* field = values; field < values + count; ++field) {
    field->type = 3;
    field->result = SUCCESS;
    field->value = 0;
    if (field->id == 230) {
      field->value = sick(device, 1) ? 4 : 0;
    } else if (field->id == 162) {
      field->value = sick(device, 3) && field->scope == 7 ? 1 : 0;
    } else if (field->id != 161 && field->id != 163) {
      field->result = NOT_SUPPORTED;
    }
  }
  return SUCCESS;
}

struct fabric {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
};
EXPORT int nvmlDeviceGetGpuFabricInfoV(void* device, struct fabric* fabric) {
  if (fabric->version != (sizeof(*fabric) | 2U << 24)) return VERSION_MISMATCH;
  fabric->status = SUCCESS;
  fabric->state = 3;
  fabric->health_mask = sick(device, 0) ? 0x1 : 0x2;
  return SUCCESS;
}
#endif
