/* Errors are values: what can fail returns false and fills a cb_error on the caller's stack. */
#ifndef COMMANDBUS_ERROR_H
#define COMMANDBUS_ERROR_H

#include <commandbus/api.h>
#include <stdbool.h>

typedef enum {
    CB_OK = 0,

    /* Classes. */
    CB_LOST,   /* No connection, or it broke: whether the last transaction committed is unknown. */
    CB_AGAIN,  /* SQLSTATE classes 40, 53, 55, 57: the same call may succeed a moment later. */
    CB_DATA,   /* SQLSTATE classes 22, 23: a value the database does not take. */
    CB_DENIED, /* The role may not, or the password is wrong. */
    CB_SERVER, /* Any other error of the server. */
    CB_MISUSE, /* An argument against the rules of the function; nothing was sent. */
    CB_MEMORY,
    CB_SCHEMA, /* No PGMQ, no schema, or one that this binary cannot work on. */

    /* Refusals by the bus (SQLSTATE class CB): nothing changed, the hint says what to do. */
    CB_DUPLICATE_COMMAND,
    CB_COMMAND_NOT_FOUND,
    CB_PROCESS_NOT_FOUND,
    CB_BATCH_NOT_FOUND,
    CB_BATCH_CLOSED,
    CB_BATCH_EMPTY,
    CB_INVALID_OPERATION,
    CB_UNKNOWN_DOMAIN,
    CB_UNKNOWN_PROCESS_TYPE,
    CB_INVALID_NAME,
    CB_INVALID_DATA,
    CB_PAYLOAD_TOO_LARGE,
    CB_SCHEMA_TOO_NEW,
} cb_code;

typedef struct {
    cb_code code;
    char sqlstate[6]; /* Empty when the server was not asked or did not answer. */
    char message[512];
    char hint[256]; /* What to do, or empty. */
} cb_error;

/* Fills e (which may be NULL) and returns false, so that `return cb_fail(...)` reads well. */
CB_API bool cb_fail(cb_error *e, cb_code code, const char *fmt, ...) CB_PRINTF(3, 4);

/* Puts "while ..." before the message on the way up. Returns false. */
CB_API bool cb_fail_while(cb_error *e, const char *fmt, ...) CB_PRINTF(2, 3);

/* "DUPLICATE_COMMAND", "LOST" and so on. Static storage. */
CB_API const char *cb_code_name(cb_code code);

/* True for the refusals: the request was understood and turned down. */
CB_API bool cb_code_is_refusal(cb_code code);

#endif
