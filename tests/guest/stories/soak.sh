# Stacks are read while everything under them moves: new stacks, threads and programs that come and go, CPUs as well.
# Runs for `seconds=` of the kernel's command line.
seconds=$(sed -n 's/.*seconds=\([0-9]*\).*/\1/p' /proc/cmdline)
cat >/tmp/soak.sh <<END
end=\$((\$(cut -d. -f1 /proc/uptime) + $seconds + 1)) # of whole seconds: never too early
going() { [ "\$(cut -d. -f1 /proc/uptime)" -lt \$end ]; }
(while going; do /usr/bin/uniq --bits 10 --us 100 >/dev/null; done) &
(while going; do churn --threads 200 >/dev/null; done) &
(while going; do nap --us 100 --waits 2 >/dev/null; done) &
(while going; do
  for turn in 0 1; do
    sleep 0.3
    echo \$turn >/sys/devices/system/cpu/cpu1/online
    echo \$((1 - turn)) >/sys/devices/system/cpu/cpu2/online
  done
done) &
wait
echo 1 >/sys/devices/system/cpu/cpu1/online
echo 1 >/sys/devices/system/cpu/cpu2/online
END
record soak -a -- sh /tmp/soak.sh
