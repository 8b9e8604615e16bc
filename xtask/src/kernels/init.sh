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

# How many times slower than a real machine this one is, in whole numbers: the time of a loop that takes 0.1 s there.
slowness() {
    local from until i=0
    from=$(date +%s%N)
    while [ $i -lt 100000 ]; do i=$((i + 1)); done
    until=$(date +%s%N)
    echo $(((until - from) / 100000000 + 1))
}

# The runs that an earlier boot of this machine began.
begun=$(sed -n 's/.*tamis\.begun=\([0-9]*\).*/\1/p' /proc/cmdline)
index=0

# Runs the tests of one executable whose names contain a filter, and kills what they leave behind.
run() {
    local suite=$1 limit=$2 folder=$3 program=$4 filter=$5
    index=$((index + 1))
    [ $index -gt "${begun:-0}" ] || return
    printf '\n@lab begin %s %s\n' "$suite" "$filter"
    cd "$folder" || return
    : >/tmp/output
    # The console shows the output at once, for a kernel that stops has no other trace. It isn't the tests' own output: that is a file.
    sleep 100000 &
    local marker=$!
    tail -n +1 -s 0.3 -f --pid=$marker /tmp/output &
    local tail=$!
    # shellcheck disable=SC2086 # words
    timeout -k 5 "$limit" "$program" --color never $filter >/tmp/output 2>&1
    local code=$?
    kill $marker
    wait $marker 2>/dev/null
    wait $tail
    if [ $code = 124 ] || [ $code = 137 ]; then
        # shellcheck disable=SC2086 # words
        "$program" --list $filter | sed -n 's/^\(.*\): test$/@lab test \1/p'
    fi
    printf '\n@lab end %s %s\n' "$suite" "$code"
    cd /
    kill -9 -1
}

TAMIS_SLOWNESS=$(slowness)
export TAMIS_SLOWNESS
printf '\n@lab slowness %s\n' "$TAMIS_SLOWNESS"
