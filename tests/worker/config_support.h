/* What tests of the configuration start from: a folder of their own, and one call that loads it.
 *
 *     TestSuite(config, .init = folder_open, .fini = folder_close);
 */
#ifndef TEST_CONFIG_SUPPORT_H
#define TEST_CONFIG_SUPPORT_H

#include "config.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static struct {
    int n;
    char last[2048]; /* "message (hint)" */
} warned;

static inline void folder_open(void)
{
    strcpy(folder, P_tmpdir "/commandbus-config-XXXXXX");
    cr_assert(mkdtemp(folder));
    memset(&warned, 0, sizeof warned);
}

static inline void folder_close(void)
{
    char path[512];
    DIR *dir = opendir(folder);

    for (struct dirent *entry; (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(dir);
    rmdir(folder);
}

/* Writes <folder>/<name> and gives its path, static until the next call. */
static inline const char *write_bytes(const char *name, const void *bytes, size_t n)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    cr_assert_eq(fwrite(bytes, 1, n, file), n);
    fclose(file);
    return path;
}

static inline const char *write_file(const char *name, const char *text)
{
    return write_bytes(name, text, strlen(text));
}

static inline void remember_warning(const char *message, const char *hint, void *arg)
{
    (void)arg;
    warned.n++;
    snprintf(warned.last, sizeof warned.last, "%s (%s)", message, hint ? hint : "");
}

typedef struct {
    const char *dir; /* the test's folder */
    const char *profiles;
    const char *env[12]; /* ends with NULL */
    const char *set[8];  /* ends with NULL */
} how;

static inline bool try_loading(const how *h, config **ret, cb_error *e)
{
    config_request request = {
        .config_dir = h->dir ? h->dir : folder,
        .profiles = h->profiles,
        .settings = h->set,
        .environment = (char *const *)h->env,
    };

    while (h->set[request.n_settings])
        request.n_settings++;
    return config_load(&request, remember_warning, NULL, ret, e);
}

static inline config *load_as(const how *h)
{
    config *c = NULL;
    cb_error e = { 0 };

    cr_assert(try_loading(h, &c, &e), "%s", e.message);
    return c;
}

/* load(.env = { "COMMANDBUS_HTTP_PORT=1" }): the caller owns what it gives. */
#define load(...) load_as(&(how){ __VA_ARGS__ })

/* The message of a refusal contains this text. */
static inline void refused_as(const char *part, const how *h)
{
    config *c = NULL;
    cb_error e = { 0 };

    cr_assert(!try_loading(h, &c, &e), "loaded, though expected: %s", part);
    cr_assert_eq(e.code, CB_MISUSE);
    cr_assert(strstr(e.message, part), "expected '%s' in '%s'", part, e.message);
    cr_assert_null(strchr(e.message, '\n'), "one line: %s", e.message);
    cr_assert_null(c);
}

#define refused(part, ...) refused_as((part), &(how){ __VA_ARGS__ })

/* The same for what a file of this text gets. */
#define refused_file(part, text)            \
    do {                                    \
        write_file("bad.cfg", (text));      \
        refused((part), .profiles = "bad"); \
    } while (0)

static inline const config_domain *domain_of(const config *c, const char *name)
{
    for (size_t i = 0; i < c->n_domains; i++) {
        if (strcmp(c->domains[i].name, name) == 0)
            return &c->domains[i];
    }
    cr_assert_fail("no domain %s", name);
    return NULL;
}

static inline const config_step *step_of(const config *c, const char *name)
{
    for (size_t i = 0; i < c->n_steps; i++) {
        if (strcmp(c->steps[i].name, name) == 0)
            return &c->steps[i];
    }
    cr_assert_fail("no step %s", name);
    return NULL;
}

/* config/ of this tree. */
static inline const char *our_configuration(void)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/config", getenv("COMMANDBUS_SOURCE_DIR"));
    return path;
}

#endif
