/* One call: a handle of the pool, bounded in time and size. */
#include "http_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_answer.h"
#include "http_pool.h"
#include "http_settings.h"

enum {
    LARGEST_ANSWER = 1024 * 1024,
    LARGEST_REQUEST = 1024 * 1024,
    CONNECT_MS = 2000,
    LONGEST_CALL_MS = 300000, /* where nobody bounds the run */
    MARGIN_MS = 200,          /* left for saying what became of the call */
    LONGEST_URL = 1000,
    LONGEST_BEHAVIOUR = 4096
};

struct http_client {
    http_settings settings;
    http_pool pool;
};

bool http_client_configure(const char *set, const cb_module_config *config, http_client **ret,
                           cb_error *e)
{
    http_client *c = calloc(1, sizeof *c);

    if (!c)
        return cb_fail(e, CB_MEMORY, "out of memory");
    if (!http_settings_take(set, config, &c->settings, e)) {
        free(c);
        return false;
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        http_settings_done(&c->settings);
        free(c);
        return cb_fail(e, CB_MEMORY, "libcurl does not start");
    }
    http_pool_init(&c->pool);
    *ret = c;
    return true;
}

void http_client_free(http_client *c)
{
    if (!c)
        return;
    http_pool_done(&c->pool);
    curl_global_cleanup(); /* counted: another set may go on */
    http_settings_done(&c->settings);
    free(c);
}

/* An answer on its way in. */
typedef struct {
    char *bytes;
    size_t size;
    bool is_too_large;
} incoming;

static size_t collect(char *bytes, size_t unit, size_t n, void *arg)
{
    incoming *in = arg;
    size_t size = unit * n;
    char *more;

    in->is_too_large = size > LARGEST_ANSWER - in->size;
    if (in->is_too_large || !(more = realloc(in->bytes, in->size + size + 1)))
        return 0; /* libcurl gives up */
    memcpy(more + in->size, bytes, size);
    in->bytes = more;
    in->size += size;
    in->bytes[in->size] = '\0';
    return size;
}

/* Asked about once a second: a call whose outcome does not count any more keeps a slot for
 * nothing. */
static int is_futile(void *ctx, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t upped)
{
    (void)total, (void)now, (void)up, (void)upped;
    return cb_context_lost(ctx);
}

/* Asked when the connection is there and nothing is sent yet: the last moment at which it can be
 * left. Connecting takes time, and a worker may have been stopped meanwhile. */
static int is_too_late(void *ctx, char *to, char *from, int to_port, int from_port)
{
    (void)to, (void)from, (void)to_port, (void)from_port;
    return cb_context_lost(ctx) || cb_context_remaining_ms(ctx) <= 0 ? CURL_PREREQFUNC_ABORT
                                                                     : CURL_PREREQFUNC_OK;
}

static struct curl_slist *headers_of(cb_context *ctx, const char *behaviour)
{
    char key[256], behaving[LONGEST_BEHAVIOUR + 32];
    struct curl_slist *list = NULL, *more;
    const char *const lines[] = { key, "Content-Type: application/json", "Accept: application/json",
                                  "Expect:" /* no round trip to ask whether a body is welcome */,
                                  behaving };

    snprintf(key, sizeof key, "Idempotency-Key: %s", cb_context_key(ctx));
    snprintf(behaving, sizeof behaving, "Simulator-Behaviour: %s", behaviour ? behaviour : "");
    for (size_t i = 0; i < CB_COUNT(lines) - !behaviour; i++) {
        if (!(more = curl_slist_append(list, lines[i]))) {
            curl_slist_free_all(list);
            return NULL;
        }
        list = more;
    }
    return list;
}

static CURLcode perform(const http_client *c, CURL *h, cb_context *ctx, const char *path,
                        const char *body, struct curl_slist *headers, int64_t ms, incoming *in)
{
    char url[LONGEST_URL];

    if (snprintf(url, sizeof url, "%s%s", c->settings.url, path) >= LONGEST_URL)
        return CURLE_URL_MALFORMAT;
    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L); /* there are threads */
    curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)(ms < CONNECT_MS ? ms : CONNECT_MS));
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)ms);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, in);
    curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, is_futile);
    curl_easy_setopt(h, CURLOPT_XFERINFODATA, ctx);
    curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, is_too_late);
    curl_easy_setopt(h, CURLOPT_PREREQDATA, ctx);
    /* On a kept connection that closes without an answer curl sends again by itself. What may be
     * tried once only gets a connection of its own, where it does not. */
    curl_easy_setopt(h, CURLOPT_FRESH_CONNECT, cb_context_max_attempts(ctx) == 1 ? 1L : 0L);
    if (c->settings.ca_file) {
        curl_easy_setopt(h, CURLOPT_CAINFO, c->settings.ca_file);
        curl_easy_setopt(h, CURLOPT_CAPATH,
                         NULL); /* the system's folder is trusted beside it otherwise */
    }
    return curl_easy_perform(h);
}

