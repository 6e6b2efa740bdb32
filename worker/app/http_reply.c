/* Sending an answer, with the headers that every one has and those that its status needs. */
#include "http_reply.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    unsigned status;
    const char *name, *value;
} extra_headers[] = {
    { MHD_HTTP_UNAUTHORIZED, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer" },
    { MHD_HTTP_SERVICE_UNAVAILABLE, MHD_HTTP_HEADER_RETRY_AFTER, "1" },
};

static void add_headers(struct MHD_Response *response, const http_answer *answer)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (answer->allow[0])
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, answer->allow);
    for (size_t i = 0; i < sizeof extra_headers / sizeof *extra_headers; i++) {
        if (extra_headers[i].status == answer->status)
            MHD_add_response_header(response, extra_headers[i].name, extra_headers[i].value);
    }
}

enum MHD_Result http_reply(struct MHD_Connection *connection, http_answer *answer)
{
    if (!answer->body)
        return MHD_NO;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(answer->body), answer->body, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(answer->body);
        return MHD_NO;
    }
    add_headers(response, answer);
    enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}
