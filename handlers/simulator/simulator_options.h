/* The command line. */
#ifndef SIMULATOR_OPTIONS_H
#define SIMULATOR_OPTIONS_H

#include <stdio.h>

#include "simulator.h"

typedef struct {
    int64_t port; /* 0: any free one */
    const char *bind;
    simulator_options simulator;
    int64_t seed, hold_seconds;
    bool help;
} options;

bool options_parse(char **words, options *ret, cb_error *e) CB_NODISCARD;
void options_help(FILE *out);

#endif
