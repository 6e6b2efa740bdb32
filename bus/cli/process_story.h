/* Lines of the story of a process that more than one file prints. */
#ifndef CLI_PROCESS_STORY_H
#define CLI_PROCESS_STORY_H

#include "process_view.h"

/* A record behind its time of day, names padded to `width`, and below it what belongs to it. */
void story_print_record(const process_view *v, json_object *record, int width);

/* What happened to a record's command, a line each. */
void story_print_trail(json_object *command);

/* `before` and the value on one line, cut where it gets long. */
void story_print_json(const char *before, json_object *value);

#endif
