# Booted with maxcpus=2: two CPUs online of four that are possible.
record nap -- nap --us 10000 --waits 50
cat /sys/devices/system/cpu/possible /sys/devices/system/cpu/online >/out/cpus
