/* Sending many commands: in chunks, with progress, over a lost connection. */
#include "sender.h"

#include <commandbus/query.h>
#include <time.h>

#define RECONNECTS 5

static bool on_progress(size_t sent, size_t total, void *arg)
{
    sender *s = arg;

    (void)total;
    progress_show(&s->bar, s->sent + sent);
    return !progress_is_interrupted();
}

static bool reconnect(sender *s, cb_error *e)
{
    for (int i = 0; i < RECONNECTS && !progress_is_interrupted(); i++) {
        if (cb_db_reconnect(s->c->db, e))
            return true;
        nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
    }
    return false;
}

static bool is_there(sender *s, const cb_send *command, bool *ret, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;

    if (!cb_command_show(s->c->db, command->domain, command->command_id, &rows, e))
        return false;
    *ret = cb_rows_count(rows) > 0;
    return true;
}

/* Connects again and finds out what was committed of the chunk in doubt, whose end only the library
 * knows: the first command that is not there. */
static bool settle_doubt(sender *s, const cb_send *commands, size_t n, size_t *done, cb_error *e)
{
    size_t there = *done, missing = n - *done < SENDER_CHUNK ? n : *done + SENDER_CHUNK;

    if (!reconnect(s, e))
        return false;
    while (there < missing) {
        size_t middle = there + (missing - there) / 2;
        bool found = false;
        if (!is_there(s, &commands[middle], &found, e))
            return false;
        if (found)
            there = middle + 1;
        else
            missing = middle;
    }
    s->sent += there - *done;
    *done = there;
    return true;
}

bool sender_send(sender *s, cb_send *commands, size_t n, cb_uuid *ids, cb_error *e)
{
    const cb_send_many_options options = { SENDER_CHUNK, on_progress, s };
    int again = 5; /* deadlocks and the like */

    for (size_t i = 0; i < n; i++) {
        if (commands[i].command_id)
            continue;
        ids[i] = cb_uuid_new();
        commands[i].command_id = ids[i].text;
    }
    for (size_t done = 0; done < n && !progress_is_interrupted();) {
        size_t sent = 0;
        cb_error why = { 0 };
        bool good = cb_send_many(s->c->db, commands + done, n - done, &options, NULL, &sent, &why);

        done += sent;
        s->sent += sent;
        if (good || progress_is_interrupted())
            continue;
        *e = why;
        if (why.code == CB_AGAIN && again-- > 0)
            continue;
        if (why.code != CB_LOST || !settle_doubt(s, commands, n, &done, &why))
            return false;
    }
    return true;
}
