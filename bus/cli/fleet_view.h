/* One look at the fleet: instances, domains and process types, and what is wrong with them. */
#ifndef CLI_FLEET_VIEW_H
#define CLI_FLEET_VIEW_H

#include <commandbus/fleet.h>
#include <stdio.h>

typedef struct {
    cb_rows *workers, *domains, *processes; /* owned */
} fleet_view;

/* Replaces what *view holds, on success only. Start with { 0 }. */
bool fleet_look(cb_db *db, fleet_view *view, cb_error *e);
void fleet_view_done(fleet_view *view);

/* A column as text, "-" for NULL. Borrowed. */
const char *fleet_text(const cb_rows *rows, size_t row, const char *column);
/* A column as a number, 0 for NULL. */
double fleet_number(const cb_rows *rows, size_t row, const char *column);

/* The colour of a domain's row: red when something is wrong with it. */
int fleet_domain_colour(const fleet_view *view, size_t row);

/* How long: "4s", "12m", "3h", "2d". Returns the buffer. */
const char *fleet_age(double seconds, char *buffer, size_t size);

/* There is an instance that was heard of in the last minute. */
bool fleet_has_live(const fleet_view *view);

/* The table of the instances that live, for people; nothing when there is none. */
void fleet_print_instances(FILE *out, const fleet_view *view, bool colour);

/* The table of process types after an empty line; nothing when there are none. */
void fleet_print_processes(FILE *out, const fleet_view *view, bool colour);

/* What is wrong, one a line, for people; or as a JSON array. */
void fleet_print_problems(FILE *out, const fleet_view *view, bool colour);
void fleet_write_problems(FILE *out, const fleet_view *view);

#endif
