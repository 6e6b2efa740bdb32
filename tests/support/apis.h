/* The sets fx and risk as a worker would have them, and running one command of theirs. */
#ifndef TEST_SUPPORT_APIS_H
#define TEST_SUPPORT_APIS_H

#include <commandbus/host.h>

typedef struct {
    char outcome[100]; /* "PERMANENT INVALID_DATA", or "SUCCESS" */
    char result[500];
    char message[1000];
    double retry_seconds;
} api_run;

/* Loads the sets fx and risk, which call this URL. Fails the test when it cannot. */
void apis_open(const char *url);
void apis_close(void);

cb_command api_command(const char *type, const char *data);
/* With a host that decides about time and lease, or NULL. */
api_run api_do(const cb_command *command, const cb_host *host, void *arg);
api_run api_do_once(const char *type, const char *data);

#endif
