# Four CPUs, everything allowed: truths, classes, hot-plug, ten starts, and what is missing when BTF is hidden.
dwell doctor >/out/doctor.txt 2>&1
echo "guest: doctor exits $?"
record nap -- nap --us 10000 --waits 100
# Once before, so that the tables of its files are compiled: an emulated CPU takes longer to that than the program to begin.
record frames -- sh -c 'frames --waits 1 >/dev/null; frames --waits 10; exit 0'
record raw_frames --raw-tracepoints -- sh -c 'frames --waits 1 >/dev/null; frames --waits 10; exit 0'
record spin2 -- spin2 --ms 1500
record sleeper -- sleeper --seconds 1
record small --rows 16 --stacks 8 -- nap --us 5000 --waits 100 --threads 4

# CPU 3 is offline when the recording starts, comes online in it, and CPU 1 goes and comes back.
echo 0 >/sys/devices/system/cpu/cpu3/online
cat >/tmp/hotplug.sh <<'END'
hop --us 10000 --waits 250 &
sleep 0.5
echo 1 >/sys/devices/system/cpu/cpu3/online
sleep 0.5
echo 0 >/sys/devices/system/cpu/cpu1/online
sleep 0.5
echo 1 >/sys/devices/system/cpu/cpu1/online
wait
END
record hotplug --timeline -- sh /tmp/hotplug.sh
cat /sys/devices/system/cpu/online >/out/online

# With the six recordings of this story that must work: nine starts.
for i in 1 2 3; do
  dwell record -o /tmp/start.dwell -- nap --us 1000 --waits 3 >/dev/null 2>>/out/starts.err && echo "start $i" >>/out/starts
done

echo 2 >/proc/sys/kernel/kptr_restrict
record kptr2 -- nap --us 10000 --waits 20
echo 0 >/proc/sys/kernel/kptr_restrict

mount -t tmpfs none /sys/kernel/btf
record nobtf -- nap --us 1000 --waits 3
umount /sys/kernel/btf
