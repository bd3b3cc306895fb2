package testbed_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain draws the same random scenarios in every run, so that a change is
// held against what the last one passed; -rapid.seed N explores others.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.seed" })
	if !given {
		if err := flag.Set("rapid.seed", "1"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
