/* What may have happened to a script (script.h) that has come to its end: the effects in its file,
 * its records, commands and state are compared with what its operations and the operators'
 * decisions allow. */
#ifndef TEST_TOYS_SCRIPT_MODEL_H
#define TEST_TOYS_SCRIPT_MODEL_H

#include <libpq-fe.h>

/* NULL when all is well; else what is wrong, with the script, the records and the effects, for
 * people. The caller frees it. `sent`: responses "go" and "word" that were accepted, numbered from
 * 1 in this order; `log`: the folder of the effects. */
char *script_problems(PGconn *conn, const char *process_id, const char *log, int sent);

#endif
