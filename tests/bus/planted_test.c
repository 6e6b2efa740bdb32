/* What a caller plants on its own search path is not called by functions that run as the owner. */
#include "expect.h"
#include "fixture.h"
#include "life.h"
#include "login.h"

#include <stdio.h>

TestSuite(planted, .init = bus_open, .fini = bus_close);

/* Functions and operators that definer functions use without a schema: whoever calls one of these
 * instead fails. */
static const char *const traps[] = {
    "CREATE FUNCTION public.trap() RETURNS void LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'TRAP1'; END $$",
    "CREATE FUNCTION public.now() RETURNS timestamptz LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.statement_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.gen_random_uuid() RETURNS uuid LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); END $$",
    "CREATE FUNCTION public.jsonb_typeof(jsonb) RETURNS text LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.jsonb_build_object(VARIADIC text[]) RETURNS jsonb LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.format(text, text) RETURNS text LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.octet_length(text) RETURNS integer LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.equal(text, text) RETURNS boolean LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.equal(uuid, uuid) RETURNS boolean LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.equal(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE FUNCTION public.join(text, text) RETURNS text LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM public.trap(); RETURN NULL; END $$",
    "CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.equal)",
    "CREATE OPERATOR public.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = public.equal)",
    "CREATE OPERATOR public.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.equal)",
    "CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = public.join)",
};

/* Tables and types of the names that the functions use; the temporary schema comes first for both
 * unless a path says otherwise. */
static const char *const decoys[] = {
    "CREATE TEMP TABLE command_metadata (LIKE pg_catalog.pg_class)",
    "CREATE TEMP TABLE audit (LIKE pg_catalog.pg_class)",
    "CREATE TEMP TABLE domain (LIKE pg_catalog.pg_class)",
    "CREATE TEMP TABLE batch (LIKE pg_catalog.pg_class)",
    "CREATE TEMP TABLE reply_queue (LIKE pg_catalog.pg_class)",
    "CREATE TEMP TABLE sleeper (LIKE pg_catalog.pg_class)",
    "CREATE TEMP TABLE unnest (LIKE pg_catalog.pg_class)",
    "CREATE TYPE pg_temp.uuid AS ENUM ('trapped')",
    "CREATE TYPE pg_temp.jsonb AS ENUM ('trapped')",
    "CREATE TYPE pg_temp.text AS ENUM ('trapped')",
};

/* A login that may call everything, with the traps set and its path leading into them. */
static login open_with_traps(void)
{
    login l = login_open("commandbus_worker, commandbus_operator");
    char sql[128];

    snprintf(sql, sizeof sql, "GRANT CREATE ON SCHEMA public TO %s", l.name);
    test_exec(bus.conn, sql);
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++)
        test_exec(l.conn, traps[i]);
    for (size_t i = 0; i < sizeof decoys / sizeof *decoys; i++)
        test_exec(l.conn, decoys[i]);
    test_exec(l.conn, "SET search_path = public, pg_temp, pg_catalog");
    return l;
}

/* BUS.14: the traps work, or the other tests would prove nothing */
Test(planted, traps_catch_whoever_walks_into_them)
{
    login l = open_with_traps();

    expect_sqlstate(l.conn, "TRAP1", "SELECT now()");
    expect_sqlstate(l.conn, "TRAP1", "SELECT gen_random_uuid()");
    expect_sqlstate(l.conn, "TRAP1", "SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text");
    expect_sqlstate(l.conn, "TRAP1", "SELECT 'a'::pg_catalog.text || 'b'::pg_catalog.text");
    expect_sqlstate(l.conn, "22P02", "SELECT 'x'::uuid");
    login_close(&l);
}

