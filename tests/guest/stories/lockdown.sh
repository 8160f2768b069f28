# Booted with lockdown=confidentiality: the kernel lets no BPF program read its memory.
cat /sys/kernel/security/lockdown >/out/lockdown 2>/dev/null || {
  mount -t securityfs none /sys/kernel/security && cat /sys/kernel/security/lockdown >/out/lockdown
}
record lockdown -- nap --us 1000 --waits 3
dwell doctor >/out/doctor.txt 2>&1
echo "$?" >/out/doctor.code
