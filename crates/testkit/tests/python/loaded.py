"""Loads a filter of the module `seccomp` that Python finds, and answers its notifications in a child process."""

import ctypes
import os
import resource
import signal

import seccomp as s

libc = ctypes.CDLL(None, use_errno=True)


def outcome(value):
    return f"fails with {os.strerror(ctypes.get_errno())}" if value == -1 else value


def supervise(rules, parent):
    notification = rules.receive_notify()
    print("of the parent:", notification.pid == parent, "call:", notification.syscall)
    print("arguments:", notification.syscall_args[:2], "of", notification.syscall_arch, notification.flags)
    print(len(notification.syscall_args))
    print(type(notification.id).__name__, type(notification.syscall_ip).__name__)
    for values in ((-1, 0, 0), (0, -5, 0), (0, 0, -1), (2**63,), (0, 2**40), ()):
        try:
            response = s.NotificationResponse(notification, *values)
            print(response.id == notification.id, response.val, response.error, response.flags)
        except OverflowError:
            print("out of range:", values)
    response = s.NotificationResponse(notification, val=1)
    response.val, response.flags = 77, 0
    rules.respond_notify(response)
    try:
        rules.respond_notify(response)
    except RuntimeError as error:
        print("answered twice:", error)
    rules.respond_notify(s.NotificationResponse(rules.receive_notify(), 0, -5, 0))


signal.alarm(20)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
rules = s.SyscallFilter(s.ALLOW)
rules.add_rule(s.NOTIFY, "getpriority", s.Arg(0, s.EQ, 9))
rules.add_rule(s.ERRNO(30), "lseek", s.Arg(1, s.GE, 1 << 33))
rules.add_rule(s.KILL_PROCESS, "dup", s.Arg(0, s.EQ, 12345))
rules.load()
parent = os.getpid()
child = os.fork()
if child == 0:
    try:
        signal.alarm(20)
        supervise(rules, parent)
    except BaseException as error:
        print("the supervisor fails with", repr(error))
    os._exit(0)
print("answered:", libc.syscall(140, 9, 4), outcome(libc.syscall(140, 9, 4)))
os.waitpid(child, 0)
for place in (1 << 32, 1 << 33):
    print("seek:", outcome(libc.syscall(8, 12345, ctypes.c_long(place), 0)))
child = os.fork()
if child == 0:
    libc.syscall(32, 12345)
    os._exit(0)
print("ended by", signal.Signals(os.waitpid(child, 0)[1] & 127).name)
