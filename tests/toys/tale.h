/* The state of the processes in these tests, and steps that count how often they really ran. A test is a
 * process of its own, so that static counters begin at 0. */
#ifndef TEST_TOYS_TALE_H
#define TEST_TOYS_TALE_H

#include <json-c/json_tokener.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stage.h"

typedef struct {
    int64_t count;
    char *trail;
    char *note;
    bool approved;
    double ratio;
    json_object *extra;
} tale;

CB_FIELDS(tale_fields, tale, CB_FIELD(tale, count, CB_INT), CB_FIELD(tale, trail, CB_TEXT),
          CB_FIELD(tale, note, CB_TEXT), CB_FIELD(tale, approved, CB_BOOL),
          CB_FIELD(tale, ratio, CB_DOUBLE), CB_FIELD(tale, extra, CB_JSON));

/* A type of these tests: tale_type("Name", execute, .version = 2). */
#define tale_type(type_name, run, ...)                                                      \
    {                                                                                       \
        .name = (type_name), .domain = "payments", .state = &tale_fields, .execute = (run), \
        __VA_ARGS__                                                                         \
    }

/* A stage for one type. */
static inline stage tale_open(const cb_process_type *type)
{
    return stage_open(&type, 1, NULL, 0);
}

/* The same processes, other code. */
static inline void tale_release(stage *s, const cb_process_type *type)
{
    stage_release(s, &type, 1, NULL, 0);
}

/* Adds a word to the trail. */
static inline void tale_say(tale *t, const char *word)
{
    char *longer = NULL;

    cr_assert(asprintf(&longer, "%s%s%s", t->trail ? t->trail : "", t->trail ? " " : "", word) > 0);
    free(t->trail);
    t->trail = longer;
}

/* Somebody takes the process out of the troubleshooting queue. */
static inline void tale_retry(cb_uuid id)
{
    cb_error e;

    cr_assert(cb_process_retry(bus.db, id.text, "ann", "mended", NULL, &e), "%s", e.message);
}

#endif
