/* Warnings of the configuration, kept until the configuration has said how to log them. */
#ifndef APP_WARNINGS_H
#define APP_WARNINGS_H

#include "log.h"

typedef struct {
    char **texts; /* message, hint, message, hint, … */
    size_t n;
} warnings;

/* A config_warn_fn whose arg is the warnings. One for which there is no memory is lost. */
void warnings_add(const char *message, const char *hint, void *arg);

/* As events config.warning. */
void warnings_log(const warnings *w, log_sink *sink);
/* As plain lines on stderr, for --check-config. */
void warnings_print(const warnings *w);

void warnings_done(warnings *w);

#endif
