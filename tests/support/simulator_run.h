/* handlers/simulator as a child of the test: the APIs that handlers call, and asking it over
 * HTTP. */
#ifndef TEST_SUPPORT_SIMULATOR_H
#define TEST_SUPPORT_SIMULATOR_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct {
    pid_t pid;
    int port;
    char url[64];
} test_simulator;

/* With a database, or NULL, and further arguments such as "--chaos" "--seed" "7", or NULL, all on a
 * port of their own. All of these but simulator_try fail the test when they cannot. */
test_simulator simulator_start(const char *database_url, const char *const arguments[]);
/* SIGTERM; it must end with 0. */
void simulator_stop(const test_simulator *s);

typedef struct {
    const char *method, *path;
    const char *key;       /* or NULL */
    const char *behaviour; /* for this call only, or NULL */
    const char *body;      /* or NULL */
    int patience_ms;       /* hangs up after this long [patience_seconds of wait.h] */
} simulator_call;

typedef struct {
    int status; /* 0: no answer */
    int retry_after;
    char body[2000]; /* the beginning of a longer one */
} simulator_answer;

/* For threads too: asserts nothing. */
simulator_answer simulator_try(const test_simulator *s, const simulator_call *c);
/* The answer's body, which must be that of a 2xx; the caller owns it. */
json_object *simulator_ask(const test_simulator *s, const char *method, const char *path,
                           const char *body);
void simulator_behave(const test_simulator *s, const char *place, const char *behaviour);

/* A number of GET /stats, by its path: "fx/most_in_flight", "risk/bookings/open". */
long simulator_number(const test_simulator *s, const char *path);
/* Waits until it is that; fails when its patience (wait.h) is over. */
void simulator_await(const test_simulator *s, const char *path, long expected);

#endif
