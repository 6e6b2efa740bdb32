#!/usr/bin/env bash
# commandbus plan: RL.6. What is computed is tested in plan_options_test.c and erlang_test.c.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fleet_lib.sh"

fx=(--limit 6 --latency 200ms --rate 20/s --domain fx)

# No database is asked: there is none at this address.
nowhere=postgresql://127.0.0.1:1/none

test_options_are_shown_with_the_recommended_one_and_what_to_paste() {
    COMMANDBUS_DATABASE_URL=$nowhere exits 0 plan "${fx[@]}"
    is_silent
    prints '^fx: 20/s arrive, a call takes 200ms, at most 6 in flight\.$'
    prints '^ *OPTION +IN FLIGHT +POSSIBLE +THROUGHPUT +HEADROOM +USED +WAIT +WAIT P99 +ONE LOST +SURGE +TERMINATING +NOTE$'
    prints '^1 x 6 = 6 +6 +30/s +20/s +10/s +67% +28\.5ms +335ms +0/s +12 +12 +-$'
    prints '^3 x 2 = 6 +6 +30/s +20/s +10/s +67% +28\.5ms +335ms +20/s +8 +12 +-$'
    prints '^6 x 1 = 6 .* 25/s +8 +12 +recommended$'
    prints '^recommended: 6 x 1: 6 replicas, all of the limit, and with one pod lost it still carries 20/s \(25/s possible\)\.$'
    prints 'with maxSurge 25% \(2 more at a time\): up to 8 calls in flight without fleet-limit, and 12 while$'
    prints 'With fleet-limit 6 it is never more than 6\.$'
    prints '^  replicas: 6$'
    prints 'maxSurge: 0'
    prints '\{ name: COMMANDBUS_DOMAINS_FX_CONCURRENT_MESSAGES, value: "1" \}$'
    prints '\{ name: COMMANDBUS_DOMAINS_FX_FLEET_LIMIT, value: "6" \}$'
    prints '^assumed:$'
    prints 'Poisson'
}

test_json_has_the_same_figures() {
    exits 0 plan "${fx[@]}" --json
    is_silent
    json '[.options[] | [.replicas, .concurrent_messages]]' '[[1,6],[2,3],[3,2],[6,1]]'
    json '[.domain, .load, .carries_the_rate, .measured, .request.limit]' '["fx",4,true,null,6]'
    json '.options[2] | [.possible_per_second, .headroom_per_second, .throughput_per_second, .utilisation,
          .mean_wait_seconds, .p99_wait_seconds, .one_lost_per_second, .one_lost_carries_the_rate]' \
        '[30,10,20,0.666666667,0.028476085,0.33490646,20,false]'
    json '.options[2] | [.rollout_in_flight, .rollout_in_flight_terminating, .rollout_in_flight_fleet_limit]' '[8,12,6]'
    json '[.options[] | select(.recommended) | .replicas]' '[6]'
    json '.recommended' '{"replicas":6,"concurrent_messages":1,"fleet_limit":6,"max_surge":0,"env":{"COMMANDBUS_DOMAINS_FX_CONCURRENT_MESSAGES":"1","COMMANDBUS_DOMAINS_FX_FLEET_LIMIT":"6"}}'
    json '.assumptions | length > 3' true
}

# The worker takes the names that are printed, and the limit that it gives is the one asked for.
test_the_variables_are_those_of_the_worker() {
    local names
    exits 0 plan "${fx[@]}" --json
    mapfile -t names < <(jq -r '.recommended.env | to_entries[] | "\(.key)=\(.value)"' "$work/out")
    env "${names[@]}" "$COMMANDBUS_WORKER_BIN" --check-config --json \
        --set domains.fx.handlers=sample >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
    does_not_say 'COMMANDBUS_DOMAINS'
    json '[.keys[] | select(.origin | startswith("COMMANDBUS_DOMAINS_FX")) | [.key, .value]]' \
        '[["domains.fx.concurrent-messages",1],["domains.fx.fleet-limit",6]]'
}

# RL.4: the table that tests/fleet/adaptive_test.sh measures.
test_five_slots_make_what_a_fleet_makes() {
    local pair
    for pair in 200ms=25 2s=2.5 10s=0.5; do
        exits 1 plan --limit 5 --latency "${pair%=*}" --rate 1000/s --json
        json '[.options[] | select(.in_flight == 5) | .throughput_per_second] | unique' "[${pair#*=}]"
    done
}

