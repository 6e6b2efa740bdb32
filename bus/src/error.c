/* Filling error values, the names of their codes, and what a route says when it cannot do what
 * it was asked. */
#include <commandbus/error.h>
#include <commandbus/route.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

bool cb_fail(cb_error *e, cb_code code, const char *fmt, ...)
{
    if (!e)
        return false;

    char message[sizeof e->message]; /* The arguments may point into *e. */
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);

    utf8_trim(message);
    *e = (cb_error){ .code = code };
    memcpy(e->message, message, sizeof message);
    return false;
}

bool cb_fail_while(cb_error *e, const char *fmt, ...)
{
    if (!e)
        return false;

    char doing[sizeof e->message], message[2 * sizeof e->message + sizeof "while : "];
    va_list args;
    va_start(args, fmt);
    vsnprintf(doing, sizeof doing, fmt, args);
    va_end(args);

    snprintf(message, sizeof message, "while %s: %s", doing, e->message);
    memcpy(e->message, message, sizeof e->message);
    e->message[sizeof e->message - 1] = '\0';
    utf8_trim(e->message);
    return false;
}

static const char *const code_names[] = {
    [CB_OK] = "OK",
    [CB_LOST] = "LOST",
    [CB_AGAIN] = "AGAIN",
    [CB_DATA] = "DATA",
    [CB_DENIED] = "DENIED",
    [CB_SERVER] = "SERVER",
    [CB_MISUSE] = "MISUSE",
    [CB_MEMORY] = "MEMORY",
    [CB_SCHEMA] = "SCHEMA",
    [CB_DUPLICATE_COMMAND] = "DUPLICATE_COMMAND",
    [CB_COMMAND_NOT_FOUND] = "COMMAND_NOT_FOUND",
    [CB_PROCESS_NOT_FOUND] = "PROCESS_NOT_FOUND",
    [CB_BATCH_NOT_FOUND] = "BATCH_NOT_FOUND",
    [CB_BATCH_CLOSED] = "BATCH_CLOSED",
    [CB_BATCH_EMPTY] = "BATCH_EMPTY",
    [CB_INVALID_OPERATION] = "INVALID_OPERATION",
    [CB_UNKNOWN_DOMAIN] = "UNKNOWN_DOMAIN",
    [CB_UNKNOWN_PROCESS_TYPE] = "UNKNOWN_PROCESS_TYPE",
    [CB_INVALID_NAME] = "INVALID_NAME",
    [CB_INVALID_DATA] = "INVALID_DATA",
    [CB_PAYLOAD_TOO_LARGE] = "PAYLOAD_TOO_LARGE",
    [CB_SCHEMA_TOO_NEW] = "SCHEMA_TOO_NEW",
};

const char *cb_code_name(cb_code code)
{
    size_t i = (size_t)code;

    return i < sizeof code_names / sizeof *code_names ? code_names[i] : "UNKNOWN";
}

bool cb_code_is_refusal(cb_code code)
{
    return code >= CB_DUPLICATE_COMMAND && code <= CB_SCHEMA_TOO_NEW;
}

void cb_http_error(cb_http_answer *answer, unsigned status, const char *code, const char *fmt, ...)
{
    char message[1000];
    json_object *body = json_object_new_object();
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    json_object_object_add(body, "error", json_object_new_string(code));
    json_object_object_add(body, "message", json_object_new_string(message));
    json_object_put(answer->body);
    *answer = (cb_http_answer){ .status = status, .body = body };
}
