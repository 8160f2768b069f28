# The tests of kernel event arrays, on CPUs with holes and with CPUs that come and go. Booted with two of four CPUs.
export DWELL_GENERATOR_OBJECT=/usr/bin/generator.bpf.o DWELL_TEST_SECONDS=10 DWELL_TEST_HOTPLUG=1
cpu=/sys/devices/system/cpu

# run NAME ARGUMENTS... : a test binary; its output and exit code.
run() {
  local name=$1
  shift
  "$@" >"/out/$name.txt" 2>&1
  echo $? >"/out/$name.code"
  echo "guest: [$(cut -d" " -f1 /proc/uptime) s] $name: exit $(cat "/out/$name.code")"
}

mount -t bpf bpf /sys/fs/bpf
run never_present kernel_event_array_root_test --gtest_filter="DeliveryTest.Gives*:DeliveryTest.Drains*:DeliveryTest.Joins*:\
DeliveryTest.Keeps*:OpenTest.Names*:OpenTest.Accepts*:OpenTest.ARestarted*:OpenTest.Replaces*:OpenTest.OpensTheOthers*:\
LossTest.IsToldBefore*:LossTest.IsExact*:LossTest.SumOf*"
echo 1 >$cpu/cpu2/online
echo 1 >$cpu/cpu3/online
echo 0 >$cpu/cpu1/online
cat $cpu/possible $cpu/online >/out/holes
run holes kernel_event_array_root_test --gtest_filter="DeliveryTest.GivesEachCpusEventToThatCpu:DeliveryTest.DrainsEachRingAlone:OpenTest.*RealCpu*"
echo 1 >$cpu/cpu1/online
run exactness exactness_root_test
cat $cpu/online >/out/online
