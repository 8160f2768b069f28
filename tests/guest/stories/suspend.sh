# Suspends the machine to memory for some seconds in the middle of a recording; the clock chip wakes it.
cat >/tmp/suspend.sh <<'END'
nap --us 20000 --waits 200 &
sleep 1
cut -d" " -f1 /proc/uptime >/out/before
echo +6 >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state 2>/out/state.err
echo $? >/out/suspend.code
cut -d" " -f1 /proc/uptime >/out/after
wait
END
record suspend -- sh /tmp/suspend.sh
