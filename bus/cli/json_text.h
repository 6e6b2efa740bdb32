/* JSON as text: written, indented and cut up without ever changing a number; files of JSON
 * lines, and texts that the command line names. */
#ifndef CLI_JSON_TEXT_H
#define CLI_JSON_TEXT_H

#include <commandbus/error.h>
#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A quoted string with what JSON wants escaped; null for NULL. */
void json_write_string(FILE *out, const char *text);

/* Valid JSON over several lines, each but the first indented by `indent` spaces. */
void json_write_pretty(FILE *out, const char *json, int indent);

/* Members of an object that is being made; NULL is null. */
void json_put_int(json_object *to, const char *name, int64_t value);
void json_put_bool(json_object *to, const char *name, bool value);
void json_put_text(json_object *to, const char *name, const char *value);

/* Prints the object on one line and frees it. */
void json_print_adopt(json_object *object);

/* Fails with CB_INVALID_DATA unless `text` is one JSON object in UTF-8. What json-c lets pass
 * (NaN, 00) the library refuses. */
bool json_check_object(const char *text, size_t length, cb_error *e);

/* True for one JSON value of any kind, by the library's own rules: 007 and NaN are none. */
bool json_is_value(const char *text);

/* A member of an object: its key and its value as they stand in the text. */
typedef struct {
    char *key, *value;
    size_t value_length;
} json_member;

/* *at starts at a checked object that may be changed, and moves. Ends key (unescaped) and value
 * with NULs in place. False after the last member. */
bool json_next_member(char **at, json_member *ret);

/* Unescapes the string that is `raw` in place. False for what is no string and for one with a NUL
 * character in it, which no text of ours may have. */
bool json_unescape(char *raw);

/* Calls `take` for each line of a file ("-" is stdin) that is not blank, without its line end;
 * `number` counts from 1. A line that is taken is the callee's to free. A failure names the
 * line. */
typedef bool jsonl_take_fn(void *arg, char *line, size_t length, size_t number, cb_error *e);
bool jsonl_each(const char *path, jsonl_take_fn *take, void *arg, cb_error *e);

/* A whole file ("-" is stdin) of at most `most` bytes as text. The caller owns *ret. */
bool read_text_file(const char *path, size_t most, char **ret, cb_error *e);

/* @FILE and - are read, all else is the text itself; NULL stays NULL. *owned is for the caller
 * to free. */
bool read_text_argument(const char *text, const char **ret, char **owned, cb_error *e);

#endif
