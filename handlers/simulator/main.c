/* commandbus-simulator: everybody whom a payment meets downstream. See README.md here. */
#include <signal.h>
#include <stdio.h>

#include "simulator_http.h"
#include "simulator_options.h"

static int complain(const cb_error *e)
{
    fprintf(stderr, "commandbus-simulator: %s\n", e->message);
    if (*e->hint)
        fprintf(stderr, "  hint: %s\n", e->hint);
    return e->code == CB_MISUSE ? 2 : 1;
}

static int serve(simulator *s, const options *o, const sigset_t *ends)
{
    http *server = NULL;
    cb_error e = { 0 };
    int got;

    if (!http_start(s, o->bind, (int)o->port, &server, &e))
        return complain(&e);
    printf("port %d\n", http_port(server));
    fflush(stdout);
    sigwait(ends, &got);
    simulator_end(s);
    http_stop(server);
    return 0;
}

int main(int argc, char **argv)
{
    simulator s;
    options o;
    sigset_t ends;
    cb_error e = { 0 };

    if (!options_parse(argv + (argc > 0), &o, &e))
        return complain(&e);
    if (o.help) {
        options_help(stdout);
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* before there are threads */
    int code = simulator_open(&s, &o.simulator, &e) ? serve(&s, &o, &ends) : complain(&e);
    simulator_done(&s);
    return code;
}
