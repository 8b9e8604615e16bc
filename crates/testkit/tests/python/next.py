"""What a library with the interface of libseccomp's main branch adds to the module `seccomp`, and another doesn't."""

import ctypes
import os
import signal

import seccomp as s

names = [hasattr(s, "TRAPX"), hasattr(s.SyscallFilter, "notify_addfd")]
print("names:", names)
if not all(names):
    raise SystemExit
print("trap:", hex(s.TRAPX(0x51234)), s.TRAPX(0) == s.TRAP)

signal.alarm(20)
libc = ctypes.CDLL(None, use_errno=True)
rules = s.SyscallFilter(s.ALLOW)
rules.add_rule(s.TRAPX(7), "dup3", s.Arg(0, s.EQ, 12345))
rules.add_rule(s.NOTIFY, "getpriority", s.Arg(0, s.EQ, 9))
rules.load()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    signal.alarm(20)
    copy = libc.syscall(140, 9, 4)
    print("copied:", copy > 2, os.read(copy, 5), flush=True)
    sent = libc.syscall(140, 9, 5)
    print("sent:", sent, os.read(sent, 5), flush=True)
    os._exit(0)
os.write(writer, b"hellohello")
notification = rules.receive_notify()
descriptor = rules.notify_addfd(notification, reader)
rules.respond_notify(s.NotificationResponse(notification, val=descriptor))
rules.notify_addfd(rules.receive_notify(), reader, newfd=77, send=True)
os.waitpid(child, 0)
try:
    rules.notify_addfd(notification, reader)
except RuntimeError as error:
    print("too late:", error)
