# shellcheck shell=bash
# Payments to submit: what one asks for, and many of them over HTTP by one curl. Sourced by deploy/demo and by tests/fleet.

# write_payment I DATE: what one asks for, as a value of curl's. Two of three need an exchange.
write_payment() {
    local currencies=(EUR USD GBP EUR CHF EUR) credit=(USD EUR GBP EUR EUR CHF) k=$(($1 % 6))
    printf '{\\"debitAccount\\":\\"DE%020d\\",\\"creditAccount\\":\\"GB%020d\\",\\"amount\\":\\"%d.%02d\\",' \
        "$1" "$1" $((10 + $1 * 7 % 5000)) $(($1 % 100))
    printf '\\"debitCurrency\\":\\"%s\\",\\"creditCurrency\\":\\"%s\\",\\"valueDate\\":\\"%s\\"}' "${currencies[k]}" "${credit[k]}" "$2"
}

# write_payments N URL...: what curl -K wants, for N payments to these in turn. A worker that was killed comes back on its
# port; the key makes it the same payment however often it is submitted. Each prints the status that it ended with.
write_payments() {
    local n=$1 i tomorrow
    shift
    tomorrow=$(date -u -d '+1 day' +%F)
    for ((i = 1; i <= n; i++)); do
        ((i == 1)) || echo next
        printf 'url = "%s"\nheader = "Content-Type: application/json"\nheader = "Idempotency-Key: demo-%d"\n' "${@:i % $# + 1:1}" "$i"
        printf 'data = "' && write_payment "$i" "$tomorrow"
        printf '"\noutput = "/dev/null"\nwrite-out = "%%{http_code}\\n"\n'
        printf 'retry = 100\nretry-delay = 1\nretry-all-errors\nfail\n' # of this one: "next" begins anew
    done
}
