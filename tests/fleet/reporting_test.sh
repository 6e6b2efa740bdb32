#!/usr/bin/env bash
# The sample StatementReport on real workers: a process of commands that leaves three kinds of file. PM.7.
. "$(dirname "$0")/lib.sh"

domain=reporting
prepare() {
    out=$work/statements
    mkdir "$out"
    worker_settings=(
        domains.reporting.concurrent-messages=2 domains.reporting.visibility-timeout=2s
        domains.reporting.handler-timeout=2s domains.reporting.poll-interval=100ms
        domains.reporting.retry-backoff=200ms domains.reporting.max-attempts=20
        handlers.reporting.output-folder="$out"
    )
    "$COMMANDBUS_BIN" migrate --quiet --set reporting="$COMMANDBUS_SOURCE_DIR/handlers/reporting/sql" >/dev/null
    same "$(sql "SELECT reporting.seed(5, 2000)")" 10000 'the transactions made'
}

# report TYPE [ACCOUNTS]: starts a process over 2023; prints its id.
report() {
    "$COMMANDBUS_BIN" process start StatementReport --quiet --state "{\"from_date\": \"2023-02-15\",
        \"to_date\": \"2024-01-15\", \"account_list\": ${2:-[\"ACC-001\", \"ACC-002\", \"ACC-003\", \"ACC-004\", \"ACC-005\"]},
        \"output_type\": \"$1\"}"
}
status_is() {
    wait_until "(SELECT concat_ws(' ', status, CASE WHEN '$2' LIKE '% %' THEN error_code END)
                 FROM commandbus.process WHERE process_id = '$1' AND lease_owner IS NULL) = '$2'" "${3:-30}"
}
state_of() { sql "SELECT state ->> '$2' FROM commandbus.process WHERE process_id = '$1'"; }
# file_of ID: what its process has rendered.
file_of() { echo "$out/$(state_of "$1" rendered_file_path)"; }
summary() {
    sql "SELECT process_id, status, phase, current_step, error_code, error_message FROM commandbus.process LIMIT 20"
    sql "SELECT command_type, status, attempts, error_code, error_message FROM commandbus.command_metadata
         WHERE status <> 'COMPLETED' LIMIT 20"
}
# files: of all processes, hidden ones too, without their ids.
files() { find "$out" -type f -printf '%f %m\n' | sed -E 's/-[0-9a-f]{8}-[0-9a-f-]{27}//' | LC_ALL=C sort; }

# What csv must say, by the database: the sums per month, and the balance before and after each.
expected_csv="
    WITH inside AS (
        SELECT account_id, to_char(booked_on, 'YYYY-MM') AS month, count(*) AS n,
               coalesce(sum(amount) FILTER (WHERE amount > 0), 0) AS come, coalesce(-sum(amount) FILTER (WHERE amount < 0), 0) AS gone
        FROM reporting.transaction WHERE booked_on BETWEEN '2023-02-15' AND '2024-01-15' GROUP BY 1, 2
    ), balance AS (
        SELECT i.*, (SELECT sum(amount) FROM reporting.transaction t WHERE t.account_id = i.account_id
                     AND booked_on < greatest(date '2023-02-15', (i.month || '-01')::date)) AS opening
        FROM inside i
    )
    SELECT concat_ws(',', account_id, currency, month, n, round(opening, d), round(come, d), round(gone, d), round(opening + come - gone, d))
    FROM balance JOIN reporting.account USING (account_id),
         LATERAL (SELECT CASE currency WHEN 'JPY' THEN 0 WHEN 'KWD' THEN 3 ELSE 2 END AS d) AS digits
    ORDER BY account_id, month"

test_one_process_each_makes_html_csv_and_pdf() {
    local html csv pdf n file
    prepare
    start_ready a
    html=$(report html) csv=$(report csv) pdf=$(report pdf)
    for n in "$html" "$csv" "$pdf"; do status_is "$n" COMPLETED; done

    same "$(files | paste -sd,)" \
        'aggregate.json 640,aggregate.json 640,aggregate.json 640,query.json 640,query.json 640,query.json 640,statement.csv 640,statement.html 640,statement.pdf 640' \
        'what is in the folder'

    file=$(file_of "$html")
    for n in ACC-001 ACC-005; do grep -q "<h2>$n</h2>" "$file" || fail "no $n in html"; done
    grep -qF 'Müller &amp; Söhne &lt;GmbH&gt;' "$file" || fail 'html is not escaped'
    if grep -q '<GmbH>' "$file"; then fail 'html has what was not escaped'; fi

    file=$(file_of "$csv")
    sql "$expected_csv" >"$work/expected"
    # The holders are texts with commas and quotes: looked at apart, and taken out here.
    tail -n +2 "$file" | tr -d '\r' | sed -E 's/^"([^"]*)","([^"]|"")*","([^"]*)"/\1,\3/' >"$work/found"
    diff "$work/expected" "$work/found" >&2 || fail 'the csv has other sums than the database'
    at_least "$(wc -l <"$work/found")" 60 'the lines of csv'
    grep -qF "\"'=SUM(A1:A9)\"" "$file" || fail 'csv has a formula'
    grep -qF '"O'"'"'Neill, ""Ed"""' "$file" || fail 'csv is not quoted'

    file=$(file_of "$pdf")
    pdftotext -layout "$file" "$work/text"
    for n in 1 2 3 4 5; do grep -q "ACC-00$n" "$work/text" || fail "the pdf has no ACC-00$n"; done
    grep -q 'Müller & Söhne' "$work/text" || fail 'the pdf has no umlauts'
    grep -qF "$(sed -n '1s/.*,//p' "$work/expected")" "$work/text" || fail 'the pdf lacks a closing balance'
    pdftoppm -r 50 -f 1 -l 1 -gray "$file" "$work/page"
    # A page with nothing on it would be white all over.
    at_least "$(tail -c +16 "$work"/page-*1.pgm | tr -d '\377' | wc -c)" 1000 'the dots of the first page'
    stop_worker a
}

