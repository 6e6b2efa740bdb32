/* A whole configuration: refused in one line, or every value in it is one that its key takes.
 *
 *     COMMANDBUS_HTTP_PORT=1      a variable of the environment
 *     --http.port=1               --set http.port=1
 *     anything else               a line of the file commandbus.cfg */
#include "fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include "config_store.h"

/* libconfig forgets a text that it was reading when it meets an error: the worker ends then. */
CB_API const char *__lsan_default_suppressions(void); /* visible to the sanitizer */
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig\n";
}

static char folder[64];

static void remove_folder(void)
{
    char path[128];

    snprintf(path, sizeof path, "%s/commandbus.cfg", folder);
    unlink(path);
    rmdir(folder);
}

static void write_file(const char *text)
{
    char path[128];

    if (!*folder) {
        snprintf(folder, sizeof folder, "%s/commandbus-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : P_tmpdir);
        FUZZ_CHECK(mkdtemp(folder), "no folder");
        atexit(remove_folder);
    }
    snprintf(path, sizeof path, "%s/commandbus.cfg", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "no file");
    close(fd);
}

static void check_value(const config_key *key, const void *item)
{
    json_object *value = key_json(key, item);

    FUZZ_CHECK(value || key->type == KEY_TEXT || key->type == KEY_WORD, "%s", key->path);
    json_object_put(value);
}

static void check_values(const config *c)
{
    for (size_t k = 0; k < n_config_keys; k++) {
        const config_section *section = key_section(&config_keys[k]);
        size_t n = section->item_size ? config_count(c, section) : 1;
        for (size_t i = 0; i < n; i++) {
            const void *item = config_at(c, section, i);
            const char *name = config_item_name(section, item);
            FUZZ_CHECK(!name || !section->name_rule || !section->name_rule(name), "%s", name);
            check_value(&config_keys[k], item);
        }
    }
}

static void warn(const char *message, const char *hint, void *arg)
{
    (void)arg, (void)hint;
    FUZZ_CHECK(*message && !strchr(message, '\n'), "more than a line: %s", message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_SPLIT(in, data, size);
    const char *settings[FUZZ_LINES];
    char *environment[FUZZ_LINES + 1] = { NULL }, *file = calloc(1, size + 2);
    config_request request = { .config_dir = folder,
                               .settings = settings,
                               .environment = environment };
    size_t n_environment = 0;
    OWNED(config) c = NULL;
    cb_error e = { 0 };

    FUZZ_CHECK(file, "no memory");
    for (int i = 0; i < in.n; i++) {
        if (strncmp(in.line[i], "COMMANDBUS_", 11) == 0)
            environment[n_environment++] = in.line[i];
        else if (strncmp(in.line[i], "--", 2) == 0)
            settings[request.n_settings++] = in.line[i] + 2;
        else
            strcat(strcat(file, in.line[i]), "\n");
    }
    write_file(file);
    free(file);
    if (config_load(&request, warn, NULL, &c, &e)) {
        check_values(c);
    } else {
        fuzz_refused(&e, CB_MISUSE);
        FUZZ_CHECK(!strchr(e.message, '\n') && !c, "more than a line: %s", e.message);
    }
    return 0;
}
