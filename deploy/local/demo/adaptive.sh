# shellcheck shell=bash disable=SC2154,SC2034 # limit, url, simulator_port, member_pid are the demo's
# deploy/demo --adaptive: the FX API gets slower and slower; calls at once stay what they are, the queue grows.
# Sourced by deploy/demo.

fx_calls() { simulator_stats | grep -o '"fx": *{[^}]*' | grep -o '"calls": *[0-9]*' | grep -o '[0-9]*$'; }

# phase MILLISECONDS SECONDS: measures once the calls of before have ended.
phase() {
    local before now from depth waited most
    behave fx "{\"minMs\": $1, \"maxMs\": $1}"
    sleep "$3"
    curl -sf -X POST "http://127.0.0.1:$simulator_port/stats/reset" >/dev/null
    from=${EPOCHREALTIME/[.,]/}
    sleep "$2"
    figures
    now=${EPOCHREALTIME/[.,]/}
    before=$((f_calls_fx - f_now_fx)) # those that have ended
    read -r depth waited < <(psql -XqAt -F ' ' -d "$url" -c \
        "SELECT visible, coalesce(waiting_seconds, 0) FROM commandbus.queue_metrics() WHERE queue_name = 'fx__commands'")
    most=$f_most_fx
    printf '  %8s   %10s   %10s   %11d   %9s s   %d of %d\n' "$1 ms" \
        "$(tenths $((limit * 10000 / $1)))" "$(tenths $((before * 10000000 / (now - from))))" "$depth" "$waited" "$most" "$limit"
}

run_adaptive() {
    behave risk '{"minMs": 20, "maxMs": 40}'
    behave gateway '{"minMs": 10, "maxMs": 20}'
    behave network '{"minMs": 10, "maxMs": 50}'
    say "demo: payments at 20 a second, two thirds need FX; $limit calls at once at most. About 100 s." \
        "" "   latency   calls/s possible   measured   queue depth   oldest waits   most in flight"
    submit_payments 2400 --rate 20/s &
    member_pid[submitter]=$!
    phase 200 12 3
    phase 2000 20 3
    phase 10000 40 3
    say "" "The API got 50 times slower; nobody called it more often at once, nothing timed out, the queue holds the rest."
}
