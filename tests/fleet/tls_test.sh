#!/usr/bin/env bash
# An API behind TLS, called by a real worker: nobody is believed whose certificate is not trusted. SIM.11
# shellcheck source=tests/fleet/lib.sh
. "$(dirname "$0")/lib.sh"

domain=fx
contract='{"contractId":"C-1","reference":"R-1","rate":"1.1","creditAmount":"110.00"}'

# api_start: answers its one caller with a contract; its certificate is $work/certificate, which nobody knows.
api_start() {
    api_port=$(free_port)
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -keyout "$work/key" -out "$work/certificate" 2>/dev/null
    mkfifo "$work/says"
    exec 4<>"$work/says" # both ends: it never ends
    printf 'HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s' "${#contract}" "$contract" >&4
    openssl s_server -quiet -accept "127.0.0.1:$api_port" -key "$work/key" -cert "$work/certificate" <&4 >"$work/api" 2>&1 &
    others="${others:-} $!"
    # A connection to see whether it listens would get the answer.
    until grep -qE "^ *[0-9]+: 0100007F:$(printf %04X "$api_port") 00000000:0000 0A" /proc/net/tcp; do
        kill -0 $! || fail "$(cat "$work/api")"
        sleep 0.05
    done
}
# book SETTINGS...: one command. A handshake may take longer than a connection may on a busy machine, so it may be tried again.
book() {
    api_start
    worker_settings=(domains.fx.concurrent-messages=1 domains.fx.max-attempts=5 domains.fx.retry-backoff=200ms
        "handlers.fx.url=https://localhost:$api_port" "$@")
    start_ready a
    send_commands 1 BookFx '{"amount": "100.00", "fromCurrency": "EUR", "toCurrency": "USD", "valueDate": "2099-01-31"}'
    wait_until "$all_done" 30
    stop_worker a
}

test_an_api_with_an_unknown_certificate_is_told_nothing() {
    book

    same "$(sql "SELECT status || ' ' || (error_code IN ('API_NOT_TRUSTED', 'CALL_TIMEOUT'))
                 FROM commandbus.command_metadata")" 'IN_TROUBLESHOOTING_QUEUE true'
    # A handshake that takes too long is a CALL_TIMEOUT, and may be the last attempt.
    same "$(sql "SELECT string_agg(DISTINCT details ->> 'error_code', ' ') FROM commandbus.audit
                 WHERE details ->> 'error_code' <> 'CALL_TIMEOUT'")" API_NOT_TRUSTED
    if grep -q 100.00 "$work/api"; then fail 'it was told the amount'; fi
}

test_an_api_whose_certificate_is_in_ca_file_is_called() {
    book handlers.fx.ca-file="$work/certificate"

    same "$(sql "SELECT status || ' ' || (result ->> 'contractId') FROM commandbus.command_metadata")" 'COMPLETED C-1'
    grep -q 100.00 "$work/api" || fail "it was not told the amount: $(cat "$work/api")"
}

run_tests "$@"
