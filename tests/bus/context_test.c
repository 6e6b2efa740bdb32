/* What a handler may ask its context, and say: without a database. */
#include <commandbus/commandbus.h>
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "utf8.h"

static const cb_command command = {
    .command_id = { "0190a5c0-0000-7000-8000-000000000001" },
    .domain = "fx",
    .command_type = "BookFx",
    .data = "{\"amount\": \"10.00\"}",
    .lease_no = 7,
    .attempt = 2,
    .max_attempts = 3,
};

static cb_context *open_context(const cb_command *of, const cb_host *host, void *arg)
{
    cb_context *ctx = NULL;
    cb_error e = { 0 };

    cr_assert(cb_context_open(of, host, arg, &ctx, &e), "%s", e.message);
    return ctx;
}

/* ---- who runs it ---- */

typedef struct {
    int64_t remaining_ms, asked_ms;
    bool lost, stopping;
} told;

static int64_t remaining(void *arg)
{
    return ((told *)arg)->remaining_ms;
}

static bool told_extend(void *arg, int64_t ms)
{
    ((told *)arg)->asked_ms = ms;
    return true;
}

static bool told_is_lost(void *arg)
{
    return ((told *)arg)->lost;
}

static bool told_is_stopping(void *arg)
{
    return ((told *)arg)->stopping;
}

Test(context, without_a_host_has_no_end_and_is_granted_nothing)
{
    OWNED(cb_context) ctx = open_context(&command, NULL, NULL);
    OWNED(cb_context) silent = open_context(&command, &(cb_host){ 0 }, NULL);

    cr_expect_eq(cb_context_remaining_ms(ctx), INT64_MAX);
    cr_expect_eq(cb_context_remaining_ms(silent), INT64_MAX);
    cr_expect_not(cb_context_extend(ctx, 1000));
    cr_expect_not(cb_context_extend(silent, 1000));
    cr_expect_not(cb_context_lost(ctx) || cb_context_lost(silent));
    cr_expect_not(cb_context_stopping(ctx) || cb_context_stopping(silent));
}

Test(context, asks_its_host) /* WRK.8, WRK.11 */
{
    static const cb_host host = { remaining, told_extend, told_is_lost, told_is_stopping };
    told host_says = { .remaining_ms = 1234, .lost = true };
    OWNED(cb_context) ctx = open_context(&command, &host, &host_says);

    cr_expect_eq(cb_context_remaining_ms(ctx), 1234);
    cr_expect(cb_context_lost(ctx));
    cr_expect_not(cb_context_stopping(ctx));
    cr_expect(cb_context_extend(ctx, 500));
    cr_expect_eq(host_says.asked_ms, 500);

    host_says = (told){ .remaining_ms = -5, .stopping = true };
    cr_expect_eq(cb_context_remaining_ms(ctx), 0);
    cr_expect_not(cb_context_lost(ctx));
    cr_expect(cb_context_stopping(ctx));
    cr_expect_not(cb_context_extend(ctx, 0));
    cr_expect_not(cb_context_extend(ctx, -1));
    cr_expect_eq(host_says.asked_ms, 0, "the host was asked for nothing or less");
}

Test(context, knows_its_attempt)
{
    cb_command last = command;
    OWNED(cb_context) ctx = open_context(&last, NULL, NULL);

    cr_expect_eq(cb_context_attempt(ctx), 2);
    cr_expect_eq(cb_context_max_attempts(ctx), 3);
    cr_expect_not(cb_context_is_last_attempt(ctx));
    last.attempt = 3;
    cr_expect(cb_context_is_last_attempt(ctx));
}

Test(context, is_not_made_of_half_a_command)
{
    cb_command no_data = command;
    cb_context *ctx = NULL;
    cb_error e = { 0 };
    no_data.data = NULL;

    cr_expect_not(cb_context_open(NULL, NULL, NULL, &ctx, &e));
    cr_expect_eq(e.code, CB_MISUSE);
    cr_expect_not(cb_context_open(&no_data, NULL, NULL, &ctx, &e));
    cr_expect_null(ctx);
    cb_context_free(NULL);
}

/* ---- how a run ends ---- */

static cb_settlement run_handler(cb_context *ctx, cb_handler_fn *handler)
{
    cb_settlement out;

    cb_context_run(ctx, handler, 0, &out);
    return out;
}

#define expect_text(found, expected) \
    cr_expect_str_eq((found) ? (found) : "(null)", (expected), "found '%s'", (found))

static cb_outcome declines(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)c;
    *result = json_object_new_string("dropped");
    return cb_business_rule(ctx, "FX_DECLINED", "no quote for %s", "EURUSD");
}

