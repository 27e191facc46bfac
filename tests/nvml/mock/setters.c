/* The setters: they refuse what a driver refuses, keep what they take, and write the board file. */
#include "board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of the setter's own name decides first; then the rights, where the call is offered at all. */
static int may_set(const char *setter, nvmlDevice_t device, const char *getter, int argument, int *index)
{
    const char *text = "";
    int code = begin(setter, device, index);
    if (code)
        return code;
    code = look_up(*index, setter, NO_ARGUMENT, &text);
    if (code != SUCCESS && code != NOT_SUPPORTED)
        return code;
    code = look_up(*index, getter, argument, &text);
    if (code)
        return code;
    return look_up(HOST, "root", NO_ARGUMENT, &text) ? NO_PERMISSION : SUCCESS;
}

static int keep(int index, const char *name, int argument, unsigned int value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    put(index, name, argument, text);
    return board_save();
}

static int holds(const char *text, unsigned int wanted)
{
    unsigned int all[1024];
    unsigned int count = numbers(text, all, 1024);
    for (unsigned int i = 0; i < count && i < 1024; i++)
        if (all[i] == wanted)
            return 1;
    return 0;
}

int nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned int mode)
{
    int index;
    int code = may_set("nvmlDeviceSetPersistenceMode", device, "nvmlDeviceGetPersistenceMode", NO_ARGUMENT, &index);
    return code ? code : mode > 1 ? INVALID_ARGUMENT : keep(index, "nvmlDeviceGetPersistenceMode", NO_ARGUMENT, mode);
}

int nvmlDeviceSetComputeMode(nvmlDevice_t device, unsigned int mode)
{
    int index;
    int code = may_set("nvmlDeviceSetComputeMode", device, "nvmlDeviceGetComputeMode", NO_ARGUMENT, &index);
    return code ? code : mode > 3 ? INVALID_ARGUMENT : keep(index, "nvmlDeviceGetComputeMode", NO_ARGUMENT, mode);
}

/* Limits are read through getters, and by nvidia-smi through fields. */
enum { ENFORCED_LIMIT = 190, REQUESTED_LIMIT = 192 };

static int set_limit(const char *setter, nvmlDevice_t device, unsigned int milliwatts)
{
    int index;
    unsigned int range[2];
    const char *text = "";
    int code = may_set(setter, device, "nvmlDeviceGetPowerManagementLimit", NO_ARGUMENT, &index);
    if (code)
        return code;
    code = look_up(index, "nvmlDeviceGetPowerManagementLimitConstraints", NO_ARGUMENT, &text);
    if (code)
        return code;
    if (numbers(text, range, 2) != 2 || milliwatts < range[0] || milliwatts > range[1])
        return INVALID_ARGUMENT;
    char field[24];
    snprintf(field, sizeof field, "1 %u", milliwatts);
    put(index, "field", REQUESTED_LIMIT, field);
    put(index, "field", ENFORCED_LIMIT, field);
    code = keep(index, "nvmlDeviceGetPowerManagementLimit", NO_ARGUMENT, milliwatts);
    return code ? code : keep(index, "nvmlDeviceGetEnforcedPowerLimit", NO_ARGUMENT, milliwatts);
}

int nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int milliwatts)
{
    return set_limit("nvmlDeviceSetPowerManagementLimit", device, milliwatts);
}

struct power_value {
    unsigned int version, scope, milliwatts;
};

/* The module of a Grace board, whose limits are known by field only. */
static int set_module_limit(nvmlDevice_t device, unsigned int milliwatts)
{
    enum { LOWEST = 187, HIGHEST = 188 };
    const char *lowest = "", *highest = "";
    char field[24];
    int index;
    int code = may_set("nvmlDeviceSetPowerManagementLimit_v2", device, "module_field", REQUESTED_LIMIT, &index);
    if (code)
        return code;
    if (look_up(index, "module_field", LOWEST, &lowest) || look_up(index, "module_field", HIGHEST, &highest))
        return NOT_SUPPORTED;
    /* The first number of a field is its type. */
    if (milliwatts < strtoul(lowest + 2, NULL, 10) || milliwatts > strtoul(highest + 2, NULL, 10))
        return INVALID_ARGUMENT;
    snprintf(field, sizeof field, "1 %u", milliwatts);
    put(index, "module_field", REQUESTED_LIMIT, field);
    return board_save();
}

int nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t device, struct power_value *value)
{
    return value->scope ? set_module_limit(device, value->milliwatts)
                        : set_limit("nvmlDeviceSetPowerManagementLimit", device, value->milliwatts);
}

int nvmlDeviceSetApplicationsClocks(nvmlDevice_t device, unsigned int memory, unsigned int graphics)
{
    const char *getter = "nvmlDeviceGetApplicationsClock", *text = "";
    int index;
    int code = may_set("nvmlDeviceSetApplicationsClocks", device, getter, 0, &index);
    if (code)
        return code;
    if (look_up(index, "nvmlDeviceGetSupportedGraphicsClocks", (int)memory, &text) || !holds(text, graphics))
        return INVALID_ARGUMENT;
    code = keep(index, getter, 0, graphics);
    return code ? code : keep(index, getter, 2, memory);
}

int nvmlDeviceResetApplicationsClocks(nvmlDevice_t device)
{
    const char *getter = "nvmlDeviceGetApplicationsClock", *graphics = "", *memory = "";
    int index;
    int code = may_set("nvmlDeviceResetApplicationsClocks", device, getter, 0, &index);
    if (code)
        return code;
    if (look_up(index, "nvmlDeviceGetDefaultApplicationsClock", 0, &graphics) ||
        look_up(index, "nvmlDeviceGetDefaultApplicationsClock", 2, &memory))
        return NOT_SUPPORTED;
    put(index, getter, 0, graphics);
    put(index, getter, 2, memory);
    return board_save();
}

/* Locks have no getter: `lock.0` and `lock.2` (graphics, memory) are lines that only a test reads. */
static int lock(const char *setter, nvmlDevice_t device, int domain, unsigned int low, unsigned int high)
{
    int index;
    char text[32] = "";
    int code = may_set(setter, device, "can_lock", domain, &index);
    if (code)
        return code;
    if (low > high)
        return INVALID_ARGUMENT;
    if (high)
        snprintf(text, sizeof text, "%u,%u", low, high);
    put(index, "lock", domain, text);
    return board_save();
}

int nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int low, unsigned int high)
{
    return lock("nvmlDeviceSetGpuLockedClocks", device, 0, low, high);
}

int nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device, unsigned int low, unsigned int high)
{
    return lock("nvmlDeviceSetMemoryLockedClocks", device, 2, low, high);
}

int nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device)
{
    return lock("nvmlDeviceResetGpuLockedClocks", device, 0, 0, 0);
}

int nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t device)
{
    return lock("nvmlDeviceResetMemoryLockedClocks", device, 2, 0, 0);
}
