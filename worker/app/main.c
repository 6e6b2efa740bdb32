/* commandbus-worker: configuration in, a worker out. */
#include <commandbus/process.h>
#include <commandbus/set.h>
#include <commandbus/version.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "config_store.h"
#include "options.h"

/* Left alone, glibc gives up to eight arenas a core to the threads of the slots, each with free
 * memory of its own that the others cannot use. What slots allocate is little and short-lived. */
#define MALLOC_ARENAS 2

/* ---- warnings of the configuration, kept until it has said how to log them ---- */

typedef struct {
    char **texts; /* message, hint, message, hint, … */
    size_t n;
} warnings;

/* A config_warn_fn whose arg is the warnings. One for which there is no memory is lost. */
static void warnings_add(const char *message, const char *hint, void *arg)
{
    warnings *w = arg;
    char **more = realloc(w->texts, (w->n + 2) * sizeof *more);

    if (!more)
        return;
    w->texts = more;
    more[w->n] = strdup(message);
    more[w->n + 1] = strdup(hint ? hint : "");
    if (more[w->n] && more[w->n + 1]) {
        w->n += 2;
        return;
    }
    free(more[w->n]);
    free(more[w->n + 1]);
}

/* As events config.warning. */
static void warnings_log(const warnings *w, log_sink *sink)
{
    for (size_t i = 0; i < w->n; i += 2) {
        const char *hint = w->texts[i + 1];
        const cb_event event = { .level = CB_LEVEL_WARN,
                                 .name = "config.warning",
                                 .error = w->texts[i],
                                 .hint = *hint ? hint : NULL };
        log_event(&event, sink);
    }
}

/* As plain lines on stderr, for --check-config. */
static void warnings_print(const warnings *w)
{
    for (size_t i = 0; i < w->n; i += 2) {
        fprintf(stderr, "commandbus-worker: warning: %s\n", w->texts[i]);
        if (*w->texts[i + 1])
            fprintf(stderr, "  hint: %s\n", w->texts[i + 1]);
    }
}

static void warnings_done(warnings *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->texts[i]);
    free(w->texts);
    *w = (warnings){ 0 };
}

/* ---- settings that the code of a handler set overrules: said, and of no effect ---- */

static const char deadline_key[] = "processes.<Type>.deadline-action";

static void overruled_check_type(config *c, const cb_process_type *type, warnings *w)
{
    char message[300];

    if (!type->deadline_action_of ||
        !config_overrule(c, deadline_key, type->name, "the code decides by the state"))
        return;
    snprintf(message, sizeof message,
             "processes.%.100s.deadline-action is ignored: the code of %.100s decides by the state "
             "of the process",
             type->name, type->name);
    warnings_add(message, "remove the key", w);
}

static void overruled_check_set(config *c, const char *name, warnings *w)
{
    OWNED(cb_set) set = NULL;

    if (!cb_set_inspect(c->modules_dir, name, &set, NULL))
        return;
    const cb_module *module = cb_set_module(set);
    for (size_t i = 0; i < module->n_processes; i++)
        overruled_check_type(c, module->processes[i], w);
}

/* Marks them, for --check-config, and warns of each. Looks into the handler sets of the enabled
 * domains without starting them; one that cannot be loaded is left out, for whoever starts it
 * says why. */
static void overruled_find(config *c, warnings *w)
{
    bool said = false;

    for (size_t i = 0; i < c->n_processes; i++)
        said = said || c->processes[i].deadline_action;
    for (size_t i = 0; said && i < c->n_domains; i++) {
        const config_domain *d = &c->domains[i];
        for (size_t k = 0; d->enabled && k < d->n_handlers; k++)
            overruled_check_set(c, d->handlers[k], w);
    }
}

/* ---- the program ---- */

static ended main_run(const options *o, const config *c, const warnings *w, const signals *s)
{
    log_sink log = { .fd = STDERR_FILENO, .level = c->log_level, .format = c->log_format };

    if (o->check_config) {
        warnings_print(w);
        config_print(c, o->json, STDOUT_FILENO);
        return ENDED_CLEAN;
    }
    if (o->replay) {
        warnings_print(w);
        return replay(c, &(replay_request){ o->replay_id, o->replay_type, o->json }, s);
    }
    warnings_log(w, &log);
    return serve(c, &log, s);
}

static ended main_configure(const options *o, const signals *s)
{
    config_request request = { .config_dir = o->config_dir,
                               .profiles = o->profiles,
                               .settings = o->settings.items,
                               .n_settings = o->settings.n,
                               .environment = environ };
    OWNED(config) c = NULL;
    warnings w = { 0 };
    cb_error e = { 0 };
    ended how;

    if (config_load(&request, warnings_add, &w, &c, &e)) {
        overruled_find(c, &w);
        how = main_run(o, c, &w, s);
    } else {
        how = refuse(&e);
    }
    warnings_done(&w);
    return how;
}

int main(int argc, char **argv)
{
    options o;
    signals s;
    cb_error e = { 0 };
    ended how = ENDED_CLEAN;

    mallopt(M_ARENA_MAX, MALLOC_ARENAS);
    signals_init(&s);
    if (!options_parse(argc, argv, &o, &e))
        how = refuse(&e);
    else if (o.help)
        options_help(stdout);
    else if (o.version)
        printf("commandbus-worker %s\n", cb_version_string());
    else
        how = main_configure(&o, &s);
    options_done(&o);
    if (fflush(stdout) != 0 && how == ENDED_CLEAN)
        how = ENDED_UNDRAINED;
    return how;
}
