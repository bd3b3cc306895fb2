#!/bin/sh
# The first process of the test machine: two soft-RoCE devices on the two ends of
# one cable, then the device tests.
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
end() {
	sync
	echo "GDISIM_VM_STATUS $1"
	poweroff -f
}
fail() {
	echo "vm guest: $*"
	end 125
}
ulimit -l unlimited
echo /bin/modprobe >/proc/sys/kernel/modprobe
for m in crc32_generic virtio_pci 9pnet_virtio 9p veth rdma_rxe ib_uverbs sch_netem; do
	modprobe $m || fail "modprobe $m"
done
mount -t 9p -o trans=virtio,version=9p2000.L out /out || fail "no folder for the results"

ip link set lo up
ip link add veth0 type veth peer name veth1 || fail "veth"
for n in 0 1; do
	ip link set veth$n mtu 4200 up
	ip addr add 10.99.0.$((n + 1))/24 dev veth$n
done
# Both addresses are local, and the kernel would go from one to the other by lo,
# where no RDMA device is: send such packets over the cable, and accept them.
for i in all default veth0 veth1; do
	echo 0 >/proc/sys/net/ipv4/conf/$i/rp_filter
	echo 1 >/proc/sys/net/ipv4/conf/$i/accept_local
done
ip rule add pref 100 lookup local
ip rule del pref 0
ip rule add pref 10 iif lo lookup 10
cat >/job/cable <<'CABLE'
ip route replace 10.99.0.2/32 dev veth0 src 10.99.0.1 table 10
ip route replace 10.99.0.1/32 dev veth1 src 10.99.0.2 table 10
CABLE
sh /job/cable || fail "routes"
for n in 0 1; do
	rdma link add rxe$n type rxe netdev veth$n || fail "rdma link add rxe$n"
done
n=0
while [ ! -e /dev/infiniband/uverbs1 ]; do
	n=$((n + 1))
	[ $n -lt 100 ] || fail "no uverbs devices"
	sleep 0.1
done
echo "vm guest: ready $(cut -d' ' -f1 /proc/uptime) s after the boot"
cd /job
GDISIM_TEST_RDMA=rxe0,rxe1 GDISIM_TEST_OUT=/out ./hw.test -test.v -test.timeout 150s -test.run '^TestDevice'
end $?
