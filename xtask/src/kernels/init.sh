#!/bin/sh
# Process 1 of a virtual machine that runs suites; `cargo xtask kernels` appends the calls of `run`. Lines that begin with
# `@lab` are for the task that reads the console; the lines between them are those of the tests.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb TAMIS_REQUIRE=live TAMIS_SEEDS=few

# The suites run below another shell: the children of process 1 are an orphaned process group, which signals of job
# control don't stop.
if [ $$ = 1 ]; then
    mount -t proc proc /proc
    mount -t sysfs sys /sys
    mount -t devtmpfs dev /dev
    mkdir -p /dev/pts /dev/shm /mnt /root /run /tmp
    mount -t devpts devpts /dev/pts
    mount -t tmpfs tmp /tmp
    mount -t tmpfs run /run
    mount -t cgroup2 cgroup /sys/fs/cgroup
    mount -t tracefs trace /sys/kernel/tracing
    busybox ip link set lo up
    dmesg -n 1
    printf '\n@lab kernel %s\n' "$(uname -r)"
    setsid -w sh "$0" </dev/null
    printf '\n@lab done\n'
    sync
    busybox poweroff -f
fi

run() {
    suite=$1 limit=$2 folder=$3 program=$4 filter=$5
    printf '\n@lab begin %s %s\n' "$suite" "$filter"
    cd "$folder" || return
    timeout -k 5 "$limit" "$program" --color never --show-output ${filter:+"$filter"} >/tmp/output 2>&1
    code=$?
    tail -c 300000 /tmp/output
    printf '\n@lab end %s %s\n' "$suite" "$code"
    cd /
}
