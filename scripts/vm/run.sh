#!/usr/bin/env bash
# The hardware backend against real libibverbs devices, on a machine that has
# none: boots a small virtual machine whose kernel makes soft-RoCE devices, under
# software emulation (no /dev/kvm needed), and runs the device tests of hw in it.
#
#   scripts/vm/run.sh [OUT]    result files of the guest are copied to OUT; what else is
#                              there stays
#
# Debian with apt; installs by name what it lacks. Exit status: the guest tests'
# own; 124 if the guest gave none within the limit, 125 if it could not be set up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

limit=170 # seconds, of the machine
cache=${GDISIM_VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/gdisim-vm}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
out=$cache/out # the guest sees a folder of this script's own
rm -rf "$out"
mkdir "$out"

say() { echo "vm: $*" >&2; }

packages=(qemu-system-x86 rdma-core ibverbs-providers libibverbs-dev iproute2 busybox-static dash cpio kmod)
if ! dpkg -s "${packages[@]}" >/dev/null 2>&1; then
	say "installing ${packages[*]}"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >"$cache/apt.log" 2>&1 ||
		{ tail -20 "$cache/apt.log" >&2; exit 125; }
fi

# Our declarations of the library's ABI against its own header.
cc -std=gnu11 -fsyntax-only hw/verbs/testdata/abi_check.c
say "abi.h agrees with infiniband/verbs.h"

# The kernel is unpacked, never installed.
if [[ ! -e $cache/version ]]; then
	kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ {print $2; exit}')
	if [[ -z $kernel ]]; then
		apt-get update -qq
		kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ {print $2; exit}')
	fi
	say "unpacking $kernel"
	rm -rf "$cache/kernel"
	mkdir -p "$cache/kernel"
	(
		cd "$cache/kernel"
		apt-get download -qq "$kernel" || { apt-get update -qq && apt-get download -qq "$kernel"; }
		dpkg -x "$kernel"_*.deb .
		rm "$kernel"_*.deb
	)
	ls "$cache/kernel/lib/modules" >"$cache/version"
fi
version=$(<"$cache/version")

# ---- the root file system --------------------------------------------------------
root=$cache/root
rm -rf "$root"
mkdir -p "$root"/{bin,proc,sys,dev,tmp,out,job,etc/libibverbs.d,usr/lib,usr/lib64}
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"

# place copies programs and libraries to where they stand here, with all that the
# loader would look for.
place() {
	local file lib
	for file; do
		for lib in "$file" $(ldd "$file" 2>/dev/null | grep -o '/[^ ]*' || true); do
			[[ -e $root$(usr "$lib") ]] || install -D "$(readlink -f "$lib")" "$root$(usr "$lib")"
		done
	done
}
usr() { sed -E 's,^/(lib|lib64)/,/usr/\1/,' <<<"$1"; }

cp /bin/busybox "$root/bin/"
for applet in $("$root/bin/busybox" --list); do
	[[ $applet == busybox ]] || ln -s busybox "$root/bin/$applet"
done
# Busybox's own ip and tc know no rdma link and no netem, and its sh prefers them.
for program in ip tc rdma dash; do
	file=$(readlink -f "$(command -v "$program")")
	place "$file"
	ln -sf "$(usr "$file")" "$root/bin/$program"
done
ln -sf dash "$root/bin/sh"
libraries=/usr/lib/x86_64-linux-gnu
place "$libraries/libibverbs.so.1" "$libraries"/libibverbs/librxe-rdmav*.so # ldd knows nothing of a provider
cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"

modules=lib/modules/$version
depmod -b "$cache/kernel" "$version" 2>/dev/null
mkdir -p "$root/$modules"
# rxe asks the crypto layer for crc32, which modules.dep does not say.
for module in crc32_generic rdma_rxe ib_uverbs veth sch_netem virtio_pci 9pnet_virtio 9p; do
	modprobe -d "$cache/kernel" -S "$version" --show-depends "$module" | awk '$1 == "insmod" {print $2}'
done | sort -u | while read -r file; do
	install -D "$file" "$root/${file#"$cache"/kernel/}"
done
cp "$cache/kernel/$modules"/modules.{builtin,builtin.modinfo,order} "$root/$modules/"
depmod -b "$root" "$version"

# ---- the job ----------------------------------------------------------------------
say "building the tests"
CGO_ENABLED=1 go test -c -o "$root/job/hw.test" ./hw
CGO_ENABLED=1 go build -o "$root/job/gdisim" ./cmd/gdisim
place "$root/job/hw.test" "$root/job/gdisim"
rm -rf "$root$root"
install -m 755 scripts/vm/init.sh "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$cache/initrd"

# ---- the machine ------------------------------------------------------------------
say "booting $version, $(($(stat -c %s "$cache/initrd") >> 20)) MiB of initramfs"
start=$SECONDS
timeout -k 5 "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -M q35 -smp 2 -m 512 \
	-nodefaults -no-user-config -display none -no-reboot -serial stdio -monitor none \
	-kernel "$cache/kernel/boot/vmlinuz-$version" -initrd "$cache/initrd" \
	-virtfs "local,path=$out,mount_tag=out,security_model=none" \
	-append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable" \
	</dev/null | tee "$cache/console" || true
if [[ -n ${1:-} && -n $(ls "$out") ]]; then
	mkdir -p "$1"
	cp "$out"/* "$1"/
fi
say "$((SECONDS - start)) s; results in ${1:-$out}: $(ls "$out" | tr '\n' ' ')"
status=$(tr -d '\r' <"$cache/console" | awk '$1 == "GDISIM_VM_STATUS" {print $2}' | tail -1)
if [[ -z $status ]]; then
	say "the guest gave no status within $limit s"
	exit 124
fi
exit "$status"
