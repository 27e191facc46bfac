/*
 * What nvidia-smi asks beside nvml.h: a table of private functions, fetched by its number. Its layout is known from
 * NVIDIA/k8s-test-infra, pkg/gpu/mocknvml (Apache-2.0): a size, then pointers, of which slot 81 gives a device's handle
 * by index; the two others below were found by trying (535.261.03). All functions of nvml.h that nvidia-smi looks up
 * and that the mock lacks are simply absent, as in an older driver; only for events, which `-q` opens at its start,
 * there must be some answer.
 */
#include "board.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 256, HANDLE_BY_INDEX = 81, MEMORY_LOCK = 238, MARGIN = 240 };

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);

static int private_handle(uintptr_t index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2((unsigned int)index, device);
}

/* Nothing to tell of a device; success for what nvidia-smi asks before it starts. */
static int private_nothing(nvmlDevice_t device)
{
    return index_of(device) >= 0 ? NOT_SUPPORTED : SUCCESS;
}

/* Something about locked memory clocks. Where it is not supported, `-lmc` is answered with the line about a warning,
 * which it is not by real drivers. */
static int private_lock(nvmlDevice_t device, unsigned int *out)
{
    *out = 0;
    return index_of(device) < 0 ? INVALID_ARGUMENT : SUCCESS;
}

static int private_margin(nvmlDevice_t device, int *out)
{
    int index;
    const char *text = "";
    int code = begin("nvmlDeviceGetMarginTemperature", device, &index);
    if (!code)
        code = look_up(index, "nvmlDeviceGetMarginTemperature", NO_ARGUMENT, &text);
    if (!code)
        *out = atoi(text);
    return code;
}

int nvmlInternalGetExportTable(const void **table, const unsigned char *number)
{
    static const unsigned char known[] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                          0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
    static void *slots[SLOTS] = {(void *)0x1000};
    if (!number || memcmp(number, known, sizeof known))
        return NOT_SUPPORTED;
    for (int i = 1; i < SLOTS; i++)
        slots[i] = (void *)private_nothing;
    slots[HANDLE_BY_INDEX] = (void *)private_handle;
    slots[MEMORY_LOCK] = (void *)private_lock;
    slots[MARGIN] = (void *)private_margin;
    *table = slots;
    return SUCCESS;
}

int nvmlEventSetCreate(void **set)
{
    static int nothing;
    *set = &nothing;
    return SUCCESS;
}

int nvmlEventSetFree(void *set)
{
    (void)set;
    return SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    *types = 0;
    return index_of(device) < 0 ? INVALID_ARGUMENT : NOT_SUPPORTED;
}

int nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, void *set)
{
    (void)types;
    (void)set;
    return index_of(device) < 0 ? INVALID_ARGUMENT : NOT_SUPPORTED;
}
