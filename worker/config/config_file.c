/* Files of settings: libconfig reads them, the table of keys says what they may hold. */
#include <errno.h>
#include <fcntl.h>
#include <libconfig.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_sources.h"
#include "fail.h"
#include "nearest.h"
#include "text.h"

#define FILE_LIMIT      (1024 * 1024)
#define TEXT_SIZE       2048
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-*"
#define DIGITS          "0123456789"
#define HEX_DIGITS      "0123456789abcdefABCDEF"

/* ---- the text of a file, before libconfig sees it ---- */

static void text_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* Reads until the end or until the buffer is full. */
static ssize_t text_read_all(int fd, char *buffer, size_t size)
{
    size_t length = 0;

    while (length < size) {
        ssize_t n = read(fd, buffer + length, size - length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -1 : (ssize_t)length;
        length += (size_t)n;
    }
    return (ssize_t)length;
}

bool config_read_text(const char *path, size_t limit, char **ret, cb_error *e)
{
    /* Not blocking, so that a pipe in the place of a file is refused and not waited for. */
    __attribute__((cleanup(text_close))) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;

    *ret = NULL;
    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0 || fstat(fd, &status) < 0)
        return cb_fail(e, CB_MISUSE, "%.300s: cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return cb_fail(e, CB_MISUSE, "%.300s: not a file", path);
    char *text = malloc(limit + 2);
    if (!text)
        return fail_memory(e);

    ssize_t length = text_read_all(fd, text, limit + 1);
    bool good = true;
    if (length < 0)
        good = cb_fail(e, CB_MISUSE, "%.300s: cannot be read: %s", path, strerror(errno));
    else if ((size_t)length > limit)
        good = cb_fail(e, CB_MISUSE, "%.300s: is longer than %zu KiB", path, limit / 1024);
    else if (memchr(text, '\0', (size_t)length))
        good = cb_fail(e, CB_MISUSE, "%.300s: not a text file: it holds a NUL byte", path);
    if (!good) {
        free(text);
        return false;
    }
    text[length] = '\0';
    *ret = text;
    return true;
}

/* The end of the text in quotes that begins here, NULL when it has none. */
static const char *text_skip_quoted(const char *at)
{
    for (at++; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
    }
    return *at ? at + 1 : NULL;
}

/* The end of the comment that begins here, or here when none does. */
static const char *text_skip_comment(const char *at)
{
    if (*at == '#' || strncmp(at, "//", 2) == 0)
        return at + strcspn(at, "\n");
    if (strncmp(at, "/*", 2) == 0) {
        const char *end = strstr(at + 2, "*/");
        return end ? end + 2 : at + strlen(at);
    }
    return at;
}

/* How long the number is that begins here; *fits tells whether libconfig's integer holds it. */
static size_t text_take_number(const char *at, bool *fits)
{
    bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    size_t length = hex ? 2 + strspn(at + 2, HEX_DIGITS) : strspn(at, DIGITS);
    bool is_long = at[length] == 'L';

    errno = 0;
    unsigned long long value = strtoull(at, NULL, hex ? 16 : 10);
    *fits = errno == 0 && value <= (is_long ? LLONG_MAX : INT_MAX);
    if (!hex && at[length] && strchr(".eE", at[length])) {
        *fits = true;
        length += strspn(at + length, DIGITS ".eE+-");
    }
    return length + strspn(at + length, "L");
}

/* Where the next word begins, or NULL and the error when this one is not for libconfig. */
static const char *text_skip_word(const char *path, unsigned line, const char *at, cb_error *e)
{
    const char *end = *at == '"' ? text_skip_quoted(at) : text_skip_comment(at);
    bool fits = true;

    if (!end)
        cb_fail(e, CB_MISUSE, "%.300s:%u: the text that begins here has no closing quote", path,
                line);
    if (end != at)
        return end;
    end += strchr(DIGITS, *at) ? text_take_number(at, &fits) : strspn(at, NAME_CHARACTERS);
    if (!fits) {
        cb_fail(e, CB_MISUSE, "%.300s:%u: %.*s is too large a number", path, line,
                (int)(end - at > 40 ? 40 : end - at), at);
        return NULL;
    }
    if (*at == '@') {
        cb_fail(e, CB_MISUSE, "%.300s:%u: @include is not for these files: use profiles", path,
                line);
        return NULL;
    }
    return end == at ? at + 1 : end;
}

/* Refuses what libconfig does not handle: numbers that do not fit its integers (it keeps the
 * lower bits), @include (it ends the program when the included file cannot be read), and a text
 * without its closing quote (it names the last line of the file). */
static bool text_check(const char *path, const char *text, cb_error *e)
{
    unsigned line = 1;

    for (const char *at = text; *at;) {
        const char *end = text_skip_word(path, line, at, e);
        if (!end)
            return false;
        for (; at < end; at++)
            line += *at == '\n';
    }
    return true;
}

/* ---- its settings ---- */

#define IS(type) (1u << CONFIG_TYPE_##type)
#define NUMBER   (IS(INT) | IS(INT64))
#define LIST     (IS(ARRAY) | IS(LIST))

/* How each type may be written in a file. */
static const struct {
    unsigned settings; /* the setting itself */
    unsigned elements; /* if it is a list */
    const char *example;
} forms[] = {
    [KEY_BOOL] = { IS(BOOL), 0, "true or false, without quotes" },
    [KEY_INTEGER] = { NUMBER, 0, "a whole number, without quotes" },
    [KEY_SIZE] = { NUMBER | IS(STRING), 0, "a number of bytes or text such as \"1MiB\"" },
    [KEY_DURATION] = { NUMBER | IS(FLOAT) | IS(STRING), 0, "a duration such as \"30s\"" },
    [KEY_DURATIONS] = { LIST, NUMBER | IS(FLOAT) | IS(STRING),
                        "a list of durations such as [10, 60, 300]" },
    [KEY_TEXT] = { IS(STRING), 0, "text in quotes" },
    [KEY_NAMES] = { LIST | IS(STRING), IS(STRING), "a list of names such as [\"fx\"]" },
    [KEY_CHOICE] = { IS(STRING), 0, "a word in quotes" },
    [KEY_WORD] = { IS(STRING), 0, "a word in quotes" },
};

typedef struct {
    config_loader *loader;
    const char *path;
    char origin[320];     /* path:line of the setting at hand */
    char text[TEXT_SIZE]; /* its value */
} file_reader;

static const char *file_origin(file_reader *r, const config_setting_t *setting)
{
    snprintf(r->origin, sizeof r->origin, "%.300s:%u", r->path, setting->line);
    return r->origin;
}

/* Appends one scalar to the text; false when there is no room left. */
static bool file_write_scalar(file_reader *r, const config_setting_t *setting)
{
    size_t used = strlen(r->text), room = sizeof r->text - used;
    char *end = r->text + used;
    int n = 0;

    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_BOOL:
        n = snprintf(end, room, "%s", config_setting_get_bool(setting) ? "true" : "false");
        break;
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        n = snprintf(end, room, "%lld", config_setting_get_int64(setting));
        break;
    case CONFIG_TYPE_FLOAT:
        n = snprintf(end, room, "%.15g", config_setting_get_float(setting));
        break;
    default:
        n = snprintf(end, room, "%s", config_setting_get_string(setting));
    }
    return n >= 0 && (size_t)n < room;
}

