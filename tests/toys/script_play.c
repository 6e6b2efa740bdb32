/* The play. */
#include "script_play.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "script.h"
#include "script_make.h"
#include "script_model.h"
#include "script_work.h"
#include "seed.h"

/* ---- the world outside ---- */

static void start_one(play *p)
{
    char *state = script_make(&p->seed, p->log, WAIT_MS);
    actor *a = &p->crowd[p->n++];

    *a =
        (actor){ .id = test_random(&p->seed, 100) < 25
                           ? stage_start_due(&p->s, "Script", state, 1 + test_random(&p->seed, 300))
                           : stage_start(&p->s, "Script", state) };
    free(state);
}

static bool send_response(play *p, actor *a, const char *name, const char *payload,
                          const char *response_id)
{
    bool accepted = false;
    cb_error e;

    cr_assert(cb_process_respond(bus.db, a->id.text, name, payload, response_id, &accepted, &e),
              "seed %u: %s", p->first_seed, e.message);
    return accepted;
}

static void refuses_response(play *p, actor *a, const char *name, const char *payload)
{
    bool accepted = false;
    cb_error e;

    cr_assert(!cb_process_respond(bus.db, a->id.text, name, payload, NULL, &accepted, &e) &&
                  e.code == CB_INVALID_NAME,
              "seed %u: a response that its type does not take was accepted", p->first_seed);
}

static void play_respond(play *p, actor *a)
{
    char payload[50];
    unsigned kind = test_random(&p->seed, 10);

    snprintf(payload, sizeof payload, "{\"no\": %d}", a->sent + 1);
    if (kind == 0)
        refuses_response(p, a, "nobodyKnowsThis", payload);
    else if (kind == 1)
        cr_assert(send_response(p, a, "go", "{}", NULL)); /* refused by its function */
    else if (kind == 2 && a->response_id.text[0])
        cr_assert(!send_response(p, a, "go", payload, a->response_id.text),
                  "seed %u: a response was taken twice", p->first_seed);
    else {
        const char *id = NULL;
        if (kind < 6) {
            a->response_id = cb_uuid_new();
            id = a->response_id.text;
        }
        cr_assert(send_response(p, a, kind == 9 ? "word" : "go", payload, id));
        a->sent++;
    }
}

static actor *find_actor(play *p, const char *id)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->crowd[i].id.text, id) == 0)
            return &p->crowd[i];
    return NULL;
}

static void tell_and_fail(play *p, const char *id, const char *what)
{
    char *story = script_problems(bus.conn, id, p->log, 0);

    fprintf(stderr, "COMMANDBUS_TEST_SEED=%u process %s: %s\n%s", p->first_seed, id, what,
            story ? story : "");
    free(story);
    cr_assert_fail("seed %u: %s", p->first_seed, what);
}

static bool ask_operator(play *p, const char *id, unsigned kind)
{
    cb_db *db = bus.db;
    cb_error e = { 0 };
    bool done;

    if (kind < 58)
        done = cb_process_retry(db, id, "olga", "again", kind < 8 ? "2100-01-01" : NULL, &e);
    else if (kind < 78)
        done = cb_process_cancel(db, id, "olga", "no more", true, &e);
    else if (kind < 85)
        done = cb_process_cancel(db, id, "olga", "enough", false, &e);
    else
        done = cb_process_complete(db, id, "olga", "done by hand",
                                   kind < 92   ? NULL
                                   : kind < 97 ? "{\"go\": 77}"
                                               : "{\"go\": \"no number\"}",
                                   &e);
    if (!done && e.code != CB_INVALID_OPERATION)
        tell_and_fail(p, id, e.message);
    return done;
}

static void play_decide(play *p)
{
    char skip[20];

    snprintf(skip, sizeof skip, "%u", test_random(&p->seed, 3));
    char *id = test_value(bus.conn,
                          "SELECT process_id FROM commandbus.process WHERE status = "
                          "'WAITING_FOR_TSQ' ORDER BY created_at OFFSET $1::integer LIMIT 1",
                          skip, NULL);
    actor *a = find_actor(p, id);
    if (a) {
        char *code = test_value(
            bus.conn, "SELECT error_code FROM commandbus.process WHERE process_id = $1", id, NULL);
        if (strcmp(code, "NON_DETERMINISTIC") == 0)
            tell_and_fail(p, id, "it is deterministic, but was parked");
        free(code);
        a->decisions++;
        p->decisions++;
        ask_operator(p, id,
                     a->decisions > PATIENCE ? 58 + test_random(&p->seed, 34)
                                             : test_random(&p->seed, 100));
    }
    free(id);
}

