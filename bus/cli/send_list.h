/* Commands from a file of JSON lines. */
#ifndef CLI_SEND_LIST_H
#define CLI_SEND_LIST_H

#include <commandbus/owned.h>
#include <commandbus/send.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    cb_send *commands; /* borrow from texts */
    size_t *lines;     /* the line each came from */
    char **texts;
    size_t n, room;
    size_t with_id; /* how many bring their command_id */
} send_list;

/* Reads and checks all of a file ("-" is stdin): one object a line with the arguments of send. What
 * a line lacks comes from `defaults`, which must outlive the list. The first `skip` commands are
 * checked but left out. A failure names the line. */
bool send_list_read(const char *path, const cb_send *defaults, size_t skip, send_list **ret,
                    cb_error *e);

void send_list_free(send_list *list);
DEFINE_OWNED(send_list, send_list_free)

#endif
