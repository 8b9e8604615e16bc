# Becomes init of namespaces of its own: a file system with the machine's programs and the units in $1.
set -e
folder=$1
systemd=$2
root=$folder/root
mount --make-rprivate /
mount -t tmpfs tmpfs "$root"
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/etc/systemd" "$root/tmp" "$root/var" "$root/root"
for name in usr bin lib lib32 lib64 libx32 sbin; do
    if [ -L "/$name" ]; then
        cp -P "/$name" "$root/$name"
    elif [ -d "/$name" ]; then
        mkdir "$root/$name"
        mount --bind "/$name" "$root/$name"
    fi
done
# No generators: they look for what isn't here.
for generators in "$root"/usr/lib/systemd/system-generators "$root"/lib/systemd/system-generators; do
    if [ -d "$generators" ]; then
        mount -t tmpfs tmpfs "$generators"
    fi
done
mount -t proc proc "$root/proc"
# An init sets limits of the whole machine there.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/dev"
# PrivateDevices= binds these.
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue" "$root/dev/hugepages"
mknod -m 666 "$root/dev/ptmx" c 5 2
# What systemd says goes to a file of the test.
: >"$folder/log"
touch "$root/dev/kmsg"
mount --bind "$folder/log" "$root/dev/kmsg"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/full" c 1 7
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
if [ -L "$folder/shared" ]; then
    mkdir "$root/opt"
    mount --bind "$(readlink "$folder/shared")" "$root/opt"
fi
cp -r "$folder/units" "$root/etc/systemd/system"
cp "$folder/system.conf" "$root/etc/systemd/system.conf"
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
mkdir "$root/old"
cd "$root"
pivot_root . old
umount -l /old
exec env -i container=tamis PATH=/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_LOG_RATELIMIT_KMSG=0 \
    "$systemd" --system --unit=tamis.target --log-target=kmsg --log-level=warning --show-status=no
