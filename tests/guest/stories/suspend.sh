# Suspends the machine to memory for some seconds in the middle of a recording; the clock chip wakes it.
# before, after: CLOCK_BOOTTIME in s and CLOCK_MONOTONIC in ns; the sleep is what they are further apart.
cat >/tmp/suspend.sh <<'END'
nap --us 20000 --waits 200 &
sleep 1
clocks() { echo "$(cut -d" " -f1 /proc/uptime) $(sed -n "s/^now at \([0-9]*\) nsecs/\1/p" /proc/timer_list)"; }
clocks >/out/before
echo +8 >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state 2>/out/state.err
echo $? >/out/suspend.code
clocks >/out/after
wait
END
record suspend -- sh /tmp/suspend.sh