/* The value as --set would say it, so that one parser serves every source. */
static bool file_write_value(file_reader *r, const config_setting_t *setting, const config_key *key,
                             const char *path, cb_error *e)
{
    bool is_list = IS(ARRAY) == 1u << config_setting_type(setting) ||
                   IS(LIST) == 1u << config_setting_type(setting);
    bool good = forms[key->type].settings & 1u << config_setting_type(setting), fits = true;

    r->text[0] = '\0';
    for (int i = 0; good && fits && is_list && i < config_setting_length(setting); i++) {
        const config_setting_t *element = config_setting_get_elem(setting, (unsigned)i);
        good = forms[key->type].elements & 1u << config_setting_type(element);
        if (i && strlen(r->text) + 2 < sizeof r->text)
            strcat(r->text, ", ");
        fits = !good || file_write_scalar(r, element);
    }
    if (good && !is_list)
        fits = file_write_scalar(r, setting);
    if (!good)
        return cb_fail(e, CB_MISUSE, "%s: %s must be %s", file_origin(r, setting), path,
                       forms[key->type].example);
    return fits || cb_fail(e, CB_MISUSE, "%s: %s is too long", file_origin(r, setting), path);
}

bool config_unknown(const char *origin, const char *path, const config_section *section,
                    const char *leaf, cb_error *e)
{
    nearest_word nearest = { .word = leaf, .length = strlen(leaf) };
    char all[256] = "";

    for (size_t i = 0; !section && i < n_config_sections; i++) {
        if (strchr(config_sections[i].name, '.'))
            continue;
        nearest_offer(&nearest, config_sections[i].name);
        text_append(all, sizeof all, "%s%s", *all ? ", " : "", config_sections[i].name);
    }
    for (size_t i = 0; section && i < n_config_keys; i++) {
        if (key_section(&config_keys[i]) != section)
            continue;
        nearest_offer(&nearest, key_leaf(&config_keys[i]));
        text_append(all, sizeof all, "%s%s", *all ? ", " : "", key_leaf(&config_keys[i]));
    }
    if (nearest.best)
        return cb_fail(e, CB_MISUSE, "%s: unknown key '%.150s'; did you mean %s?", origin, path,
                       nearest.best);
    return cb_fail(e, CB_MISUSE, "%.150s: unknown key '%.100s'; use one of %.220s", origin, path,
                   all);
}

