/* One run of a handler: what it is given, and what becomes of what it returns. */
#include <commandbus/commandbus.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int entered;
static json_object *to_return; /* given away by the handler */
static cb_outcome to_answer;

static cb_outcome answers(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)ctx, (void)c;
    entered++;
    cr_assert_null(*result);
    *result = to_return;
    to_return = NULL;
    return to_answer;
}

static cb_outcome echoes(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)c;
    entered++;
    *result = json_object_get(cb_context_data(ctx));
    return CB_SUCCESS;
}

typedef struct {
    cb_command command;
    cb_context *ctx;
    cb_settlement out;
} one_run;

static one_run *run_with(const char *data, cb_handler_fn *handler, size_t limit)
{
    one_run *r = calloc(1, sizeof *r);
    cb_error e = { 0 };

    r->command = (cb_command){ .domain = "fx",
                               .command_id = { "0190a5c0-0000-7000-8000-000000000001" },
                               .command_type = "Test",
                               .data = data,
                               .lease_no = 1,
                               .attempt = 1,
                               .max_attempts = 3 };
    memset(&r->out, 0x55, sizeof r->out); /* Nothing may be left as it was. */
    cr_assert(cb_context_open(&r->command, NULL, NULL, &r->ctx, &e), "%s", e.message);
    entered = 0;
    cb_context_run(r->ctx, handler, limit, &r->out);
    return r;
}

/* For OWNED(one_run). */
static void one_run_drop(one_run **r)
{
    cb_context_free((*r)->ctx);
    free(*r);
}

/* `n` times `open`, something, n times `close`: JSON nested so deep. The caller frees it. */
static char *nested_json(const char *open, const char *inside, const char *close, size_t n)
{
    size_t o = strlen(open), i = strlen(inside), c = strlen(close);
    char *text = malloc(n * (o + c) + i + 1), *at = text;

    for (size_t k = 0; k < n; k++, at += o)
        memcpy(at, open, o);
    memcpy(at, inside, i);
    at += i;
    for (size_t k = 0; k < n; k++, at += c)
        memcpy(at, close, c);
    *at = '\0';
    return text;
}

/* ---- payloads ---- */

Test(payload, comes_parsed_and_complete)
{
    static const char *const samples[] = {
        "{}",
        "{\"amount\":\"1250.00\",\"n\":[1,-2,3.50,true,null],\"text\":\"é€😀\\n\"}",
        "{\"most\":18446744073709551615,\"least\":-9223372036854775808}",
        "{\"exact\":12345678901234567890.123456789012345678901234567890,\"tiny\":1e-400}",
    };

    for (size_t i = 0; i < CB_COUNT(samples); i++) {
        OWNED(one_run) r = run_with(samples[i], echoes, 0);
        cr_expect_eq(r->out.outcome, CB_SUCCESS);
        cr_assert_not_null(r->out.result);
        cr_expect_str_eq(r->out.result, samples[i]);
    }
}

Test(payload, as_deep_as_the_bus_takes_is_held)
{
    char *deep = nested_json("{\"a\":", "1", "}", 32);
    OWNED(one_run) r = run_with(deep, echoes, 0);

    cr_expect_eq(r->out.outcome, CB_SUCCESS, "%s", r->out.error_message);
    cr_expect_str_eq(r->out.result, deep);
    free(deep);
}

/* {"a":[{},{},…]}: 60 kB of text, 20 MiB in memory. */
static char *dense(void)
{
    enum {
        OBJECTS = 20000
    };
    char *text = malloc(3 * OBJECTS + 16), *to = text;

    to = stpcpy(to, "{\"a\":[{}");
    for (int i = 1; i < OBJECTS; i++)
        to = stpcpy(to, ",{}");
    strcpy(to, "]}");
    return text;
}

