/* A connection: opening, losing, reconnecting, its transactions, and cancelling what runs on it. */
#include <commandbus/db.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cb_sql.h"
#include "fail.h"
#include "sqlstate.h"
#include "statements.h"

/* ---- connecting: nothing of the URL goes into a message. Where a password contains an
 * unescaped '@' or '/', libpq takes a part of it for a host or a port, and would name it ---- */

static bool fail_url(cb_error *e, const char *problem)
{
    cb_fail(e, CB_MISUSE, "the database URL is not usable: %s", problem);
    return fail_hint(e, "It reads postgresql://user:password@host:port/database, with special "
                        "characters of the password percent-encoded (@ is %%40, / is %%2F), or "
                        "key=value pairs.");
}

/* A URL whose credentials do not end where they seem to: the rest of a password is taken for
 * something that error messages show. */
static bool is_ambiguous(const char *url)
{
    const char *rest = strstr(url, "://");

    if (!rest || (strncmp(url, "postgres://", 11) != 0 && strncmp(url, "postgresql://", 13) != 0))
        return false;
    rest += 3;
    rest += strcspn(rest, "@/");
    if (*rest == '@')
        rest++;
    size_t until_query = strcspn(rest, "?");
    return memchr(rest, '@', until_query) != NULL;
}

static bool check_url(const char *url, cb_error *e)
{
    if (!url || is_ambiguous(url))
        return fail_url(e, url ? "there is an '@' too many" : "there is none");

    PQconninfoOption *options = PQconninfoParse(url, NULL);
    if (!options)
        return fail_url(e, "it is neither a URL nor key=value pairs that libpq knows");

    const char *problem = NULL;
    for (PQconninfoOption *o = options; o->keyword; o++) {
        bool is_port = strcmp(o->keyword, "port") == 0;
        if (is_port && o->val && strspn(o->val, "0123456789,") != strlen(o->val))
            problem = "the port is not a number";
    }
    PQconninfoFree(options);
    return problem ? fail_url(e, problem) : true;
}

/* A notice is nothing that a library may print. */
static void ignore_notice(void *arg, const PGresult *notice)
{
    (void)arg;
    (void)notice;
}

/* What stands before dbname is a default that the URL may change, what stands after it is fixed.
 * A server that vanished without a word is found out after about 11 s: leases of 30 s are
 * renewed every 10 s, which leaves time to renew them on another connection. */
static PGconn *connect_with_defaults(const char *url, const char *application)
{
    const char *keywords[] = {
        "connect_timeout",           "keepalives_idle",  "keepalives_interval",
        "keepalives_count",          "tcp_user_timeout", "dbname",
        "fallback_application_name", "client_encoding",  NULL
    };
    const char *timeout = getenv("PGCONNECT_TIMEOUT");
    const char *values[] = {
        timeout ? timeout : "10", "5", "2", "3", "10000", url, application, "UTF8", NULL
    };

    return PQconnectdbParams(keywords, values, 1);
}

