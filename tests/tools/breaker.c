/* breaker SERVER_PORT [SEED]: a network between workers and a PostgreSQL server at 127.0.0.1 that
 * loses answers.
 *
 * Listens on a free port of 127.0.0.1 and prints `port N`. Forwards until SIGUSR1; from then on, of
 * EVERY answers to a statement or a pipeline, one is thrown away at random and its connection cut:
 * the server has committed and the client cannot know. SIGUSR2 ends that. SIGTERM prints `cut N`
 * and ends it. Who stops it with SIGSTOP has a network that swallows everything and closes nothing.
 *
 * Connections must not be encrypted (sslmode=disable gssencmode=disable): answers are recognised
 * by the boundaries of the server's messages. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "framing.h"

enum {
    EVERY = 12
};

typedef struct {
    int client, server;
    framing answers;
    bool logged_in; /* the first ReadyForQuery ends the login and answers nothing */
} connection;

static uint16_t server_port;
static atomic_bool breaking;
static atomic_uint chance, cuts;

static bool is_unlucky(void)
{
    unsigned x = atomic_fetch_add(&chance, 0x9E3779B9u);

    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return (x ^ x >> 16) % EVERY == 0;
}

static bool pass(int from, int to, connection *answering)
{
    unsigned char bytes[65536];
    ssize_t n = recv(from, bytes, sizeof bytes, 0);

    if (n <= 0)
        return false;
    if (answering && framing_follow(&answering->answers, bytes, (size_t)n)) {
        if (answering->logged_in && atomic_load(&breaking) && is_unlucky()) {
            atomic_fetch_add(&cuts, 1);
            return false;
        }
        answering->logged_in = true;
    }
    for (ssize_t sent = 0, one; sent < n; sent += one) {
        one = send(to, bytes + sent, (size_t)(n - sent), MSG_NOSIGNAL);
        if (one <= 0)
            return false;
    }
    return true;
}

static void *carry(void *arg)
{
    connection *c = arg;
    struct pollfd fds[] = { { .fd = c->client, .events = POLLIN },
                            { .fd = c->server, .events = POLLIN } };
    bool fine = true;

    while (fine && poll(fds, 2, -1) > 0) {
        if (fds[0].revents)
            fine = pass(c->client, c->server, NULL);
        if (fine && fds[1].revents)
            fine = pass(c->server, c->client, c);
    }
    close(c->client);
    close(c->server);
    free(c);
    return NULL;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void take_up(int client)
{
    struct sockaddr_in server = loopback(server_port);
    connection *c = calloc(1, sizeof *c);
    pthread_t thread;

    if (!c)
        abort();
    c->client = client;
    c->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(c->server, (const struct sockaddr *)&server, sizeof server) == 0 &&
        pthread_create(&thread, NULL, carry, c) == 0) {
        pthread_detach(thread);
        return;
    }
    close(c->client);
    close(c->server);
    free(c);
}

static void *listen_for_clients(void *arg)
{
    int listener = *(const int *)arg;

    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client >= 0)
            take_up(client);
    }
    return NULL;
}

static void obey_signals(const sigset_t *signals)
{
    int signal = 0;

    while (sigwait(signals, &signal) == 0 && signal != SIGTERM)
        atomic_store(&breaking, signal == SIGUSR1);
    printf("cut %u\n", atomic_load(&cuts));
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    sigset_t signals;
    pthread_t thread;

    if (argc < 2 || (server_port = (uint16_t)strtoul(argv[1], NULL, 10)) == 0) {
        fprintf(stderr, "usage: breaker SERVER_PORT [SEED]\n");
        return 2;
    }
    atomic_store(&chance, argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 100) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&thread, NULL, listen_for_clients, &listener) != 0) {
        perror("breaker");
        return 1;
    }
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    obey_signals(&signals);
    fflush(stdout);
    _exit(0); /* and not by return: connections are served still */
}
