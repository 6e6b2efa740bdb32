# Sourced by image_long_test.sh and tests/support/with_containers: podman and buildah with everything of theirs in one folder and in namespaces of their own.
# Nothing of this machine is touched: no image, no network, no firewall rule of it; what runs ends with the test.
#
#   enter_namespaces SCRIPT      runs it again inside: a folder /run, processes and mounts of its own
#   configure_containers DRIVER  CONTAINERS_CONF and CONTAINERS_STORAGE_CONF, in $work
#   make_base [SUITE]            debian:SUITE-slim [bookworm], from this machine's own package sources
#   has_suite SUITE              whether those have it
#   build_image TOOL TAG [ARGUMENTS...]

# shellcheck shell=bash disable=SC2154,SC2034 # work and root are the test's, storage_driver is for it

# The network stays this machine's: building needs its package mirrors. unshare dies with us and takes all with it.
enter_namespaces() { # SCRIPT ARGUMENTS...
    unshare --mount --pid --fork --kill-child --mount-proc bash "$@" &
    local child=$! code=0
    trap 'kill "$child" 2>/dev/null; exit 143' INT TERM
    wait "$child" || code=$?
    return "$code"
}

# Locks, sockets and states of containers are in /run, which is empty for us, but for the names of name servers.
hide_run() {
    local names
    names=$(readlink -f /etc/resolv.conf)
    cp "$names" "$work/resolv.conf"
    mount -t tmpfs tmpfs /run
    if [[ $names == /run/* ]]; then
        mkdir -p "${names%/*}"
        cp "$work/resolv.conf" "$names"
    fi
}

# least LIMIT MOST: for those who may not raise their own limits, which containers do by default.
least() {
    if [[ $1 == unlimited ]] || (($1 > $2)); then echo "$2"; else echo "$1"; fi
}

configure_containers() { # DRIVER
    local files processes
    files=$(least "$(ulimit -Hn)" 1048576)
    processes=$(least "$(ulimit -Hu)" 32768)
    cat >"$work/storage.conf" <<CONF
[storage]
driver = "$1"
graphroot = "$work/$1"
runroot = "/run/storage"
CONF
    cat >"$work/containers.conf" <<CONF
[containers]
default_ulimits = ["nofile=$files:$files", "nproc=$processes:$processes"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file" # not in /dev/shm, which is everybody's
[network]
network_backend = "netavark"
network_config_dir = "$work/networks"
CONF
    # Health checks would be timers of systemd, which is not here.
    export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf BUILDAH_RUNTIME=runc \
        DISABLE_HC_SYSTEMD=true
}

has_suite() { [[ -n $(apt-get indextargets --format '$(SITE)' "Codename: $1") ]]; }

# As the slim image of Debian is: what is required and apt, without manuals and translations, and with a dpkg that does not wait
# for the disk. How this machine fetches packages and whom it trusts comes along. Made in the memory that is our /run, where
# there is enough.
make_base() {
    local exclude suite=${1:-bookworm} options=(--dpkgopt=force-unsafe-io) sources=() place=
    if (($(df --output=avail -k /run | tail -n 1) > 2 * 1024 * 1024)); then place=/run; fi
    # Another release comes from the same place as this machine's own.
    if [[ $suite != bookworm ]]; then
        sources=("deb $(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' | sort -u | grep -v security | head -n 1) $suite main")
    fi
    for exclude in doc man info locale; do options+=("--dpkgopt=path-exclude=/usr/share/$exclude/*"); done
    apt-config dump Acquire >"$work/acquire.conf"
    # shellcheck disable=SC2016 # $1 is the hook's: the folder that becomes the image
    TMPDIR=${place:-${TMPDIR:-/tmp}} mmdebstrap --variant=minbase "${options[@]}" --aptopt="$work/acquire.conf" \
        --customize-hook='if [ -d /usr/local/share/ca-certificates ]; then tar -C /usr/local/share -c ca-certificates | tar -C "$1/usr/local/share" -x; fi' \
        "$suite" "$work/base-$suite.tar" "${sources[@]}"
}

base_name=docker.io/library/debian:bookworm-slim

# With overlays where the file system can, else with copies. False when containers do not run here; $work/log says why.
start_containers() {
    local driver
    for driver in overlay vfs; do
        configure_containers "$driver"
        if { podman image exists "$base_name" || podman import "$work/base-$(sed 's/.*:\(.*\)-slim$/\1/' <<<"$base_name").tar" "$base_name"; } >"$work/log" 2>&1 &&
            podman run --rm --network host "$base_name" true >>"$work/log" 2>&1; then
            storage_driver=$driver
            return
        fi
    done
    return 1
}

# build_image podman|buildah TAG [ARGUMENTS...]
build_image() {
    local tool=$1 tag=$2 registry began=$SECONDS
    shift 2
    registry=$(npm config get registry 2>/dev/null || true)
    "$tool" build --network host ${registry:+--build-arg "npm_config_registry=$registry"} -f "$root/deploy/Dockerfile" -t "$tag" \
        "$@" "$root" >"$work/log" 2>&1 </dev/null || { tail -n 60 "$work/log" && return 1; }
    echo "built $tag with $tool in $((SECONDS - began)) s: $(podman image inspect -f '{{.Size}}' "$tag" | awk '{ printf "%.0f MB", $1 / 1e6 }')"
}
