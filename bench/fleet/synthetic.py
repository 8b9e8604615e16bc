#!/usr/bin/env python3
"""Writes profiles of machines that never were: `synthetic.py FOLDER COUNT`. The same count gives the same bytes.

A machine makes some sixty of a hundred calls, with counts from few to many, and has values of some arguments, errors, and
calls that were denied."""

import json
import random
import sys
from pathlib import Path

folder, count = Path(sys.argv[1]), int(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
CALLS = """read write close fstat lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask ioctl pread64 pwrite64 readv
writev access pipe select sched_yield mremap madvise dup dup2 nanosleep getpid sendfile socket connect accept sendto recvfrom
sendmsg recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt clone execve exit wait4 kill uname
fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir rename mkdir rmdir unlink readlink chmod chown umask
getrlimit getuid getgid geteuid getegid sigaltstack statfs prctl arch_prctl gettid futex getdents64 epoll_wait epoll_ctl
exit_group openat newfstatat unlinkat accept4 epoll_create1 dup3 pipe2 prlimit64 getrandom statx rseq clone3""".split()
VALUES = {"mmap": (2, [0, 1, 3, 5]), "mprotect": (2, [0, 1, 3, 5]), "socket": (0, [1, 2, 10, 16]), "futex": (1, [128, 129, 137, 393]),
          "fcntl": (1, [1, 2, 3, 4, 1030]), "ioctl": (1, [0x5401, 0x5413, 0x541b, 0x8912]), "prctl": (0, [4, 15, 22, 38]),
          "openat": (2, [0, 0x80000, 0x90800, 0x80241, 0x241])}
for machine in range(count):
    rng = random.Random(machine)
    calls = []
    for name in CALLS:
        if rng.random() > 0.65:
            continue
        made = int(rng.paretovariate(0.5)) % (1 << 40)
        call = {"arch": "x86_64", "call": name, "count": made}
        if name in VALUES:
            arg, values = VALUES[name]
            share = made // len(values)
            call["values"] = [{"arg": arg, "value": hex(value), "count": share} for value in values if share and rng.random() < 0.8]
        if made > 3 and rng.random() < 0.2:
            call["errors"] = [{"errno": rng.choice([1, 2, 11, 22]), "count": made // 3}]
        if made > 3 and rng.random() < 0.02:
            call["denied"] = 1
        calls.append(call)
    run = {"id": f"run-{machine:06}", "machine": f"machine-{machine % 977}", "program": "service"}
    document = {"schema": "tamis-profile/1", "runs": [run], "calls": calls}
    (folder / f"{machine:06}.json").write_text(json.dumps(document))
