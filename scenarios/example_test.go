package scenarios_test

import (
	"fmt"

	"gdisim/scenarios"
)

func ExampleParse() {
	_, err := scenarios.Parse("mine.yaml", []byte(`
gdisim: v1
workload: {kind: put, bytes: 8, iterations: ten}
seed: -1
`))
	fmt.Println(err)
	// Output:
	// mine.yaml:2:1: key "hardware" is missing
	// mine.yaml:2:1: key "paths" is missing
	// mine.yaml:3:30: workload.bytes: "8" has no unit (want a size such as 8B, 4KiB or 1MiB)
	// mine.yaml:3:45: workload.iterations: "ten" is not in plain decimal (want a whole number such as 16)
	// mine.yaml:4:7: seed: "-1" is no seed (want a whole number below 2^64)
}
