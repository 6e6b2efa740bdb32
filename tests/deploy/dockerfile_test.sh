#!/usr/bin/env bash
# deploy/Dockerfile, .dockerignore and deploy/compose.yaml, as far as that can be seen without a container: no library, no
# file and no setting that they name is missing. image_long_test.sh builds and runs them. CFG.8
# shellcheck disable=SC2317 # functions are called by check
set -euo pipefail
: "${COMMANDBUS_SOURCE_DIR:?start the tests with tests/run}" "${COMMANDBUS_BUILD_DIR:?}" "${COMMANDBUS_WORKER_BIN:?}"
cd "$COMMANDBUS_SOURCE_DIR"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# check WHAT COMMAND...: one counted test.
check() {
    local what=$1 code=0
    shift
    ( # in a condition set -e would mean nothing
        set -e
        "$@"
    ) >"$work/log" 2>&1 &
    wait $! || code=$?
    if ((code == 0)); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what" && cat "$work/log"
    fi
}

same() { [[ $1 == "$2" ]] || { echo "${3:-it} is '$1', not '$2'" && exit 1; }; }

# The Dockerfile without comments, an instruction a line, each after the name of its stage.
awk '/^[ \t]*#/ { next }
     { continued = sub(/\\$/, ""); line = line $0 }
     !continued { if (split(line, word, " ")) { if (word[1] == "FROM") stage = word[4]; print stage, line } line = "" }' \
    deploy/Dockerfile >"$work/instructions"
# instructions STAGE NAME: what is said there.
instructions() { sed -nE "s/^$1 $2 +//p" "$work/instructions" | tr -s ' '; }
packages() { instructions runtime RUN | grep -oE 'install -y --no-install-recommends [^&]*' | sed 's/.*recommends//' | xargs -n1 | sort; }
project_version() { sed -nE 's/^project\(commandbus VERSION ([0-9.]+).*/\1/p' CMakeLists.txt; }

cmake --install "$COMMANDBUS_BUILD_DIR" --component runtime --prefix "$work/image" >/dev/null

# ---- the image ----

# Whom our programs, libraries and sets name, but for ourselves and what every Debian has.
packages_of_needed_libraries() {
    local library file
    /sbin/ldconfig -p >"$work/libraries"
    find "$work/image" -type f \( -path '*/bin/*' -o -name '*.so*' \) -exec objdump -p {} + | awk '$1 == "NEEDED" { print $2 }' | sort -u |
        grep -vE '^(libcommandbus|libc\.|libm\.|ld-linux|libasan|libubsan|libtsan|libgcc)' | while read -r library; do
        file=$(awk -v name="$library" '$1 == name { print $NF; exit }' "$work/libraries")
        dpkg -S "$(readlink -f "$file")" | sed 's/:.*//'
    done | sort -u
}
the_packages_are_those_that_the_programs_need() {
    local codename
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    [[ $codename == bookworm ]] || { echo "not compared: packages have other names on $codename" && return; }
    diff <(packages | grep -v '^ca-certificates$') <(packages_of_needed_libraries)
    # All of them exist.
    packages | xargs apt-cache show >/dev/null
}

the_installation_is_complete() {
    local file
    {
        printf 'bin/%s\n' commandbus commandbus-worker commandbus-simulator
        for file in config/*.cfg; do echo "etc/commandbus/${file#config/}"; done
        for file in "" -process -worker; do echo "lib/libcommandbus$file.so.$(project_version)"; done
        sed -nE 's,^add_handler_set\(([a-z_]+).*,lib/commandbus/handlers/\1.so,p' handlers/CMakeLists.txt
        for file in handlers/*/sql/*.sql; do echo "share/commandbus/sets/${file#handlers/}"; done
    } >"$work/expected"
    diff <(sort "$work/expected") <(cd "$work/image" && find . -type f -printf '%P\n' | grep -v '^share/bash-completion/' | sort)
    # And works where it is put.
    "$work/image/bin/commandbus-worker" --check-config --profile payments-worker --set handlers.payments.url=http://a >/dev/null
}

# What is copied from the tree is in it, and no rule of .dockerignore takes it away.
what_is_copied_is_there() {
    local source pattern
    sed -nE 's/^[a-z-]+ COPY +(--from=.*)?/\1/p' "$work/instructions" | grep -v ^--from >"$work/copies"
    grep -q . "$work/copies"
    # The last word is where it goes.
    awk '{ for (i = 1; i < NF; i++) print $i }' "$work/copies" | sort -u | while read -r source; do
        [[ -e $source ]] || { echo "$source is not in the tree" && exit 1; }
        while read -r pattern; do
            # shellcheck disable=SC2053 # a pattern
            if [[ $source == ${pattern#\*\*/} || $source == $pattern ]]; then echo "$source is ignored: $pattern" && exit 1; fi
        done < <(grep -v '^#' .dockerignore)
    done
    # Every folder of sources is.
    { echo config && sed -nE 's/^ *add_subdirectory\((.*)\)/\1/p' CMakeLists.txt; } | grep -v ^tests | while read -r source; do
        grep -qx "build COPY $source $source" "$work/instructions" || { echo "$source is not copied" && exit 1; }
    done
    # deps comes with all that it reads.
    sed -nE 's|^\. "\$here/(.*)"|deploy/local/\1|p' deploy/local/deps | while read -r source; do
        if grep 'COPY deploy/local/deps ' "$work/instructions" | grep -vF " $source "; then echo "$source is not copied there" && exit 1; fi
    done
}

