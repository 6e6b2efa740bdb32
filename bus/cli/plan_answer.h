/* The answer of plan, for people and for programs. */
#ifndef CLI_PLAN_ANSWER_H
#define CLI_PLAN_ANSWER_H

#include "cli.h"
#include "plan_load.h"
#include "plan_options.h"

typedef struct {
    const char *domain;                                /* NULL: not said */
    const char *surge;                                 /* as it was written */
    double limit_rate;                                 /* that the API allows; 0: not said */
    const char *limit_from, *rate_from, *latency_from; /* where each figure is from */
    plan_request request;
    const plan_load *load; /* what was measured; NULL: nothing */
    plan plan;
} plan_answer;

enum {
    PLAN_TEXT = 512
};

/* Why this one is recommended, or why none is. Returns the buffer. */
const char *plan_why(const plan_answer *a, char buffer[PLAN_TEXT]);

/* What the figures stand on, one sentence each; NULL ends them. */
extern const char *const plan_assumptions[];

/* The name of the variable that sets a key of the domain, such as "CONCURRENT_MESSAGES". Returns the buffer. */
const char *plan_variable(const plan_answer *a, const char *key, char *buffer, size_t size);

void plan_print(const cli *c, const plan_answer *a);
void plan_print_json(const plan_answer *a);

#endif
