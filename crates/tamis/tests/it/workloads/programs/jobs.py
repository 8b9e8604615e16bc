# A shell with job control in a terminal of its own: a job stops itself, is listed and continued.
import os, pty

pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(PS1="ready>", TERM="dumb", HISTFILE="/dev/null")
    os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])

unread = ""

def until(mark):
    global unread
    while mark not in unread:
        unread += os.read(terminal, 4096).decode()
    text, unread = unread.split(mark, 1)
    return text

until("ready>")
os.write(terminal, b"stty -echo; echo echo-''off\n")
until("echo-off")
until("ready>")
for command in ["sh -c 'kill -TSTP $$; echo continued'", "jobs", "fg", "true & wait; echo waited $?"]:
    os.write(terminal, command.encode() + b"\n")
    lines = until("ready>").replace("\r", "").splitlines()
    print([line for line in lines if line.startswith(("continued", "waited")) or "Stopped" in line])
os.write(terminal, b"exit 7\n")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
