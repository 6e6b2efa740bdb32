/* The database of the bus, for what the outside world does to processes: the network's answers, and
 * what waits for a person. One connection, used by one thread at a time. */
#ifndef SIMULATOR_DATABASE_H
#define SIMULATOR_DATABASE_H

#include <commandbus/client.h>
#include <pthread.h>

struct pg_conn;

typedef struct {
    pthread_mutex_t lock;
    const char *url; /* borrowed; NULL: there is no database */
    struct pg_conn *conn;
    cb_db *db;
} database;

/* Connects with the first call, and anew after a connection broke. */
void database_init(database *d, const char *url);
void database_done(database *d);

/* commandbus.respond; the same response_id again changes nothing. */
bool database_respond(database *d, const char *process_id, const char *name, const char *payload,
                      const char *response_id, cb_error *e) CB_NODISCARD;
bool database_keep_approval(database *d, const char *process_id, const char *command_id,
                            cb_error *e) CB_NODISCARD;
bool database_keep_network(database *d, const char *process_id, const char *command_id,
                           const char *level, const char *execution_model,
                           cb_error *e) CB_NODISCARD;
/* Whether somebody has answered this level of a process, and whether it has ended. */
bool database_look(database *d, const char *process_id, const char *level, bool *is_answered,
                   bool *is_over, cb_error *e) CB_NODISCARD;

#endif