static cb_outcome fails_for_good(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)c, (void)result;
    return cb_permanent(ctx, "NO_ACCOUNT", "account %d", 12);
}

static cb_outcome fails_for_now(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)c, (void)result;
    return cb_transient(ctx, "TIMEOUT", "after %d ms", 250);
}

static cb_outcome gives_back(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)c, (void)result;
    return cb_interrupted(ctx);
}

Test(outcome, carries_its_code_and_message) /* WRK.5, WRK.6, WRK.7 */
{
    static const struct {
        cb_handler_fn *handler;
        cb_outcome outcome;
        const char *code, *message;
    } cases[] = {
        { declines, CB_BUSINESS_RULE, "FX_DECLINED", "no quote for EURUSD" },
        { fails_for_good, CB_PERMANENT, "NO_ACCOUNT", "account 12" },
        { fails_for_now, CB_TRANSIENT, "TIMEOUT", "after 250 ms" },
        { gives_back, CB_INTERRUPTED, "(null)", "(null)" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        OWNED(cb_context) ctx = open_context(&command, NULL, NULL);
        cb_settlement out = run_handler(ctx, cases[i].handler);
        cr_expect_eq(out.outcome, cases[i].outcome);
        expect_text(out.error_code, cases[i].code);
        expect_text(out.error_message, cases[i].message);
        cr_expect_null(out.result);
        cr_expect_eq(out.retry_seconds, 0);
        cr_expect_str_eq(out.domain, "fx");
        cr_expect_str_eq(out.command_id.text, command.command_id.text);
        cr_expect_eq(out.lease_no, 7);
    }
}

static cb_outcome says_nothing(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)ctx, (void)c, (void)result;
    return CB_TRANSIENT;
}

static cb_outcome says_no_code(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)c, (void)result;
    return cb_permanent(ctx, NULL, "%s", "");
}

static cb_outcome says_one_and_returns_another(cb_context *ctx, const cb_command *c,
                                               json_object **result)
{
    (void)c, (void)result;
    (void)cb_transient_after(ctx, 60, "FIRST_TRY", "tried something else after this");
    return CB_PERMANENT;
}

Test(outcome, returned_without_a_word_is_an_internal_error)
{
    cb_handler_fn *const handlers[] = { says_nothing, says_no_code, says_one_and_returns_another };

    for (size_t i = 0; i < CB_COUNT(handlers); i++) {
        OWNED(cb_context) ctx = open_context(&command, NULL, NULL);
        cb_settlement out = run_handler(ctx, handlers[i]);
        cr_expect_eq(out.outcome, i == 0 ? CB_TRANSIENT : CB_PERMANENT);
        expect_text(out.error_code, "INTERNAL_ERROR");
        cr_expect_null(out.error_message);
        cr_expect_eq(out.retry_seconds, 0);
    }
}

static double asked_seconds;

static cb_outcome asks_for_time(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)c, (void)result;
    return cb_transient_after(ctx, asked_seconds, "BUSY", "Retry-After");
}

Test(outcome, may_ask_for_a_time_to_pass_within_reason) /* WRK.5 */
{
    static const struct {
        double asked, given;
    } cases[] = { { 90, 90 },
                  { 0.5, 0.5 },
                  { 0, 0 },
                  { -1, 0 },
                  { (double)NAN, 0 },
                  { 1e300, 31536000 },
                  { (double)INFINITY, 31536000 } };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        OWNED(cb_context) ctx = open_context(&command, NULL, NULL);
        asked_seconds = cases[i].asked;
        cb_settlement out = run_handler(ctx, asks_for_time);
        cr_expect_eq(out.retry_seconds, cases[i].given, "%g gave %g", cases[i].asked,
                     out.retry_seconds);
    }
}

/* What the next handler says. */
static char *said;

static cb_outcome says(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)c, (void)result;
    return cb_permanent(ctx, said, "%s", said);
}

/* Every text the database could be given: well-formed, and within its bound. */
static void expect_well_formed(const char *text, size_t longest)
{
    cr_assert(utf8_is_valid(text), "malformed: %s", text);
    cr_expect_leq(strlen(text), longest);
}

