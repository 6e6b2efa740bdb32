/* A request, and reading what it asks for. The first thing wrong is said, as 400 INVALID_DATA. */
#ifndef SIMULATOR_REQUEST_H
#define SIMULATOR_REQUEST_H

#include <commandbus/money.h>
#include <commandbus/uuid.h>

#include "answer.h"

enum {
    LONGEST_TEXT = 200,
    LONGEST_ID = 64
};

typedef struct {
    const char *body; /* text, NUL-terminated */
    size_t body_size;
    json_object *json;       /* of the body; an object once it was read */
    char id[LONGEST_ID + 1]; /* the part of the path that {} stands for */
    const char *key;         /* Idempotency-Key, or NULL */
    const char *behaviour;   /* Simulator-Behaviour, or NULL */
    int socket;              /* the caller's */
} request;

/* Parses the body; an empty one is {}. */
bool request_read(request *r, answer *refused);
bool request_text(const request *r, const char *name, const char **ret, answer *refused);
bool request_uuid(const request *r, const char *name, cb_uuid *ret, answer *refused);
/* More than nothing, in a currency of ISO 4217. */
bool request_money(const request *r, const char *amount, const char *currency, cb_money *ret,
                   answer *refused);
/* 2030-01-31 */
bool request_day(const request *r, const char *name, answer *refused);
/* A hash of the body and the id: what a key stands for. */
uint64_t request_hash(const request *r);

#endif
