/* Listening. */
#include "http_listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fail.h"

/* What is wrong, and another of which setting may help. */
static const struct {
    int reason;
    const char *problem;
    const char *setting; /* NULL: the port's */
    const char *remark;
} hints[] = {
    { EADDRINUSE, "Another program listens there, perhaps another worker.", NULL,
      ", or 0 for none" },
    { EADDRNOTAVAIL, "This machine has no such address.", "http.bind",
      "; 0.0.0.0 or :: is every address" },
    { EACCES, "Ports below 1024 need a privilege.", NULL, "" },
    { EAFNOSUPPORT, "This machine has no such kind of address.", "http.bind", "" },
};

enum {
    BACKLOG = 512 /* of those who come all at once */
};

static bool fail_listening(cb_error *e, const char *host, const http_port *port, int reason)
{
    char hint[160] = "";

    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        if (hints[i].reason == reason)
            snprintf(hint, sizeof hint, "%s Choose another %s%s.", hints[i].problem,
                     hints[i].setting ? hints[i].setting : port->key, hints[i].remark);
    }
    return fail_misuse(e, hint, "cannot listen on http.bind '%s', %s %d: %s", host, port->key,
                       port->number, strerror(reason));
}

static bool name_of(int fd, char address[HTTP_ADDRESS_MOST])
{
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    char host[64], port[8];

    if (getsockname(fd, (struct sockaddr *)&name, &size) != 0 ||
        getnameinfo((struct sockaddr *)&name, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    snprintf(address, HTTP_ADDRESS_MOST, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    return true;
}

static bool open_socket(const struct addrinfo *where, int fd)
{
    const int yes = 1, no = 0;

    /* A restart must not wait for connections of the one before. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
        return false;
    if (where->ai_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0)
        return false;
    return bind(fd, where->ai_addr, where->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
}

bool http_listen(const char *host, const http_port *port, int *ret, char address[HTTP_ADDRESS_MOST],
                 cb_error *e)
{
    const struct addrinfo wanted = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                     .ai_socktype = SOCK_STREAM };
    struct addrinfo *where = NULL;
    char service[16];

    snprintf(service, sizeof service, "%d", port->number);
    if (!*host || getaddrinfo(host, service, &wanted, &where) != 0)
        return fail_misuse(
            e,
            "Give an IPv4 or IPv6 address: 127.0.0.1 or ::1 for this machine, 0.0.0.0 or "
            ":: for everybody.",
            "invalid address '%.100s' in http.bind", host);
    int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool fine = fd >= 0 && open_socket(where, fd) && name_of(fd, address);
    int reason = errno;
    freeaddrinfo(where);
    if (!fine) {
        if (fd >= 0)
            close(fd);
        return fail_listening(e, host, port, reason);
    }
    *ret = fd;
    return true;
}
