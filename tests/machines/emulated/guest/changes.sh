# Has the kernel change its own code, with work in between: a static key, and a probe inside of a function (by a
# breakpoint, then by a jump), and all of that undone.
probe=/sys/kernel/tracing/events/kprobes/inside/enable
work() { cat /proc/self/stat /proc/self/stat /proc/self/stat; } > /dev/null
work
echo 1 > /proc/sys/kernel/sched_schedstats
work
echo 1 > $probe
work
sleep 0.02
work
echo 0 > $probe
work
echo 0 > /proc/sys/kernel/sched_schedstats
work
