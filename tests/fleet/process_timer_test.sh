#!/usr/bin/env bash
# Timers fire within a second of being due, though nobody polls: STP.15, and STP.6, STP.7, STP.10 on the way.
# Measured by the database's own columns.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"

lazy_settings() {
    local d
    settings
    for d in payments fx risk; do
        worker_settings+=("domains.$d.visibility-timeout=30s" "domains.$d.handler-timeout=30s" "domains.$d.poll-interval=30s")
    done
}
lazy_settings

# fired WHAT LATENESS: an SQL expression, an interval; $most milliseconds are the most.
most=1000
if [[ $instrumented == yes ]]; then most=3000; fi
fired() {
    local ms
    ms=$(sql "SELECT coalesce(round(extract(epoch FROM ($2)) * 1000)::text, 'none')")
    note "$1: $ms ms after it was due"
    [[ $ms =~ ^-?[0-9]+$ ]] || fail "$1 has no time"
    at_least "$ms" 0 "milliseconds after which $1 fired"
    at_most "$ms" $((most * $(slowness) / 100)) "milliseconds after which $1 fired"
}
of() { echo "(SELECT $2 FROM commandbus.process WHERE process_id = '$1')"; }
timeout_of() { echo "(SELECT timeout_at FROM commandbus.process_history WHERE process_id = '$1' AND name = '$2')"; }

# When retries are due, for later: a busy machine may look only after it.
keep_retries() {
    sql "CREATE TABLE public.retry (process_id uuid, due timestamptz);
         CREATE FUNCTION public.keep_retry() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
         \$f\$ BEGIN INSERT INTO public.retry VALUES (NEW.process_id, NEW.next_retry_at); RETURN NULL; END \$f\$;
         CREATE TRIGGER keep_retry AFTER UPDATE ON commandbus.process FOR EACH ROW
         WHEN (NEW.status = 'WAITING_FOR_RETRY') EXECUTE FUNCTION public.keep_retry()"
}

# wait, retry and deadline at once, and one after the other: between them everybody sleeps.
all_timers() {
    local wait retry deadline command
    keep_retries
    wait=$(start Letters "$(noted '"waitMs": 2500')")
    status_is "$wait" 'WAITING_FOR_TSQ WAIT_TIMEOUT' 20
    fired "a wait's timeout" "$(of "$wait" tsq_at) - $(timeout_of "$wait" awaitL1)"

    retry=$(start Five "$(noted '"maxAttempts": 2' '"retryMs": 2000' '"fails": {"execute": "TRANSIENT:1"}')")
    status_is "$retry" COMPLETED 20
    fired 'a retry' "$(of "$retry" completed_at) - (SELECT min(due) FROM public.retry WHERE process_id = '$retry')"

    deadline=$(sql "SELECT commandbus.start_process('Five', '$(noted '"waitFor": true' '"onDeadline": "COMPENSATE"')',
                    deadline => commandbus.now() + interval '2.5 s')")
    status_is "$deadline" COMPENSATED 20
    fired 'a deadline' "(SELECT min(at) FROM commandbus.process_event WHERE process_id = '$deadline'
                         AND event = 'DEADLINE_EXCEEDED') - $(of "$deadline" deadline_at)"

    command=$(start Five "$(noted '"waitMs": 2500' "$(gated BookFx)")")
    status_is "$command" 'WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT' 20
    fired "a command's timeout" "$(of "$command" tsq_at) - $(timeout_of "$command" bookFx)"
}

# STP.15
test_timers_fire_in_time_with_one_worker() {
    stage_flows
    start_ready a
    all_timers
    kill_worker a # it still waits in BookFx
}

# STP.15: without notifications there is only the sleep until the next one
test_timers_fire_in_time_without_notifications() {
    stage_flows
    start_ready a --set domains.payments.use-notify=false --set domains.payments.poll-interval=1s
    all_timers
    kill_worker a
}

# STP.15: who set the timer is gone when it is due.
test_a_timer_fires_in_time_though_the_worker_that_set_it_was_killed() {
    local wait
    stage_flows
    start_ready a
    wait=$(start Letters "$(noted '"waitMs": 5000')")
    waits_at "$wait" awaitL1
    start_ready b # sees the timer when it comes
    kill_worker a
    status_is "$wait" 'WAITING_FOR_TSQ WAIT_TIMEOUT' 20
    fired "a wait's timeout, by the other one" "$(of "$wait" tsq_at) - $(timeout_of "$wait" awaitL1)"
    stop_worker b
}

# STP.15: nobody has told the other one of the timer. It has slept for long, so that it looks seldom; what it saw
# last is a process that is leased for long.
test_a_timer_fires_in_time_though_the_worker_that_set_it_was_killed_and_the_other_was_fast_asleep() {
    local wait setter=a sleeper=b
    stage_flows
    start_ready a
    start_ready b
    sleep 12 # that time has to pass
    wait=$(start Letters "$(noted '"waitMs": 3000' '"dieAt": "stop:before:awaitL1"')")
    until is_paused a || is_paused b; do sleep 0.02; done
    if is_paused b; then setter=b sleeper=a; fi
    kill_worker "$setter" CONT
    waits_at "$wait" awaitL1
    kill_worker "$setter"
    status_is "$wait" 'WAITING_FOR_TSQ WAIT_TIMEOUT' 60
    fired "a wait's timeout, by the one that slept" "$(of "$wait" tsq_at) - $(timeout_of "$wait" awaitL1)"
    stop_worker "$sleeper"
}

# STP.6: the first timeout_at stays whatever wakes the process
test_a_wait_keeps_its_first_timeout_however_often_it_is_woken() {
    local wait first i
    stage_flows
    start_ready a
    wait=$(start Letters "$(noted '"waitMs": 40000')")
    waits_at "$wait" awaitL1
    first=$(field "$wait" "date_trunc('milliseconds', next_wait_timeout_at)")
    for i in 1 2 3; do
        respond "$wait" "L$((i + 1))"
        wait_until "$(of "$wait" "state ->> 'arrived' LIKE '%L$((i + 1))' AND lease_owner IS NULL")" 10
        same "$(field "$wait" "date_trunc('milliseconds', next_wait_timeout_at)")" "$first" 'its timeout'
    done
    status_is "$wait" 'WAITING_FOR_TSQ WAIT_TIMEOUT' 60
    fired 'its timeout' "$(of "$wait" tsq_at) - '$first'::timestamptz"
    stop_worker a
}

# STP.15: many at once
test_thirty_timers_of_one_moment_fire_in_time() {
    stage_flows
    start_worker b
    start_ready a
    wait_ready b
    sql "SELECT count(commandbus.start_process('Letters', '{\"waitMs\": 60000}', deadline => commandbus.now() + interval '4 s'))
         FROM generate_series(1, 30)" >/dev/null
    wait_until "$all_settled" 30
    fired 'the last of thirty deadlines' "(SELECT max(tsq_at - deadline_at) FROM commandbus.process)"
    stop_worker a
    stop_worker b
}

run_tests "$@"
