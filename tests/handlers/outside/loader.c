/* loader FOLDER SET TYPE DATA: loads a set, runs one command with it, prints what came of it. */
#include <commandbus/host.h>
#include <commandbus/worker.h>
#include <stdio.h>
#include <string.h>

static cb_handler_fn *find(const cb_module *m, const char *type)
{
    for (size_t i = 0; i < m->n_handlers; i++) {
        if (strcmp(m->handlers[i].command_type, type) == 0)
            return m->handlers[i].run;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    OWNED(cb_set) set = NULL;
    OWNED(cb_context) ctx = NULL;
    cb_settlement out;
    cb_error e = { 0 };

    if (argc != 5)
        return 2;
    cb_command command = { .command_id = cb_uuid_new(),
                           .domain = argv[2],
                           .attempt = 1,
                           .command_type = argv[3],
                           .data = argv[4],
                           .max_attempts = 1 };
    if (!cb_set_load(argv[1], argv[2], &set, &e) ||
        !cb_context_open(&command, NULL, NULL, &ctx, &e)) {
        fprintf(stderr, "%s %s\n", e.message, e.hint);
        return 1;
    }
    cb_handler_fn *handler = find(cb_set_module(set), argv[3]);
    if (!handler)
        return 1;
    cb_context_run(ctx, handler, 0, &out);
    printf("%s %s\n", cb_outcome_name(out.outcome), out.result ? out.result : out.error_message);
    return 0;
}