test_an_unknown_account_is_an_answer_and_leaves_nothing() {
    local id
    prepare
    start_ready a
    id=$(report html '["ACC-001", "ACC-999"]')
    status_is "$id" 'COMPENSATED UNKNOWN_ACCOUNT'
    same "$(files)" '' 'what is in the folder'
    stop_worker a
}

# PM.4: what was done is undone when an operator cancels what cannot be done.
test_a_report_that_is_canceled_removes_its_files() {
    local id command
    prepare
    sql "INSERT INTO reporting.account VALUES ('ODD-1', 'Nobody', 'QQQ')" # no currency: the aggregation will not take it
    start_ready a
    id=$(report pdf '["ODD-1"]')
    status_is "$id" 'WAITING_FOR_TSQ COMMAND_IN_TSQ'
    same "$(files)" 'query.json 640' 'what is in the folder'
    command=$(sql "SELECT command_id FROM commandbus.command_metadata WHERE status = 'IN_TROUBLESHOOTING_QUEUE' AND error_code = 'FILE_CORRUPT'")
    "$COMMANDBUS_BIN" tsq cancel reporting "$command" --operator ops --reason 'no such currency' >/dev/null
    status_is "$id" COMPENSATED
    same "$(find "$out" -mindepth 1)" '' 'what is in the folder'
    stop_worker a
}

test_hostile_requests_wait_for_a_person() {
    local id
    prepare
    start_ready a
    id=$(report html '["../../etc/passwd"]')
    status_is "$id" 'WAITING_FOR_TSQ COMMAND_IN_TSQ'
    same "$(sql "SELECT error_code FROM commandbus.command_metadata")" INVALID_ACCOUNT
    id=$(report 'exe')
    status_is "$id" 'WAITING_FOR_TSQ PERMANENT_FAILURE'
    same "$(files)" '' 'what is in the folder'
    stop_worker a
}

# Workers that are killed leave nothing half-done behind: every file is whole, and there are three of each process.
test_reports_survive_workers_that_are_killed() {
    local n=60 killed=0 started state
    prepare
    start_ready a # it registers the process type
    stop_worker a
    state='{"from_date": "2023-02-15", "to_date": "2024-01-15", "account_list": ["ACC-001", "ACC-002"], "output_type": "pdf"}'
    sql "SELECT count(commandbus.start_process('StatementReport', '$state')) FROM generate_series(1, $n)" >/dev/null
    start_ready b
    while ((killed < 5)); do
        started=$(sql "SELECT commandbus.now()")
        start_worker a
        # Killed with a command in its hands.
        wait_until "EXISTS (SELECT FROM commandbus.command_metadata WHERE status = 'IN_PROGRESS' AND lease_owner LIKE 'a%'
                            AND updated_at > '$started')
                    OR NOT EXISTS (SELECT FROM commandbus.process WHERE status <> 'COMPLETED')" 30
        kill_worker a
        killed=$((killed + 1))
        if [[ $(sql "SELECT count(*) FROM commandbus.process WHERE status <> 'COMPLETED'") == 0 ]]; then break; fi
    done
    at_least "$killed" 3 'workers killed'
    wait_until "(SELECT count(*) FROM commandbus.process WHERE status = 'COMPLETED') = $n" 60
    same "$(files | uniq -c | tr -s ' ' | paste -sd,)" " $n aggregate.json 640, $n query.json 640, $n statement.pdf 640" 'what is in the folder'
    same "$(find "$out" -name '*.pdf' -exec sha256sum {} + | cut -d' ' -f1 | sort -u | wc -l)" 1 'the different statements'
    find "$out" -name '*.json' -exec jq -e .from_date {} + >/dev/null || fail 'a file is not whole'
    note "killed $killed; commands that ran again: $(count 'lease_no > 1')"
}

test_the_worker_says_which_settings_the_set_needs() {
    local code=0
    "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" --set worker.modules-dir="$work/modules" \
        --set domains.reporting.enabled=true --set http.port=0 >"$work/out" 2>&1 || code=$?
    same "$code" 2 'the exit code'
    grep -q 'handlers.reporting.output-folder' "$work/out" || fail "$(cat "$work/out")"

    code=0
    "$COMMANDBUS_WORKER_BIN" --config-dir "$work/config" --set worker.modules-dir="$work/modules" --set http.port=0 \
        --set domains.reporting.enabled=true --set handlers.reporting.output-folder="$work/nowhere" >"$work/out" 2>&1 || code=$?
    same "$code" 2 'the exit code'
    grep -q 'nowhere: No such file or directory' "$work/out" || fail "$(cat "$work/out")"
}

run_tests "$@"
