/* The getters, as nvml.h of CUDA 13.3 declares them. Each answer is a line of the board file. */
#include "board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(function, argument)                                     \
    int index;                                                          \
    const char *text = "";                                              \
    int code = begin(function, device, &index);                         \
    if (!code)                                                          \
        code = look_up(index, function, argument, &text);               \
    if (code)                                                           \
        return code

#define NUMBER(function)                                                \
    int function(nvmlDevice_t device, unsigned int *out)                \
    {                                                                   \
        TEXT_OF(#function, NO_ARGUMENT);                                \
        *out = (unsigned int)strtoul(text, NULL, 10);                   \
        return SUCCESS;                                                 \
    }
#define NUMBER_OF(function)                                             \
    int function(nvmlDevice_t device, int argument, unsigned int *out)  \
    {                                                                   \
        TEXT_OF(#function, argument);                                   \
        *out = (unsigned int)strtoul(text, NULL, 10);                   \
        return SUCCESS;                                                 \
    }
#define PAIR(function)                                                  \
    int function(nvmlDevice_t device, unsigned int *one, unsigned int *other) \
    {                                                                   \
        TEXT_OF(#function, NO_ARGUMENT);                                \
        return sscanf(text, "%u %u", one, other) == 2 ? SUCCESS : UNKNOWN; \
    }
#define MASK(function)                                                  \
    int function(nvmlDevice_t device, unsigned long long *out)          \
    {                                                                   \
        TEXT_OF(#function, NO_ARGUMENT);                                \
        *out = strtoull(text, NULL, 10);                                \
        return SUCCESS;                                                 \
    }
#define TEXT(function)                                                  \
    int function(nvmlDevice_t device, char *buffer, unsigned int size)  \
    {                                                                   \
        TEXT_OF(#function, NO_ARGUMENT);                                \
        return copy_text(text, buffer, size);                           \
    }

static int is_initialized;

int nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    int code = board_load();
    const char *text;
    if (!code)
        code = begin_host("nvmlInit");
    if (!code && look_up(HOST, "nvmlInit", NO_ARGUMENT, &text) != NOT_SUPPORTED)
        code = look_up(HOST, "nvmlInit", NO_ARGUMENT, &text);
    is_initialized += !code;
    return code;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void)
{
    int code = begin_host("nvmlShutdown");
    if (code)
        return code;
    if (!is_initialized)
        return UNINITIALIZED;
    is_initialized--;
    return SUCCESS;
}

static int host_text(const char *function, int argument, char *buffer, unsigned int size)
{
    const char *text = "";
    int code = begin_host(function);
    if (!code)
        code = look_up(HOST, function, argument, &text);
    return code ? code : copy_text(text, buffer, size);
}

int nvmlSystemGetDriverVersion(char *buffer, unsigned int size)
{
    return host_text("nvmlSystemGetDriverVersion", NO_ARGUMENT, buffer, size);
}

int nvmlSystemGetNVMLVersion(char *buffer, unsigned int size)
{
    return host_text("nvmlSystemGetNVMLVersion", NO_ARGUMENT, buffer, size);
}

int nvmlSystemGetProcessName(unsigned int pid, char *buffer, unsigned int size)
{
    return host_text("nvmlSystemGetProcessName", (int)pid, buffer, size);
}

static int host_number(const char *function, unsigned int *out)
{
    char text[32];
    int code = host_text(function, NO_ARGUMENT, text, sizeof text);
    if (!code)
        *out = (unsigned int)strtoul(text, NULL, 10);
    return code;
}

int nvmlSystemGetCudaDriverVersion_v2(unsigned int *out) { return host_number("nvmlSystemGetCudaDriverVersion_v2", out); }
int nvmlDeviceGetCount_v2(unsigned int *out) { return host_number("nvmlDeviceGetCount_v2", out); }

static int give_handle(const char *function, int index, nvmlDevice_t *device)
{
    int known;
    const char *text;
    *device = handle_of(index);
    int code = begin(function, *device, &known);
    return code ? code : look_up(index, "handle", NO_ARGUMENT, &text);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return (int)index < device_count() ? give_handle("nvmlDeviceGetHandleByIndex_v2", (int)index, device)
                                       : INVALID_ARGUMENT;
}

static int handle_by(const char *function, const char *key, const char *wanted, nvmlDevice_t *device)
{
    int code = begin_host(function);
    const char *text = "";
    if (code)
        return code;
    for (int index = 0; index < device_count(); index++)
        if (!look_up(index, key, NO_ARGUMENT, &text) && !strcasecmp(text, wanted))
            return give_handle(function, index, device);
    return NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return handle_by("nvmlDeviceGetHandleByUUID", "nvmlDeviceGetUUID", uuid, device);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device)
{
    return handle_by("nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetPciInfo_v3", bus, device);
}

TEXT(nvmlDeviceGetUUID)
TEXT(nvmlDeviceGetName)
NUMBER(nvmlDeviceGetArchitecture)
PAIR(nvmlDeviceGetCudaComputeCapability)
NUMBER(nvmlDeviceGetPowerUsage)
NUMBER(nvmlDeviceGetPowerManagementLimit)
NUMBER(nvmlDeviceGetEnforcedPowerLimit)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit)
PAIR(nvmlDeviceGetPowerManagementLimitConstraints)
NUMBER_OF(nvmlDeviceGetClockInfo)
NUMBER_OF(nvmlDeviceGetMaxClockInfo)
NUMBER_OF(nvmlDeviceGetApplicationsClock)
NUMBER_OF(nvmlDeviceGetDefaultApplicationsClock)
NUMBER(nvmlDeviceGetPersistenceMode)
NUMBER(nvmlDeviceGetComputeMode)
NUMBER(nvmlDeviceGetVirtualizationMode)
PAIR(nvmlDeviceGetMigMode)
PAIR(nvmlDeviceGetEccMode)
NUMBER(nvmlDeviceGetPerformanceState)
NUMBER_OF(nvmlDeviceGetTemperature)
NUMBER_OF(nvmlDeviceGetTemperatureThreshold)
MASK(nvmlDeviceGetCurrentClocksEventReasons)
MASK(nvmlDeviceGetCurrentClocksThrottleReasons)
MASK(nvmlDeviceGetSupportedClocksEventReasons)
MASK(nvmlDeviceGetSupportedClocksThrottleReasons)

int nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *out)
{
    int index;
    int code = begin("nvmlDeviceGetIndex", device, &index);
    if (!code)
        *out = (unsigned int)index;
    return code;
}

struct pci {
    char legacy[16];
    unsigned int domain, bus, device, device_id, subsystem_id;
    char id[32];
};

int nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct pci *out)
{
    TEXT_OF("nvmlDeviceGetPciInfo_v3", NO_ARGUMENT);
    memset(out, 0, sizeof *out);
    if (sscanf(text, "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3)
        return UNKNOWN;
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain & 0xffff, out->bus & 0xff,
             out->device & 0xff);
    return copy_text(text, out->id, sizeof out->id);
}

/* The older call has total, free and used; the second version a version number before, and `reserved`. */
int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, unsigned long long *out)
{
    TEXT_OF("nvmlDeviceGetMemoryInfo", NO_ARGUMENT);
    if (sscanf(text, "%llu %llu", &out[0], &out[2]) != 2)
        return UNKNOWN;
    out[1] = out[0] - out[2];
    return SUCCESS;
}

struct memory {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory *out)
{
    TEXT_OF("nvmlDeviceGetMemoryInfo_v2", NO_ARGUMENT);
    if (out->version != (sizeof *out | 2u << 24))
        return VERSION_MISMATCH;
    if (sscanf(text, "%llu %llu %llu", &out->total, &out->reserved, &out->used) != 3)
        return UNKNOWN;
    out->free = out->total - out->reserved - out->used;
    return SUCCESS;
}

struct temperature {
    unsigned int version;
    int sensor, temperature;
};

int nvmlDeviceGetTemperatureV(nvmlDevice_t device, struct temperature *out)
{
    TEXT_OF("nvmlDeviceGetTemperatureV", out->sensor);
    if (out->version != (sizeof *out | 1u << 24))
        return VERSION_MISMATCH;
    out->temperature = atoi(text);
    return SUCCESS;
}

struct margin {
    unsigned int version;
    int margin;
};

int nvmlDeviceGetMarginTemperature(nvmlDevice_t device, struct margin *out)
{
    TEXT_OF("nvmlDeviceGetMarginTemperature", NO_ARGUMENT);
    if (out->version != (sizeof *out | 1u << 24))
        return VERSION_MISMATCH;
    out->margin = atoi(text);
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, unsigned int *out)
{
    TEXT_OF("nvmlDeviceGetUtilizationRates", NO_ARGUMENT);
    return numbers(text, out, 2) == 2 ? SUCCESS : UNKNOWN;
}

int nvmlDeviceGetViolationStatus(nvmlDevice_t device, int policy, unsigned long long *out)
{
    TEXT_OF("nvmlDeviceGetViolationStatus", policy);
    out[0] = 0;
    out[1] = strtoull(text, NULL, 10);
    return SUCCESS;
}

/* The caller's array may be too small, or absent to ask for the size. */
static int give_clocks(const char *text, unsigned int *count, unsigned int *out)
{
    unsigned int room = out ? *count : 0;
    *count = numbers(text, out, room);
    return *count > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *out)
{
    TEXT_OF("nvmlDeviceGetSupportedMemoryClocks", NO_ARGUMENT);
    return give_clocks(text, count, out);
}

int nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory, unsigned int *count, unsigned int *out)
{
    TEXT_OF("nvmlDeviceGetSupportedGraphicsClocks", (int)memory);
    return give_clocks(text, count, out);
}

