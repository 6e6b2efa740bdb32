/* What an answer of an API means for the command. */
#ifndef HANDLER_HTTP_ANSWER_H
#define HANDLER_HTTP_ANSWER_H

#include <commandbus/handler.h>
#include <curl/curl.h>

typedef struct {
    const char *path; /* what was called, for messages */
    long status;
    long retry_after; /* seconds; 0: nothing was said */
    const char *body; /* NUL-terminated */
    size_t size;
} http_answer;

/* 2xx success, 422 declined, 408, 425, 429 and 5xx transient, all else permanent. The code is the
 * answer's own "code" where it has one, else HTTP_<status>. With CB_SUCCESS *ret is the
 * caller's. */
cb_outcome http_answer_outcome(cb_context *ctx, const http_answer *a, json_object **ret);
/* There was no answer: transient, whatever the reason, for nobody knows what the other side did. */
cb_outcome http_no_answer(cb_context *ctx, const char *path, CURLcode reason);
/* An answer that says yes but not what was asked: permanent RESPONSE_INVALID, for the same key gets
 * the same answer. */
cb_outcome http_answer_invalid(cb_context *ctx, const char *path, const char *why);

#endif
