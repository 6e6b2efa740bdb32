#!/usr/bin/env bash
# Probes, metrics and routes of the real worker while strangers hold more connections than it has (WRK.16, DESIGN 8.10).
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/../fleet/lib.sh"

serving=(--set "domains.$domain.handlers=desk" --set features.http-api=true)

whole_requests=0

# siege_start KIND CONNECTIONS [ADDRESSES]: until siege_end or two minutes later; see tests/tools/siege.c.
siege_start() {
    local until=$((SECONDS + 240))
    "$COMMANDBUS_BUILD_DIR/tests/siege" "${worker_port[a]}" "$1" "$2" 120 "${3:-1}" >"$work/siege" 2>&1 &
    siege_pid=$!
    others="${others:-} $siege_pid"
    until grep -q besieging "$work/siege"; do
        ((SECONDS < until)) || fail "the siege does not begin: $(cat "$work/siege")"
        sleep 0.05
    done
}
siege_end() {
    kill -TERM "$siege_pid"
    wait "$siege_pid" || true
    note "the siege: $(tail -n 1 "$work/siege")"
}

# answered_all [ROUNDS]: probes, metrics and a route are answered each time. Who besieges with whole requests may have the
# route tell others that it is busy, which is an answer.
answered_all() {
    local path i asked=0 answered=0 busy=0 began=${EPOCHREALTIME/./}
    for ((i = 0; i < ${1:-25} && asked < answered + 5; i++)); do
        for path in /livez /readyz /metrics; do
            http_get a "$path"
            asked=$((asked + 1))
            ((http_status != 200)) || answered=$((answered + 1))
        done
        http_ask a POST /desk/echo '{"a": 1}'
        asked=$((asked + 1))
        case $http_status in
            201) answered=$((answered + 1)) ;;
            503) answered=$((answered + 1)) busy=$((busy + 1)) ;;
        esac
    done
    ((whole_requests)) || same "$busy" 0 'the number of those who were told BUSY'
    note "answered $answered of $asked, $busy with BUSY, in $(((${EPOCHREALTIME/./} - began) / 1000)) ms"
    same "$answered" "$asked" 'the number of answers'
}

under_siege() {
    [[ $1 == head || $1 == body ]] || whole_requests=1
    start_ready a "${serving[@]}"
    siege_start "$@"
    answered_all
    siege_end
    answered_all 1
    stop_worker a
}

# Seen before: /livez answered 2 of 25.
test_slow_heads_do_not_keep_probes_and_routes_out() { under_siege head 300; }
test_slow_bodies_do_not_keep_probes_and_routes_out() { under_siege body 300; }
test_idle_connections_do_not_keep_probes_and_routes_out() { under_siege idle 300; }
test_clients_that_read_slowly_do_not_keep_probes_and_routes_out() { under_siege sip 300; }
test_slow_clients_of_many_addresses_do_not_keep_probes_and_routes_out() { under_siege mixed 600 150; }

# wait_closed PORT REASON LEAST: until the worker has closed so many; $closed has the number.
wait_closed() {
    local until=$((SECONDS + 240))
    until closed=$(metric a "commandbus_http_closed_total{port=\"$1\",reason=\"$2\"}") && ((closed >= $3)); do
        ((SECONDS < until)) || fail "only $closed of $1 closed as $2"
        sleep 0.05
    done
}

# More than an idle time: these send a byte a second, and there is room enough.
test_a_request_that_is_not_complete_in_time_is_closed() {
    start_ready a "${serving[@]}" --set http.request-timeout=1500ms
    siege_start mixed 20
    wait_closed http slow 15
    same "$(metric a 'commandbus_http_closed_total{port="http",reason="crowded"}')" 0 'closed to make room'
    siege_end
    stop_worker a
}

# What is slow here is the route. As long as it runs, nobody is in a hurry.
test_a_route_may_take_longer_than_a_request() {
    start_ready a "${serving[@]}" --set http.request-timeout=300ms
    http_ask a POST /desk/jobs '{"ms": 1200}'
    expect_http 200 .status COMPLETED
    stop_worker a
}

# Per address: whoever holds most of the connections loses them before others do.
test_a_slow_client_of_another_address_is_not_in_the_way_of_a_siege() {
    local body
    body="{\"a\": \"$(printf '%060000d' 0)\"}"
    start_ready a "${serving[@]}" --set http.request-timeout=60s
    siege_start head 400
    same "$(curl -s -o "$work/answer" -w '%{http_code}' --max-time 60 --interface 127.0.0.9 --limit-rate 15K \
        -H 'Content-Type: application/json' -d "$body" "$(worker_url a)/desk/echo")" 201 'the answer to a slow upload'
    wait_closed http crowded 400
    siege_end
    stop_worker a
}

test_a_siege_is_counted_and_logged_once_a_minute() {
    start_ready a "${serving[@]}"
    siege_start head 300
    wait_closed http crowded 100
    siege_end
    wait_log a 'level=warn event=connections.closed .*http.request-timeout'
    note "closed to make room: $closed"
    at_most "$(grep -c event=connections.closed "$work/a.log")" 3 'the number of lines'
    stop_worker a
}

# Probes and metrics have connections of their own when routes have a port of their own.
test_routes_on_a_port_of_their_own_leave_probes_alone() {
    local api probes
    api=$(free_port)
    start_ready a "${serving[@]}" --set "http.api-port=$api"
    grep -q "event=routes.served address=127.0.0.1:$api" "$work/a.log" || fail 'it does not say where routes are'
    probes=${worker_port[a]}
    http_ask a POST /desk/echo '{"a": 1}'
    expect_http 404
    worker_port[a]=$api
    http_ask a POST /desk/echo '{"a": 1}'
    expect_http 201
    http_ask a GET /livez
    expect_http 404 .error NOT_FOUND

    siege_start mixed 300
    http_ask a POST /desk/echo '{"a": 1}'
    expect_http 201
    worker_port[a]=$probes
    wait_closed api crowded 1
    same "$(metric a 'commandbus_http_closed_total{port="http",reason="crowded"}')" 0 'closed among the probes'
    same "$(metric a 'commandbus_http_connections{port="http"}')" 1 'the connections of probes'
    siege_end
    stop_worker a
}

test_a_port_of_the_routes_that_is_in_use_is_refused() {
    start_ready a "${serving[@]}"
    start_worker b "${serving[@]}" --set "http.api-port=${worker_port[a]}"
    wait_exit b 2
    grep -q "cannot listen on http.bind '127.0.0.1', http.api-port ${worker_port[a]}: Address already in use" "$work/b.log" ||
        fail 'it does not say which port'
    grep -q 'Choose another http.api-port' "$work/b.log" || fail 'it does not say what to do'
    stop_worker a
}

run_tests "$@"
