/* The state of the processes in these tests, and steps that count how often they really ran. A test
 * is a process of its own, so that static counters begin at 0. */
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
stage tale_open(const cb_process_type *type);
/* The same processes, other code. */
void tale_release(stage *s, const cb_process_type *type);

/* Adds a word to the trail. */
void tale_say(tale *t, const char *word);

/* A step that adds one to the count, and how often it really ran. */
cb_outcome tale_count(cb_context *ctx, void *state);
extern int tale_counted;

/* A response that approves, and the condition that it is approved. */
bool tale_approve(void *state, json_object *payload);
bool tale_is_approved(const void *state);

/* Somebody takes the process out of the troubleshooting queue. */
void tale_retry(cb_uuid id);

#endif
