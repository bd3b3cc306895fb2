package scenarios

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gdisim/stage"
)

// object is a JSON object; encoding/json writes its keys in order.
type object = map[string]any

// Schema returns the JSON schema (draft-07) of scenario files, for editors. It is
// made from the field table and is looser than the loader where one key depends
// on another or on a file.
func Schema() []byte {
	t := fieldTable()
	scalar := object{"type": []string{"string", "number", "boolean"}}
	defs := object{
		"text": scalar, "distribution": distributionSchema(),
		"range": closed(object{"from": scalar, "to": scalar, "factor": object{"type": "integer", "minimum": 2}}, "from", "to", "factor"),
	}
	for k := Duration; k <= Text; k++ {
		if kinds[k].pattern == "" {
			continue
		}
		s := object{"type": "string", "pattern": kinds[k].pattern}
		if kinds[k].bare0 {
			s = object{"anyOf": []any{object{"const": 0}, s}}
		}
		defs[k.String()] = s
	}
	sweep, at := object{}, object{}
	sweepPaths, atPaths := object{}, object{}
	fault := object{"name": ref("text"), "path": ref("text")}
	for i := range t.fields {
		f := &t.fields[i]
		defs[f.Key] = f.schema()
		if name, is := strings.CutPrefix(f.Key, "fault."); is {
			fault[name] = ref(f.Key)
			if name != "kind" {
				key := `^faults\.[A-Za-z0-9][A-Za-z0-9_+-]*\.` + name + "$"
				sweepPaths[key], atPaths[key] = f.axisSchema(), ref(f.Key)
			}
		} else if f.Section() == "path" {
			key := `^paths\.([A-Za-z0-9][A-Za-z0-9_+-]*|\*)` + regexp.QuoteMeta(strings.TrimPrefix(f.Key, "path")) + "$"
			sweepPaths[key], atPaths[key] = f.axisSchema(), ref(f.Key)
		} else {
			sweep[f.Key], at[f.Key] = f.axisSchema(), ref(f.Key)
		}
	}
	workload := t.section("workload")
	workload["required"] = []string{"kind"}
	text := ref("text")
	hardware := closed(object{"profile": text, "set": t.section("hardware")}, "profile")
	path := closed(object{"name": text, "stack": text, "set": t.section("path")}, "stack")
	open := closed(at)
	open["patternProperties"] = atPaths
	swept := closed(sweep)
	swept["patternProperties"] = sweepPaths
	root := closed(object{
		"gdisim":   object{"const": "v1"},
		"name":     text,
		"title":    text,
		"hardware": object{"description": "a profile's name or file, or one with changes", "anyOf": []any{text, hardware}},
		"cluster":  t.section("cluster"),
		"host":     t.section("host"),
		"paths":    object{"description": "stacks to compare", "type": "array", "minItems": 1, "items": object{"anyOf": []any{text, path}}},
		"workload": workload,
		"sweep":    swept,
		"faults":   object{"description": "what goes wrong", "type": "array", "items": closed(fault, "kind")},
		"expect":   object{"type": "array", "items": expectSchema(open)},
		"seed":     object{"type": "integer", "minimum": 0},
	}, "gdisim", "hardware", "workload")
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "gdisim scenario"
	root["definitions"] = defs
	var b bytes.Buffer
	writeJSON(&b, root, "")
	b.WriteByte('\n')
	return b.Bytes()
}

// writeJSON breaks only objects and lists that do not fit a line.
func writeJSON(b *bytes.Buffer, v any, indent string) {
	line, err := json.Marshal(v)
	if err != nil {
		panic("scenarios: " + err.Error()) // maps, lists, strings and numbers only
	}
	if len(indent)+len(line) <= 160 {
		b.Write(line)
		return
	}
	sep := "\n" + indent + " "
	switch v := v.(type) {
	case object:
		b.WriteByte('{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(sep)
			writeJSON(b, key, "")
			b.WriteString(": ")
			writeJSON(b, v[key], indent+" ")
			sep = ",\n" + indent + " "
		}
		b.WriteString("\n" + indent + "}")
	case []any:
		b.WriteByte('[')
		for _, item := range v {
			b.WriteString(sep)
			writeJSON(b, item, indent+" ")
			sep = ",\n" + indent + " "
		}
		b.WriteString("\n" + indent + "]")
	default:
		b.Write(line)
	}
}