/* Directly about a command. */
static void decide_command(play *p)
{
    PGconn *sql = bus.conn;
    char *id = test_value(sql,
                          "SELECT command_id FROM commandbus.command_metadata WHERE status = "
                          "'IN_TROUBLESHOOTING_QUEUE' ORDER BY created_at LIMIT 1",
                          NULL);
    char *domain = test_value(
        sql, "SELECT domain FROM commandbus.command_metadata WHERE command_id::text = $1", id,
        NULL);
    char *result = test_value(
        sql,
        "SELECT coalesce(data -> 'undo', '{}') FROM commandbus.command_metadata WHERE command_id::text = $1",
        id, NULL);
    cb_tsq_action action = { .domain = domain,
                             .command_id = id,
                             .operator_name = "otto",
                             .reason = "by hand",
                             .result = result };
    unsigned kind = test_random(&p->seed, 10);
    cb_error e = { 0 };

    if (*id)
        cr_assert(kind < 6   ? cb_tsq_retry(bus.db, &action, &e)
                  : kind < 8 ? cb_tsq_cancel(bus.db, &action, &e)
                             : cb_tsq_complete(bus.db, &action, &e),
                  "seed %u: %s", p->first_seed, e.message);
    free(id);
    free(domain);
    free(result);
}

/* ---- acts ---- */

static void play_act(play *p)
{
    static const double jumps[] = { 0.2, 1, 5, 70, 130, 4000 };
    unsigned kind = test_random(&p->seed, 100);

    if (kind < 45)
        (void)run_one(p);
    else if (kind < 65)
        (void)serve_one(p, kind & 1 ? "fx" : "risk");
    else if (kind < 72)
        stage_wait(&p->s, jumps[test_random(&p->seed, kind < 66 ? 6 : 3)]);
    else if (kind < 77)
        settle_late_run(p, &p->runs[test_random(&p->seed, LATE)]);
    else if (kind < 82)
        settle_late_handler(p, &p->handlers[test_random(&p->seed, LATE)]);
    else if (kind == 82)
        leases_end();
    else if (kind == 83)
        test_random(&p->seed, 2) ? leases_end() : wake_all();
    else if (kind < 89)
        play_decide(p);
    else if (kind < 91)
        decide_command(p);
    else if (p->n < CROWD)
        start_one(p);
    else
        play_respond(p, &p->crowd[test_random(&p->seed, (unsigned)p->n)]);
}

static void rest(play *p)
{
    for (int i = 0; i < LATE; i++) {
        settle_late_run(p, &p->runs[i]);
        settle_late_handler(p, &p->handlers[i]);
    }
    leases_end();
    for (int i = 0; i < 1000; i++) {
        long deaths = p->deaths;
        bool ran = run_one(p), fx = serve_one(p, "fx"), risk = serve_one(p, "risk");
        if (!ran && !fx && !risk)
            return;
        if (p->deaths > deaths) /* a handler or step that was told to die */
            leases_end();
    }
    cr_assert_fail("seed %u: it never comes to rest", p->first_seed);
}

static bool all_over(void)
{
    return test_number(
               bus.conn,
               "SELECT count(*) FROM commandbus.process p WHERE NOT commandbus.is_terminal(status) OR "
               "EXISTS (SELECT FROM commandbus.process_inbox i WHERE i.process_id = p.process_id)",
               NULL) == 0;
}

/* Who neither ends nor waits for an operator has a timer. */
static void check_timers(play *p)
{
    char *id =
        test_value(bus.conn,
                   "SELECT process_id FROM commandbus.process WHERE wake_at IS NULL AND status <> "
                   "'WAITING_FOR_TSQ' AND NOT commandbus.is_terminal(status) LIMIT 1",
                   NULL);

    if (*id)
        tell_and_fail(p, id, "nothing will ever wake it");
    free(id);
}