Test(payload, that_cannot_be_held_never_reaches_the_handler) /* DESIGN 8.10 */
{
    char *many = dense();
    char *deep = nested_json("{\"a\":", "1", "}", 33),
         *deepest = nested_json("{\"a\":", "1", "}", 100000);
    char huge[500] = "{\"a\":";
    memset(huge + 5, '9', 400);
    strcpy(huge + 405, ".5}");
    const char *const samples[] = {
        deep,
        deepest,
        many,
        huge, /* jsonb keeps it, a double does not */
        "{\"a\":18446744073709551616}",
        "{\"a\":-9223372036854775809}",
        "{\"a\":1e999}",
        "[]",
        "null",
        "",
        "{\"a\":1",
        "{\"a\":01}",
        "{\"a\":NaN}",
        "{\"a\":\"\\u0000\"}",
        "{\"a\":\"\xff\"}",
        "{} {}",
    };

    for (size_t i = 0; i < CB_COUNT(samples); i++) {
        OWNED(one_run) r = run_with(samples[i], echoes, 0);
        cr_expect_eq(r->out.outcome, CB_PERMANENT, "sample %zu", i);
        cr_expect_str_eq(r->out.error_code, "INVALID_DATA");
        cr_expect_not_null(r->out.error_message);
        cr_expect_null(r->out.result);
        cr_expect_eq(entered, 0, "the handler was entered with sample %zu", i);
    }
    free(deep);
    free(deepest);
    free(many);
}

Test(payload, is_gone_when_the_handler_has_returned)
{
    OWNED(one_run) r = run_with("{}", answers, 0);

    cr_expect_null(cb_context_data(r->ctx));
}

/* ---- outcomes ---- */

Test(run, with_an_outcome_outside_the_enum_is_transient) /* CONTRACT: INTERNAL_ERROR */
{
    const int strange[] = { 5, 99, -1, 1 << 30 };

    for (size_t i = 0; i < CB_COUNT(strange); i++) {
        to_answer = (cb_outcome)strange[i];
        to_return = json_object_new_int(1);
        OWNED(one_run) r = run_with("{}", answers, 0);
        cr_expect_eq(r->out.outcome, CB_TRANSIENT);
        cr_expect_str_eq(r->out.error_code, "INTERNAL_ERROR");
        cr_expect_not_null(r->out.error_message);
        cr_expect_null(r->out.result);
    }
}

Test(run, drops_the_result_unless_it_succeeds)
{
    to_answer = CB_TRANSIENT;
    to_return = json_object_new_double((double)NAN);
    OWNED(one_run) r = run_with("{}", answers, 0);

    cr_expect_eq(r->out.outcome, CB_TRANSIENT);
    cr_expect_null(r->out.result);
}

Test(run, can_be_repeated_with_nothing_left_of_the_one_before)
{
    OWNED(one_run) r = run_with("{\"a\":1}", echoes, 0);
    cr_assert_str_eq(r->out.result, "{\"a\":1}");

    to_answer = CB_SUCCESS;
    cb_context_run(r->ctx, answers, 0, &r->out);

    cr_expect_eq(r->out.outcome, CB_SUCCESS);
    cr_expect_null(r->out.result);
    cr_expect_null(r->out.error_code);
}

/* ---- results ---- */

/* Adopts the result. */
static one_run *run_to(json_object *result, size_t limit)
{
    to_answer = CB_SUCCESS;
    to_return = result;
    return run_with("{}", answers, limit);
}

static void expect_result(json_object *result, const char *expected)
{
    OWNED(one_run) r = run_to(result, 0);

    cr_expect_eq(r->out.outcome, CB_SUCCESS, "%s", r->out.error_message);
    if (expected)
        cr_expect_str_eq(r->out.result, expected);
    else
        cr_expect_null(r->out.result);
}

Test(result, may_be_any_json_value) /* WRK.4 */
{
    expect_result(NULL, NULL);
    expect_result(json_object_new_boolean(1), "true");
    expect_result(json_object_new_uint64(UINT64_MAX), "18446744073709551615");
    expect_result(json_object_new_double(1.5), "1.5");
    expect_result(json_object_new_double_s(0.1, "0.10"), "0.10");
    expect_result(json_object_new_string("a/b \"é\" \n"), "\"a/b \\\"é\\\" \\n\"");
    expect_result(json_object_new_array(), "[]");
}