builds_and_history_stay_out() {
    local pattern
    for pattern in .git build '**/.env'; do
        grep -qxF "$pattern" .dockerignore || { echo "$pattern is not ignored" && exit 1; }
    done
}

the_image_is_for_clusters_that_are_strict() {
    same "$(instructions runtime USER)" 10001:10001 'the user'
    same "$(instructions runtime STOPSIGNAL)" SIGTERM 'the signal to stop'
    same "$(instructions runtime CMD)" '["commandbus-worker"]' 'what it runs'
    same "$(instructions runtime ENTRYPOINT)" '' 'its entry point'
    same "$(awk 'END { print $1 }' "$work/instructions")" runtime 'what is built when nobody says what'
    # Each stage begins with the one base, or with another stage: no tag that moves.
    # shellcheck disable=SC2016 # as it is written there
    same "$(instructions '[a-z-]*' FROM | awk '{ print $1 }' | sort -u | xargs)" '${BASE} test-tools' 'what stages begin with'
    same "$(instructions '' ARG)" BASE=debian:bookworm-slim 'the base'
}

one_version() {
    same "$(instructions runtime ARG | sed -n 's/^VERSION=//p')" "$(project_version)" 'the version of the image'
    same "$(compose '[.services[].image | select(startswith("commandbus:"))] | unique | join(" ")')" \
        "commandbus:$(project_version)" 'the image of the compose file'
}

# ---- the compose file: as JSON, with every variable at its default ----

# shellcheck source=deploy/local/kustomize.sh
. deploy/local/kustomize.sh
sed -E 's/\$\{[A-Z_]+:-([^}]*)\}/\1/g' deploy/compose.yaml | yaml_to_json >"$work/compose.json" ||
    { echo "FAILED: deploy/compose.yaml cannot be read" && failed=1; }
compose() { jq -r "$1" "$work/compose.json"; }

nobody_has_more_rights_than_needed() {
    same "$(compose '[.services | to_entries[] | select(.value | .read_only != true or .cap_drop != ["ALL"] or
        .security_opt != ["no-new-privileges"]) | .key] | join(" ")')" '' 'who has rights'
    same "$(compose '[.services[].ports // [] | .[] | select(startswith("127.0.0.1:") | not)] | join(" ")')" '' 'ports for everybody'
    same "$(compose '[.services[].image | select(test(":[0-9.]+$") | not)] | join(" ")')" '' 'images without a version'
    # The password is said in one way, and can be another one.
    same "$(grep PASSWORD: deploy/compose.yaml | grep -vF "\${POSTGRES_PASSWORD:-local-only}")" '' 'passwords'
}

targets_are_stages() {
    local target
    for target in $(compose '[.services[].build.target // "runtime"] | unique[]'); do
        grep -q "^$target FROM " "$work/instructions" || { echo "there is no stage $target" && exit 1; }
    done
    same "$(compose '[.services[].build | .context + "/" + .dockerfile] | unique | join(" ")')" ../deploy/Dockerfile 'the Dockerfile'
}

# The real worker reads the environment of each: no key that it does not know, and S4's fleet.
workers_are_well_configured() {
    local service
    mapfile -t services < <(compose '.services | to_entries[] | select(.value.environment.COMMANDBUS_PROFILE) | .key')
    same "${services[*]}" 'ratelimited-worker payments-worker-1 payments-worker-2 payments-worker-3' 'the workers'
    for service in "${services[@]}"; do
        mapfile -t environment < <(compose ".services[\"$service\"].environment | to_entries[] | \"\(.key)=\(.value)\"")
        env -i PATH="$PATH" "${environment[@]}" "$COMMANDBUS_WORKER_BIN" --config-dir config --set worker.modules-dir="$work/image/lib/commandbus/handlers" \
            --check-config >/dev/null 2>"$work/warnings" || echo 'it does not start' >>"$work/warnings"
        same "$(cat "$work/warnings")" '' "what it says of $service"
    done
    same "$(compose '.services["ratelimited-worker"] | "\(.deploy.replicas) \(.environment | .COMMANDBUS_DOMAINS_FX_FLEET_LIMIT + " " +
        .COMMANDBUS_DOMAINS_RISK_FLEET_LIMIT)"')" '3 6 6' 'replicas, and the limits of the fleet'
}

check "the packages of the image are those that the programs need" the_packages_are_those_that_the_programs_need
check "the installation has everything that the image needs, and nothing else" the_installation_is_complete
check "what the Dockerfile copies is there" what_is_copied_is_there
check "builds, history and secrets stay out of the image" builds_and_history_stay_out
check "the image runs the worker as a number, and stops it with SIGTERM" the_image_is_for_clusters_that_are_strict
check "image, compose file and project have one version" one_version
check "services have no rights, and no ports but on loopback" nobody_has_more_rights_than_needed
check "services are built from stages that there are" targets_are_stages
check "workers are configured with keys that there are, and as S4's fleet" workers_are_well_configured

echo "$passed passed, $failed failed"
((failed == 0))