# A script must not roll out what cannot keep up.
test_no_option_that_carries_the_rate_is_exit_1_with_what_would() {
    exits 1 plan --limit 5 --latency 2s --rate 20/s
    prints '^5 x 1 = 5 +5 +2\.5/s +2\.5/s +-17\.5/s +800% +grows +- '
    prints '^! no option carries 20/s: the limit of 5 makes 2\.5/s at most, so the queue grows by 17\.5/s without end\.$'
    prints 'A limit of 41 would just carry it, 50 with a fifth to spare'
    prints 'calls that take less than 250ms'
    lacks 'recommended|replicas:'
    exits 1 plan --limit 6 --latency 200ms --rate 30/s
    prints 'makes 30/s at most, with nothing to spare'
    exits 1 plan --limit 5 --latency 2s --rate 20/s --json
    json '[.carries_the_rate, .recommended, .least_limit, .pleasant_limit]' '[false,null,41,50]'
    json '.options[0] | [.mean_wait_seconds, .p99_wait_seconds, .queue_growth_per_second]' '[null,null,17.5]'
}

test_what_a_rate_allows_is_so_many_calls_in_flight() {
    exits 0 plan --limit-rate 25/s --latency 200ms --rate 18/s
    prints 'at most 5 in flight, to keep calls at 25/s or below'
    exits 0 plan --limit-rate 25/s --limit 4 --latency 200ms --rate 10/s --json
    json '[.request.limit, .request.limit_rate_per_second]' '[4,null]'
    exits 0 plan --limit-rate 1500/m --limit 9 --latency 200ms --rate 10/s --json
    json '[.request.limit, .request.limit_rate_per_second]' '[5,25]'
    exits 1 plan --limit-rate 25/s --latency 200ms --rate 50/s
    prints 'An API that takes more than 50/s would just carry it'
    lacks 'calls that take less'
    exits 1 plan --limit-rate 2/s --latency 200ms --rate 1/s
    says 'one call at a time makes 5/s already, more than 2/s'
    says '^  hint: .*cannot keep that'
}

test_surge_is_pods_or_a_percentage() {
    exits 0 plan --limit 6 --latency 200ms --rate 10/s --surge 1 --json
    json '.options[2] | [.surge_pods, .rollout_in_flight]' '[1,8]'
    exits 0 plan --limit 6 --latency 200ms --rate 10/s --surge 67% --json
    json '.options[2] | [.surge_pods, .rollout_in_flight]' '[3,12]'
    exits 0 plan --limit 6 --latency 200ms --rate 10/s --surge 0 --json
    json '.options[2] | [.surge_pods, .rollout_in_flight, .rollout_in_flight_terminating]' '[0,6,12]'
    for bad in x 1.5 -1 25%% % 5000 '1 %' 1e3; do
        exits 2 plan "${fx[@]}" --surge="$bad"
        says '--surge must be a number of pods such as 1, or a percentage such as 25%'
    done
}

test_mistakes_say_what_to_write() {
    local bad
    exits 2 plan --latency 200ms --rate 20/s
    says '--limit is missing'
    exits 2 plan --limit 6 --rate 20/s
    says '--latency is missing: .* such as 200ms'
    exits 2 plan --limit 6 --latency 200ms
    says '--rate is missing: .* such as 20/s'
    for bad in 0 -1 10001 nan 1e3 6.5 99999999999999999999; do
        exits 2 plan --limit="$bad" --latency 200ms --rate 20/s
        says '--limit must be a whole number from 1 to 10000'
    done
    for bad in 200 0ms -5ms nan 2d 200us inf; do exits 2 plan --limit 6 --latency="$bad" --rate 20/s; done
    for bad in 20 20/x -1/s nan/s inf/s 1e9/s; do
        exits 2 plan --limit 6 --latency 200ms --rate="$bad"
        says "--rate: invalid rate '$bad'"
        exits 2 plan --limit-rate="$bad" --latency 200ms --rate 20/s
        says "--limit-rate: invalid rate '$bad'"
    done
    exits 2 plan --limit 6 --latency 200ms --rate 20
    says "--rate: invalid rate '20'; use 20/s, 90/m, 5000/h or 100000/d"
    exits 2 plan --limit 6 --latency 200ms --rate 0/s
    says 'too little: more than 0, and 1000000/s at most'
    exits 2 plan "${fx[@]}" --min-replicas 5 --max-replicas 4
    says '--min-replicas is more than --max-replicas'
    exits 2 plan "${fx[@]}" --window 1d
    says '--window goes with --from-database'
    exits 2 plan --from-database
    says '--from-database wants to know of what'
}

