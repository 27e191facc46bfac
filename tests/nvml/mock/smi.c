/*
 * What nvidia-smi asks beside nvml.h: a table of private functions, fetched by its number. Its layout is known from
 * NVIDIA/k8s-test-infra, pkg/gpu/mocknvml (Apache-2.0): a size, then pointers, of which slot 81 gives a device's
 * handle by index; a count through the second argument is what the others are asked for. All functions of nvml.h that
 * nvidia-smi looks up and that the mock lacks are simply absent, as in an older driver.
 */
#include "board.h"

#include <stdint.h>
#include <string.h>

enum { SLOTS = 256, HANDLE_BY_INDEX = 81 };

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);

static int private_handle(uintptr_t index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2((unsigned int)index, device);
}

/* Nothing to tell: a count of 0 for a device, success for the rest. */
static int private_nothing(nvmlDevice_t device, unsigned int *count)
{
    if (count && index_of(device) >= 0)
        *count = 0;
    return SUCCESS;
}

int nvmlInternalGetExportTable(const void **table, const unsigned char *number)
{
    static const unsigned char known[] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                          0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
    static void *slots[SLOTS] = {(void *)0x1000};
    if (!number || memcmp(number, known, sizeof known))
        return NOT_SUPPORTED;
    for (int i = 1; i < SLOTS; i++)
        slots[i] = i == HANDLE_BY_INDEX ? (void *)private_handle : (void *)private_nothing;
    *table = slots;
    return SUCCESS;
}