static cb_outcome ended(cb_context *ctx, CURL *h, CURLcode how, const char *path,
                        const incoming *in, json_object **ret, long *status)
{
    http_answer a = { .path = path, .body = in->bytes ? in->bytes : "", .size = in->size };
    curl_off_t wait = 0;

    if (in->is_too_large)
        return http_answer_invalid(ctx, path, "the answer has more than 1 MiB");
    if (how != CURLE_OK)
        return http_no_answer(ctx, path, how);
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &a.status);
    curl_easy_getinfo(h, CURLINFO_RETRY_AFTER, &wait);
    *status = a.status;
    a.retry_after = (long)wait;
    return http_answer_outcome(ctx, &a, ret);
}

static cb_outcome post(http_client *c, cb_context *ctx, const char *path, const char *body,
                       const char *behaviour, int64_t ms, json_object **ret, long *status)
{
    CURL *h = http_pool_take(&c->pool);
    struct curl_slist *headers = headers_of(ctx, behaviour);
    incoming in = { 0 };
    cb_outcome outcome = CB_TRANSIENT;

    if (h && headers) {
        CURLcode how = perform(c, h, ctx, path, body, headers, ms, &in);
        outcome = ended(ctx, h, how, path, &in, ret, status);
    } else {
        outcome = cb_transient(ctx, "NO_MEMORY", "out of memory");
    }
    if (h)
        http_pool_give(&c->pool, h);
    curl_slist_free_all(headers);
    free(in.bytes);
    return outcome;
}

static cb_outcome call(http_client *c, cb_context *ctx, const char *path, json_object *body,
                       const char *behaviour, json_object **ret, long *status)
{
    const char *text = body ? json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN) : "{}";
    int64_t ms = cb_context_remaining_ms(ctx);

    if (!text)
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    if (strlen(text) > LARGEST_REQUEST)
        return cb_permanent(ctx, "REQUEST_TOO_LARGE", "POST %s: more than 1 MiB", path);
    if (cb_context_lost(ctx))
        return cb_transient(ctx, "LEASE_LOST", "somebody else may run this command now");
    ms = ms < LONGEST_CALL_MS ? ms - MARGIN_MS : LONGEST_CALL_MS;
    if (ms <= 0)
        return cb_transient(ctx, "OUT_OF_TIME", "POST %s: no time left to call", path);
    return post(c, ctx, path, text, behaviour, ms, ret, status);
}

cb_outcome http_call(http_client *c, cb_context *ctx, const char *path, json_object *body,
                     json_object **ret, long *status)
{
    return call(c, ctx, path, body, NULL, ret, status);
}

cb_outcome http_post(http_client *c, cb_context *ctx, const char *path, json_object *body,
                     json_object **ret)
{
    long status;

    return call(c, ctx, path, body, NULL, ret, &status);
}

/* What could end the header and begin another is not a behaviour. */
static bool is_header_text(const char *text)
{
    size_t n = 0;

    while (text[n] >= ' ' && text[n] <= '~')
        n++;
    return !text[n] && n <= LONGEST_BEHAVIOUR;
}

cb_outcome http_post_behaving(http_client *c, cb_context *ctx, const char *path, json_object *body,
                              json_object *behaviour, json_object **ret)
{
    const char *text =
        behaviour ? json_object_to_json_string_ext(behaviour, JSON_C_TO_STRING_PLAIN) : NULL;
    long status;

    if (behaviour && !text)
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    if (text && (!json_object_is_type(behaviour, json_type_object) || !is_header_text(text)))
        return cb_permanent(ctx, "INVALID_DATA",
                            "\"behaviour\" must be a JSON object of at most %d printable ASCII "
                            "characters",
                            LONGEST_BEHAVIOUR);
    return call(c, ctx, path, body, text, ret, &status);
}
