package scenarios

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

func TestSchemaIsCurrent(t *testing.T) { golden(t, "scenario.schema.json", Schema()) }

func TestReferenceIsCurrent(t *testing.T) { golden(t, "../docs/scenario.md", Reference()) }

// The profile that the reference shows is a whole one.
func TestReferenceProfile(t *testing.T) {
	_, rest, _ := strings.Cut(string(Reference()), "```yaml\ngdisim-profile")
	profile, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the reference shows no profile")
	}
	mustParse(t, "gdisim: v1\nhardware: ./mine.yaml\npaths: [mini-gda]\nworkload: {kind: put, bytes: 8B}\n", map[string]string{"mine.yaml": "gdisim-profile" + profile})
}

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
			case "fault":
				rest = "faults: [{" + key + ": " + text
				if key != "kind" {
					rest += ", kind: wrong-rkey"
				}
				if text == "loss" {
					rest += ", count: 1"
				}
				rest += "}]\n"
			default:
				rest = section + ": {" + key + ": " + text + "}\n"
			}
			kind := "put"
			if section == "workload" {
				kind, rest = workloadWith(t, &f, text)
			} else {
				rest += "workload: {kind: put, bytes: 8B}\n"
			}
			if !IsStep(kind) || slices.Contains(stackKinds, kind) {
				rest = "paths: [" + path + "]\n" + rest
			}
			src := "gdisim: v1\nhardware: " + hardware + "\n" + rest
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

// workloadWith is a workload section with a value of field f, of a kind that
// uses it and with whatever else the kind needs.
func workloadWith(t *testing.T, f *Field, text string) (kind, section string) {
	kind = f.users()[0]
	if f.Key == "workload.kind" && slices.Contains(f.Enum, text) {
		kind = text
	}
	if f.Key == "workload.background.kind" && slices.Contains(backgroundKinds, text) {
		kind = loadedKinds[0]
	}
	own := map[string]map[string][]string{"workload.by": ways, "workload.op": ops} // words of a kind's own
	for _, k := range slices.Sorted(maps.Keys(own[f.Key])) {
		if slices.Contains(own[f.Key][k], text) {
			kind = k
			break
		}
	}
	keys := map[string]string{"workload.kind": kind, f.Key: text}
	for _, key := range missing("workload", func(key string) bool { return keys[key] != "" }) {
		if m := fieldTable().byKey[key]; m.usedBy(kind) {
			keys[key] = sample(t, m)
			if of := own[key]; of != nil {
				keys[key] = of[kind][0]
			}
		}
	}
	if strings.HasPrefix(f.Key, "workload.background.") && keys["workload.background.kind"] == "" {
		keys["workload.background.kind"] = strings.Split(backgroundOf([]string{kind}), ", ")[0]
	}
	for key, text := range keys {
		section += ", " + strings.TrimPrefix(key, "workload.") + ": " + text
	}
	return kind, "workload: {" + section[2:] + "}\n"
}
