/* The bus of a test: a database of its own and two connections to it. Whatever else a test opens (a
 * stage, a worker of embed.h, a booking) opens this too, so that it is `bus` in every test.
 *
 *     TestSuite(send, .init = bus_open, .fini = bus_close);
 */
#ifndef TEST_SUPPORT_FIXTURE_H
#define TEST_SUPPORT_FIXTURE_H

#include "bus.h"

typedef struct {
    char *conninfo;
    PGconn *conn; /* for SQL */
    cb_db *db;    /* for the library */
    PGconn *holder;
} bus_fixture;

extern bus_fixture bus;

/* With the domains fx, risk and payments.
 *
 * A server that has just started hands on no lease that expired for one visibility timeout of who
 * asks. This waits until it has run for a second: claims that are to find expired leases ask for a
 * second at most. */
void bus_open(void);
/* A database in which nobody has migrated. */
void bus_open_empty(void);
void bus_close(void);

/* Somebody has all processes locked between these two. Replies to them go to their queues
 * meanwhile, as in BUS_UNHEARD(stage_serve(…)). */
void bus_hold_processes(void);
void bus_let_processes_go(void);
#define BUS_UNHEARD(statement)  \
    do {                        \
        bus_hold_processes();   \
        statement;              \
        bus_let_processes_go(); \
    } while (0)

/* Each table of the bus and of PGMQ with its number of rows and a checksum, as text to compare. The
 * caller frees it. */
char *bus_contents(void);

#endif
