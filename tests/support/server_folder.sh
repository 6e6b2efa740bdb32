# Sourced by what starts a server for tests: where it lives.

# server_folder NAME: makes a folder and prints its name, with what mktemp puts in place of its XXXXXX. In memory
# where there is plenty: each test has a database of its own, which is some five hundred files, and nearly all that
# a short test costs is their creation. What is lost with the machine is not tested, only what dies with a process.
# COMMANDBUS_TEST_ON_DISK=yes: on a disk, where commits take their time.
# shellcheck shell=bash
server_folder() {
    local memory=/dev/shm least_kib=$((6 * 1024 * 1024)) parent=${1%/*} folder
    if [[ ${COMMANDBUS_TEST_ON_DISK:-no} == no && -w $memory ]] && (($(df --output=avail -k "$memory" | tail -n 1) > least_kib)) &&
        (($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) > least_kib)); then
        parent=$memory
    fi
    folder=$(mktemp -d "$parent/${1##*/}")
    chmod 755 "$folder" # the server runs as another user when we are root
    echo "$folder"
}
