/* The names of files. */
#include "path.h"

#include <stdio.h>
#include <string.h>

enum {
    UUID_LENGTH = 36
};

static const struct {
    const char *name;
    const char *endings[4]; /* ends with NULL */
} kinds[N_KINDS] = {
    [KIND_QUERY] = { "query", { "json" } },
    [KIND_AGGREGATE] = { "aggregate", { "json" } },
    [KIND_STATEMENT] = { "statement", { "pdf", "html", "csv" } },
};

static file_path compose(const cb_uuid *owner, file_kind kind, const cb_uuid *command,
                         const char *ending)
{
    file_path path;

    snprintf(path.folder, sizeof path.folder, "%s", owner->text);
    snprintf(path.file, sizeof path.file, "%s-%s.%s", kinds[kind].name, command->text, ending);
    snprintf(path.text, sizeof path.text, "%s/%s", path.folder, path.file);
    return path;
}

file_path path_of(const cb_command *command, file_kind kind, const char *ending)
{
    return compose(&command->correlation_id, kind, &command->command_id, ending);
}

static bool read_uuid(const char *text, cb_uuid *ret)
{
    char part[UUID_LENGTH + 1];

    if (strnlen(text, UUID_LENGTH) < UUID_LENGTH)
        return false;
    memcpy(part, text, UUID_LENGTH);
    part[UUID_LENGTH] = '\0';
    return cb_uuid_parse(part, ret);
}

/* Composes what the text seems to say and looks whether that is the text: what cannot be made is
 * not read. */
static bool is_path_of(const char *text, const cb_uuid *owner, file_kind kind, const char *ending,
                       file_path *ret)
{
    size_t start = UUID_LENGTH + 1 + strlen(kinds[kind].name) + 1;
    cb_uuid command;

    if (strlen(text) != start + UUID_LENGTH + 1 + strlen(ending) ||
        !read_uuid(text + start, &command))
        return false;
    *ret = compose(owner, kind, &command, ending);
    return strcmp(ret->text, text) == 0;
}

bool path_parse(const char *text, const cb_command *command, file_kind kind, file_path *ret,
                const char **problem)
{
    cb_uuid owner;

    *problem = "must be the path that a command of this set has given back";
    if (!text || !read_uuid(text, &owner))
        return false;
    for (file_kind k = 0; k < N_KINDS; k++) {
        for (const char *const *ending = kinds[k].endings; *ending; ending++) {
            if ((kind != N_KINDS && kind != k) || !is_path_of(text, &owner, k, *ending, ret))
                continue;
            *problem = "is of another correlation id";
            return strcmp(owner.text, command->correlation_id.text) == 0;
        }
    }
    return false;
}
