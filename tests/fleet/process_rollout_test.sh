#!/usr/bin/env bash
# Two releases of a process type side by side: DESIGN 4, "Version skew", STP.13.
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/fleet/flows.sh
. "$(dirname "$0")/flows.sh"
# shellcheck source=tests/fleet/process.sh
. "$(dirname "$0")/process.sh"

start_old() {
    release_is flows
    start_ready "$1"
}
start_new() {
    release_is flows2
    start_ready "$1"
}
# Who claims what, and which version had written it by then.
log_claims() {
    sql "CREATE TABLE public.claim (process_id uuid, version integer, worker text);
         GRANT INSERT ON public.claim TO PUBLIC;
         CREATE FUNCTION public.note_claim() RETURNS trigger LANGUAGE plpgsql AS
         \$\$ BEGIN INSERT INTO public.claim VALUES (NEW.process_id, OLD.version, NEW.lease_owner); RETURN NULL; END \$\$;
         CREATE TRIGGER note_claim AFTER UPDATE ON commandbus.process
         FOR EACH ROW WHEN (NEW.lease_no > OLD.lease_no AND NEW.lease_owner IS NOT NULL) EXECUTE FUNCTION public.note_claim()"
}
# claims NAME CONDITION: how often the worker of this name has claimed such.
claims() {
    sql "SELECT count(*) FROM public.claim c JOIN commandbus.worker w USING (worker)
         WHERE w.details ->> 'name' = '$1' AND ($2)"
}
start_some() {
    sql "SELECT count(commandbus.start_process('Five', '$(noted '"waitFor": true')')) FROM generate_series(1, $1);
         SELECT count(commandbus.start_process('Letters', '{}')) FROM generate_series(1, $1);
         SELECT count(commandbus.start_process('Long', '$(noted '"n": 5')')) FROM generate_series(1, $1)" >/dev/null
}
respond_all() { # NAME TYPE
    sql "SELECT count(commandbus.respond(process_id, '$1', '{\"reference\": \"r\"}', md5(process_id || '$1')::uuid))
         FROM commandbus.process WHERE process_type = '$2'" >/dev/null
}
waiting() {
    wait_until "(SELECT count(*) = $1 FROM commandbus.process WHERE lease_owner IS NULL AND wake_at > commandbus.now()
                 AND current_wait IN ('awaitGo', 'awaitL1', 'awaitL2', 'awaitL3', 'awaitL4'))" 40
}

# Nothing is parked; the old one leaves alone what the new one wrote; both make something, and everything ends.
test_an_old_and_a_new_release_work_side_by_side_and_everything_ends() {
    local letter
    stage_flows
    log_claims
    start_old old
    start_some 10
    waiting 20
    start_new new
    start_some 10
    waiting 40
    for letter in L1 L2 L3 L4; do respond_all "$letter" Letters; done
    respond_all go Five
    wait_until "$all_settled" 40

    same "$(claims old 'c.version = 2')" 0 'claims by the old one of what the new one wrote'
    at_least "$(claims old true)" 20 'claims by the old one'
    at_least "$(claims new 'c.version = 1')" 1 'claims by the new one of what the old one wrote'
    at_least "$(sql "SELECT count(*) FROM commandbus.process WHERE version = 2")" 1 'processes that the new one wrote'
    # Each went one way: what was past the change when the new code came has not been screened.
    note "$(sql "SELECT count(*) FILTER (WHERE version = 1) || ' by the old one alone, ' || count(*) FILTER (WHERE version = 2)
                 || ' by the new one too, ' || count(*) FILTER (WHERE (state ->> 'screened')::boolean) || ' screened'
                 FROM commandbus.process")"
    stop_worker old
    stop_worker new
    check_processes 'COMPLETED 60'
}

# A rollback: what the new one wrote waits for somebody who knows it, and is in nobody's way.
test_after_a_rollback_what_the_new_release_wrote_waits_for_it() {
    stage_flows
    log_claims
    start_new new
    letters=$(start Letters "$(noted)")
    waits_at "$letters" awaitL1
    stop_worker new
    start_old old
    respond "$letters" L1
    other=$(start Letters "$(noted)")
    for letter in L1 L2 L3 L4; do respond "$other" "$letter"; done
    status_is "$other" COMPLETED
    same "$(field "$letters" "status || ' ' || current_wait || ' ' || (lease_owner IS NULL)")" 'WAITING_FOR_ASYNC awaitL1 true' \
        'what the new one wrote'
    same "$(claims old "c.process_id = '$letters'")" 0 'claims by the old one'
    for letter in L2 L3 L4; do respond "$letters" "$letter"; done
    start_new again
    status_is "$letters" COMPLETED
    same "$(state_of "$letters" arrived)" 'L1 L2 L3 L4' 'its letters'
    stop_worker old
    stop_worker again
    check_processes 'COMPLETED 2'
}

# The old one dies in a step, the new one goes on with it; and the other way round the process waits.
test_a_step_of_a_dead_worker_of_one_release_is_taken_on_by_the_other() {
    stage_flows
    start_old old
    id=$(start Long "$(noted '"n": 3' '"maxAttempts": 2' '"dieAt": "effect:step2"')")
    wait_exit old 137
    start_new new
    status_is "$id" COMPLETED
    same "$(effects "$id" step2) $(keys "$id" step2)" '2 1' 'effects and keys of the step'
    same "$(effects "$id" step1) $(effects "$id" step3)" '1 1' 'effects of the others'
    stop_worker new
    check_processes 'COMPLETED 1'
}

run_tests "$@"
