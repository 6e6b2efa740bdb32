/* The defaults of settings, once: the keys of commandbus-worker (worker/config/keys.c) and the
 * options of the libraries, for programs that embed them and leave a setting out, have the same. */
#ifndef BASE_DEFAULTS_H
#define BASE_DEFAULTS_H

/* A default as a file would say it: DEFAULT_TEXT(DEFAULT_POLL_SECONDS) "s". */
#define DEFAULT_TEXT(...)  DEFAULT_TEXT_(__VA_ARGS__)
#define DEFAULT_TEXT_(...) #__VA_ARGS__

/* Of a domain. */
#define DEFAULT_CONCURRENT_MESSAGES     5
#define DEFAULT_VISIBILITY_SECONDS      30
#define DEFAULT_POLL_SECONDS            1
#define DEFAULT_HANDLER_TIMEOUT_SECONDS 30 /* at most the lease */
#define DEFAULT_MAX_ATTEMPTS            3
#define DEFAULT_RETRY_BACKOFF           10, 60, 300 /* seconds; the last repeats */
#define DEFAULT_EMPTY_BACKOFF_SECONDS   30          /* after each, by a schedule without entries */

/* Of a worker. */
#define DEFAULT_KILL_GRACE_SECONDS         30
#define DEFAULT_UNKNOWN_TYPE_GRACE_MINUTES 10
#define DEFAULT_REPLY_GRACE_SECONDS        60
#define DEFAULT_PAYLOAD_MIB                1 /* largest result of a handler */

/* Of a process type, for its waits. */
#define DEFAULT_WAIT_TIMEOUT_HOURS 1

#endif
