/* Listening. The connection does nothing else, so that a notification is read as soon as it
 * comes. */
#include <commandbus/listen.h>
#include <commandbus/uuid.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "cb_sql.h"
#include "fail.h"
#include "name_rules.h"
#include "statements.h"

enum {
    CHANNEL_SIZE = 64, /* PostgreSQL's longest name and a NUL */
};

typedef char channel_name[CHANNEL_SIZE];

struct cb_listener {
    cb_db *db;
    int wake_fd; /* an eventfd: written by any thread, read by the one that waits */
    size_t n;
    channel_name *channels; /* one a queue */
    cb_call *calls;         /* since the last cb_listener_wait, one a queue */
    char *worker;           /* whose name is ours */
    channel_name probe;     /* nobody else's: what arrives there is our own */
    unsigned probes_sent;
    unsigned probes_heard; /* the number of the last one that came back */
};

void cb_listener_free(cb_listener *l)
{
    if (!l)
        return;
    cb_db_free(l->db);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    free(l->channels);
    free(l->calls);
    free(l->worker);
    free(l);
}

static bool set_channel(channel_name channel, const char *queue, cb_error *e)
{
    if (name_rule_queue(queue))
        return cb_fail(e, CB_INVALID_NAME, "invalid queue name '%.80s'; %s", queue ? queue : "",
                       name_rule_queue(queue));
    snprintf(channel, CHANNEL_SIZE, "commandbus_%s", queue);
    return true;
}

static bool set_channels(cb_listener *l, const char *const *queues, cb_error *e)
{
    cb_uuid unique = cb_uuid_new();

    for (size_t i = 0; i < l->n; i++) {
        if (!set_channel(l->channels[i], queues[i], e))
            return false;
    }
    snprintf(l->probe, sizeof l->probe, "commandbus_probe_%s", unique.text);
    return true;
}

/* LISTEN takes no parameters, so this is the one place that puts a name into a statement. */
static bool add_listen(buffer *script, PGconn *conn, const char *channel)
{
    char *name = PQescapeIdentifier(conn, channel, strlen(channel));

    if (!name)
        return false;
    buffer_add_text(script, "LISTEN ");
    buffer_add_text(script, name);
    buffer_add_text(script, ";");
    PQfreemem(name);
    return true;
}

static bool listen_to_all(cb_listener *l, cb_error *e)
{
    OWNED_BUFFER(script);

    bool fine = add_listen(&script, l->db->conn, l->probe);
    for (size_t i = 0; i < l->n && fine; i++)
        fine = add_listen(&script, l->db->conn, l->channels[i]);
    if (!fine || script.failed)
        return fail_memory(e);
    return db_do_script(l->db, script.bytes, e);
}

bool cb_listener_open(const char *url, const char *worker, const char *const *queues, size_t n,
                      cb_listener **ret, cb_error *e)
{
    OWNED(cb_listener) l = calloc(1, sizeof *l);

    if (!l)
        return fail_memory(e);
    l->n = n;
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    l->channels = calloc(n + 1, sizeof *l->channels);
    l->calls = calloc(n + 1, sizeof *l->calls);
    l->worker = strdup(worker ? worker : "");
    if (l->wake_fd < 0 || !l->channels || !l->calls || !l->worker)
        return l->wake_fd < 0 ? cb_fail(e, CB_MEMORY, "no eventfd: %s", strerror(errno))
                              : fail_memory(e);
    if (!set_channels(l, queues, e) || !cb_db_open_named(url, "commandbus-listen", &l->db, e) ||
        !listen_to_all(l, e))
        return false;
    *ret = cb_listener_take(&l);
    return true;
}

/* One call of us outweighs any of others. */
static void take_note(cb_listener *l, const PGnotify *notification)
{
    const char *name = notification->extra;
    cb_call call = *name == '\0' || strcmp(name, l->worker) == 0 ? CB_CALLED : CB_CALLED_ANOTHER;

    if (strcmp(notification->relname, l->probe) == 0)
        l->probes_heard = (unsigned)strtoul(notification->extra, NULL, 10);
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(notification->relname, l->channels[i]) == 0 && l->calls[i] < call)
            l->calls[i] = call;
    }
}

/* Reads what has come, without waiting. */
static bool read_notifications(cb_listener *l, cb_error *e)
{
    PGnotify *notification;

    if (!PQconsumeInput(l->db->conn))
        return db_fail(l->db, NULL, e);
    while ((notification = PQnotifies(l->db->conn))) {
        take_note(l, notification);
        PQfreemem(notification);
    }
    return true;
}

/* Milliseconds of a clock that only goes forward. */
static int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until the connection, or `wake` unless it is -1, has something to read, or the time is over
 * (-1: never). False only then. A signal looks like something to read. */
