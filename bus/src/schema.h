/* Which schema is in the database, and is it made of the files that are here? */
#ifndef CB_SCHEMA_H
#define CB_SCHEMA_H

#include "sql.h"
#include "statements.h"

/* The numbered files of one component, here. */
typedef struct {
    const char *component;    /* "commandbus", or the name of a handler set */
    const cb_sql_file *files; /* borrowed, ascending */
    size_t n;
    bool is_bus;
} schema_files;

/* Those of the bus, compiled in. */
schema_files schema_of_bus(void);

/* What was applied of a component. */
typedef struct {
    int version;       /* the highest, 0 when it was never migrated */
    int oldest_binary; /* binaries below this cannot work on it */
    PGresult *applied; /* one row a file; NULL when there is no table of versions */
} schema_state;

#define OWNED_SCHEMA_STATE(name) __attribute__((cleanup(schema_state_done))) schema_state name
void schema_state_done(schema_state *state);

bool schema_read(cb_db *db, const char *component, schema_state *ret, cb_error *e);

/* The first file from number `from` on (an index) that was applied as something else than it is
 * here; n when there is none. What only one side has is no difference: the database may be
 * newer, or older. */
size_t schema_next_difference(const schema_state *state, const schema_files *here, size_t from);

/* Says how file `i`, which differs, does. Returns false. */
bool schema_fail_difference(const schema_state *state, const schema_files *here, size_t i,
                            cb_error *e);

/* CB_SCHEMA when a file differs, with which one and what to do. */
bool schema_check_files(const schema_state *state, const schema_files *here, cb_error *e);

/* Whether the database has the layout of before 0.1.0, which migrate brings over. */
bool schema_is_former(const schema_state *bus);

/* The functions and views of the bus: those in the database beside those compiled in. */
typedef enum {
    FUNCTIONS_MISSING, /* never applied, or of the layout of before */
    FUNCTIONS_OLDER,   /* of an older release */
    FUNCTIONS_SAME,
    FUNCTIONS_DIFFER, /* of this release, but built from other sources */
    FUNCTIONS_NEWER,  /* of a newer release, which serves this one too */
} functions_state;

/* `release` gets the name of the release in the database, "" when there is none. */
bool schema_read_functions(cb_db *db, functions_state *ret, char release[32], cb_error *e);

/* Whether migrate applies its functions to a database in that state. */
bool functions_want_applying(functions_state state);

/* CB_SCHEMA_TOO_NEW when this binary is below the oldest that can work on the bus's schema. */
bool schema_check_binary(const schema_state *bus, cb_error *e);

#endif
