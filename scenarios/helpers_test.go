package scenarios

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write generated files instead of comparing them")

// sample is some valid value of a field.
func sample(t testing.TB, f *Field) string {
	t.Helper()
	texts := map[Kind]string{Duration: "1ns", Cost: "10cy+1ns", Bytes: "64B", Rate: "1Gb/s", Frequency: "1GHz", Ratio: "50%", Count: "1", Integer: "-1", Bool: "true", Link: "32GT/s x16", Text: "x"}
	for _, text := range append([]string{texts[f.Kind], f.Default, f.Min, f.Max}, f.Enum...) {
		if _, err := fieldTable().parse(f, text); text != "" && err == nil {
			return text
		}
	}
	t.Fatalf("%s: no sample", f.Key)
	return ""
}

// paramFile is a profile or a stack with a value for each field that needs one,
// so that tests of the loader do not depend on the models' parameters.
func paramFile(t testing.TB, form paramForm, name string) []byte {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: v1\nname: %s\ntitle: made for tests\nsources: {doc: \"a paper\"}\n%s:\n", form.magic, name, form.body)
	for _, f := range fieldTable().fields {
		if f.Section() == form.section && f.Default == "" && !f.Optional {
			fmt.Fprintf(&b, "  %s: {value: %q, kind: assumed, source: doc}\n", strings.TrimPrefix(f.Key, form.section+"."), sample(t, &f))
		}
	}
	// Quotes would make a count or a switch an error.
	return []byte(strings.NewReplacer(`"1"`, "1", `"true"`, "true").Replace(b.String()))
}

// testFiles serves ./hw.yaml, ./gda.yaml and ./proxy.yaml made by paramFile, and
// the files given by base name; nothing else exists.
func testFiles(t testing.TB, files map[string]string) Option {
	t.Helper()
	made := map[string][]byte{
		"hw.yaml": paramFile(t, profileForm, "hw"), "gda.yaml": paramFile(t, stackForm, "gda"), "proxy.yaml": paramFile(t, stackForm, "proxy"),
	}
	for name, text := range files {
		made[name] = []byte(text)
	}
	return WithReadFile(func(path string) ([]byte, error) {
		if src, ok := made[filepath.Base(path)]; ok {
			return src, nil
		}
		return nil, &os.PathError{Op: "open", Path: filepath.Base(path), Err: os.ErrNotExist}
	})
}

const head = "gdisim: v1\nhardware: ./hw.yaml\npaths: [./gda.yaml, {name: p2, stack: ./proxy.yaml}]\n"

func mustParse(t testing.TB, text string, files map[string]string) *Scenario {
	t.Helper()
	s, err := Parse("s.yaml", []byte(text), testFiles(t, files))
	if err != nil {
		t.Fatalf("unexpected problems:\n%v", err)
	}
	return s
}

// golden compares got with a file of the tree, or writes it with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != string(got) {
		t.Errorf("%s is not current (%v): run go test ./scenarios -update", file, err)
	}
}
