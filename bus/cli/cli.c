/* Connection and errors of the CLI. The URL is never printed: it may hold a password. */
#include "cli.h"

#include "json_text.h"

#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char default_url[] = "postgresql:///commandbus";

bool cli_connect(cli *c, bool check_schema, cb_error *e)
{
    const char *url = c->url ? c->url : getenv("COMMANDBUS_DATABASE_URL");

    c->connecting = true;
    if (!cb_db_open(url && *url ? url : default_url, &c->db, e))
        return false;
    return !check_schema || cb_db_check_schema(c->db, e);
}

static void cli_say(const cli *c, const char *code, const char *message, const char *hint)
{
    if (!c->json) {
        fprintf(stderr, "commandbus: %s\n", message);
        if (hint[0])
            fprintf(stderr, "  hint: %s\n", hint);
        return;
    }
    fputs("{\"error\":{\"code\":", stderr);
    json_write_string(stderr, code);
    fputs(",\"message\":", stderr);
    json_write_string(stderr, message);
    fputs(",\"hint\":", stderr);
    json_write_string(stderr, hint[0] ? hint : NULL);
    fputs("}}\n", stderr);
}

int cli_fail(const cli *c, const cb_error *e)
{
    fflush(stdout);
    cli_say(c, cb_code_name(e->code), e->message, e->hint);
    if (e->code == CB_LOST)
        return EXIT_NO_DATABASE;
    if (c->db || !c->connecting)
        return EXIT_REFUSED;
    return e->code == CB_MISUSE ? EXIT_USAGE : EXIT_NO_DATABASE;
}

int cli_usage_error(const cli *c, const cb_error *e)
{
    char hint[sizeof e->hint + 96];
    const char *space = c->command && c->command->group ? " " : "";

    snprintf(hint, sizeof hint, "%s%sSee commandbus %s%s%s%s--help.", e->hint,
             e->hint[0] ? " " : "", c->command && c->command->group ? c->command->group : "", space,
             c->command ? c->command->verb : "", c->command ? " " : "");
    cli_say(c, "USAGE", e->message, hint);
    return EXIT_USAGE;
}

int cli_usage(const cli *c, const char *fmt, ...)
{
    cb_error e = { .code = CB_MISUSE };
    va_list args;

    va_start(args, fmt);
    vsnprintf(e.message, sizeof e.message, fmt, args);
    va_end(args);
    return cli_usage_error(c, &e);
}

const char *cli_operator(const char *given)
{
    const char *name = given ? given : getenv("COMMANDBUS_OPERATOR");
    if (name && *name)
        return name;
    const struct passwd *user = getpwuid(geteuid());
    return user ? user->pw_name : getenv("USER");
}

void cli_note(const cli *c, const char *fmt, ...)
{
    va_list args;

    if (c->quiet)
        return;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}