func ref(name string) object { return object{"$ref": "#/definitions/" + name} }

// closed is an object that has no other keys.
func closed(properties object, required ...string) object {
	o := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// section is the schema of the fields below prefix, nested or dotted.
func (t *table) section(prefix string) object {
	properties := object{}
	for _, key := range t.below(prefix) {
		full := prefix + "." + key
		f := t.byKey[full]
		switch {
		case f == nil:
			properties[key] = t.section(full)
		case f.List:
			properties[key] = object{"anyOf": []any{ref(full), f.axisSchema()}}
		default:
			properties[key] = ref(full)
		}
	}
	return closed(properties)
}

func (k Kind) schema() object {
	switch k {
	case Integer:
		return object{"type": "integer"}
	case Count:
		return object{"type": "integer", "minimum": 0}
	case Bool:
		return object{"type": "boolean"}
	case Text:
		return ref("text")
	}
	return ref(k.String())
}

// schema is the field's definition: any one value of it.
func (f *Field) schema() object {
	one := f.Kind.schema()
	if f.Kind == Enum {
		var words []any
		for _, w := range f.Enum {
			words = append(words, w)
			if w == "true" || w == "false" { // which YAML reads as switches
				words = append(words, w == "true")
			}
		}
		one = object{"enum": words}
	}
	if f.Kind == Count || f.Kind == Integer {
		t := fieldTable()
		if v, ok := t.min[f.Key]; ok {
			one["minimum"] = v.n
		}
		if v, ok := t.max[f.Key]; ok {
			one["maximum"] = v.n
		}
	}
	choices := []any{one}
	if f.Alt != 0 {
		choices = append(choices, f.Alt.schema())
	}
	if f.Dist {
		choices = append(choices, ref("distribution"))
	}
	if len(choices) > 1 || one["$ref"] != nil { // nothing counts beside a $ref
		one = object{"anyOf": choices}
	}
	one["description"] = f.describe()
	return one
}

// describe is the field's text with its default.
func (f *Field) describe() string {
	if f.Default == "" {
		return f.Text
	}
	return f.Text + " (default " + f.Default + ")"
}

// hasRange reports whether {from, to, factor} can stand for a list.
func (f *Field) hasRange() bool {
	return f.Kind == Count || len(kinds[f.Kind].units) > 0 && f.Kind != Cost
}

// axisSchema is a list of the field's values, or a range.
func (f *Field) axisSchema() object {
	list := object{"type": "array", "minItems": 1, "items": ref(f.Key)}
	if !f.hasRange() {
		return list
	}
	return object{"anyOf": []any{list, ref("range")}}
}

func distributionSchema() object {
	var choices []any
	for _, d := range distributions {
		properties := object{"dist": object{"const": d.name}}
		for _, key := range d.keys {
			properties[key] = Duration.schema()
			if key == "file" {
				properties[key] = ref("text")
			}
		}
		choices = append(choices, closed(properties, append([]string{"dist"}, d.keys...)...))
	}
	return object{"anyOf": choices}
}

func expectSchema(at object) object {
	var findings []string
	for i := stage.Finding(1); i < stage.FindingCount; i++ {
		findings = append(findings, i.String())
	}
	quantity := object{"type": []string{"string", "number"}}
	text := ref("text")
	return closed(object{
		"path": text, "metric": object{"type": "string"}, "at": at,
		"minus": closed(object{"path": text, "metric": object{"type": "string"}}),
		"over":  closed(object{"path": text, "metric": object{"type": "string"}, "at": at}),
		"value": quantity, "within": quantity, "min": quantity, "max": quantity,
		"finding": object{"enum": findings}, "is": object{"enum": []string{"present", "absent", "possible", "occurred"}},
		"order":  object{"type": "array", "minItems": 2, "items": text},
		"source": text, "use": object{"enum": []string{"fitted", "checked"}}, "fits": object{"type": "array", "items": text}, "note": text, "known_miss": text,
	})
}
