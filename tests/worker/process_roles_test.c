/* Who does what: commands, processes and replies may be matters of different instances. */
#include "embed.h"

#include "trip.h"

TestSuite(process_roles, .init = embed_open, .fini = embed_close);

static bool hotel_request(const void *state, json_object *data)
{
    (void)state;
    return json_object_object_add(data, "nights", json_object_new_int(2)) == 0;
}

static cb_flow stay_and_sleep(cb_process *p, void *state)
{
    (void)state;
    CB_DO(
        cb_command_step(p, "bookHotel", hotel_request, trip_take_hotel, .wait_timeout_ms = 60000));
    CB_DO(cb_step(p, "sleep", trip_step, .local = true));
    return CB_DONE;
}
TRIP_TYPE(Stay, stay_and_sleep, .version = 1);

static cb_outcome book_hotel(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command;
    *result = json_object_new_object();
    json_object_object_add(*result, "hotel", json_object_new_string("Ritz"));
    return CB_SUCCESS;
}

static const cb_step_route routes[] = {
    { .step = "bookHotel", .domain = "fx", .command_type = "Book" },
};
#define ROUTES .worker.routes = routes, .worker.n_routes = 1

/* RL.2, RL.3: everything in one instance, and nobody polls. */
Test(process_roles, one_instance_can_do_it_all)
{
    embed_start(HANDLERS({ "Book", book_hotel }), PROCESSES(&Stay), ROUTES,
                .domain.poll_interval_seconds = 3600);

    cb_uuid id = trip_start("Stay");

    await_process("COMPLETED", id);
    expect_process("Ritz 1", id, "state ->> 'hotel', state ->> 'steps'");
    expect_value(bus.conn, "0", "SELECT count(*) FROM pgmq.q_fx__replies");
}

/* DESIGN 4: who settles the command tells the process. */
Test(process_roles, a_reply_needs_nobody_who_delivers_it)
{
    embed_start(HANDLERS({ "Book", book_hotel }), .worker.no_processes = true,
                .worker.no_replies = true);
    embed_start(PROCESSES(&Stay), ROUTES, .worker.no_commands = true, .worker.no_replies = true,
                .domain.poll_interval_seconds = 3600);

    cb_uuid id = trip_start("Stay");

    await_process("COMPLETED", id);
}

/* CONTRACT, features.*: one for each. Replies are something to do while somebody has the process
 * locked. */
Test(process_roles, commands_processes_and_replies_may_be_three_instances)
{
    cb_worker *processes = embed_start(PROCESSES(&Stay), ROUTES, .worker.no_commands = true,
                                       .worker.no_replies = true);
    cb_uuid id = trip_start("Stay");
    await_process("WAITING_FOR_ASYNC", id);
    bus_hold_processes();
    cb_worker *commands = embed_start(HANDLERS({ "Book", book_hotel }), PROCESSES(&Stay), ROUTES,
                                      .worker.no_processes = true, .worker.no_replies = true);
    await_value("1", "SELECT count(*) FROM pgmq.q_fx__replies");
    bus_let_processes_go();
    expect_process("WAITING_FOR_ASYNC bookHotel", id, "status, current_wait");

    embed_start(PROCESSES(&Stay), .worker.no_commands = true, .worker.no_processes = true);

    await_process("COMPLETED", id);
    expect_value(
        bus.conn, "1",
        "SELECT count(DISTINCT worker) FROM commandbus.audit WHERE event_type = 'RECEIVED' "
        "AND worker = $1",
        cb_worker_id(commands));
    cr_expect(cb_worker_is_ready(processes, NULL, 0));
}

/* CONTRACT, processes.<Type>.reply-queue: a command that was sent before replies where it was told
 * to. */
Test(process_roles, a_reply_comes_through_after_the_reply_queue_has_changed) /* DESIGN 8.4 */
{
    static cb_process_type first, moved;

    first = moved = Stay;
    first.reply_queue = "first_replies";
    moved.reply_queue = "other_replies";
    cb_worker *before = embed_start(PROCESSES(&first), ROUTES, .worker.no_commands = true);
    cb_uuid id = trip_start("Stay");
    await_process("WAITING_FOR_ASYNC", id);
    embed_free(before);

    bus_hold_processes();
    embed_start(HANDLERS({ "Book", book_hotel }), .worker.no_processes = true,
                .worker.no_replies = true);
    await_value("1", "SELECT count(*) FROM pgmq.q_first_replies");
    bus_let_processes_go();
    embed_start(PROCESSES(&moved), ROUTES, .worker.no_commands = true);

    await_process("COMPLETED", id);
    expect_value(bus.conn, "0", "SELECT count(*) FROM pgmq.q_first_replies");
}

/* PM.5 */
Test(process_roles, a_reply_that_belongs_to_nobody_is_archived_after_its_grace)
{
    embed_start(PROCESSES(&Stay), .worker.reply_grace_seconds = 0.01);

    test_exec(bus.conn,
              "SELECT pgmq.send('fx__replies', '{\"command_id\": \"x\"}'), "
              "pgmq.send('fx__replies', jsonb_build_object('command_id', gen_random_uuid(), "
              "'correlation_id', gen_random_uuid(), 'outcome', 'SUCCESS'))");

    await_value("2", "SELECT count(*) FROM pgmq.a_fx__replies");
    expect_value(bus.conn, "2",
                 "SELECT count(*) FROM commandbus.audit WHERE event_type = 'REPLY_DEAD_LETTERED'");
    await(embed_told("replies.dead_lettered") > 0);
}

/* Nobody has taken the commands away from an instance that serves none. */
Test(process_roles, an_instance_without_commands_leaves_them_alone)
{
    cb_worker *w = embed_start(HANDLERS({ "Test", book_hotel }), PROCESSES(&Stay), ROUTES,
                               .worker.no_commands = true, .domain.prefetch = 3);
    cb_uuid command = test_send_one(bus.db, .domain = "fx");
    cb_uuid id = trip_start("Stay");

    await_process("WAITING_FOR_ASYNC", id);
    expect_command("PENDING 0", command, "status, lease_no");
    cr_expect(cb_worker_stop(w, 30));
}
