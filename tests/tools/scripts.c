/* Random scripts (tests/toys/script.h) for the fleet test of processes.
 *
 *   scripts make SEED N LOG WAIT_MS   N first states, one JSON object a line
 *   scripts check URL LOG             compares every process with the model and with its own code;
 *                                     what is wrong goes to stdout, exit code 1. Table public.heard
 *                                     (process_id, n) says how many responses each was sent. */
#include <commandbus/run.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"
#include "script_make.h"
#include "script_model.h"

static int make(unsigned seed, int n, const char *log, int wait_ms)
{
    for (int i = 0; i < n; i++) {
        char *state = script_make(&seed, log, wait_ms);
        puts(state);
        free(state);
    }
    return 0;
}

/* ---- checking ---- */

typedef struct {
    PGconn *conn;
    cb_db *db;
    cb_process_types *types;
    cb_run *run;
} checker;

static bool open_checker(checker *c, const char *url)
{
    static const cb_process_type *const types[] = { &script_type };
    cb_error e = { 0 };

    c->conn = PQconnectdb(url);
    if (PQstatus(c->conn) == CONNECTION_OK && cb_db_open(url, &c->db, &e) &&
        cb_process_types_open(types, 1, NULL, 0, NULL, 0, &c->types, &e) &&
        cb_run_open(c->types, &c->run, &e))
        return true;
    printf("cannot begin: %s%s\n", PQerrorMessage(c->conn), e.message);
    return false;
}

static void close_checker(checker *c)
{
    cb_run_free(c->run);
    cb_process_types_free(c->types);
    cb_db_free(c->db);
    PQfinish(c->conn);
}

static bool check_one(checker *c, const char *id, const char *log, int sent)
{
    OWNED(cb_process_claim) claim = NULL;
    cb_error e = { 0 };
    char *problems = script_problems(c->conn, id, log, sent);
    bool fine = !problems;

    if (problems)
        printf("process %s:\n%s\n", id, problems);
    free(problems);
    if (!cb_process_read(c->db, id, &claim, &e) ||
        !cb_run_replay(c->run, cb_process_claim_at(claim, 0), &e)) {
        printf("process %s does not replay: %s\n", id, e.message);
        fine = false;
    }
    return fine;
}

static int check(const char *url, const char *log)
{
    checker c = { 0 };
    int wrong = 0;

    if (!open_checker(&c, url))
        return 1;
    PGresult *all =
        PQexec(c.conn, "SELECT p.process_id, coalesce(h.n, 0) FROM commandbus.process p "
                       "LEFT JOIN public.heard h USING (process_id)");
    for (int i = 0; i < PQntuples(all); i++)
        wrong += !check_one(&c, PQgetvalue(all, i, 0), log, atoi(PQgetvalue(all, i, 1)));
    printf("%d of %d processes did what they must not\n", wrong, PQntuples(all));
    bool none = PQntuples(all) == 0;
    PQclear(all);
    close_checker(&c);
    return wrong > 0 || none;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "make") == 0)
        return make((unsigned)strtoul(argv[2], NULL, 10), atoi(argv[3]), argv[4], atoi(argv[5]));
    if (argc == 4 && strcmp(argv[1], "check") == 0)
        return check(argv[2], argv[3]);
    fputs("usage: scripts make SEED N LOG WAIT_MS | scripts check URL LOG\n", stderr);
    return 2;
}
