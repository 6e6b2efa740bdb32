/* Files of JSON lines with commands to send: refused with the line, or each command is one that the
 * bus takes, and its data is what json-c reads in the line. */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <json-c/json.h>

#include "send_list.h"

/* A file of these bytes, the same one each time. */
static const char *file_of(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("lines", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    FUZZ_CHECK(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size,
               "cannot write a file in memory");
    return path;
}

static void check_command(const cb_send *command, const char *line)
{
    json_object *data = json_tokener_parse(command->data ? command->data : "{}");
    cb_error e = { 0 };

    FUZZ_CHECK(cb_send_check(command, &e), "%s", e.message);
    FUZZ_CHECK(json_object_is_type(data, json_type_object), "%s", command->data);
    FUZZ_CHECK(command->max_attempts >= 0 && command->max_attempts <= 1000, "max_attempts");
    FUZZ_CHECK(command->timeout_seconds >= 0 && command->timeout_seconds <= 86400, "timeout");
    FUZZ_CHECK(command->delay_seconds >= 0 && command->delay_seconds <= 31536000, "delay");
    /* What the text was before it was cut up: the key of the first member, and the same data. */
    json_object *whole = json_tokener_parse(line), *of_line = NULL;
    if (json_object_object_get_ex(whole, "data", &of_line) && of_line)
        FUZZ_CHECK(json_object_equal(data, of_line), "%s in %s", command->data, line);
    json_object_put(whole);
    json_object_put(data);
}

/* Line `number`, from 1, as it stands in the file; the caller frees it. */
static char *line_of(const uint8_t *data, size_t size, size_t number)
{
    while (--number > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        FUZZ_CHECK(end, "there is no such line");
        size -= (size_t)(end + 1 - data);
        data = end + 1;
    }
    const uint8_t *end = memchr(data, '\n', size);
    return fuzz_text(data, end ? (size_t)(end - data) : size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cb_send defaults = { .domain = "fx", .command_type = "BookFx" };
    OWNED(send_list) list = NULL;
    cb_error e = { 0 };

    if (!send_list_read(file_of(data, size), &defaults, 0, &list, &e)) {
        FUZZ_CHECK(e.code != CB_OK && e.message[0] && strstr(e.message, "line "), "%s", e.message);
        return 0;
    }
    for (size_t i = 0; i < list->n; i++) {
        char *line = line_of(data, size, list->lines[i]);
        check_command(&list->commands[i], line);
        free(line);
    }
    return 0;
}