static bool file_need_group(file_reader *r, const config_setting_t *setting, const char *path,
                            cb_error *e)
{
    return config_setting_is_group(setting) ||
           cb_fail(e, CB_MISUSE, "%s: %.150s must be a group: %s = { ... };",
                   file_origin(r, setting), path, setting->name);
}

/* The keys in one group: a section without items, or one item. */
static bool file_read_keys(file_reader *r, const config_setting_t *group,
                           const config_section *section, const char *item, cb_error *e)
{
    for (int i = 0; i < config_setting_length(group); i++) {
        const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
        const config_section *within = item ? NULL : section_within(section, setting->name);
        const config_key *key = key_find(section, setting->name);
        char path[KEY_PATH_SIZE];
        const char *name = section->is_open ? path + strlen(section->name) + 1 : item;

        snprintf(path, sizeof path, "%s%s%.80s.%.60s", section->name, item ? "." : "",
                 item ? item : "", setting->name);
        if (within) {
            if (!file_need_group(r, setting, path, e) ||
                !file_read_keys(r, setting, within, NULL, e))
                return false;
            continue;
        }
        if (!key)
            return config_unknown(file_origin(r, setting), path, section, setting->name, e);
        if (!file_write_value(r, setting, key, path, e) ||
            !config_assign(r->loader, key, name, r->text, file_origin(r, setting), e))
            return false;
    }
    return true;
}

static bool file_read_items(file_reader *r, const config_setting_t *group,
                            const config_section *section, cb_error *e)
{
    for (int i = 0; i < config_setting_length(group); i++) {
        const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
        char path[KEY_PATH_SIZE], problem[sizeof e->message];
        void *item = NULL;

        snprintf(path, sizeof path, "%s.%.80s", section->name, setting->name);
        if (!file_need_group(r, setting, path, e))
            return false;
        if (!section->is_open &&
            !config_need(r->loader->config, section, setting->name, &item, e)) {
            snprintf(problem, sizeof problem, "%s", e->message);
            return cb_fail(e, e->code, "%s: %.150s", file_origin(r, setting), problem);
        }
        if (!file_read_keys(r, setting, section, setting->name, e))
            return false;
    }
    return true;
}

static bool file_read_root(file_reader *r, const config_setting_t *root, cb_error *e)
{
    for (int i = 0; i < config_setting_length(root); i++) {
        const config_setting_t *setting = config_setting_get_elem(root, (unsigned)i);
        const config_section *section = section_find(setting->name);

        if (!section)
            return config_unknown(file_origin(r, setting), setting->name, NULL, setting->name, e);
        if (!file_need_group(r, setting, setting->name, e))
            return false;
        if (section->item_size ? !file_read_items(r, setting, section, e)
                               : !file_read_keys(r, setting, section, NULL, e))
            return false;
    }
    return true;
}

static bool file_parse(file_reader *r, const char *text, cb_error *e)
{
    __attribute__((cleanup(config_destroy))) config_t parsed;

    config_init(&parsed);
    if (!config_read_string(&parsed, text))
        return cb_fail(e, CB_MISUSE, "%.300s:%d: %s", r->path, config_error_line(&parsed),
                       config_error_text(&parsed));
    return file_read_root(r, config_root_setting(&parsed), e);
}

bool config_read_file_at(config_loader *l, const char *path, bool *found, cb_error *e)
{
    file_reader reader = { .loader = l, .path = path };
    char *text = NULL;

    *found = false;
    if (!config_read_text(path, FILE_LIMIT, &text, e))
        return false;
    if (!text)
        return true;
    *found = true;
    l->layer++;
    bool good = text_check(path, text, e) && file_parse(&reader, text, e);
    free(text);
    return good;
}