static void send_on(play *p)
{
    for (int i = 0; i < p->n; i++) {
        actor *a = &p->crowd[i];
        char *waits =
            test_value(bus.conn,
                       "SELECT status = 'WAITING_FOR_ASYNC' AND current_wait LIKE 'wait%' "
                       "FROM commandbus.process WHERE process_id = $1",
                       a->id.text, NULL);
        if (*waits == 't')
            play_respond(p, a);
        free(waits);
    }
}

static void bring_to_an_end(play *p)
{
    p->calm = true;
    for (int i = 0; i < 300; i++) {
        rest(p);
        check_timers(p);
        if (all_over())
            return;
        for (int j = 0; j < 4; j++)
            play_decide(p);
        send_on(p);
        stage_wait(&p->s, 30);
    }
    char *id = test_value(
        bus.conn,
        "SELECT process_id FROM commandbus.process p WHERE NOT "
        "commandbus.is_terminal(status) OR EXISTS (SELECT FROM commandbus.process_inbox i "
        "WHERE i.process_id = p.process_id) LIMIT 1",
        NULL);
    tell_and_fail(p, id, "it never ends");
}

static void check_replay(play *p, const actor *a)
{
    OWNED(cb_process_claim) claim = NULL;
    cb_error e = { 0 };

    cr_assert(cb_process_read(bus.db, a->id.text, &claim, &e), "%s", e.message);
    if (!cb_run_replay(p->s.kit.run, cb_process_claim_at(claim, 0), &e))
        tell_and_fail(p, a->id.text, e.message);
}

static void check_all(play *p)
{
    int wrong = 0;

    for (int i = 0; i < p->n; i++) {
        char *problems = script_problems(bus.conn, p->crowd[i].id.text, p->log, p->crowd[i].sent);
        if (problems)
            fprintf(stderr, "COMMANDBUS_TEST_SEED=%u process %s:\n%s", p->first_seed,
                    p->crowd[i].id.text, problems);
        wrong += problems != NULL;
        free(problems);
        check_replay(p, &p->crowd[i]);
    }
    cr_assert_eq(wrong, 0, "seed %u: %d of %d processes did what they must not", p->first_seed,
                 wrong, p->n);
}

static void one_crowd(play *p, unsigned seed)
{
    p->seed = p->first_seed = seed;
    p->n = 0;
    p->calm = false;
    srand(seed);
    test_exec(
        bus.conn,
        "TRUNCATE commandbus.process, commandbus.process_history, commandbus.process_attempt, "
        "commandbus.process_event, commandbus.command_metadata, commandbus.audit");
    for (int i = 0; i < 4; i++)
        start_one(p);
    for (int i = 0; i < 350; i++)
        play_act(p);
    bring_to_an_end(p);
    check_all(p);
}

/* Of a test that fails they stay, for people. */
static void remove_effects(const char *log)
{
    DIR *folder = opendir(log);
    struct dirent *file;

    while (folder && (file = readdir(folder)))
        (void)unlinkat(dirfd(folder), file->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(log);
}

void script_play(double seconds)
{
    static const cb_process_type *const types[] = { &script_type };
    const char *given = getenv("COMMANDBUS_TEST_SECONDS");
    unsigned seed = test_seed();
    setenv("PGOPTIONS", "-c synchronous_commit=off", 1); /* nobody pulls the plug here */
    play p = { .s = stage_open(types, 1, NULL, 0), .log = "/tmp/script.XXXXXX" };
    int crowds = 0;

    cr_assert(mkdtemp(p.log));
    work_begin();
    wait_until(bus.conn,
               "SELECT clock_timestamp() > pg_postmaster_start_time() + interval '5 seconds'");
    for (double until = test_clock() + (given ? atof(given) : seconds); test_clock() < until;)
        one_crowd(&p, seed + (unsigned)crowds++);
    fprintf(stderr, "%d crowds of %d: %ld runs, %ld deaths, %ld stale, %ld decisions\n", crowds,
            CROWD, p.runs_made, p.deaths, p.stale, p.decisions);
    stage_close(&p.s);
    remove_effects(p.log);
}