/* libpq tells the SQLSTATE of a refused login in one way only: in verbose messages. */
static void find_sqlstate(const char *verbose, char sqlstate[6])
{
    for (const char *c = verbose; (c = strstr(c, ":  ")); c++) {
        const char *state = c + 3;
        if (strspn(state, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && state[5] == ':') {
            memcpy(sqlstate, state, 5);
            sqlstate[5] = '\0';
            return;
        }
    }
}

/* The message on one line, the password redacted wherever it came from. */
static void clean_message(const char *message, const char *password, char *out, size_t size)
{
    size_t n = 0, hidden = password ? strlen(password) : 0;

    while (*message && n + 4 < size) {
        if (hidden > 2 && strncmp(message, password, hidden) == 0) {
            memcpy(out + n, "***", 3);
            n += 3;
            message += hidden;
            continue;
        }
        char c = *message++;
        out[n++] = c == '\n' || c == '\t' ? ' ' : c;
    }
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}

static bool fail_connect(PGconn *conn, const char *message, const char *sqlstate, cb_error *e)
{
    bool denied = PQconnectionNeedsPassword(conn) || sqlstate_code(sqlstate) == CB_DENIED;

    cb_fail(e, denied ? CB_DENIED : CB_LOST, "%s", message);
    if (e)
        memcpy(e->sqlstate, sqlstate, sizeof e->sqlstate);
    if (denied)
        return fail_hint(e, "Check user, password and database of the URL, and pg_hba.conf.");
    return fail_hint(e, "Is the server running, and is the URL right? A private one for trying "
                        "things: deploy/local/postgres start");
}

/* With off, backslashes in literals are escapes: bodies of our functions would mean something
 * else, and refuse what is right. The server reports it at the start and with each change. */
static bool check_settings(const PGconn *conn, cb_error *e)
{
    const char *conforming = PQparameterStatus(conn, "standard_conforming_strings");

    if (!conforming || strcmp(conforming, "off") != 0)
        return true;
    cb_fail(e, CB_SERVER, "standard_conforming_strings is off, and has to be on");
    return fail_hint(e, "Find where it is set (ALTER ROLE, ALTER DATABASE, postgresql.conf, or "
                        "options in the URL) and take it away there.");
}

/* `application` is what the server calls it unless the URL says otherwise. The caller owns *ret
 * (PQfinish). CB_MISUSE: no URL; CB_LOST: nobody answers, or not now; CB_DENIED: the login is
 * refused; CB_SERVER: its settings are none to work with. */
static bool connect_to(const char *url, const char *application, PGconn **ret, cb_error *e)
{
    if (!check_url(url, e))
        return false;

    PGconn *conn = connect_with_defaults(url, application);
    if (!conn)
        return fail_memory(e);
    PQsetNoticeReceiver(conn, ignore_notice, NULL);

    char message[400] = "", sqlstate[6] = "";
    if (PQstatus(conn) != CONNECTION_OK) {
        clean_message(PQerrorMessage(conn), PQpass(conn), message, sizeof message);
        if (strstr(message, ":  ") && !PQconnectionNeedsPassword(conn)) {
            /* A server has answered and refused: once more, to learn the SQLSTATE. */
            PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
            PQreset(conn);
            find_sqlstate(PQerrorMessage(conn), sqlstate);
            PQsetErrorVerbosity(conn, PQERRORS_DEFAULT);
        }
    }
    if (PQstatus(conn) != CONNECTION_OK) {
        fail_connect(conn, message, sqlstate, e);
        PQfinish(conn);
        return false;
    }
    if (!check_settings(conn, e)) {
        PQfinish(conn);
        return false;
    }
    *ret = conn;
    return true;
}

/* ---- the handle ---- */

bool cb_db_open_named(const char *url, const char *application, cb_db **ret, cb_error *e)
{
    PGconn *conn = NULL;

    if (!connect_to(url, application, &conn, e))
        return false;
    cb_db *db = calloc(1, sizeof *db);
    if (db) {
        db->url = strdup(url);
        db->application = strdup(application);
    }
    if (!db || !db->url || !db->application) {
        PQfinish(conn);
        cb_db_free(db);
        return fail_memory(e);
    }
    db->conn = conn;
    *ret = db;
    return true;
}

bool cb_db_open(const char *url, cb_db **ret, cb_error *e)
{
    return cb_db_open_named(url, "commandbus", ret, e);
}

bool cb_db_borrow(PGconn *conn, cb_db **ret, cb_error *e)
{
    if (!conn)
        return cb_fail(e, CB_MISUSE, "there is no connection to borrow");
    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF)
        return cb_fail(e, CB_MISUSE, "a connection in pipeline mode cannot be borrowed");
    if (!check_settings(conn, e))
        return false;

    cb_db *db = calloc(1, sizeof *db);
    if (!db)
        return fail_memory(e);
    db->conn = conn;
    db->lost = PQstatus(conn) != CONNECTION_OK;
    db->prepared.off = true; /* Its owner finds the session as it was. */
    *ret = db;
    return true;
}

