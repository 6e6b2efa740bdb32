/* What a call is answered with. */
#ifndef SIMULATOR_ANSWER_H
#define SIMULATOR_ANSWER_H

#include <commandbus/api.h>
#include <json-c/json_object.h>
#include <stdbool.h>

typedef struct {
    unsigned status;   /* of HTTP */
    json_object *body; /* owned */
    int retry_after;   /* seconds; 0: nothing is said about it */
    bool hangs_up;     /* no answer at all: the connection is closed */
} answer;

answer answer_json_adopt(unsigned status, json_object *body);
/* {"code", "message"} */
answer answer_refusal(unsigned status, const char *code, const char *fmt, ...) CB_PRINTF(3, 4);
void answer_done(answer *a);

#endif
