/* commandbus process start --file: a batch of processes, one for each line. */
#include "process_batch.h"

#include "batch_made.h"
#include "batch_wait.h"
#include "fail.h"
#include "json_text.h"
#include "jsonl.h"
#include "process_args.h"
#include "progress.h"

#include <commandbus/batch.h>
#include <stdlib.h>

#define LARGEST_FILE ((size_t)1 << 30) /* it is read whole before anything is started */

typedef struct {
    char **states;
    size_t *lines; /* the line each came from */
    size_t n, room, bytes;
} state_list;

static void state_list_free(state_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->n; i++)
        free(list->states[i]);
    free(list->states);
    free(list->lines);
    free(list);
}
DEFINE_OWNED(state_list, state_list_free)

static bool make_room(state_list *list, cb_error *e)
{
    if (list->n < list->room)
        return true;
    size_t room = list->room ? list->room * 2 : 1024;
    char **states = realloc(list->states, room * sizeof *states);
    if (states)
        list->states = states;
    size_t *lines = states ? realloc(list->lines, room * sizeof *lines) : NULL;
    if (!lines)
        return fail_memory(e);
    list->lines = lines;
    list->room = room;
    return true;
}

static bool check_bounds(const state_list *list, cb_error *e)
{
    if (list->n >= CB_BATCH_MOST_PROCESSES)
        return cb_fail(e, CB_INVALID_DATA, "a batch starts with at most %d processes",
                       CB_BATCH_MOST_PROCESSES);
    if (list->bytes > LARGEST_FILE)
        return cb_fail(e, CB_PAYLOAD_TOO_LARGE,
                       "the states before it have %zu bytes, the limit is "
                       "%zu",
                       list->bytes, LARGEST_FILE);
    return true;
}

static bool read_states(const char *path, state_list *list, cb_error *e)
{
    OWNED(jsonl) file = NULL;

    if (!jsonl_open(path, &file, e))
        return false;
    for (;;) {
        char *text = NULL;
        size_t length = 0, number = 0;

        if (!jsonl_next(file, &text, &length, &number, e))
            return false;
        if (!text)
            return true;
        if (!make_room(list, e) || !check_bounds(list, e) || !json_check_object(text, length, e)) {
            free(text);
            return cb_fail_while(e, "reading line %zu", number);
        }
        list->lines[list->n] = number;
        list->states[list->n++] = text;
        list->bytes += length;
    }
}

static bool on_progress(size_t started, size_t total, void *arg)
{
    (void)total;
    progress_show(arg, started);
    return !progress_is_interrupted();
}

static bool start(cli *c, const cb_start_batch_options *options, const state_list *list,
                  cb_uuid *id, cb_error *e)
{
    cb_start_batch_options watched = *options;
    progress bar;

    progress_start(&bar, c, "starting", list->n);
    watched.progress = on_progress;
    watched.arg = &bar;
    bool good = cb_start_batch(c->db, &watched, (const char *const *)list->states, list->n, id, e);
    progress_end(&bar);
    return good;
}

int process_start_batch(cli *c, const process_batch_args *args, const char *type, const char *id,
                        const char *deadline)
{
    process_deadline moment = { "" };
    OWNED(state_list) list = calloc(1, sizeof *list);
    cb_uuid made = { "" };
    cb_error e = { 0 };

    if (!(list || fail_memory(&e)) || !read_states(args->file, list, &e) ||
        !cli_connect(c, true, &e) || !process_deadline_of(c->db, deadline, &moment, &e))
        return cli_fail(c, &e);
    const cb_start_batch_options options = { .process_type = type,
                                             .name = args->name,
                                             .custom_data = args->custom_data,
                                             .reply_to = args->reply_to,
                                             .batch_id = id,
                                             .deadline = moment.text[0] ? moment.text : NULL,
                                             .lines = list->lines };
    if (!start(c, &options, list, &made, &e))
        return batch_not_made(c, &made, &e);
    if (!args->wait || !c->json)
        batch_made(c, &made, list->n);
    if (!args->wait)
        return EXIT_OK;
    return batch_show(
        c, &(batch_show_args){ .id = made.text, .wait = true, .timeout = args->timeout });
}
