/* All that is known about one script, in memory. */
#ifndef TEST_TOYS_SCRIPT_STORY_H
#define TEST_TOYS_SCRIPT_STORY_H

#include <commandbus/handler.h>
#include <libpq-fe.h>
#include <stdio.h>

#include "script.h"

enum {
    MOST_EFFECTS = 400
};

typedef struct {
    char direction; /* 's' done, 'u' undone */
    int op;
    char key[40];
    char letter; /* see script.h */
} effect;

typedef struct {
    json_object *row; /* see story_read */
    json_object *history, *commands, *state, *ops;
    effect effects[MOST_EFFECTS];
    int n_effects;
    FILE *problems;
    int n_problems;
} story;

void story_read(story *s, PGconn *conn, const char *process_id, const char *log);
void story_done(story *s);

__attribute__((format(printf, 2, 3))) void story_wrong(story *s, const char *fmt, ...);

/* Members of a row, "" and 0 when there are none. */
const char *story_text(json_object *o, const char *key);
int story_number(json_object *o, const char *key);
bool story_is(json_object *o, const char *key, const char *value);

/* The record of an operation (direction 's') or of what undid it ('u'); NULL: none. */
json_object *story_record(const story *s, char direction, int op);
bool story_is_completed(json_object *record);
/* Its last effect's letter; 0: none. */
char story_last(const story *s, char direction, int op);
/* Operators' requests of this name. */
int story_decisions(const story *s, const char *name);
/* An operator has ended it although nobody knew how a command or step ended. */
bool story_is_forced(const story *s);
/* Its command was completed by hand. */
bool story_by_hand(const story *s, char direction, int op);

#endif
