/* Working, dying and coming late. */
#include "script_work.h"

#include <json-c/json_tokener.h>

#include "script.h"
#include "seed.h"

static bool dying;

static void note_death(void)
{
    dying = true;
}

void work_begin(void)
{
    script_die = note_death;
}

static bool work_chance(play *p, unsigned of_1000)
{
    return !p->calm && test_random(&p->seed, 1000) < of_1000;
}

/* ---- the worker ---- */

static bool checkpoint(void *arg, cb_process_settlement *settlement)
{
    play *p = arg;
    cb_error e;

    if (dying || work_chance(p, 30)) {
        p->dead = true;
        return false;
    }
    cr_assert(cb_process_settle(bus.db, "stage", settlement, 1, &e), "%s", e.message);
    cr_assert_eq(settlement->verdict, CB_SETTLED, "seed %u: a checkpoint is %s", p->first_seed,
                 cb_verdict_name(settlement->verdict));
    p->dead = work_chance(p, 30);
    return !p->dead;
}

static cb_verdict work_settle(play *p, cb_process_settlement settlement)
{
    cb_error e;

    cr_assert(cb_process_settle(bus.db, "stage", &settlement, 1, &e), "seed %u: %s", p->first_seed,
              e.message);
    return settlement.verdict;
}

static void end_run(play *p)
{
    const cb_run_result *r = &p->s.kit.last;
    late *later = &p->runs[test_random(&p->seed, LATE)];

    cr_assert(!r->lost && !r->misuse, "seed %u: %s", p->first_seed, r->misuse);
    if (work_chance(p, 20)) {
        p->deaths++;
    } else if (!later->item && work_chance(p, 150)) {
        later->process_id = r->settlement.process_id;
        later->item = cb_run_take_item(p->s.kit.run);
    } else {
        cb_verdict verdict = work_settle(p, r->settlement);
        cr_assert_eq(verdict, CB_SETTLED, "seed %u: a run is %s", p->first_seed,
                     cb_verdict_name(verdict));
        if (work_chance(p, 30))
            cr_assert_eq(work_settle(p, r->settlement), CB_ALREADY);
    }
}

/* False: none was due. */
bool run_one(play *p)
{
    static const char *const replies[] = { "payments__replies" };
    static const cb_run_host host = { .checkpoint = checkpoint };
    cb_process_claim_options options = { .worker = "stage",
                                         .kinds = cb_process_types_kinds(p->s.kit.types),
                                         .n_kinds = 1,
                                         .vt_seconds = VT_SECONDS,
                                         .reply_queues = replies,
                                         .n_reply_queues = 1 };
    OWNED(cb_process_claim) claim = NULL;
    cb_process_look look;
    cb_error e;

    cr_assert(cb_process_claim_due(bus.db, &options, 1, &claim, &look, &e), "%s", e.message);
    if (cb_process_claim_count(claim) == 0)
        return false;
    p->dead = dying = false;
    p->runs_made++;
    cb_run_process(p->s.kit.run, cb_process_claim_at(claim, 0), &host, p, &p->s.kit.last);
    if (p->dead || dying)
        p->deaths++;
    else
        end_run(p);
    return true;
}

void settle_late_run(play *p, late *l)
{
    if (!l->item)
        return;
    cb_verdict verdict =
        work_settle(p, (cb_process_settlement){ .process_id = l->process_id, .item = l->item });
    cr_assert(verdict == CB_SETTLED || verdict == CB_STALE, "seed %u: a late run is %s",
              p->first_seed, cb_verdict_name(verdict));
    p->stale += verdict == CB_STALE;
    cb_process_item_free(l->item);
    *l = (late){ 0 };
}

/* ---- handlers ---- */

static cb_outcome outcome_of(char letter)
{
    return letter == 'S'   ? CB_SUCCESS
           : letter == 'T' ? CB_TRANSIENT
           : letter == 'B' ? CB_BUSINESS_RULE
                           : CB_PERMANENT;
}

static void end_handler(play *p, cb_settlement item, json_object *result)
{
    late *later = &p->handlers[test_random(&p->seed, LATE)];

    item.result = result ? json_object_to_json_string(result) : NULL;
    if (dying || work_chance(p, 20)) {
        p->deaths++;
    } else if (!later->command.domain && work_chance(p, 250)) {
        later->result = item.result ? strdup(item.result) : NULL;
        later->command = item;
        later->command.result = later->result;
    } else {
        expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", item));
    }
}

/* False: there was no command. */
bool serve_one(play *p, const char *domain)
{
    OWNED(cb_receiver) receiver = NULL;
    OWNED(cb_claim) claim = NULL;
    cb_receive_options options = { .worker = "handlers", .vt_seconds = VT_SECONDS };
    json_object *result = NULL;
    cb_error e;

    cr_assert(cb_receiver_open(domain, &options, &receiver, &e));
    cr_assert(cb_receive(bus.db, receiver, 1, &claim, &e), "%s", e.message);
    if (cb_claim_count(claim) == 0)
        return cb_claim_exhausted(claim) > 0;
    const cb_command *c = cb_claim_at(claim, 0);
    OWNED(json_object) data = json_tokener_parse(c->data);
    dying = false;
    char letter = script_serve(data, c->attempt, c->command_id.text, &result);
    cb_settlement item = { .domain = domain,
                           .command_id = c->command_id,
                           .lease_no = c->lease_no,
                           .outcome = outcome_of(letter),
                           .error_code = letter == 'S'   ? NULL
                                         : letter == 'B' ? "DECLINED"
                                                         : "BROKEN" };
    end_handler(p, item, result);
    json_object_put(result);
    return true;
}

void settle_late_handler(play *p, late *l)
{
    if (!l->command.domain)
        return;
    cb_verdict verdict = test_settle_one(bus.db, "handlers", l->command);
    cr_assert(verdict == CB_SETTLED || verdict == CB_STALE, "seed %u: a late handler is %s",
              p->first_seed, cb_verdict_name(verdict));
    p->stale += verdict == CB_STALE;
    free(l->result);
    *l = (late){ 0 };
}

/* Whoever holds something is believed dead. */
void leases_end(void)
{
    test_exec(bus.conn,
              "UPDATE commandbus.process SET lease_until = '-infinity', wake_at = "
              "commandbus.now() WHERE lease_owner IS NOT NULL; "
              "UPDATE commandbus.command_metadata SET lease_until = '-infinity' "
              "WHERE status = 'IN_PROGRESS'; "
              "UPDATE pgmq.q_fx__commands SET vt = clock_timestamp() - interval '1 second'; "
              "UPDATE pgmq.q_risk__commands SET vt = clock_timestamp() - interval '1 second'");
}

/* A wake-up is only a hint: whoever is woken for nothing goes back to sleep as before. */
void wake_all(void)
{
    test_exec(bus.conn, "UPDATE commandbus.process SET wake_at = commandbus.now() "
                        "WHERE lease_owner IS NULL");
}
