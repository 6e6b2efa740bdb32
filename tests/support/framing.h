/* Where the messages of a PostgreSQL server begin and end, for those who stand between it and a
 * client. */
#ifndef TEST_FRAMING_H
#define TEST_FRAMING_H

#include <stdbool.h>
#include <stddef.h>

/* Where the server's stream stands: in a message of which `left` bytes are to come, or in a header
 * of which it has `have`. All zero at the beginning of a connection. */
typedef struct {
    unsigned char header[5]; /* type and length */
    size_t have, left;
} framing;

/* Follows the bytes; true when a ReadyForQuery, which comes after the commit, ended among them. */
static inline bool framing_follow(framing *f, const unsigned char *bytes, size_t n)
{
    bool ready = false;

    for (size_t i = 0; i < n; i++) {
        if (f->left > 0) {
            f->left--;
        } else {
            f->header[f->have++] = bytes[i];
            if (f->have < sizeof f->header)
                continue;
            f->left = ((size_t)f->header[1] << 24 | (size_t)f->header[2] << 16 |
                       (size_t)f->header[3] << 8 | f->header[4]) -
                      4;
            f->have = 0;
        }
        ready |= f->left == 0 && f->header[0] == 'Z';
    }
    return ready;
}

#endif
