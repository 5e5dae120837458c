#!/bin/busybox sh
# The machine's init: console on the first serial line, results on the second one.
/bin/busybox mkdir -p /proc /sys /dev
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
/bin/busybox mount -t devtmpfs none /dev
/bin/busybox mount -t debugfs none /sys/kernel/debug
# "cases=NAME" among the kernel's parameters: that one only.
/bin/driver_test $cases >/dev/ttyS1 2>&1
if [ -w /sys/kernel/debug/kmemleak ]; then
  # Leaks: memory that nothing refers to. Two scans, for memory that is just being passed on.
  for look in 1 2; do
    echo scan >/sys/kernel/debug/kmemleak
    /bin/busybox sleep 6
  done
  echo "kmemleak: scanned" >/dev/kmsg
  while read -r line; do echo "$line" >/dev/kmsg; done </sys/kernel/debug/kmemleak
fi
/bin/busybox dmesg >/dev/ttyS2
/bin/busybox poweroff -f
