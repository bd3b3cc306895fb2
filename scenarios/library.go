package scenarios

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"gopkg.in/yaml.v3"
)

//go:embed checks examples profiles stacks
var embedded embed.FS

// Info names something embedded.
type Info struct{ Name, Title string }

// Examples lists the embedded scenarios by name.
func Examples() []Info { return list("examples") }

// Profiles lists the embedded hardware profiles by name.
func Profiles() []Info { return list("profiles") }

// Stacks lists the embedded stacks by name.
func Stacks() []Info { return list("stacks") }

// Checks lists the embedded scenarios that hold published figures, by name.
func Checks() []Info { return list("checks") }

// ReadExample returns the text of an embedded scenario.
func ReadExample(name string) ([]byte, error) { return readEmbedded("examples", name) }

// list returns the YAML files of an embedded folder; ReadDir sorts by name.
func list(dir string) []Info {
	files, err := fs.ReadDir(embedded, dir)
	if err != nil {
		panic("scenarios: " + err.Error()) // the folders are compiled in
	}
	var infos []Info
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".yaml")
		if !ok {
			continue
		}
		var head struct{ Title string }
		src, err := readEmbedded(dir, name)
		if err == nil {
			err = yaml.Unmarshal(src, &head)
		}
		if err != nil {
			head.Title = "(" + err.Error() + ")"
		}
		infos = append(infos, Info{Name: name, Title: head.Title})
	}
	return infos
}

// readEmbedded returns examples/NAME.yaml and the like, or profiles/parts/NAME.yaml,
// which profiles include. The error of an unknown name suggests a near one.
func readEmbedded(dir, name string) ([]byte, error) {
	if fs.ValidPath(name) && !strings.Contains(name, "/") {
		for _, d := range []string{dir, dir + "/parts"} {
			if src, err := embedded.ReadFile(d + "/" + name + ".yaml"); err == nil {
				return src, nil
			}
		}
	}
	var known []string
	files, err := fs.ReadDir(embedded, dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if n, ok := strings.CutSuffix(f.Name(), ".yaml"); ok {
			known = append(known, n)
		}
	}
	return nil, fmt.Errorf("unknown %s %q%s", strings.TrimSuffix(dir, "s"), name, hint(name, known))
}
