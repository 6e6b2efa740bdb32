/* The command line of commandbus-worker. */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include "args.h"

/* What is not said is NULL, 0 or false. Texts are borrowed from argv. */
typedef struct {
    const char *profiles;
    const char *config_dir;
    arg_list settings; /* "path=value" of each --set */
    bool check_config, json;
    bool replay;
    const char *replay_id;   /* of --replay; NULL with … */
    bool replay_all;         /* … --all-running, */
    const char *replay_type; /* perhaps of one type */
    bool version, help;
} options;

/* argv[0] is the program. Every failure but CB_MEMORY is CB_MISUSE. options_done in any case. */
bool options_parse(int argc, char **argv, options *ret, cb_error *e) CB_NODISCARD;
void options_done(options *o);

void options_help(FILE *out);

/* What the manual page says too. */
extern const arg_spec options_table[];
extern const arg_exit options_exits[], options_replay_exits[];
extern const char options_about[], options_environment[], options_passwords[], options_signals[],
    options_examples[];

#endif
