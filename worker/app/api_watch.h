/* Routes that wait for the database longer than they may: what runs on their connection is cancelled, so that a lock which
 * somebody holds costs a request, and neither a thread nor the end of the worker. */
#ifndef APP_API_WATCH_H
#define APP_API_WATCH_H

#include <commandbus/db.h>
#include <stdint.h>

typedef struct api_watch api_watch;

/* Milliseconds of a clock that nobody sets. */
int64_t api_now_ms(void);

/* Starts its thread. For so many threads that run routes, which call themselves 0 to n - 1. */
bool api_watch_open(size_t n, api_watch **ret, cb_error *e) CB_NODISCARD;
/* Nothing is watched any more by then. NULL is fine. */
void api_watch_free(api_watch *w);
DEFINE_OWNED(api_watch, api_watch_free)

/* From `due_ms` on every statement on db is cancelled, a second apart, until the end. */
bool api_watch_begin(api_watch *w, size_t thread, cb_db *db, int64_t due_ms,
                     cb_error *e) CB_NODISCARD;
/* Whether there was something to cancel, as far as one can tell: its time was over. From here on nothing is cancelled. */
bool api_watch_end(api_watch *w, size_t thread);

/* Whatever runs now or later is due then, unless it is earlier. */
void api_watch_hurry(api_watch *w, int64_t due_ms);

#endif