static bool wait_readable(const cb_listener *l, int wake, int64_t deadline_ms)
{
    struct pollfd fds[] = { { .fd = PQsocket(l->db->conn), .events = POLLIN },
                            { .fd = wake, .events = POLLIN } };
    int64_t left = -1;

    if (deadline_ms >= 0) {
        left = deadline_ms - clock_ms();
        left = left > INT32_MAX ? INT32_MAX : left > 0 ? left : 0;
    }
    return poll(fds, 2, (int)left) != 0 || left != 0;
}

static int64_t deadline_after(int timeout_ms)
{
    return timeout_ms < 0 ? -1 : clock_ms() + timeout_ms;
}

/* The answer to the probe under way, once it is there: the backend that sent it. */
static bool take_answer(cb_db *voice, int *backend, cb_error *e)
{
    PGresult *result;
    bool fine = true;

    while ((result = PQgetResult(voice->conn))) {
        if (PQresultStatus(result) == PGRES_TUPLES_OK)
            *backend = atoi(PQgetvalue(result, 0, 1));
        else if (fine)
            fine = db_fail(voice, result, e);
        PQclear(result);
    }
    return fine;
}

static bool send_probe(cb_listener *l, cb_db *voice, cb_error *e)
{
    params p = { 0 };

    params_text(&p, l->probe);
    params_int(&p, ++l->probes_sent);
    return PQsendQueryParams(voice->conn, cb_sql_notify, p.n, NULL, p.values, p.lengths, p.formats,
                             DB_TEXT) ||
           db_fail(voice, NULL, e);
}

/* Sends a notification with `voice`, and waits until it comes to the listener. */
static bool probe(cb_listener *l, cb_db *voice, int64_t deadline, bool *heard, int *backend,
                  cb_error *e)
{
    bool answered = false, other = voice != l->db;

    if (!send_probe(l, voice, e))
        return false;
    for (bool in_time = true; in_time && !*heard;) {
        if (!read_notifications(l, e))
            return false;
        if (other && !answered && !PQconsumeInput(voice->conn))
            return db_fail(voice, NULL, e);
        if (!answered && !PQisBusy(voice->conn)) {
            if (!take_answer(voice, backend, e))
                return false;
            answered = true;
            continue; /* The notification follows the answer, and may have come with it. */
        }
        *heard = answered && l->probes_heard == l->probes_sent;
        if (!*heard)
            in_time = wait_readable(l, other && !answered ? PQsocket(voice->conn) : -1, deadline);
    }
    if (answered)
        return true;
    voice->lost = true; /* Half a statement is under way: nothing else can be done with it. */
    return cb_fail(e, CB_LOST, "the server did not answer the listener in time");
}

/* A pooler in transaction mode passes on what arrives together with the answer to a statement,
 * so that the listener hears itself and nobody else. Somebody else's voice tells. */
static bool prove_behind_pooler(cb_listener *l, int64_t deadline, bool *heard, cb_error *e)
{
    OWNED(cb_db) voice = NULL;
    OWNED(PGresult) done = NULL;
    int backend;

    if (!cb_db_open(l->db->url, &voice, e) || !probe(l, voice, deadline, heard, &backend, e))
        return false;
    /* The pooler's connection listens on, for whoever uses it next: best taken back. */
    return *heard || db_exec(l->db, cb_sql_unlisten, NULL, DB_TEXT, &done, e);
}

bool cb_listener_prove(cb_listener *l, int timeout_ms, bool *heard, cb_error *e)
{
    int64_t deadline = deadline_after(timeout_ms);
    int backend = 0;

    *heard = false;
    if (!db_is_ready(l->db, e) || !probe(l, l->db, deadline, heard, &backend, e))
        return false;
    if (!*heard || backend == PQbackendPID(l->db->conn))
        return true;
    *heard = false;
    return prove_behind_pooler(l, deadline, heard, e);
}

/* True when somebody woke us since the last time. */
static bool take_wake(cb_listener *l)
{
    uint64_t times;

    return read(l->wake_fd, &times, sizeof times) == sizeof times;
}

static bool take_calls(cb_listener *l, cb_call *calls)
{
    bool any = false;

    for (size_t i = 0; i < l->n; i++) {
        calls[i] = l->calls[i];
        any |= calls[i] != CB_NOT_CALLED;
        l->calls[i] = CB_NOT_CALLED;
    }
    return any;
}

bool cb_listener_wait(cb_listener *l, int timeout_ms, cb_call *calls, bool *any, cb_error *e)
{
    int64_t deadline = deadline_after(timeout_ms);

    *any = take_calls(l, calls); /* What came while the listener proved itself. */
    if (!db_is_ready(l->db, e))
        return false;
    for (bool in_time = true; in_time && !*any;) {
        if (!read_notifications(l, e))
            return false;
        *any = take_calls(l, calls);
        if (take_wake(l) || *any)
            break;
        in_time = wait_readable(l, l->wake_fd, deadline);
    }
    return true;
}

void cb_listener_wake(cb_listener *l)
{
    uint64_t once = 1;
    ssize_t written = write(l->wake_fd, &once, sizeof once);

    (void)written; /* It fails only when the listener has been woken 2^64 times already. */
}
