/* What the commands of this set carry and give back. One table each, for the process that fills
 * them and for the handler that reads them. */
#ifndef REPORTING_MESSAGES_H
#define REPORTING_MESSAGES_H

#include <commandbus/fields.h>

/* By number, and by name on the wire. What was left out is OUTPUT_NONE, which nobody renders. */
enum {
    OUTPUT_NONE,
    OUTPUT_PDF,
    OUTPUT_HTML,
    OUTPUT_CSV
};
extern const char *const output_types[];

/* Of one report. So long a list is read at all; how many a query takes is the query's. */
enum {
    LONGEST_ACCOUNT_LIST = 1000
};
typedef CB_LIST_OF(char *) account_numbers;

typedef struct {
    cb_date from_date, to_date; /* both days are in the period */
    account_numbers account_list;
} query_request;

typedef struct {
    char *data_path; /* of a query's result */
} aggregation_request;

typedef struct {
    char *aggregated_data_path;
    int output_type;
} render_request;

typedef struct {
    char *path; /* of any result */
} remove_request;

/* Of all but the removal. Paths are relative to the output folder. */
typedef struct {
    char *result_path;
} path_reply;

CB_FIELDS_DECLARE(query_request_fields);
CB_FIELDS_DECLARE(aggregation_request_fields);
CB_FIELDS_DECLARE(render_request_fields);
CB_FIELDS_DECLARE(remove_request_fields);
CB_FIELDS_DECLARE(path_reply_fields);

/* Reads the data of a command. False: *refused is its outcome, permanent INVALID_DATA naming the
 * field. */
bool message_read(const cb_fields *fields, cb_context *ctx, void **ret, cb_outcome *refused);
/* {"result_path": …} */
json_object *message_path_reply(const char *path);

#endif
