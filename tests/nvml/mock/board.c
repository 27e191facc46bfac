/*
 * The board file of the mock library. Each line is one answer, or one fault:
 *
 *     DEVICE FUNCTION[.ARGUMENT] CODE VALUE...      DEVICE is an index, or -1 for a call without a device
 *     ! DEVICE FUNCTION CODE SECONDS AFTER          DEVICE -1 is any; FUNCTION * is any
 *
 * A fault makes the calls after the first AFTER ones since the initialisation sleep for SECONDS and then return CODE;
 * with code 0 they go on to their answer. The file is read by each initialisation and written by each setter, so that
 * processes see each other's work.
 */
#define _GNU_SOURCE
#include "board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_LINES = 4096, MOST_FAULTS = 64, MOST_DEVICES = 16, NAME_SIZE = 80 };

struct line {
    int device;
    char name[NAME_SIZE];
    int code;
    char *text;
};
struct fault {
    int device;
    char name[NAME_SIZE];
    int code;
    double seconds;
    int after;
    int calls;
};
struct device {
    char unused;
};

static struct line lines[MOST_LINES];
static int line_count;
static struct fault faults[MOST_FAULTS];
static int fault_count;
static struct device devices[MOST_DEVICES];
static int is_loaded;

static void clear(void)
{
    for (int i = 0; i < line_count; i++)
        free(lines[i].text);
    line_count = fault_count = is_loaded = 0;
}

static void read_line(char *text)
{
    int used = 0;
    text[strcspn(text, "\n")] = '\0';
    struct fault fault = {0};
    if (sscanf(text, "! %d %79s %d %lf %d", &fault.device, fault.name, &fault.code, &fault.seconds, &fault.after) == 5) {
        if (fault_count < MOST_FAULTS)
            faults[fault_count++] = fault;
        return;
    }
    struct line line = {0};
    if (line_count < MOST_LINES && sscanf(text, "%d %79s %d%n", &line.device, line.name, &line.code, &used) == 3) {
        line.text = strdup(text + used + (text[used] == ' '));
        lines[line_count++] = line;
    }
}

int board_load(void)
{
    const char *path = getenv("MOCK_NVML_BOARD");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file)
        return DRIVER_NOT_LOADED;
    clear();
    char *text = NULL;
    size_t size = 0;
    while (getline(&text, &size, file) > 0)
        read_line(text);
    free(text);
    fclose(file);
    is_loaded = 1;
    return SUCCESS;
}

int board_save(void)
{
    const char *path = getenv("MOCK_NVML_BOARD");
    char temporary[4096];
    if (!path || snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid()) >= (int)sizeof temporary)
        return UNKNOWN;
    FILE *file = fopen(temporary, "w");
    if (!file)
        return UNKNOWN;
    for (int i = 0; i < fault_count; i++)
        fprintf(file, "! %d %s %d %g %d\n", faults[i].device, faults[i].name, faults[i].code, faults[i].seconds,
                faults[i].after);
    for (int i = 0; i < line_count; i++)
        fprintf(file, "%d %s %d %s\n", lines[i].device, lines[i].name, lines[i].code, lines[i].text);
    fclose(file);
    return rename(temporary, path) ? UNKNOWN : SUCCESS;
}

static int is_hit(const struct fault *fault, const char *function, int index)
{
    int is_for_device = fault->device == HOST || fault->device == index;
    int is_any = !strcmp(fault->name, "*") && index != HOST;
    return is_for_device && (is_any || !strcmp(fault->name, function));
}

static int meet_faults(const char *function, int index)
{
    for (int i = 0; i < fault_count; i++) {
        struct fault *fault = &faults[i];
        if (!is_hit(fault, function, index) || fault->calls++ < fault->after)
            continue;
        if (fault->seconds > 0)
            usleep((useconds_t)(fault->seconds * 1e6));
        if (fault->code)
            return fault->code;
    }
    return SUCCESS;
}

int begin(const char *function, nvmlDevice_t device, int *index)
{
    if (!is_loaded)
        return UNINITIALIZED;
    *index = index_of(device);
    return *index < 0 ? INVALID_ARGUMENT : meet_faults(function, *index);
}

int begin_host(const char *function)
{
    int failure = meet_faults(function, HOST);
    return failure ? failure : is_loaded ? SUCCESS : UNINITIALIZED;
}

static struct line *find(int index, const char *function, int argument)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, argument == NO_ARGUMENT ? "%s" : "%s.%d", function, argument);
    for (int i = 0; i < line_count; i++)
        if (lines[i].device == index && !strcmp(lines[i].name, name))
            return &lines[i];
    return NULL;
}

int look_up(int index, const char *function, int argument, const char **text)
{
    struct line *line = find(index, function, argument);
    if (!line)
        return NOT_SUPPORTED;
    *text = line->text;
    return line->code;
}

void put(int index, const char *function, int argument, const char *text)
{
    struct line *line = find(index, function, argument);
    if (!line) {
        if (line_count == MOST_LINES)
            return;
        line = &lines[line_count++];
        memset(line, 0, sizeof *line);
        line->device = index;
        snprintf(line->name, sizeof line->name, argument == NO_ARGUMENT ? "%s" : "%s.%d", function, argument);
    }
    free(line->text);
    line->text = strdup(text);
}

nvmlDevice_t handle_of(int index)
{
    return &devices[index];
}

int index_of(nvmlDevice_t device)
{
    return device >= devices && device < devices + device_count() ? (int)(device - devices) : -1;
}

int device_count(void)
{
    const char *text = "0";
    int count = look_up(HOST, "nvmlDeviceGetCount_v2", NO_ARGUMENT, &text) ? 0 : atoi(text);
    return count < MOST_DEVICES ? count : MOST_DEVICES;
}

int copy_text(const char *text, char *buffer, unsigned int size)
{
    if (strlen(text) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return SUCCESS;
}

unsigned int numbers(const char *text, unsigned int *out, unsigned int limit)
{
    unsigned int count = 0;
    for (char *end; *text; text = end) {
        unsigned long number = strtoul(text, &end, 10);
        if (end == text)
            break;
        if (count < limit)
            out[count] = (unsigned int)number;
        count++;
    }
    return count;
}
