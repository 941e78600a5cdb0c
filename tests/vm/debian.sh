#!/bin/sh
# debian.sh FOLDER [MIRROR..]: a Debian 12 system for the virtual machine of `make test-vm`, without loop mounts.
# FOLDER then has disk.img (ext4, the whole disk), kernel and initrd. Root is needed, and mmdebstrap and e2fsprogs.
# The name of the folder has a digest of this file: a change here makes a new system.
set -eu
out=$1
shift

# A stranger's host has no package of ours. The kernel is the full one: the one for clouds has no iSCSI target.
packages=linux-image-amd64,initramfs-tools,zstd,systemd,systemd-sysv,udev,dbus,kmod,procps
packages=$packages,openssh-server,sudo,python3,python3-venv,iproute2,ethtool,nftables
packages=$packages,open-iscsi,multipath-tools,targetcli-fb

cat >"$out/before" <<'END'
set -eu
mkdir -p "$1/etc/initramfs-tools/conf.d"
echo MODULES=list >"$1/etc/initramfs-tools/conf.d/few"
printf 'virtio_pci\nvirtio_blk\next4\n' >"$1/etc/initramfs-tools/modules"
echo update_initramfs=no >"$1/etc/initramfs-tools/update-initramfs.conf" # once, with the kernel, is enough
END

cat >"$out/after" <<'END'
set -eu
root=$1
echo load1 >"$root/etc/hostname"
echo '127.0.0.1 localhost load1' >"$root/etc/hosts"
cat >"$root/etc/fstab" <<'END_FSTAB'
/dev/vda / ext4 noatime 0 0
/dev/vdb /opt/linerate ext4 ro,noatime,nofail 0 0
END_FSTAB
mkdir -p "$root/opt/linerate" # tests/vm/installation.py
chroot "$root" useradd --create-home --shell /bin/bash tester
rm -f "$root"/etc/ssh/ssh_host_*
# Keys are made for each start, and the firmware hands them over.
echo 'AuthorizedKeysFile /etc/ssh/keys/%u' >"$root/etc/ssh/sshd_config.d/keys.conf"
for net in 0 1 2 3; do
    cat >"$root/etc/systemd/network/1$net.network" <<END_NET
[Match]
MACAddress=52:54:00:77:00:0$net
[Network]
Address=10.77.$net.2/24
LinkLocalAddressing=no
IPv6AcceptRA=no
END_NET
done
# Answers leave by the interface of their address, as on any host with two storage networks.
cat >"$root/etc/sysctl.d/san.conf" <<'END_SYSCTL'
net.ipv4.conf.all.arp_ignore = 1
net.ipv4.conf.all.arp_announce = 2
END_SYSCTL
chroot "$root" systemctl -q enable systemd-networkd
# What an emulated processor should not spend its time on.
chroot "$root" systemctl -q mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    e2scrub_reap.service fstrim.timer getty@tty1.service serial-getty@ttyS0.service rtslib-fb-targetctl.service \
    systemd-networkd-wait-online.service systemd-pstore.service systemd-binfmt.service
END

mmdebstrap --mode=root --variant=apt --include=$packages \
    --dpkgopt=force-confold --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/lib/modules/*/kernel/drivers/gpu/*' \
    --dpkgopt='path-exclude=/lib/modules/*/kernel/drivers/media/*' \
    --dpkgopt='path-exclude=/lib/modules/*/kernel/drivers/net/wireless/*' \
    --dpkgopt='path-exclude=/lib/modules/*/kernel/net/wireless/*' \
    --dpkgopt='path-exclude=/lib/modules/*/kernel/sound/*' \
    --setup-hook="sh $out/before \"\$1\"" --customize-hook="sh $out/after \"\$1\"" \
    bookworm "$out/root" "$@"

mv "$out"/root/boot/vmlinuz-* "$out/kernel"
mv "$out"/root/boot/initrd.img-* "$out/initrd"
truncate -s 4G "$out/disk.img"
mke2fs -q -t ext4 -J size=16 -L root -d "$out/root" "$out/disk.img"
rm -rf "$out/root" "$out/before" "$out/after"
