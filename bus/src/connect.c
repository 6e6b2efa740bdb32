/* Connecting. Nothing of the URL goes into a message: where a password contains an unescaped '@' or
 * '/', libpq takes a part of it for a host or a port, and would name it. */
#include "connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "sqlstate.h"

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

/* What stands before dbname is a default that the URL may change, what stands after it is fixed. A
 * server that vanished without a word is found out after about 11 s: leases of 30 s are renewed every
 * 10 s, which leaves time to renew them on another connection. */
static PGconn *start(const char *url, const char *application)
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

/* The message on one line, the password blotted out wherever it came from. */
static void clean(const char *message, const char *password, char *out, size_t size)
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

/* With off, backslashes in literals are escapes: bodies of our functions would mean something else, and
 * refuse what is right. The server reports it at the start and with each change. */
bool connect_check_settings(const PGconn *conn, cb_error *e)
{
    const char *conforming = PQparameterStatus(conn, "standard_conforming_strings");

    if (!conforming || strcmp(conforming, "off") != 0)
        return true;
    cb_fail(e, CB_SERVER, "standard_conforming_strings is off, and has to be on");
    return fail_hint(e, "Find where it is set (ALTER ROLE, ALTER DATABASE, postgresql.conf, or "
                        "options in the URL) and take it away there.");
}

bool connect_to(const char *url, const char *application, PGconn **ret, cb_error *e)
{
    if (!check_url(url, e))
        return false;

    PGconn *conn = start(url, application);
    if (!conn)
        return fail_memory(e);
    PQsetNoticeReceiver(conn, ignore_notice, NULL);

    char message[400] = "", sqlstate[6] = "";
    if (PQstatus(conn) != CONNECTION_OK) {
        clean(PQerrorMessage(conn), PQpass(conn), message, sizeof message);
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
    if (!connect_check_settings(conn, e)) {
        PQfinish(conn);
        return false;
    }
    *ret = conn;
    return true;
}
