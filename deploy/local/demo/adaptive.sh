# shellcheck shell=bash disable=SC2154,SC2034 # limit, url, simulator_port, member_pid are the demo's
# deploy/demo --adaptive: the FX API gets slower and slower; calls at once stay what they are, the queue grows.
# Sourced by deploy/demo.


# phase MILLISECONDS SECONDS AFTER: measures for so long, once the calls of before have ended.
phase() {
    local now from depth waited most
    behave fx "{\"minMs\": $1, \"maxMs\": $1}"
    sleep "$3"
    curl -sf -X POST "http://127.0.0.1:$simulator_port/stats/reset" >/dev/null
    from=${EPOCHREALTIME/[.,]/}
    sleep "$2"
    figures
    now=${EPOCHREALTIME/[.,]/}
    read -r depth waited < <(psql -XqAt -F ' ' -d "$url" -c \
        "SELECT visible, coalesce(waiting_seconds, 0) FROM commandbus.queue_metrics() WHERE queue_name = 'fx__commands'")
    most=$f_most_fx
    ((most <= worst)) || worst=$most
    printf '  %8s   %10s   %10s   %11d   %10s s   %9d of %d\n' "$1 ms" \
        "$(tenths $((limit * 10000 / $1)))" "$(tenths $((f_calls_fx * 10000000 / (now - from))))" "$depth" "$waited" "$most" "$limit"
}

worst=0

run_adaptive() {
    local timed_out parked
    behave risk '{"minMs": 20, "maxMs": 40}'
    behave gateway '{"minMs": 10, "maxMs": 20}'
    behave network '{"minMs": 10, "maxMs": 50}'
    say "demo: payments at 20 a second, two thirds need FX; $limit calls at once at most. About 90 s."
    say
    say "   latency     possible     measured   queue depth   oldest waits   most in flight   (calls a second)"
    submit_payments 2400 --rate 20/s
    phase 200 12 3
    phase 2000 20 3
    phase 10000 40 3
    timed_out=$(psql -XqAt -d "$url" -c "SELECT count(*) FROM commandbus.audit
        WHERE domain = 'fx' AND event_type IN ('FAILED', 'MOVED_TO_TSQ', 'RETRY_SCHEDULED')")
    parked=$(psql -XqAt -d "$url" -c "SELECT count(*) FROM commandbus.process WHERE status = 'WAITING_FOR_TSQ'")
    ((worst <= limit)) || die 1 "the API was called $worst times at once, the limit is $limit"
    ((timed_out == 0)) || die 1 "$timed_out calls to the FX API failed" "See commandbus.audit with --keep."
    ((parked == 0)) || die 1 "$parked payments were parked though the queue is only deep" "See commandbus process list with --keep."
    say
    say "The API got 50 times slower; it was never called more than $worst times at once, no call failed, the queue holds the rest."
    say "No payment was parked: a deep queue only slows them down, they wait in it until their cut-off (4 h)."
}
