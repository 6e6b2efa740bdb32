#!/usr/bin/env bash
# The image, built and run: it migrates, works as nobody in particular on a read-only file system without a shell, drains on
# SIGTERM, and is what COMMANDBUS_PROFILE says. The tests of the bus pass against PostgreSQL in a container, and
# deploy/compose.yaml is a fleet that pays. CFG.1, CFG.3, RL.1, BUS.11, WRK.11
#
# By hand: tests/deploy/image_long_test.sh [TEST...]. COMMANDBUS_IMAGE_DIR=DIR keeps base and layers there for the next time.
# Needs root, and to be allowed containers; says so and is content where it is not.
# shellcheck disable=SC2317 # functions are called by the trap and by name
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=tests/deploy/containers.sh
. "$here/containers.sh"

skip() {
    echo "SKIPPED: $*"
    exit 0
}
fail() {
    echo "$*" >&2
    exit 1
}
same() { [[ $1 == "$2" ]] || fail "${3:-it} is '$1', not '$2'"; }
at_least() { (($1 >= $2)) || fail "${3:-it} is $1, less than $2"; }
note() { echo "    $*" >>"$work/notes"; }

image=commandbus:0.1.0
bare=commandbus:bare # the same without any shell
tests_image=commandbus-test:0.1.0
if (($#)); then names=("$@"); else mapfile -t names < <(grep -oE '^test_[a-z0-9_]+' "$0"); fi
phase=${COMMANDBUS_IMAGE_PHASE:-outside}
export PGPASSWORD=of-the-test

# ---- outside: a folder, and namespaces ----

if [[ $phase == outside ]]; then
    [[ $EUID -eq 0 ]] || skip "only root can build and run containers here"
    unshare --mount --net --pid --fork true 2>/dev/null || skip "this machine lets nobody have namespaces"
    "$root/deploy/local/deps" --only images
    keep=${COMMANDBUS_IMAGE_DIR:+yes}
    work=${COMMANDBUS_IMAGE_DIR:-$(mktemp -d /tmp/commandbus-image.XXXXXX)}
    mkdir -p "$work"
    # Folders of runs that were killed before they could clean up: nobody holds their lock.
    exec 8<"$work"
    flock 8
    for folder in /tmp/commandbus-image.*; do
        if [[ $folder != "$work" && -d $folder ]] && flock -n "$folder" true; then rm -rf "$folder"; fi
    done
    had_cgroups=$(compgen -G '/sys/fs/cgroup/*/libpod_parent' || true)
    clean_up() {
        [[ -n $had_cgroups ]] || find /sys/fs/cgroup/*/libpod_parent -depth -type d -exec rmdir {} + 2>/dev/null || true
        [[ $keep == yes ]] || rm -rf "$work"
    }
    trap clean_up EXIT
    code=0
    COMMANDBUS_IMAGE_PHASE=inside COMMANDBUS_IMAGE_DIR=$work enter_namespaces "$0" "${names[@]}" || code=$?
    exit "$code"
fi
work=$COMMANDBUS_IMAGE_DIR

# ---- inside: base and images, still with this machine's network ----

if [[ $phase == inside ]]; then
    hide_run
    [[ -s $work/base-bookworm.tar ]] || make_base >"$work/log" 2>&1 || {
        tail -n 20 "$work/log"
        skip "no base image: the package sources of this machine have no bookworm"
    }
    start_containers || {
        cat "$work/log"
        skip "containers do not run here: podman says why above"
    }
    echo "containers with podman $(podman version -f '{{.Client.Version}}') and $storage_driver"
    build_image buildah "$image"
    build_image podman commandbus-postgres:15 --target postgres
    if [[ ${names[*]} == *tests_of_the_bus* ]]; then
        # The stage `test` with its cheapest part; it holds everything else, too.
        build_image podman "$tests_image" --target test --build-arg PART=style
    fi
    COMMANDBUS_IMAGE_PHASE=cut-off unshare --net bash "$0" "${names[@]}"
    exit
fi

# ---- cut off: nothing but our own loopback and bridges ----

ip link set lo up

sql() { psql -XqAt -v ON_ERROR_STOP=1 -h 127.0.0.1 -U postgres -d commandbus -c "$1"; }
# wait_for WHAT SECONDS COMMAND...: until it succeeds.
wait_for() {
    local what=$1 until=$((SECONDS + $2))
    shift 2
    until "$@" >"$work/said" 2>&1; do
        ((SECONDS < until)) || fail "after all that time still not: $what: $(cat "$work/said")"
        sleep 0.1
    done
}
is_true() { [[ $(sql "SELECT coalesce(($1), false)") == t ]]; }
wait_until() { wait_for "$1" "$2" is_true "$1"; }
status_of() { sql "SELECT status FROM commandbus.command_metadata WHERE command_id = '$1'"; }

# What a cluster with the restricted Pod Security Standard gives, and no folder to write to at all.
restricted=(--read-only --read-only-tmpfs=false --cap-drop all --security-opt no-new-privileges --network bus
    -e COMMANDBUS_DATABASE_URL=postgresql://postgres@database/commandbus -e PGPASSWORD)

# start_worker NAME [ARGUMENTS...]: the image as it is, with HTTP on 127.0.0.1:19464; waits until it is ready.
start_worker() {
    local name=$1
    shift
    podman run -d --name "$name" "${restricted[@]}" -p 127.0.0.1:19464:9464 "$@" "$bare" >/dev/null
    wait_for "$name is ready" 60 curl -sf http://127.0.0.1:19464/readyz
}
metrics() { curl -sf http://127.0.0.1:19464/metrics; }
# bus ARGUMENTS...: the command line, from the same image.
bus() { podman run --rm "${restricted[@]}" "$bare" commandbus "$@"; }
send() { bus send "$@" --json | jq -r '.command_id // .[0].command_id'; }
# stop_worker NAME: as whoever runs containers stops them, with the signal that the image names.
stop_worker() {
    podman stop -t 40 "$1" >/dev/null
    same "$(podman inspect -f '{{.State.ExitCode}}' "$1")" 0 "the exit code of $1"
}
sample=(-e COMMANDBUS_DOMAINS_FX_HANDLERS=sample -e COMMANDBUS_DOMAINS_RISK_HANDLERS=sample
    -e COMMANDBUS_DOMAINS_PAYMENTS_HANDLERS=sample)

start_database() {
    podman network create bus >/dev/null
    podman run -d --name database --network bus --read-only --cap-drop all --security-opt no-new-privileges --tmpfs /tmp \
        --shm-size 256m -p 127.0.0.1:5432:5432 -e POSTGRES_PASSWORD="$PGPASSWORD" -e POSTGRES_DB=commandbus \
        commandbus-postgres:15 >/dev/null
    wait_for "the database answers" 60 sql 'SELECT 1'
}

# Whoever needed a shell would fail from here on.
remove_shells() {
    local container mounted
    container=$(buildah from "$image")
    mounted=$(buildah mount "$container")
    rm -f "$mounted"/bin/{sh,bash,dash,rbash} "$mounted"/usr/bin/{sh,bash,dash,rbash}
    buildah umount "$container" >/dev/null
    buildah commit -q "$container" "$bare" >/dev/null
    buildah rm "$container" >/dev/null
}

# ---- what must hold ----

test_the_image_says_what_it_is_and_runs_the_worker_as_a_number() {
    local config
    config=$(podman image inspect "$image" | jq '.[0].Config')
    same "$(jq -r .User <<<"$config")" 10001:10001 'the user'
    same "$(jq -r .StopSignal <<<"$config")" SIGTERM 'the signal to stop'
    same "$(jq -c '[.Entrypoint, .Cmd]' <<<"$config")" '[null,["commandbus-worker"]]' 'what it runs'
    same "$(jq -r '.Labels["org.opencontainers.image.version"]' <<<"$config")" \
        "$(podman run --rm "$image" commandbus --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+')" 'the version that its label says'
    note "$image: $(podman image inspect -f '{{.Size}}' "$image" | awk '{ printf "%.0f MB", $1 / 1e6 }'), of which $(podman image inspect -f '{{.Size}}' "$base_name" | awk '{ printf "%.0f MB", $1 / 1e6 }') are the base"
}

test_the_image_holds_all_libraries_and_nothing_to_build_with() {
    local mounted
    # shellcheck disable=SC2016 # for the shell in the container
    podman run --rm "$image" bash -c 'ldd /usr/local/bin/commandbus* /usr/local/lib/*.so.* /usr/local/lib/commandbus/handlers/*.so' >"$work/ldd"
    if grep 'not found' "$work/ldd"; then fail 'libraries are missing'; fi
    at_least "$(grep -c '^/usr/local' "$work/ldd")" 11 'programs, libraries and sets looked at'
    mounted=$(podman image mount "$image")
    find "$mounted/usr/bin" "$mounted/usr/local" \( -name '*gcc*' -o -name cc -o -name '*clang*' -o -name '*cmake*' -o -name 'ninja*' \
        -o -name ld -o -name npm -o -name psql -o -name '*.[hac]' -o -name '*.pc' \) >"$work/tools"
    [[ ! -s $work/tools ]] || fail "it holds $(cat "$work/tools")"
    find "$mounted" -xdev \( -user 10001 -o -group 10001 \) >"$work/owned"
    [[ ! -s $work/owned ]] || fail "its user could change $(cat "$work/owned")"
    podman image unmount "$image" >/dev/null
}

test_the_container_migrates_as_often_as_it_is_told() {
    bus migrate --set payments --set sample >"$work/said"
    grep -Eq '^payments: version 0 -> [1-9]' "$work/said" || fail "$(cat "$work/said")"
    bus migrate --set payments --set sample >"$work/said"
    bus doctor >"$work/said" || fail "$(cat "$work/said")"
}

test_the_worker_works_without_root_capabilities_shell_or_a_place_to_write() {
    local pid id
    start_worker works "${sample[@]}" -e COMMANDBUS_DOMAINS_FX_CONCURRENT_MESSAGES=2
    pid=$(podman inspect -f '{{.State.Pid}}' works)
    # Process 1 of the container is the worker itself.
    same "$(readlink "/proc/$pid/exe")" /usr/local/bin/commandbus-worker 'the first process'
    same "$(awk '/^NSpid:/ { print $NF }' "/proc/$pid/status")" 1 'its number in the container'
    same "$(awk '/^Uid:/ { print $2, $3, $4, $5 }' "/proc/$pid/status")" '10001 10001 10001 10001' 'its user'
    same "$(awk '/^Gid:/ { print $2, $3, $4, $5 }' "/proc/$pid/status")" '10001 10001 10001 10001' 'its group'
    same "$(awk '/^Cap(Prm|Eff|Bnd|Amb):/ { print $2 }' "/proc/$pid/status" | sort -u)" 0000000000000000 'what it is capable of'
    same "$(awk '/^NoNewPrivs:/ { print $2 }' "/proc/$pid/status")" 1 'no new privileges'
    same "$(awk '$5 == "/" { print $6 }' "/proc/$pid/mountinfo" | grep -oE '^r[ow]')" ro 'its root'
    [[ ! -e /proc/$pid/root/bin/sh && ! -e /proc/$pid/root/bin/bash ]] || fail 'there is a shell after all'

    id=$(send fx Echo --data '{"amount": "1250.00"}')
    wait_until "(SELECT status = 'COMPLETED' FROM commandbus.command_metadata WHERE command_id = '$id')" 30
    same "$(sql "SELECT result ->> 'amount' FROM commandbus.command_metadata WHERE command_id = '$id'")" 1250.00 'its result'
    stop_worker works
}

test_a_container_that_is_stopped_finishes_what_runs_and_begins_nothing_more() {
    local running later began
    start_worker stops "${sample[@]}" -e COMMANDBUS_DOMAINS_FX_CONCURRENT_MESSAGES=1
    running=$(send fx Sleep --data '{"ms": 6000}')
    wait_until "(SELECT status = 'IN_PROGRESS' FROM commandbus.command_metadata WHERE command_id = '$running')" 30
    later=$(send fx Echo --data '{}')
    began=$SECONDS

    stop_worker stops

    note "a handler of 6 s was finished, $((SECONDS - began)) s after SIGTERM"
    same "$(status_of "$running")" COMPLETED 'what ran'
    same "$(sql "SELECT attempts FROM commandbus.command_metadata WHERE command_id = '$running'")" 1 'its attempts'
    same "$(status_of "$later")" PENDING 'what had not begun'
    podman logs stops 2>&1 | grep -q event=worker.draining || fail 'it does not mention draining'
}

# role PROFILE SLOTS DOMAINS: what it shows in /metrics, and what of three domains' commands it claims.
role() {
    local domain sent ids=()
    start_worker "$1" "${sample[@]}" -e COMMANDBUS_PROFILE="$1"
    same "$(metrics | sed -nE 's/^commandbus_slots\{domain="([a-z]+)"\} ([0-9]+)$/\1 \2/p' | sort | paste -sd, | sed 's/,/, /g')" "$2" 'slots in /metrics'
    for domain in fx payments risk; do ids+=("'$(send "$domain" Echo --data '{}')'"); done
    sent="command_id IN ($(IFS=, && echo "${ids[*]}"))"
    wait_until "(SELECT count(*) = $(wc -w <<<"$3") FROM commandbus.command_metadata WHERE $sent AND status = 'COMPLETED')" 30
    same "$(sql "SELECT string_agg(domain, ' ' ORDER BY domain) FROM commandbus.command_metadata WHERE $sent AND lease_no > 0")" "$3" 'what was claimed'
    stop_worker "$1"
    podman rm "$1" >/dev/null
}

test_the_profile_makes_the_same_image_another_worker() {
    local domain
    for domain in fx payments risk; do bus queue create "$domain" >/dev/null; done
    role ratelimited-worker 'fx 2, risk 2' 'fx risk'
    role payments-worker 'payments 10' payments
    role multipurpose-worker 'fx 2, payments 10, risk 3' 'fx payments risk'
}

test_the_tests_of_the_bus_pass_against_postgresql_in_a_container() {
    podman run --rm --network bus -e COMMANDBUS_TEST_URL="postgresql://postgres:$PGPASSWORD@database/commandbus" "$tests_image" \
        tests/run bus >"$work/bus.log" 2>&1 || fail "$(tail -n 80 "$work/bus.log")"
    note "$(tail -n 1 "$work/bus.log")"
    at_least "$(awk 'END { print $1 }' "$work/bus.log")" 100 'tests that passed'
}

compose() { podman-compose -f "$root/deploy/compose.yaml" -p commandbus "$@" >>"$work/compose.log" 2>&1; }
simulator() { curl -sf "http://127.0.0.1:8080$1" "${@:2}"; }

# pay N: one payment; all need an exchange.
pay() {
    curl -sf -o /dev/null http://127.0.0.1:$((9464 + $1 % 3))/api/payments -H 'Content-Type: application/json' -H "Idempotency-Key: k$1" -d '{
        "debitAccount": "ACC-1", "creditAccount": "ACC-2", "amount": "100.00", "debitCurrency": "EUR", "creditCurrency": "USD",
        "valueDate": "2099-01-05"}'
}

test_the_compose_file_is_a_fleet_that_pays_within_its_limits() {
    local port api n=40
    podman rm -f -t 0 database >/dev/null
    export POSTGRES_PASSWORD=$PGPASSWORD
    : >"$work/compose.log"
    compose up -d || fail "$(cat "$work/compose.log")"
    for port in 9464 9465 9466; do wait_for "a worker answers on $port" 90 curl -sf "http://127.0.0.1:$port/readyz"; done
    wait_for 'the simulator answers' 30 simulator /stats
    wait_until "(SELECT count(*) = 6 FROM commandbus.worker)" 60
    same "$(podman exec commandbus_payments-worker-1_1 commandbus fleet --json | jq -r '[.instances[].profile] | group_by(.) | map("\(length) \(.[0])") | join(", ")')" \
        '3 payments-worker, 3 ratelimited-worker' 'the fleet'
    for api in fx risk; do simulator "/behaviour/$api" -X PUT -d '{"minMs": 300, "maxMs": 400}' >/dev/null; done

    seq "$n" | { export -f pay && xargs -P 8 -I{} bash -c 'pay {}'; }
    wait_until "(SELECT count(*) = $n FROM commandbus.process WHERE status = 'COMPLETED')" 120

    simulator /stats | jq -c '{fx: .fx | {calls, most_in_flight, rejected_429}, risk: .risk | {calls, most_in_flight, rejected_429}}' >"$work/stats"
    note "$n payments: $(cat "$work/stats")"
    same "$(jq -c '[.fx.most_in_flight, .risk.most_in_flight]' "$work/stats")" '[6,6]' 'most calls at once to fx and risk'
    same "$(jq '.fx.rejected_429 + .risk.rejected_429' "$work/stats")" 0 'calls over capacity'
    ss -Htln | awk '{ print $4 }' | grep -vE '^(127\.0\.0\.1|\[::1\]|10\.[0-9.]+(%[a-z0-9]+)?):' >"$work/listeners" || true
    compose down -v -t 40 || fail "$(cat "$work/compose.log")"
    same "$(podman ps -aq --filter label=io.podman.compose.project=commandbus | wc -l)" 0 'containers left'
    [[ ! -s $work/listeners ]] || fail "somebody outside could reach $(cat "$work/listeners")"
}

# ---- running ----

podman rm -f -a -t 0 >/dev/null 2>&1 || true # of a folder that was kept
podman network rm bus >/dev/null 2>&1 || true
remove_shells
start_database
passed=0 failed=0
for name in "${names[@]}"; do
    start=$SECONDS code=0
    : >"$work/notes"
    (
        set -e
        "$name"
    ) >"$work/test.log" 2>&1 &
    wait $! || code=$?
    if ((code == 0)); then
        passed=$((passed + 1))
        echo "passed: $(tr _ ' ' <<<"${name#test_}") ($((SECONDS - start)) s)"
        cat "$work/notes"
    else
        failed=$((failed + 1))
        echo "FAILED: $(tr _ ' ' <<<"${name#test_}") ($((SECONDS - start)) s)"
        sed 's/^/    /' "$work/test.log"
        for container in $(podman ps -a --format '{{.Names}}'); do
            echo "---- $container" && podman logs "$container" 2>&1 | tail -n 20
        done
    fi
done
podman rm -f -a -t 5 >/dev/null 2>&1 || true
echo "$passed passed, $failed failed"
((failed == 0))
