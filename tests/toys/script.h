/* A process whose program is data: its first state holds a list of operations with what each is to
 * do, run by run. Every outside effect leaves a line in a file of its process, where a model can
 * read what happened.
 *
 * An operation: {"k": kind, …}; what it does at its n-th run over all attempts, commands and
 * retries says the n-th letter of "plan", the last one from then on:
 *   S success · T transient · P permanent · B business rule · I given back undone
 *   D its worker dies
 *
 *   step, local   plan, m: attempts, ms: before a retry, undo: "inline" or none, undoPlan
 *   cmd           plan, m, dom: fx or risk, undo: "inline", "cmd", "result" or none, undoPlan,
 *                 refuse: true when its result is not taken
 *   wait          n: goes on at so many responses "go", ms: its timeout
 *   side          a random number, kept
 *   skip          leaves out the next one when that number is odd
 *   version       cb_version
 *   decline       the business says no
 */
#ifndef TEST_TOYS_SCRIPT_H
#define TEST_TOYS_SCRIPT_H

#include <commandbus/process.h>

enum {
    SCRIPT_MOST = 10 /* operations */
};

typedef struct {
    char *process_id;
    char *log; /* a folder: <log>/<process_id> gets "name run attempt key letter" for each effect */
    json_object *ops;
    int on_deadline;
    int64_t current; /* the operation that execute() is at */
    int64_t chance;
    int64_t go;
    char *trace; /* names of what succeeded, in order */
    char *heard; /* the numbers of responses, in order of arrival */
    bool tail;   /* set behind the last operation */
    bool ended;  /* set by a hook */
} script;

extern const cb_process_type script_type;

/* What "D" does [kill -9]. A test that must go on sets it; the effect's outcome then never
 * counts. */
extern void (*script_die)(void);

/* The effect `name` of a process: its line is written, its letter given back. 0: it cannot be
 * written. */
char script_effect(const char *log, const char *process_id, const char *name, const char *plan,
                   int attempt, const char *key);

/* What the handlers of fx and risk do: commands "Do" and "Undo". The result belongs to the
 * caller. */
char script_serve(json_object *data, int attempt, const char *key, json_object **result);

#endif
