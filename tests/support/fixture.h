/* What most tests of the bus start from: a database of their own and two connections to it.
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
} bus_fixture;

extern bus_fixture bus;

/* With the domains fx, risk and payments. */
void bus_open(void);
/* A database in which nobody has migrated. */
void bus_open_empty(void);
void bus_close(void);

/* Each table of the bus and of PGMQ with its number of rows and a checksum, as text to compare. The
 * caller frees it. */
char *bus_contents(void);

#endif
