#!/bin/sh
# Builds the embedded PTX from its CUDA sources. Needs clang 14 or newer and nothing
# of NVIDIA's: the driver compiles the PTX for the GPU at hand. The target is the
# oldest that has the memory model (sm_70), so that any newer GPU takes it.
set -eu
cd "$(dirname "$0")/.."
clang=${CLANG:-$(command -v clang || command -v clang-14)}
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# build DIR NAME SOURCE...: DIR/NAME.ptx from DIR/NAME.cu. Its first line is the
# digest of the sources, which a test compares.
build() {
	dir=$1 name=$2
	shift 2
	(
		cd "$dir"
		"$clang" --cuda-device-only --cuda-gpu-arch=sm_70 -Xclang -target-feature -Xclang +ptx70 -nocudainc -nocudalib \
			-O3 -S -x cuda "$name.cu" -o "$out"
		{
			echo "// sources sha256:$(cat "$@" "$name.cu" | sha256sum | cut -d ' ' -f 1)"
			sed -e '/^[[:space:]]*\/\//d' "$out"
		} >"$name.ptx"
	)
}

build hw/mlx5 post layout.h mem_gpu.h post.h nic.h
build hw/cuda kernels kernels.h