# It is pasted into a manifest.
test_a_domain_must_be_one() {
    local bad
    for bad in FX 'f x' f__x x_ 1fx $'fx\n' 'fx}' abcdefghijabcdefghijabcdefghijabcdefgh; do
        exits 2 plan --limit 6 --latency 200ms --rate 20/s --domain "$bad"
        says "--domain: invalid domain name '"
    done
}

test_the_largest_figures_are_still_numbers() {
    exits 1 plan --limit 10000 --latency 1d --rate 1000000/s
    lacks 'nan|inf[^l]'
    prints '864000000%.* grows '
    prints 'A limit of 864[0-9]{8} would'
    exits 0 plan --limit 10000 --latency 1ms --rate 1/d
    lacks 'nan|inf[^l]'
    exits 0 plan --limit 10000 --latency 1s --rate 9999.99/s --max-replicas 100
    lacks 'nan|inf[^l]'
}

test_quiet_leaves_the_assumptions_out() {
    exits 0 plan "${fx[@]}" --quiet
    lacks 'assumed'
    prints 'recommended'
}

# --from-database. Runs are made with their times moved: 120 commands over half an hour, 300 ms each.

# past SECONDS COUNT: that many runs of fx, the last of them just now, one every SECONDS.
past() {
    local from
    from=$(sql 'SELECT clock_timestamp()')
    cb send fx T --count "$2" --quiet
    settle fx SUCCESS
    sql "WITH placed AS (SELECT command_id, statement_timestamp() - interval '1 s' - $1 * (row_number() OVER (ORDER BY command_id) - 1)
                                * interval '1 s' AS at
                         FROM commandbus.audit WHERE domain = 'fx' AND event_type = 'SENT' AND db_user IS NOT NULL
                           AND at >= '$from')
         UPDATE commandbus.audit a SET at = p.at + CASE a.event_type WHEN 'COMPLETED' THEN interval '300 ms' ELSE interval '0' END
         FROM placed p WHERE p.command_id = a.command_id"
    sql "UPDATE commandbus.domain SET created_at = created_at - interval '1 day'"
}

test_from_database_wants_a_known_domain_that_was_used() {
    cb migrate >/dev/null
    exits 1 plan --from-database --domain fx
    says "domain 'fx' is not registered"
    says '^  hint: .*commandbus queue list'
    cb queue create fx >/dev/null
    exits 1 plan --from-database --domain fx
    says '^commandbus: nothing was sent to fx in the last 1h$'
    says '^  hint: Look further back \(--window 1d\), or say --rate 20/s\.'
    cb send fx T --quiet >/dev/null
    exits 1 plan --from-database --domain fx --window 2d --json
    same "$(jq -r .error.message "$work/err")" 'no command of fx began and ended in the last 2d'
    exits 1 plan --from-database --domain fx --rate 20/s --latency 200ms
    says 'there is no limit to plan for: no fleet-limit is set, and no instance runs'
    settle fx SUCCESS
    sql "DELETE FROM commandbus.audit"
}

test_from_database_measures_rate_time_limit_and_what_runs() {
    past 15 120
    beat w-1 fx 2 1 6
    beat w-2 fx 2 1 6
    beat w-3 fx 2 1 6
    limit fx 6
    exits 0 plan --from-database --domain fx --json
    json '[.measured | .seconds, .arrivals, .retries, .runs, .instances, .slots, .fleet_limit, .depth]' \
        '[3600,120,0,120,3,6,6,0]'
    json '[.request.rate_per_second, .request.latency_seconds, .request.limit]' '[0.033333333,0.3,6]'
    json '.measured | [.busiest_minute_per_second, .mean_seconds, .variation]' '[0.066666667,0.3,0]'
    json '[.options[] | select(.is_present) | [.replicas, .concurrent_messages, .recommended]]' '[[3,2,true]]'
    exits 0 plan --from-database --domain fx
    prints '^fx: 2/m arrive \(measured\), a call takes 300ms \(measured\), at most 6 in flight \(the fleet-limit\)\.$'
    prints '^measured over 60m: 120 arrivals \(0 of them retries\), 120 runs; busiest minute 4/m'
    prints '^now: 3 instances with 6 slots, fleet-limit 6, 0 in the queue$'
    prints '^3 x 2 = 6 .* recommended, as now$'
}

