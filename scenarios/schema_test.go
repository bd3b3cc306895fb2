package scenarios

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

func TestSchemaIsCurrent(t *testing.T) { golden(t, "scenario.schema.json", Schema()) }

func TestReferenceIsCurrent(t *testing.T) { golden(t, "../docs/scenario.md", Reference()) }

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("scenario.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What the loader takes, the schema takes; what a file says that the schema
// rejects, it does reject.
func TestSchemaAgreesWithLoader(t *testing.T) {
	schema := compiled(t)
	var files []string
	for _, pattern := range []string{"testdata/*.yaml", "examples/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			good := !strings.HasSuffix(file, ".bad.yaml")
			if !good && !strings.HasPrefix(string(src), "# schema rejects it\n") {
				t.Skip("the schema cannot know")
			}
			var doc any
			if err := yaml.Unmarshal(src, &doc); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(doc); (err == nil) != good {
				t.Errorf("the loader takes it: %t, but the schema says: %v", good, err)
			}
		})
	}
}

// Every field's sample and default fit its definition, in its place; and no field
// takes a mapping of nonsense.
func TestSchemaOfEveryField(t *testing.T) {
	schema := compiled(t)
	for _, f := range Fields() {
		for _, text := range append([]string{sample(t, &f), f.Default, f.Min, f.Max, "{nonsense: 1}"}, f.Enum...) {
			if text == "" {
				continue
			}
			hardware, path, rest := "./hw.yaml", "./gda.yaml", ""
			section, key, _ := strings.Cut(f.Key, ".")
			switch section {
			case "hardware":
				hardware = "{profile: ./hw.yaml, set: {" + key + ": " + text + "}}"
			case "path":
				path = "{name: gda, stack: ./gda.yaml, set: {" + key + ": " + text + "}}"
			default:
				rest = section + ": {" + key + ": " + text
				if strings.HasPrefix(key, "background.") && key != "background.kind" {
					rest += ", background.kind: stream"
				}
				if section == "workload" && key != "kind" {
					rest += ", kind: put"
				}
				if section == "workload" && key != "bytes" {
					rest += ", bytes: 8B"
				}
				rest += "}\n"
			}
			if section != "workload" {
				rest += "workload: {kind: put, bytes: 8B}\n"
			}
			src := "gdisim: v1\nhardware: " + hardware + "\npaths: [" + path + "]\n" + rest
			_, loadErr := Parse("f", []byte(src), testFiles(t, nil))
			var doc any
			if err := yaml.Unmarshal([]byte(src), &doc); err != nil {
				t.Fatal(err)
			}
			schemaErr := schema.Validate(doc)
			if good := text != "{nonsense: 1}"; (loadErr == nil) != good || (schemaErr == nil) != good {
				t.Errorf("%s: %s\nloader: %v\nschema: %v", f.Key, text, loadErr, schemaErr)
			}
		}
	}
}
