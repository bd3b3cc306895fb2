#!/bin/sh
# Everything that must hold before a change goes in. Needs Go and this tree; the
# linter is built from source by its version, once.
set -eu
cd "$(dirname "$0")/.."

lint=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

step() {
	echo
	echo "== $*"
	"$@"
}

step go mod tidy -diff
step go vet ./...
step go run "$lint" run ./...

for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		step go test -run '^$' -fuzz "^$target\$" -fuzztime 10s -fuzzminimizetime 10x "$package"
	done
done

step go test -run '^$' -bench . -benchtime 1x ./sim ./testbed

# The race detector needs a C compiler; go says 0 where there is none.
if [ "$(go env CGO_ENABLED)" = 1 ]; then
	step go test -race -short ./sim ./workload ./testbed
else
	echo "== no C compiler: the race detector is left out"
fi

# A program without cgo simulates, and says what it cannot measure.
step env CGO_ENABLED=0 go vet ./...
step env CGO_ENABLED=0 go test ./hw/...

# The hardware backend against soft-RoCE devices, in a virtual machine.
if [ "${CI:-}" != true ] && { [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; }; then
	echo "== no root on Debian: the device tests are left out"
else
	step scripts/vm/run.sh
fi

# The test of docs runs every published figure, and fails on one that no longer holds.
step go test ./...
