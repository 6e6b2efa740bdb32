/* What C puts into a parameter is what SQL finds there. */
#include "params.h"

#include <criterion/criterion.h>
#include <stdint.h>

#include "bus.h"
#include "database.h"
#include "statements.h"

/* The only value of the statement's only row, compared as text. */
static void assert_answer(const char *sql, const params *p, const char *expected)
{
    OWNED(cb_db) db = test_bus_open(test_server_url());
    OWNED(PGresult) result = NULL;
    cb_error e = { 0 };

    cr_assert(db_run(db, sql, p, DB_TEXT, &result, &e), "%s: %s", sql, e.message);
    cr_assert_str_eq(PQgetvalue(result, 0, 0), expected);
}

Test(params, text_numbers_and_nothing)
{
    params p = { 0 };

    params_text(&p, "it's \\ \"€\"");
    params_text(&p, NULL);
    params_int(&p, INT64_MIN);
    params_int_unless_0(&p, 0);
    params_int_unless_0(&p, 7);
    params_seconds(&p, -0.125);

    assert_answer("SELECT format('%s|%s|%s|%s|%s|%s', $1::text, $2::text, $3::bigint, $4::integer, "
                  "$5::integer, $6::double precision)",
                  &p, "it's \\ \"€\"||-9223372036854775808||7|-0.125");
}

Test(params, a_place_in_time_travels_unchanged)
{
    params p = { 0 };

    params_time(&p, INT64_MIN);
    params_time(&p, 86400000001);

    assert_answer("SELECT ($1::timestamptz = '-infinity')::text || ' ' || "
                  "($2::timestamptz = '2000-01-02 00:00:00.000001+00')::text",
                  &p, "true true");
}

Test(array, elements_need_no_quoting)
{
    OWNED_BUFFER(texts);
    params p = { 0 };

    array_begin(&texts, ARRAY_TEXT, 5);
    array_add_text(&texts, "a,b");
    array_add_text(&texts, "{\"quoted\"}\\");
    array_add_text(&texts, "");
    array_add_text(&texts, NULL);
    array_add_text(&texts, "NULL");
    cr_assert_not(texts.failed);
    params_array(&p, &texts);

    assert_answer("SELECT $1::text[] = ARRAY['a,b', '{\"quoted\"}\\', '', NULL, 'NULL']", &p, "t");
}

Test(array, every_element_type_arrives)
{
    OWNED_BUFFER(ids);
    OWNED_BUFFER(numbers);
    OWNED_BUFFER(small_numbers);
    OWNED_BUFFER(seconds);
    OWNED_BUFFER(documents);
    params p = { 0 };

    array_begin(&ids, ARRAY_UUID, 1);
    cr_assert(array_add_uuid(&ids, "886313E1-3b8a-5372-9b90-0c9aee199e5d"));
    array_begin(&numbers, ARRAY_INT8, 2);
    array_add_int8(&numbers, -1);
    array_add_int8(&numbers, INT64_MAX);
    array_begin(&small_numbers, ARRAY_INT4, 2);
    array_add_int4(&small_numbers, -1);
    array_add_int4(&small_numbers, INT32_MAX);
    array_begin(&seconds, ARRAY_FLOAT8, 1);
    array_add_float8(&seconds, 1.5);
    array_begin(&documents, ARRAY_JSONB, 2);
    array_add_jsonb(&documents, "{\"a\": [1]}");
    array_add_jsonb(&documents, NULL);
    params_array(&p, &ids);
    params_array(&p, &numbers);
    params_array(&p, &seconds);
    params_array(&p, &documents);
    params_array(&p, &small_numbers);

    assert_answer("SELECT format('%s %s %s %s %s', $1::uuid[], $2::bigint[], "
                  "$3::double precision[], $4::jsonb[], $5::integer[])",
                  &p,
                  "{886313e1-3b8a-5372-9b90-0c9aee199e5d} {-1,9223372036854775807} {1.5} "
                  "{\"{\\\"a\\\": [1]}\",NULL} {-1,2147483647}");
}

Test(array, an_empty_one_is_empty_and_not_null)
{
    OWNED_BUFFER(ids);
    params p = { 0 };

    array_begin(&ids, ARRAY_UUID, 0);
    params_array(&p, &ids);

    assert_answer("SELECT cardinality($1::uuid[])", &p, "0");
}

Test(array, an_invalid_uuid_is_not_added)
{
    OWNED_BUFFER(ids);

    array_begin(&ids, ARRAY_UUID, 1);
    size_t before = ids.length;

    cr_assert_not(array_add_uuid(&ids, "nonsense"));
    cr_assert_eq(ids.length, before);
}

Test(buffer, json_strings_are_escaped)
{
    OWNED_BUFFER(b);
    params p = { 0 };

    buffer_add_json_string(&b, "a\"b\\c\n\x01/€");
    params_text(&p, b.bytes);

    cr_assert_str_eq(b.bytes, "\"a\\\"b\\\\c\\n\\u0001/€\"");
    assert_answer("SELECT ($1::jsonb #>> '{}') = E'a\"b\\\\c\\n\\x01/€'", &p, "t");
}