struct process {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
};

/* Pairs of process id and bytes; `-` where the driver does not tell the memory. */
static int give_processes(const char *text, unsigned int *count, struct process *out)
{
    unsigned int room = out ? *count : 0, found = 0, pid;
    char used[32];
    for (int step; sscanf(text, "%u %31s%n", &pid, used, &step) == 2; text += step, found++)
        if (found < room)
            out[found] = (struct process){pid, *used == '-' ? ~0ULL : strtoull(used, NULL, 10), ~0u, ~0u};
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, struct process *out)
{
    TEXT_OF("nvmlDeviceGetComputeRunningProcesses_v3", NO_ARGUMENT);
    return give_processes(text, count, out);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, struct process *out)
{
    TEXT_OF("nvmlDeviceGetGraphicsRunningProcesses_v3", NO_ARGUMENT);
    return give_processes(text, count, out);
}

struct field {
    unsigned int id, scope;
    long long timestamp, latency;
    int type, code;
    union {
        double d;
        int i;
        unsigned long long ull;
    } value;
};

/* Each field has its own code; the call as a whole succeeds. Scope 1 is the whole module of a Grace board. */
int nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, struct field *fields)
{
    int index;
    int code = begin("nvmlDeviceGetFieldValues", device, &index);
    if (code)
        return code;
    for (int i = 0; i < count; i++) {
        const char *text = "";
        int used = 0;
        fields[i].value.ull = 0;
        fields[i].code = look_up(index, fields[i].scope ? "module_field" : "field", (int)fields[i].id, &text);
        if (fields[i].code)
            continue;
        if (sscanf(text, "%d%n", &fields[i].type, &used) != 1)
            fields[i].code = UNKNOWN;
        else if (fields[i].type == 5)
            fields[i].value.i = atoi(text + used);
        else
            fields[i].value.ull = strtoull(text + used, NULL, 10);
    }
    return SUCCESS;
}

static const char *const error_texts[] = {
    "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions", "Already Initialized",
    "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded", "Timeout",
    "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM",
    "GPU is lost", "GPU requires reset", "GPU access blocked by the operating system",
    "Driver/library version mismatch", "In use by another client", "Insufficient Memory", "No data",
    "Unsupported ECC mode for this vGPU", "Insufficient Resources", "Invalid Frequency", "Argument version mismatch",
    "Requested functionality has been deprecated", "System is not in ready state", "No GPUs were found"};

const char *nvmlErrorString(int code)
{
    int known = (int)(sizeof error_texts / sizeof *error_texts);
    return code >= 0 && code < known ? error_texts[code] : "Unknown Error";
}
