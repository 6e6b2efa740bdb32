/* What a route says when it cannot do what it was asked. */
#include <commandbus/route.h>
#include <stdarg.h>
#include <stdio.h>

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
