/* What the mock library knows: the lines of the board file, and the faults among them. See board.c. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>

typedef struct device *nvmlDevice_t;

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    VERSION_MISMATCH = 25,
    UNKNOWN = 999
};

enum { HOST = -1, NO_ARGUMENT = -1 };

/* Reads the file that MOCK_NVML_BOARD names. Called by each initialisation. */
int board_load(void);
/* Writes the file back after a setter. */
int board_save(void);

/* Begins a call: applies its faults, and gives the device's index. */
int begin(const char *function, nvmlDevice_t device, int *index);
int begin_host(const char *function);

/* The code of `function[.argument]` for a device, and its value as text. NOT_SUPPORTED where there is no such line. */
int look_up(int index, const char *function, int argument, const char **text);
/* Replaces or adds that line. */
void put(int index, const char *function, int argument, const char *text);

nvmlDevice_t handle_of(int index);
int index_of(nvmlDevice_t device);
int device_count(void);

int copy_text(const char *text, char *buffer, unsigned int size);
/* Up to `limit` numbers out of text; gives how many there are. */
unsigned int numbers(const char *text, unsigned int *out, unsigned int limit);

#endif
