/* One process as a person wants to read it: what it is doing, what to do about it, what
 * happened. */
#ifndef CLI_PROCESS_VIEW_H
#define CLI_PROCESS_VIEW_H

#include <commandbus/process_query.h>
#include <json-c/json.h>

/* A row of cb_process_show, taken apart. */
typedef struct {
    const cb_rows *rows;                                     /* borrowed */
    json_object *records, *attempts, *inbox, *events, *owed; /* arrays, owned */
    double now;                                              /* by the clock of process timers */
} process_view;

void process_view_open(process_view *v, const cb_rows *rows);
void process_view_done(process_view *v);

/* A column, or NULL. Borrowed. */
const char *process_text(const process_view *v, const char *column);
bool process_is(const process_view *v, const char *column, const char *value);
/* Seconds until a column's moment, negative when it is over; false when there is none. */
bool process_until(const process_view *v, const char *column, double *seconds);

/* A member of an object as text, or NULL. Borrowed. */
const char *json_member_text(json_object *object, const char *key);
/* The same, but "-" for NULL. */
const char *json_member_shown(json_object *object, const char *key);
bool json_member_is(json_object *object, const char *key, const char *value);
/* A member itself, NULL also for null. Borrowed. */
json_object *json_member_of(json_object *object, const char *key);
/* STARTED, RETRY or WAITING. */
bool process_record_is_open(json_object *record);
/* The record that is open, else the last whose command FAILED; NULL when there is none.
 * Borrowed. */
json_object *process_open_record(const process_view *v);
/* The record of an ordinal, or NULL. */
json_object *process_record(const process_view *v, int ordinal);

/* What it is and what it is doing. */
void process_print_head(const process_view *v);
/* What to do next, with the command lines; nothing when there is nothing to do. */
void process_print_advice(const process_view *v);
/* Everything that happened, in the order of time. */
void process_print_story(const process_view *v);

#endif