/* BUS.14 */
Test(planted, functions_operators_tables_and_types_are_not_used_by_any_function_of_the_bus)
{
    static const char *const calls[] = {
        "SELECT commandbus.now()",
        "SELECT commandbus.register_domain('ledger', 'ledger_answers')",
        "SELECT commandbus.sleep_announce('w', '{fx__commands,fx__replies}', 60)",
        "SELECT commandbus.send('fx', 'BookFx', '{\"a\": 1}', reply_to => 'fx__replies')",
        "SELECT commandbus.send('fx', 'BookFx', command_id => "
        "'00000000-0000-4000-8000-000000000001', max_attempts => 1)",
        "SELECT commandbus.send_many('[{\"domain\": \"fx\", \"command_type\": \"BookFx\", "
        "\"command_id\": \"00000000-0000-4000-8000-000000000002\"}, {\"domain\": \"risk\", "
        "\"command_type\": \"BookRisk\"}]')",
        "SELECT commandbus.create_batch('fx', commands => '[{\"command_type\": \"BookFx\", "
        "\"command_id\": \"00000000-0000-4000-8000-000000000003\"}]', reply_to => 'fx__replies')",
        "SELECT commandbus.close_batches('{00000000-0000-4000-8000-000000000004}')",
        "SELECT count(*) FROM commandbus.receive('fx', 'w', 100)",
        "SELECT commandbus.extend('fx', 'w', '{00000000-0000-4000-8000-000000000001}', '{1}', 30)",
        "SELECT commandbus.settle('fx', 'w', '{00000000-0000-4000-8000-000000000001,"
        "00000000-0000-4000-8000-000000000002,00000000-0000-4000-8000-000000000003}', '{1,1,1}', "
        "'{PERMANENT,PERMANENT,PERMANENT}')",
        "SELECT commandbus.settle('fx', 'w', '{00000000-0000-4000-8000-000000000009}', '{1}', "
        "'{SUCCESS}')",
        "SELECT commandbus.release_unknown('fx', 'w', '{}', '{}')",
        "SELECT commandbus.tsq_retry('fx', '00000000-0000-4000-8000-000000000001', 'ann')",
        "SELECT commandbus.tsq_cancel('fx', '00000000-0000-4000-8000-000000000002', 'ann', 'x')",
        "SELECT commandbus.tsq_complete('fx', '00000000-0000-4000-8000-000000000003', 'ann')",
        "SELECT commandbus.close_batches()",
        "SELECT commandbus.restore_messages('fx')",
        "SELECT commandbus.queue_metrics()",
        "SELECT commandbus.lost_messages()",
        "SELECT commandbus.heartbeat('w', '{\"domains\": {\"fx\": {\"slots\": 2}}}')",
        "SELECT commandbus.set_fleet_limit('fx', 2)",
        "SELECT commandbus.queue_samples('{fx,risk}')",
        "SELECT commandbus.fleet_domains()",
        "SELECT commandbus.domain_figures()",
        "SELECT commandbus.set_fleet_limit('fx', 0)",
        "SELECT commandbus.tidy_fleet()",
        "SELECT commandbus.retire('w')",
        "SELECT commandbus.sleep_end('w')",
        "SELECT commandbus.purge('0 s', '0 s', '0 s')",
    };
    login l = open_with_traps();
    PGconn *observer = test_pq_open(bus.conninfo);

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        expect_sqlstate(l.conn, "00000", calls[i]);

    for (size_t i = 0; i < 6; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT pg_catalog.count(*) FROM pg_temp.%.*s",
                 (int)strcspn(decoys[i] + 18, " "), decoys[i] + 18);
        expect_number(l.conn, 0, sql);
    }
    expect_value(observer, "t", "SELECT count(*) > 0 FROM commandbus.command_metadata");
    PQfinish(observer);
    login_close(&l);
}

/* BUS.14: nor by refusals, which format messages */
Test(planted, functions_are_not_used_by_refusals_either)
{
    login l = open_with_traps();

    expect_sqlstate(l.conn, "CB008", "SELECT commandbus.send('fy', 'BookFx')");
    expect_sqlstate(l.conn, "CB010", "SELECT commandbus.send('fx', 'Book Fx')");
    expect_sqlstate(l.conn, "CB011", "SELECT commandbus.send('fx', 'BookFx', '[]')");
    expect_sqlstate(l.conn, "CB010", "SELECT commandbus.register_domain('No')");
    expect_sqlstate(l.conn, "CB002",
                    "SELECT commandbus.tsq_retry('fx', "
                    "'00000000-0000-4000-8000-000000000001', 'ann')");
    login_close(&l);
}
