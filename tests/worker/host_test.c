/* What a running handler may ask for, at the limits: a job made by hand, no database. */
#include <criterion/criterion.h>

#include "clock.h"
#include "engine.h"

static cb_worker worker;
static lane commands = { .worker = &worker, .mutex = PTHREAD_MUTEX_INITIALIZER };
static cb_command command = { .timeout_seconds = 10 };
static command_job running = { .job.lane = &commands, .command = &command };

/* Began so long ago, with so much time and lease left. */
static void begin_job(double ago, double timeout_left, double lease_left)
{
    int64_t now = now_ns();

    running.job.began = now - seconds_to_ns(ago);
    atomic_store(&running.job.deadline, now + seconds_to_ns(timeout_left));
    atomic_store(&running.job.lease_end, now + seconds_to_ns(lease_left));
}

static bool about(int64_t ms, int64_t expected)
{
    return ms <= expected && ms > expected - 900;
}

Test(host, the_time_left_is_that_of_the_timeout_or_of_the_lease_whichever_ends_first)
{
    begin_job(0, 5, 20);
    cr_expect(about(command_host.remaining_ms(&running), 5000));
    begin_job(0, 20, 5);
    cr_expect(about(command_host.remaining_ms(&running), 5000));
    cr_expect(!command_host.is_lost(&running));
    begin_job(0, -1, 5);
    cr_expect_eq(command_host.remaining_ms(&running), 0);
    cr_expect(command_host.is_lost(&running));
    begin_job(0, 5, -1);
    cr_expect(command_host.is_lost(&running));
}

Test(host, a_lease_that_is_gone_is_lost_however_much_time_is_left)
{
    begin_job(0, 5, 20);
    atomic_store(&running.job.lease_end, 0);

    cr_expect(command_host.is_lost(&running));
    cr_expect_eq(command_host.remaining_ms(&running), 0);
}

Test(host, extends_from_now_by_what_was_asked_for_and_never_by_more_than_one_timeout)
{
    begin_job(8, 2, 100);
    cr_expect(command_host.extend(&running, 4000));
    cr_expect(about(command_host.remaining_ms(&running), 4000));
    cr_expect(command_host.extend(&running, INT64_MAX));
    cr_expect(about(command_host.remaining_ms(&running), 10000));
}

Test(host, does_not_shorten_what_is_left)
{
    begin_job(0, 10, 100);
    cr_expect(!command_host.extend(&running, 1000));
    cr_expect(about(command_host.remaining_ms(&running), 10000));
    cr_expect(!command_host.extend(&running, 0));
    cr_expect(!command_host.extend(&running, INT64_MIN));
}

Test(host, ends_after_ten_timeouts_in_all)
{
    begin_job(95, 1, 100);
    cr_expect(command_host.extend(&running, 10000));
    cr_expect(about(command_host.remaining_ms(&running), 5000));
    cr_expect(!command_host.extend(&running, 10000));
}

Test(host, gives_nothing_to_a_run_that_is_settled_as_timed_out)
{
    begin_job(10, -0.001, 100);
    running.timed_out = true;
    cr_expect(!command_host.extend(&running, 10000));
    cr_expect_eq(command_host.remaining_ms(&running), 0);
}

Test(host, says_that_the_worker_is_stopping)
{
    cr_expect(!command_host.is_stopping(&running));
    atomic_store(&worker.stopping, true);
    cr_expect(command_host.is_stopping(&running));
}