static void expect_invalid(json_object *result, size_t limit, const char *why)
{
    OWNED(one_run) r = run_to(result, limit);

    cr_expect_eq(r->out.outcome, CB_PERMANENT, "a result was taken that is: %s", why);
    cr_expect_str_eq(r->out.error_code, "RESULT_INVALID");
    cr_assert_not_null(r->out.error_message);
    cr_expect_not_null(strstr(r->out.error_message, why), "%s", r->out.error_message);
    cr_expect_null(r->out.result);
}

Test(result, with_a_number_that_is_not_finite_is_invalid) /* DESIGN 2: RESULT_INVALID */
{
    expect_invalid(json_object_new_double((double)NAN), 0, "expected a value");
    expect_invalid(json_object_new_double((double)INFINITY), 0, "expected a value");
    expect_invalid(json_object_new_double((double)-INFINITY), 0, "expected a digit");
    expect_invalid(json_object_new_double_s(1, "1e999999"), 0, "range of a double");
    expect_invalid(json_object_new_double_s(1, "-1.8e308"), 0, "range of a double");
    expect_result(json_object_new_double_s(1, "1.7e308"), "1.7e308");
    expect_result(json_object_new_double_s(1, "1e-999999"), "1e-999999");
}

Test(result, that_the_database_cannot_store_as_text_is_invalid) /* DESIGN 2: RESULT_INVALID */
{
    expect_invalid(json_object_new_string("caf\xe9"), 0, "UTF-8");
    expect_invalid(json_object_new_string_len("a\0b", 3), 0, "\\u0000");
    expect_invalid(json_object_new_double_s(1, "one"), 0, "expected a value");
}

static json_object *nested_arrays(size_t depth)
{
    json_object *inside = json_object_new_array();

    for (size_t i = 1; i < depth; i++) {
        json_object *outside = json_object_new_array();
        json_object_array_add(outside, inside);
        inside = outside;
    }
    return inside;
}

Test(result, nested_deeper_than_32_levels_is_invalid) /* DESIGN 2: RESULT_INVALID */
{
    char *deepest = nested_json("[", "", "]", 32);

    expect_result(nested_arrays(32), deepest);
    expect_invalid(nested_arrays(33), 0, "deeper than 32");
    expect_invalid(nested_arrays(5000), 0, "deeper than 32");
    free(deepest);
}

Test(result, over_the_limit_is_invalid) /* DESIGN 2: RESULT_INVALID */
{
    char text[1001];
    memset(text, 'x', 1000);
    text[1000] = '\0';

    OWNED(one_run) fits = run_to(json_object_new_string(text), 1002);
    cr_expect_eq(fits->out.outcome, CB_SUCCESS);
    expect_invalid(json_object_new_string(text), 1001, "too large");
    memset(text, '\n', 1000); /* two bytes each once it is text */
    expect_invalid(json_object_new_string(text), 1500, "too large");
}

Test(result, has_one_mebibyte_unless_told_otherwise)
{
    const int most = 1024 * 1024 - 2; /* less its quotes */
    char *text = malloc((size_t)most + 1);
    memset(text, 'x', (size_t)most + 1);

    OWNED(one_run) fits = run_to(json_object_new_string_len(text, most), 0);
    cr_expect_eq(fits->out.outcome, CB_SUCCESS);
    expect_invalid(json_object_new_string_len(text, most + 1), 0, "too large");
    free(text);
}

Test(result, that_holds_one_value_over_and_over_ends_at_the_limit) /* DESIGN 2: RESULT_INVALID */
{
    json_object *value = json_object_new_string("x");

    for (int level = 0; level < 30; level++) { /* 2^30 strings, were it written out */
        json_object *pair = json_object_new_array();
        json_object_array_add(pair, json_object_get(value));
        json_object_array_add(pair, value);
        value = pair;
    }
    expect_invalid(value, 0, "too large");
}
