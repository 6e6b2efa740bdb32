/* Answers of somebody's API as handlers get them from libcurl: every one has an outcome by its
 * status, with a code that is a word.
 *
 *     status
 *     Retry-After
 *     the body, with all lines that follow */
#include "fuzz.h"

#include <commandbus/host.h>
#include <json-c/json.h>

#include "http_answer.h"
#include "json_check.h"

static http_answer came;

static cb_outcome handler(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    return http_answer_outcome(ctx, &came, result);
}

static cb_outcome expected(long status)
{
    if (status >= 200 && status <= 299)
        return CB_SUCCESS;
    if (status == 422)
        return CB_BUSINESS_RULE;
    return status == 408 || status == 425 || status == 429 || (status >= 500 && status <= 599)
               ? CB_TRANSIENT
               : CB_PERMANENT;
}

static void check(const cb_settlement *out)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    bool invalid = expected(came.status) == CB_SUCCESS && out->outcome == CB_PERMANENT;

    FUZZ_CHECK(out->outcome == expected(came.status) || invalid, "outcome %d", (int)out->outcome);
    if (out->outcome == CB_SUCCESS) {
        FUZZ_CHECK(*out->result == '{', "no object: %s", out->result);
        FUZZ_CHECK(strlen(came.body) == came.size && json_check(came.body, JSON_OBJECT, "it", NULL),
                   "not what was sent: %s", out->result);
        return;
    }
    FUZZ_CHECK(out->error_code && strspn(out->error_code, letters) == strlen(out->error_code) &&
                   *out->error_code && strlen(out->error_code) <= 64,
               "code %s", out->error_code);
    FUZZ_CHECK(out->retry_seconds >= 0 && out->retry_seconds <= 3600, "%g", out->retry_seconds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const cb_command command = { .domain = "fx", .command_type = "BookFx", .data = "{}" };
    FUZZ_SPLIT(in, data, size);
    OWNED(cb_context) ctx = NULL;
    cb_settlement out = { 0 };
    cb_error e = { 0 };
    size_t skip = 0;

    for (int line = 0; line < 2 && skip < size; line++) {
        const uint8_t *end = memchr(data + skip, '\n', size - skip);
        skip = end ? (size_t)(end + 1 - data) : size;
    }
    FUZZ_TEXT(body, data + skip, size - skip);
    came = (http_answer){ .path = "/bookings",
                          .status = strtol(fuzz_line(&in, 0), NULL, 10),
                          .retry_after = strtol(fuzz_line(&in, 1), NULL, 10),
                          .body = body,
                          .size = size - skip };
    FUZZ_CHECK(cb_context_open(&command, NULL, NULL, &ctx, &e), "%s", e.message);
    cb_context_run(ctx, handler, 0, &out);
    check(&out);
    return 0;
}
