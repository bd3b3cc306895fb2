.PHONY: test docs golden bench ptx

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

bench:
	go test -run '^$$' -bench . ./sim ./testbed ./internal/cli

# The GPU kernels that are embedded, from their sources. Needs clang.
ptx:
	scripts/ptx.sh
