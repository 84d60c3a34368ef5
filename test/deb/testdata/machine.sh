#!/bin/sh
# Becomes the first process of a machine: this machine's disk under one in memory that takes all changes, and Debian's systemd. It is
# started in namespaces of its own for mounts, processes, network, host name and IPC.
#
#   machine.sh CGROUP FOLDER NAME     CGROUP is for this machine alone; FOLDER is any empty one
set -e
cgroup=$1 disk=$2 name=$3

if [ "$cgroup" != - ]; then # the namespace of control groups begins where its first process is
	echo $$ >"$cgroup/cgroup.procs"
	exec unshare --cgroup "$0" - "$disk" "$name"
fi
mount --make-rprivate /
mount -t tmpfs tmpfs "$disk"
mkdir "$disk/changes" "$disk/work" "$disk/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$disk/changes,workdir=$disk/work" "$disk/root"
cd "$disk/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t bpf bpf sys/fs/bpf
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mkdir run/dev
mount -t tmpfs tmpfs run/dev
for device in null zero full random urandom tty; do
	touch "run/dev/$device"
	mount --bind "/dev/$device" "run/dev/$device"
done
mkdir run/dev/shm run/dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 devpts run/dev/pts
ln -s pts/ptmx run/dev/ptmx
ln -s /proc/self/fd run/dev/fd
mount --move run/dev dev
rmdir run/dev
# Nothing of this machine starts there: neither what sets a machine up, nor what was enabled.
rm -rf lib/systemd/system/*.wants etc/systemd/system/*.wants lib/systemd/system-generators etc/rc?.d usr/sbin/policy-rc.d
mkdir -p etc/rc2.d lib/systemd/system/sysinit.target.wants
ln -s ../systemd-journald.service lib/systemd/system/sysinit.target.wants/
# Nor is anything left of an installation of the package.
rm -rf etc/sextant var/lib/sextant usr/bin/sextant
# There is no mirror: apt knows what is installed, and nothing newer.
rm -rf var/lib/apt/lists/* etc/apt/sources.list etc/apt/sources.list.d/*
echo "$name" >etc/hostname
hostname "$name"
pivot_root . mnt
umount -l /mnt
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=sextant \
	/lib/systemd/systemd --system --unit=multi-user.target --log-target=null --show-status=no
