# git clones over a local socket, or over TCP; with network=none from a folder.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_TERMINAL_PROMPT=0
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
export GIT_CONFIG_KEY_1=protocol.ext.allow GIT_CONFIG_VALUE_1=always
git init -q repository
for number in 1 2 3; do
    seq 1000 >repository/$number
    git -C repository add . && git -C repository commit -q -m "$number" --date 2026-01-01T00:00:00Z
done
cat >relay.py <<'P'
# Serves one connection by a command, or connects standard input and output with a server.
import os, socket, subprocess, sys, threading
way, place, *command = sys.argv[1:]
family, address = (socket.AF_UNIX, place) if way == "unix" else (socket.AF_INET, ("127.0.0.1", 0))
if command:
    server = socket.socket(family)
    server.bind(address)
    server.listen()
    print(server.getsockname()[1] if way == "tcp" else "ready", flush=True)
    connection, _ = server.accept()
    sys.exit(subprocess.call(command, stdin=connection, stdout=connection, stderr=subprocess.DEVNULL))
connection = socket.socket(family)
connection.connect(address)
def forward():
    while data := os.read(0, 65536):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
threading.Thread(target=forward, daemon=True).start()
while data := connection.recv(65536):
    os.write(1, data)
os._exit(0)
P
case $1 in
none)
    git clone -q --no-local "file://$PWD/repository" copy ;;
unix)
    mkfifo ready && python3 relay.py unix "$PWD/socket" git upload-pack repository >ready &
    while [ ! -p ready ]; do :; done
    read -r line <ready
    git clone -q "ext::python3 relay.py unix $PWD/socket" copy ;;
*)
    mkfifo ready && python3 relay.py tcp - git daemon --inetd --export-all --base-path="$PWD" >ready &
    while [ ! -p ready ]; do :; done
    read -r port <ready
    git clone -q "git://127.0.0.1:$port/repository" copy ;;
esac
echo $?
wait
git -C copy log --format=%s
git -C copy fsck 2>/dev/null; echo $?
