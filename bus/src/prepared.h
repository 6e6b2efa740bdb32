/* The statements that are prepared on a connection: those that workers and senders run over and
 * over, so that the server parses and plans them once. */
#ifndef CB_PREPARED_H
#define CB_PREPARED_H

#include <libpq-fe.h>
#include <stdbool.h>

enum {
    PREPARED_MOST = 18 /* as many as the table in prepared.c has */
};

typedef struct {
    char name[40];      /* the server's name for it, of its text */
    bool has_run;       /* on this connection, so the next time is worth preparing it */
    bool is_there;      /* the server has said that it is prepared */
    unsigned forgotten; /* how many names of it are of no use any more */
} prepared_statement;

/* Belongs to a connection. Start with { 0 }. */
typedef struct {
    prepared_statement statements[PREPARED_MOST];
    bool looked; /* whether there is a pooler between us and the server */
    bool pooled; /* there is one */
    bool off;    /* for good, whatever connection comes next */
} prepared_set;

/* What the statement is to be prepared as, or is already. NULL if it is to be sent as text: it is
 * not one of ours that repeat, it runs for the first time, preparing is off, or nobody has looked
 * for a pooler yet: then *look, and cb_sql_backend_pid is to be sent along. */
prepared_statement *prepared_find(prepared_set *set, const char *sql, bool *look);

/* Takes the answer to that. */
void prepared_look(prepared_set *set, const PGconn *conn, const PGresult *answer);

/* What was prepared, or was to be, has failed. True when that may be because it was prepared:
 * the session is another one, or a function has another result now. Sent as text it may work. */
bool prepared_failed(prepared_set *set, prepared_statement *p, const char *sqlstate);

/* There is a new connection, which has nothing prepared. */
void prepared_reset(prepared_set *set);

#endif
