/* Sending the commands of a file, or copies of one, and saying how far that came. */
#include "send_many.h"

#include "fail.h"
#include "json_text.h"
#include "send_list.h"
#include "sender.h"
#include "text.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE ((size_t)10000) /* copies made at a time */

static void print_ids(const cb_send *commands, size_t n, json_object *into)
{
    for (size_t i = 0; i < n; i++) {
        if (into)
            json_object_array_add(into, json_object_new_string(commands[i].command_id));
        else
            puts(commands[i].command_id);
    }
}

/* Takes ids over. */
static void report(const sender *s, double seconds, json_object *ids)
{
    double rate = seconds > 0 ? (double)s->sent / seconds : 0;

    if (!s->c->json) {
        fflush(stdout); /* the ids, if any, have stdout for themselves */
        cli_note(s->c, "sent %zu commands in %.1f s (%.0f/s)", s->sent, seconds, rate);
        return;
    }
    json_object *object = json_object_new_object();
    json_object_object_add(object, "sent", json_object_new_int64((int64_t)s->sent));
    json_object_object_add(object, "seconds", json_object_new_double(seconds));
    if (ids)
        json_object_object_add(object, "command_ids", ids);
    json_print_adopt(object);
}

/* After a failure or Ctrl-C: how many are durable, and how to go on. */
static int report_partly(const sender *s, size_t total, const send_list *list, size_t skip,
                         cb_error *e)
{
    const char *doubt = e->code == CB_LOST ? " for certain" : "";
    cb_error whole;

    if (s->sent == 0 && e->code != CB_LOST)
        return cli_fail(s->c, e);
    cb_fail(&whole, e->code, "%zu of %zu commands are durable%s: %s", s->sent, total, doubt,
            e->message);
    if (!list)
        fail_hint(&whole, "For the rest: --count %zu.", total - s->sent);
    else if (list->with_id == list->n)
        fail_hint(
            &whole,
            "Go on with --skip %zu. Nothing can be sent twice: every line has its command_id.",
            skip + s->sent);
    else
        fail_hint(&whole,
                  "Go on with --skip %zu. The same file from its start would send lines without "
                  "command_id twice; it is safe only with ids in the file.",
                  skip + s->sent);
    return cli_fail(s->c, &whole);
}

static int finish(sender *s, bool good, size_t total, const send_list *list, size_t skip,
                  json_object *ids, cb_error *e)
{
    double seconds = progress_seconds(&s->bar);
    progress_end(&s->bar);
    if (good && s->sent == total) {
        report(s, seconds, ids);
        return EXIT_OK;
    }
    json_object_put(ids);
    if (good)
        cb_fail(e, CB_AGAIN, "interrupted");
    return report_partly(s, total, list, skip, e);
}

int send_file(cli *c, const cb_send *defaults, const char *path, size_t skip, bool print)
{
    OWNED(send_list) list = NULL;
    sender s = { .c = c };
    cb_error e = { 0 };

    if (!send_list_read(path, defaults, skip, &list, &e)) {
        text_append(e.hint, sizeof e.hint, "%sNothing was sent.", *e.hint ? " " : "");
        return cli_fail(c, &e);
    }
    cb_uuid *ids = calloc(list->n + 1, sizeof *ids);
    if (!(ids || fail_memory(&e)) || !cli_connect(c, true, &e)) {
        free(ids);
        return cli_fail(c, &e);
    }
    progress_start(&s.bar, c, "sending", list->n);
    bool good = sender_send(&s, list->commands, list->n, ids, &e);
    json_object *array = c->json && print ? json_object_new_array() : NULL;
    if (print)
        print_ids(list->commands, s.sent, array);
    int code = finish(&s, good, list->n, list, skip, array, &e);
    free(ids);
    return code;
}

int send_copies(cli *c, const cb_send *command, size_t total, bool print)
{
    cb_send *copies = calloc(SLICE, sizeof *copies);
    cb_uuid *ids = calloc(SLICE, sizeof *ids);
    json_object *array = c->json && print ? json_object_new_array() : NULL;
    sender s = { .c = c };
    cb_error e = { 0 };
    bool good = ((copies && ids) || fail_memory(&e)) && cli_connect(c, true, &e);
    int code;

    if (good) {
        progress_start(&s.bar, c, "sending", total);
        while (good && s.sent < total && !progress_is_interrupted()) {
            size_t before = s.sent, n = total - before < SLICE ? total - before : SLICE;
            for (size_t i = 0; i < n; i++)
                copies[i] = *command;
            good = sender_send(&s, copies, n, ids, &e);
            if (print)
                print_ids(copies, s.sent - before, array);
        }
        code = finish(&s, good, total, NULL, 0, array, &e);
    } else {
        json_object_put(array);
        code = cli_fail(c, &e);
    }
    free(copies);
    free(ids);
    return code;
}
