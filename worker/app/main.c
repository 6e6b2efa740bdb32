/* commandbus-worker: configuration in, a worker out. */
#include <commandbus/version.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "options.h"
#include "overruled.h"
#include "replay.h"
#include "serve.h"
#include "warnings.h"

/* Left alone, glibc gives up to eight arenas a core to the threads of the slots, each with free memory
 * of its own that the others cannot use. What slots allocate is little and short-lived. */
#define MALLOC_ARENAS 2

static ended run(const options *o, const config *c, const warnings *w, const signals *s)
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

static ended configure(const options *o, const signals *s)
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
        overruled_find(c, warnings_add, &w);
        how = run(o, c, &w, s);
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
        how = configure(&o, &s);
    options_done(&o);
    if (fflush(stdout) != 0 && how == ENDED_CLEAN)
        how = ENDED_UNDRAINED;
    return how;
}
