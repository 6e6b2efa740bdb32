/* Making answers. */
#include "answer.h"

#include <stdarg.h>
#include <stdio.h>

answer answer_json_adopt(unsigned status, json_object *body)
{
    return (answer){ .status = status, .body = body };
}

answer answer_refusal(unsigned status, const char *code, const char *fmt, ...)
{
    json_object *body = json_object_new_object();
    char message[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    json_object_object_add(body, "code", json_object_new_string(code));
    json_object_object_add(body, "message", json_object_new_string(message));
    return answer_json_adopt(status, body);
}

void answer_done(answer *a)
{
    json_object_put(a->body);
    a->body = NULL;
}
