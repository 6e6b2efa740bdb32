/* What is said of a batch, of commands or of processes: that it was made, how it is, when it has
 * ended. */
#include "batch_view.h"

#include "fail.h"
#include "json_text.h"
#include "output.h"
#include "terminal.h"

#include <commandbus/query.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LONGEST_PAUSE_MS 1000

void batch_made(const cli *c, const cb_uuid *id, size_t n)
{
    if (!c->json) {
        puts(id->text);
        fflush(stdout);
        return;
    }
    json_object *object = json_object_new_object();
    json_put_text(object, "batch_id", id->text);
    json_put_int(object, "total", (int64_t)n);
    json_print_adopt(object);
}

int batch_not_made(const cli *c, const cb_uuid *id, cb_error *e)
{
    if (e->code == CB_LOST)
        fail_hint(e,
                  "Whether it was created is unknown: commandbus batch show %s, and if it is not "
                  "there, the same again with --id %s.",
                  id->text, id->text);
    return cli_fail(c, e);
}

/* The batch as it is now, in place of *rows. Fails when there is none. */
static bool batch_look(cli *c, const char *id, cb_rows **rows, cb_error *e)
{
    OWNED(cb_rows) found = NULL;

    if (!cb_batch_show(c->db, id, &found, e))
        return false;
    if (cb_rows_count(found) == 0) {
        cb_fail(e, CB_BATCH_NOT_FOUND, "there is no batch %s", id);
        return fail_hint(e, "Check the id: commandbus batch list.");
    }
    cb_rows_free(*rows);
    *rows = cb_rows_take(&found);
    return true;
}

static size_t batch_count(const cb_rows *rows, const char *column)
{
    const char *value = cb_rows_get(rows, 0, column);
    return value ? (size_t)strtoull(value, NULL, 10) : 0;
}

static size_t batch_done(const cb_rows *rows)
{
    return batch_count(rows, "completed") + batch_count(rows, "failed") +
           batch_count(rows, "canceled");
}

/* Looks again and again until the batch is closed. */
static bool batch_wait(cli *c, const batch_show_args *args, cb_rows **rows, cb_error *e)
{
    progress bar;
    int pause_ms = 50;
    bool good = true;

    progress_start(&bar, c, "batch", batch_count(*rows, "total"));
    progress_tell(&bar);
    while (good && !cb_rows_get(*rows, 0, "completed_at")) {
        progress_show(&bar, batch_done(*rows));
        int64_t left = args->timeout - (int64_t)(progress_seconds(&bar) * 1000);
        if (progress_is_interrupted())
            good = cb_fail(e, CB_AGAIN, "interrupted: the batch is still open");
        else if (args->timeout && left <= 0)
            good = cb_fail(e, CB_AGAIN, "the batch is still open: %zu of %zu done, %zu in the TSQ",
                           batch_done(*rows), batch_count(*rows, "total"),
                           batch_count(*rows, "in_troubleshooting"));
        if (!good)
            break;
        int64_t pause = args->timeout && left < pause_ms ? left : pause_ms;
        nanosleep(&(struct timespec){ .tv_sec = pause / 1000, .tv_nsec = pause % 1000 * 1000000 },
                  NULL);
        pause_ms = pause_ms * 2 < LONGEST_PAUSE_MS ? pause_ms * 2 : LONGEST_PAUSE_MS;
        good = batch_look(c, args->id, rows, e);
    }
    progress_end(&bar);
    return good;
}

int batch_show(cli *c, const batch_show_args *args)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };

    if (!batch_look(c, args->id, &rows, &e))
        return cli_fail(c, &e);
    bool closed = !args->wait || batch_wait(c, args, &rows, &e);
    if (c->json) {
        putchar('{');
        output_json_members(stdout, rows, 0);
        puts("}");
    } else {
        output_record(rows, 0);
    }
    return closed ? EXIT_OK : cli_fail(c, &e);
}