Test(outcome, is_always_text_that_the_database_takes) /* WRK.14 */
{
    static const char *const pieces[] = {
        "x", "é", "€", "\xF0\x9F\x98\x80", "\xff", "\xc3(", "\xed\xa0\x80", "\xe2\x82"
    };
    char text[5000];
    said = text;

    for (size_t i = 0; i < CB_COUNT(pieces); i++) {
        OWNED(cb_context) ctx = open_context(&command, NULL, NULL);
        text[0] = '\0';
        for (size_t used = 0; used + 8 < sizeof text; used += strlen(pieces[i]))
            strcpy(text + used, pieces[i]);
        cb_settlement out = run_handler(ctx, says);
        expect_well_formed(out.error_code, 200);
        expect_well_formed(out.error_message, 1000);
        cr_expect_gt(strlen(out.error_code), 190);
        cr_expect_gt(strlen(out.error_message), 990);
    }

    OWNED(cb_context) ctx = open_context(&command, NULL, NULL);
    strcpy(text, "caf\xe9 \xe2\x82");
    cb_settlement out = run_handler(ctx, says);
    cr_expect_str_eq(out.error_code, "caf\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD");
}

/* ---- effects ---- */

static const char *const values[40] = { "1", NULL, "3" };
static size_t statements, values_each, value_bytes;
static const char *statement;
static bool all_taken;

static cb_outcome leaves_effects(cb_context *ctx, const cb_command *c, json_object **result)
{
    char *large = calloc(1, value_bytes + 1);
    const char *mine[40];

    (void)c, (void)result;
    memset(large, 'v', value_bytes);
    memcpy(mine, values, sizeof mine);
    if (value_bytes)
        mine[0] = large;
    all_taken = true;
    for (size_t i = 0; i < statements; i++)
        all_taken &= cb_context_effect(ctx, statement, values_each, mine);
    free(large);
    return CB_SUCCESS;
}

static cb_settlement run_effects(cb_context *ctx, size_t n, const char *sql, size_t each,
                                 size_t bytes)
{
    statements = n;
    statement = sql;
    values_each = each;
    value_bytes = bytes;
    return run_handler(ctx, leaves_effects);
}

Test(effects, are_kept_within_their_bounds) /* WRK.14 */
{
    OWNED(cb_context) ctx = open_context(&command, NULL, NULL);

    cr_expect_eq(run_effects(ctx, 16, "INSERT INTO t VALUES ($1)", 32, 0).outcome, CB_SUCCESS);
    cr_expect(all_taken);
    cr_expect_eq(cb_context_effects(ctx), 16);
    cr_expect_eq(run_effects(ctx, 2, "  update t SET a = $1", 1, 500000).outcome, CB_SUCCESS);
    cr_expect_eq(cb_context_effects(ctx), 2, "effects of the run before are left");
    cr_expect_eq(run_effects(ctx, 0, NULL, 0, 0).outcome, CB_SUCCESS);
    cr_expect_eq(cb_context_effects(ctx), 0);
}

Test(effects, beyond_their_bounds_make_the_run_fail) /* WRK.14 */
{
    static const struct {
        size_t n, each, bytes;
        const char *sql, *problem;
    } cases[] = {
        { 17, 1, 0, "INSERT", "an effect was refused: more than 16 statements" },
        { 1, 33, 0, "INSERT", "an effect was refused: more than 32 values in one statement" },
        { 3, 1, 400000, "INSERT", "an effect was refused: more than 1 MiB together" },
        { 1, 0, 0, NULL, "an effect was refused: there is no statement, or no values for it" },
        { 1, 0, 0, "COMMIT",
          "an effect was refused: an effect must begin with INSERT, UPDATE, DELETE, MERGE, SELECT "
          "or WITH" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        OWNED(cb_context) ctx = open_context(&command, NULL, NULL);
        cb_settlement out =
            run_effects(ctx, cases[i].n, cases[i].sql, cases[i].each, cases[i].bytes);
        cr_expect_not(all_taken);
        cr_expect_eq(out.outcome, CB_PERMANENT);
        expect_text(out.error_code, "EFFECT_FAILED");
        expect_text(out.error_message, cases[i].problem);
        cr_expect_eq(cb_context_effects(ctx), 0);
    }
}

static cb_outcome declines_after_effects(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)leaves_effects(ctx, c, result);
    return declines(ctx, c, result);
}

Test(effects, of_anything_but_a_success_are_forgotten) /* WRK.14 */
{
    OWNED(cb_context) ctx = open_context(&command, NULL, NULL);
    (void)run_effects(ctx, 17, "DELETE FROM t", 0, 0);

    cb_settlement out = run_handler(ctx, declines_after_effects);

    cr_expect_eq(out.outcome, CB_BUSINESS_RULE);
    expect_text(out.error_code, "FX_DECLINED");
    cr_expect_eq(cb_context_effects(ctx), 0);
}
