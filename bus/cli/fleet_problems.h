/* What is wrong with the fleet, in words. */
#ifndef CLI_FLEET_PROBLEMS_H
#define CLI_FLEET_PROBLEMS_H

#include "fleet_view.h"

/* Called for each thing that is wrong: its kind, the domain or instance, and words for people. */
typedef void fleet_problem_fn(const char *kind, const char *subject, const char *words, void *arg);
void fleet_each_problem(const fleet_view *view, fleet_problem_fn *fn, void *arg);

/* All of them, one a line, for people; or as a JSON array. */
void fleet_print_problems(FILE *out, const fleet_view *view, bool colour);
void fleet_write_problems(FILE *out, const fleet_view *view);

#endif