static bool is_borrowed(const cb_db *db)
{
    return db->url == NULL;
}

void cb_db_free(cb_db *db)
{
    if (!db)
        return;
    if (!is_borrowed(db))
        PQfinish(db->conn);
    free(db->url);
    free(db->application);
    free(db);
}

bool cb_db_reconnect(cb_db *db, cb_error *e)
{
    if (is_borrowed(db)) {
        db->lost = PQstatus(db->conn) != CONNECTION_OK;
        return db->lost ? cb_fail(e, CB_LOST,
                                  "the borrowed connection is lost: its owner must "
                                  "reset it first")
                        : true;
    }
    PQfinish(db->conn);
    db->conn = NULL;
    db->lost = true;
    prepared_reset(&db->prepared);
    if (!connect_to(db->url, db->application, &db->conn, e))
        return false;
    db->lost = false;
    return true;
}

void cb_db_set_prepared(cb_db *db, bool on)
{
    db->prepared.off = !on;
}

bool cb_db_is_lost(const cb_db *db)
{
    return db->lost;
}

PGconn *cb_db_conn(cb_db *db)
{
    return db->lost ? NULL : db->conn;
}

int cb_db_socket(const cb_db *db)
{
    return db->lost ? -1 : PQsocket(db->conn);
}

bool db_in_transaction(const cb_db *db)
{
    PGTransactionStatusType status = PQtransactionStatus(db->conn);

    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

bool cb_db_begin(cb_db *db, cb_error *e)
{
    if (!db_is_ready(db, e))
        return false;
    if (db_in_transaction(db))
        return cb_fail(e, CB_MISUSE, "a transaction is open already");

    OWNED(PGresult) result = NULL;
    cb_error why = { 0 };
    if (db_exec(db, cb_sql_begin, NULL, DB_TEXT, &result, &why))
        return true;
    db_begin_failed(db, &why);
    if (e)
        *e = why;
    return false;
}

bool cb_db_commit(cb_db *db, cb_error *e)
{
    if (!db_is_ready(db, e))
        return false;
    if (!db_in_transaction(db))
        return cb_fail(e, CB_MISUSE, "there is no transaction to commit");

    OWNED(PGresult) result = NULL;
    if (!db_exec(db, cb_sql_commit, NULL, DB_TEXT, &result, e))
        return false;
    if (strcmp(PQcmdStatus(result), "COMMIT") != 0) /* The server's way to say it. */
        return cb_fail(e, CB_SERVER, "a statement of the transaction had failed: rolled back");
    return true;
}

bool cb_db_rollback(cb_db *db, cb_error *e)
{
    OWNED(PGresult) result = NULL;

    if (!db_is_ready(db, e))
        return false;
    return !db_in_transaction(db) || db_exec(db, cb_sql_rollback, NULL, DB_TEXT, &result, e);
}

/* ---- cancelling: the server is told on a connection of its own, so it goes through a PgBouncer
 * too ---- */

struct cb_canceler {
    PGcancel *cancel;
};

bool cb_canceler_open(cb_db *db, cb_canceler **ret, cb_error *e)
{
    if (!db_is_ready(db, e))
        return false;

    OWNED(cb_canceler) canceler = calloc(1, sizeof *canceler);
    if (!canceler || !(canceler->cancel = PQgetCancel(db->conn)))
        return fail_memory(e);
    *ret = cb_canceler_take(&canceler);
    return true;
}

void cb_canceler_free(cb_canceler *canceler)
{
    if (!canceler)
        return;
    PQfreeCancel(canceler->cancel);
    free(canceler);
}

bool cb_canceler_send(const cb_canceler *canceler, cb_error *e)
{
    char why[256];

    return PQcancel(canceler->cancel, why, sizeof why) == 1 ||
           cb_fail(e, CB_LOST, "the server was not told to cancel");
}
