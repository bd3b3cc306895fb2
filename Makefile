.PHONY: test docs golden bench crossval ptx

test:
	sh scripts/test.sh

# What is generated: the scenario reference, the JSON schema, the pages' outputs
# and tables.
docs:
	go test ./scenarios -update
	go test ./docs -update

# The same, and the golden files of the command line.
golden: docs
	go test ./internal/cli -update

# The cross-validation that docs/fidelity.md shows: minutes. Whoever changes a
# profile, a stack, a check or a model runs it before docs.
crossval:
	go run ./cmd/gdisim check --cross-validate --format json -o docs/crossval.json

bench:
	go test -run '^$$' -bench . ./sim ./testbed ./internal/cli

# The GPU kernels that are embedded, from their sources. Needs clang.
ptx:
	scripts/ptx.sh
