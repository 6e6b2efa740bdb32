/* Ownership by scope: an OWNED(T) local is freed when its block ends, unless it was taken.
 *
 *     OWNED(cb_db) db = NULL;
 *     if (!cb_db_open(url, &db, e))
 *         return false;
 *     *ret = cb_db_take(&db);
 */
#ifndef COMMANDBUS_OWNED_H
#define COMMANDBUS_OWNED_H

#include <stddef.h>

/* unused: clang does not count the clean-up as a use, and some locals are only there to be
 * freed. */
#define OWNED(T) __attribute__((cleanup(T##_drop), unused)) T *

/* unused: a file that only drops or only takes is fine. */
#define DEFINE_OWNED(T, free_fn)                               \
    __attribute__((unused)) static inline void T##_drop(T **p) \
    {                                                          \
        if (*p)                                                \
            free_fn(*p);                                       \
    }                                                          \
    __attribute__((unused)) static inline T *T##_take(T **p)   \
    {                                                          \
        T *t = *p;                                             \
        *p = NULL;                                             \
        return t;                                              \
    }

#endif