# What the database keeps counts, whatever the slots could do: 3 × 2 are held at 4.
test_the_fleet_limit_goes_before_the_slots() {
    for n in 1 2 3; do beat "w-$n" fx 2 1 6; done
    limit fx 4
    exits 0 plan --from-database --domain fx
    prints 'at most 4 in flight \(the fleet-limit\)'
    prints '^3 x 2 = 6 +4 .* as now, only with fleet-limit$'
    limit fx 6
}

test_from_database_looks_back_over_the_window() {
    exits 0 plan --from-database --domain fx --window 10m --json
    # One every 15 s; the minutes that this test may have taken are not there any more.
    json '.measured | [.seconds, .arrivals > 15, .arrivals <= 40]' '[600,true,true]'
    json '.request.rate_per_second * 600 - .measured.arrivals | fabs < 0.001' true
}

test_what_is_given_goes_before_what_was_measured() {
    exits 0 plan --from-database --domain fx --rate 20/s --latency 100ms --limit 8
    prints '^fx: 20/s arrive, a call takes 100ms, at most 8 in flight\.$'
    prints '^3 x 2 = 6 .* as now$'
}

# The rate is what is asked of the API: retries are calls too.
test_retries_are_arrivals_and_their_runs_count() {
    cb send fx T --count 5 --quiet
    settle fx TRANSIENT
    exits 0 plan --from-database --domain fx --json
    json '.measured | [.arrivals, .retries, .runs, .depth]' '[130,5,125,5]'
    exits 0 plan --from-database --domain fx
    prints '^What is in the queue now takes '
    sql "SELECT pgmq.purge_queue('fx__commands')" >/dev/null
}

# A mean hides peaks: 130 an hour are less than the 180 that one slot makes at 20 s each, 4 a minute are more.
test_a_busiest_minute_that_does_not_fit_is_reported() {
    exits 0 plan --from-database --domain fx --limit 1 --latency 20s
    prints '^! the busiest minute had [0-9.]+/[sm], more than is possible, and waited\. To plan for it: --rate [0-9.]+/[sm]$'
    exits 0 plan --from-database --domain fx
    lacks 'busiest minute had'
}

# A worker that died has not said how long the call took.
test_runs_that_nobody_settled_do_not_count() {
    local runs
    runs=$(cb plan --from-database --domain fx --json | jq .measured.runs)
    cb send fx T --max-attempts 1 --quiet >/dev/null
    claim fx 1
    sql "UPDATE commandbus.command_metadata SET lease_until = now() - interval '1 h' WHERE status = 'IN_PROGRESS';
         UPDATE pgmq.q_fx__commands SET vt = now() - interval '1 s';
         UPDATE commandbus.uptime SET since = '-infinity'"
    sql "SELECT event FROM commandbus.receive('fx', 'another', 10, 0.001)" >/dev/null
    same "$(sql "SELECT count(*) FROM commandbus.audit WHERE event_type = 'MOVED_TO_TSQ' AND details ->> 'found_by' = 'another'")" 1
    exits 0 plan --from-database --domain fx --json
    json .measured.runs "$runs"
}

test_without_a_fleet_limit_the_slots_that_run_are_the_limit() {
    limit fx 0
    for n in 1 2 3; do beat "w-$n" fx 2 1 6; done
    exits 0 plan --from-database --domain fx
    prints 'at most 6 in flight \(the slots that run; no fleet-limit\)'
    beat w-3 fx 3 1
    exits 0 plan --from-database --domain fx --json
    json '[.request.limit, ([.options[] | select(.is_present)] | length)]' '[7,0]'
}

# Who watches may plan: no payload is read.
test_the_monitor_role_is_enough() {
    [[ $url == postgres*@* ]] || return 0
    local role=plan_monitor_$$
    sql "CREATE ROLE $role LOGIN PASSWORD 'x' IN ROLE commandbus_monitor" >/dev/null
    exits 0 plan --from-database --domain fx --url "postgresql://$role:x@${url#*@}" --json
    json '.measured.runs > 100' true
    sql "DROP ROLE $role"
}

test_no_database_is_exit_3_only_where_one_is_needed() {
    COMMANDBUS_DATABASE_URL=$nowhere exits 3 plan --from-database --domain fx
}

run_tests
