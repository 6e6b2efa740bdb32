#!/usr/bin/env bash
# Routes of handler sets, served by the real worker: features.http-api, http.bind, http.token-file (WRK.17, SIM.5).
. "$(dirname "$0")/../fleet/lib.sh"

serving=(--set "domains.$domain.handlers=desk" --set features.http-api=true)

# SIM.5
test_a_route_gets_its_body_its_headers_and_the_parts_of_its_path() {
    start_ready a "${serving[@]}"
    http_ask a POST /desk/echo '{"a": ["ü", 1]}' 'Idempotency-Key: k-1'
    expect_http 201 '.body.a[0] + .key' 'ük-1'
    grep -qi '^content-type: application/json' <<<"$http_headers" || fail "no JSON: $http_headers"
    http_ask a GET /desk/o%2De/parts/two
    expect_http 200 '.first + " " + .second' 'o-e two'
    http_ask a GET /desk/one%00more/parts/two # no C string has a NUL: it would be 'one'
    expect_http 200 '.first + " " + .second' 'one%00more two'
    stop_worker a
}

test_two_idempotency_keys_are_refused() {
    start_ready a "${serving[@]}"
    http_ask a POST /desk/echo '{}' 'Idempotency-Key: k-1' 'idempotency-key: k-2'
    expect_http 400 .error INVALID_IDEMPOTENCY_KEY
    stop_worker a
}

test_without_the_feature_there_are_no_routes() {
    start_ready a "${serving[@]}" --set features.http-api=false
    http_ask a POST /desk/echo '{}'
    same "$http_status" 404
    stop_worker a
}

# What bad input gets: an error as JSON, and nobody is asked.
test_wrong_paths_methods_and_bodies_are_refused_as_json() {
    local big
    start_ready a "${serving[@]}"
    http_ask a GET /desk
    expect_http 404 .error NOT_FOUND
    http_ask a GET /desk/x/parts/
    expect_http 404 .error NOT_FOUND
    http_ask a GET "/desk/$(printf 'x%.0s' {1..128})/parts/y"
    expect_http 404 .error NOT_FOUND
    http_ask a GET /desk/echo
    expect_http 405 .error METHOD_NOT_ALLOWED
    grep -qi '^allow: POST, PUT' <<<"$http_headers" || fail "no Allow: $http_headers"
    for body in '{' '[1]' '1' '{} {}' '{"a": "\u0000"}' $'{"a": "\xff"}' '{a: 1}' "{\"a\": $(printf '[%.0s' {1..20})"; do
        http_ask a POST /desk/echo "$body"
        expect_http 400 .error INVALID_JSON
    done
    # json-c would read each of these as something else than was sent (found by fuzz_http).
    for body in '{"a": NaN}' '{"a": -Infinity}' '{"a": 007}' '{"a": 99999999999999999999}' '{"a": 1e999}' '{"a": "\ud800"}'; do
        http_ask a POST /desk/echo "$body"
        expect_http 400 .error INVALID_JSON
    done
    http_ask a POST /desk/echo '{"a": "\\u0000"}' # a backslash, and no NUL
    [[ $http_status == 201 ]] || fail "a backslash before u0000 was taken for a NUL: $http_status"
    # json-c would keep the last.
    for body in '{"amount":"1","amount":"1000"}' '{"a": [{"x": {"amount": 1, "b": 2, "\u0061mount": 2}}]}'; do
        http_ask a POST /desk/echo "$body"
        expect_http 400 .error INVALID_JSON
        grep -q "the body has a duplicate key '[a\\\\u0061]*mount' at byte" <<<"$http_body" || fail "it does not say which: $http_body"
    done
    http_ask a POST /desk/echo '{"amount": {"amount": 1}, "b": [{"amount": 1}, {"amount": 1}]}'
    expect_http 201
    big=$(printf '%066000d' 0)
    http_ask a POST /desk/echo "{\"a\": \"$big\"}"
    expect_http 413 .error BODY_TOO_LARGE
    http_ask a POST /desk/echo "{\"a\": \"${big:0:65000}\"}"
    expect_http 201
    http_ask a POST /desk/echo '' 'Content-Type: text/plain' 'Content-Length: 0'
    expect_http 201 .body null
    stop_worker a
}

test_a_body_that_is_not_called_json_is_refused() {
    start_ready a "${serving[@]}"
    reply=$(timeout 5 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0"
        printf "POST /desk/echo HTTP/1.0\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}" >&3; cat <&3' \
        "${worker_port[a]}")
    grep -q '^HTTP/1.[01] 415' <<<"$reply" || fail "$reply"
    stop_worker a
}

# An open door does not stop the start, since a pod is probed on every address; there is a warning.
test_routes_for_everybody_get_a_warning() {
    local bind said
    said='features.http-api serves routes on http.bind 0.0.0.0 without http.token-file'
    start_ready a "${serving[@]}" --set http.bind=0.0.0.0
    grep -q "level=warn event=config.warning error=\"$said" "$work/a.log" || fail "not warned: $(cat "$work/a.log")"
    grep -q 'hint="set http.token-file' "$work/a.log" || fail 'it does not say what to do'
    stop_worker a
    echo s3cret >"$work/token"
    check() { "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" --check-config "${serving[@]}" "$@" 2>&1 >/dev/null; }
    for bind in 0.0.0.0 10.1.2.3 :: fe80::1 ::ffff:10.0.0.1; do
        check --set "http.bind=$bind" | grep -q "warning: features.http-api serves routes on http.bind $bind without" || fail "$bind is not warned of"
        same "$(check --set "http.bind=$bind" --set "http.token-file=$work/token")" '' 'with a token'
        same "$(check --set "http.bind=$bind" --set http.port=0)" '' 'without a port'
        same "$(check --set "http.bind=$bind" --set features.http-api=false)" '' 'without routes'
    done
    for bind in 127.0.0.1 127.8.9.1 ::1 ::ffff:127.0.0.1; do same "$(check --set "http.bind=$bind")" '' "$bind"; done
}

test_with_a_token_a_route_needs_it_and_probes_do_not() {
    echo s3cret >"$work/token"
    start_ready a "${serving[@]}" --set "http.token-file=$work/token"
    http_ask a POST /desk/echo '{}'
    expect_http 401 .error UNAUTHORIZED
    http_ask a GET /nothing/here # a caller without the token is not told what exists
    expect_http 401
    http_ask a POST /desk/echo '{}' 'Authorization: Bearer wrong'
    expect_http 401
    http_ask a POST /desk/echo '{}' 'Authorization: Bearer s3cret'
    expect_http 201
    http_ask a GET /livez
    expect_http 200
    stop_worker a
}

test_a_route_connects_again_after_its_connection_was_cut() {
    start_ready a "${serving[@]}"
    http_ask a GET /desk/hold
    expect_http 200
    sql "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_advisory_xact_lock_shared%' AND pid <> pg_backend_pid()" >/dev/null
    wait_ready a
    for _ in 1 2 3 4; do
        http_ask a GET /desk/hold
        expect_http 200
    done
    stop_worker a
}

run_tests "$@"
