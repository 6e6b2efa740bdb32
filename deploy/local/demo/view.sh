# shellcheck shell=bash disable=SC2154 # work, url, limit, chaos, simulator_port, report are the demo's
# What is seen while the demo runs: on a terminal a picture that is drawn again and again, else a line now and then.
# Sourced by deploy/demo.

view_lines=0 view_last_line=0 note='' rate_at=0
declare -A calls_before=() calls_rate=()

simulator_stats() { curl -sf "http://127.0.0.1:$simulator_port/stats"; }

# figures: reads one row of figures.sql into f_*; false while somebody is away.
figures() {
    local stats
    stats=$(simulator_stats) || return 1
    # shellcheck disable=SC2034 # read here, shown there
    IFS='|' read -r f_started f_completed f_undone f_parked f_confirming f_queue_fx f_queue_risk f_queue_payments \
        f_now_fx f_calls_fx f_most_fx f_now_risk f_calls_risk f_most_risk f_now_gateway f_calls_gateway f_most_gateway \
        < <(psql -XqAt -d "$url" -v stats="$stats" -f "$root/deploy/local/demo/figures.sql" 2>/dev/null) || return 1
    [[ -n $f_most_gateway ]]
}

# rates: calls a second since the last time, each second or so.
rates() {
    local now=${EPOCHREALTIME/[.,]/} api calls
    ((now - rate_at >= 900000)) || return 0
    for api in fx risk gateway; do
        calls=f_calls_$api
        if ((rate_at)); then
            calls_rate[$api]=$(((${!calls} - calls_before[$api]) * 10000000 / (now - rate_at)))
        fi
        calls_before[$api]=${!calls}
    done
    rate_at=$now
}

# bar NOW MOST WIDTH
bar() {
    local full=$(($1 * $3 / ($2 > 0 ? $2 : 1)))
    ((full <= $3)) || full=$3
    printf '%*s' "$full" '' | tr ' ' '#'
    printf '%*s' $(($3 - full)) '' | tr ' ' '.'
}

tenths() { printf '%d.%d' $(($1 / 10)) $(($1 % 10)); }

# left DONE ALL SECONDS: how long it will still take.
left() {
    (($1 > 0)) || { echo '' && return; }
    echo ", about $((($2 - $1) * $3 / $1 + 1)) s left"
}

api_line() { # NAME QUEUE NOW LIMIT RATE MOST
    printf '  %-9s queue %5d   in flight [%s] %2d/%-2d   %6s calls/s   most %d\n' \
        "$1" "$2" "$(bar "$3" "$4" "$4")" "$3" "$4" "$(tenths "${5:-0}")" "$6"
}

# columns: of the terminal, whose size may change. A line that is longer would take two, and be drawn anew elsewhere.
columns() {
    local size
    size=$(stty size 2>/dev/null </dev/tty) || size='24 80'
    size=${size#* }
    echo $((size > 20 ? size - 1 : 79))
}

draw() { # DONE ALL SECONDS
    local text width line
    width=$(columns)
    text=$(
        echo "commandbus demo, $3 s${note:+ · $note}"
        api_line fx "$f_queue_fx" "$f_now_fx" "$limit" "${calls_rate[fx]:-0}" "$f_most_fx"
        api_line risk "$f_queue_risk" "$f_now_risk" "$limit" "${calls_rate[risk]:-0}" "$f_most_risk"
        api_line gateway "$f_queue_payments" "$f_now_gateway" 30 "${calls_rate[gateway]:-0}" "$f_most_gateway"
        printf '  payments  started %d · complete %d · undone %d · in troubleshooting %d · await confirmations %d\n' \
            "$f_started" "$f_completed" "$f_undone" "$f_parked" "$f_confirming"
        printf '  [%s] %d %%%s\n' "$(bar "$1" "$2" 50)" $(($1 * 100 / $2)) "$(left "$1" "$2" "$3")"
    )
    if ((view_lines)); then printf '\e[%dA' "$view_lines"; fi
    while IFS= read -r line; do printf '%s\e[K\n' "${line:0:width}"; done <<<"$text"
    view_lines=$(wc -l <<<"$text")
}

line() { # DONE ALL SECONDS
    ((SECONDS >= view_last_line + 2)) || return 0
    view_last_line=$SECONDS
    say "$3 s: $1 of $2 done; fx queue $f_queue_fx, in flight $f_now_fx/$limit; risk queue $f_queue_risk, in flight $f_now_risk/$limit; in troubleshooting $f_parked$(left "$1" "$2" "$3")"
}

view_note() {
    note=$1
    [[ -t 1 ]] || say "  $1"
}

view_end() { view_lines=0; }

# view_until_done N SECONDS: until every payment is at its end, or waits for an operator; or nothing has moved for so long.
view_until_done() {
    local began=$SECONDS done=0 before='' moved=$SECONDS
    while ((done < $1)); do
        ((SECONDS - moved < $2)) || { say "demo: nothing has moved for $2 s" && return 0; }
        check_members
        if [[ $chaos == yes ]]; then chaos_tick; fi
        play_person
        if figures; then
            rates
            done=$((f_completed + f_undone + f_parked))
            if [[ "$f_started $done $f_calls_fx $f_calls_risk" != "$before" ]]; then
                before="$f_started $done $f_calls_fx $f_calls_risk" moved=$SECONDS
            fi
            if [[ -t 1 ]]; then draw "$done" "$1" $((SECONDS - began)); else line "$done" "$1" $((SECONDS - began)); fi
        fi
        sleep 0.3
    done
}

# write_report N MILLISECONDS: on stdout for people, as JSON in a file. False when something does not hold.
write_report() {
    local accepted api
    accepted=$(grep -c '^20[02]$' "$work/logs/submitted" || true)
    simulator_stats >"$work/stats.json" || die 1 "the simulator does not say what it has seen"
    for api in fx risk gateway; do
        curl -sf "http://127.0.0.1:$simulator_port/bookings/$api" >"$work/$api.json" ||
            die 1 "the simulator does not say what $api has booked"
    done
    BOOKINGS=$work psql -XqAt -d "$url" -v ON_ERROR_STOP=1 -v asked="$1" -v accepted="$accepted" -v ms="$2" \
        -v allowed="$limit" -f "$root/deploy/local/demo/report.sql" || die 1 "there is no report"
    [[ -z $report ]] || cat "$work/report.json" >"$report"
    grep -q '"well": true' "$work/report.json"
}
