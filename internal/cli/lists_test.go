package cli

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
	"unicode/utf8"

	"gdisim/scenarios"
)

func TestSchema(t *testing.T) {
	code, stdout, stderr := exec(fake, "schema")
	if code != 0 || stderr != "" {
		t.Fatalf("code %d, stderr %q", code, stderr)
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatal(err)
	}
	if s, _ := doc["$schema"].(string); !strings.Contains(s, "draft-07") {
		t.Errorf("$schema is %v", doc["$schema"])
	}
}

func TestExamples(t *testing.T) {
	if len(scenarios.Examples()) == 0 {
		t.Fatal("there are none")
	}
	for _, args := range [][]string{{"examples"}, {"examples", "list"}} {
		_, stdout, _ := exec(fake, args...)
		for _, e := range scenarios.Examples() {
			mustContain(t, "list", stdout, e.Name)
		}
	}
	for _, e := range scenarios.Examples() {
		code, stdout, stderr := exec(fake, "examples", "show", e.Name)
		if code != 0 || stderr != "" {
			t.Errorf("%s: code %d, stderr %q", e.Name, code, stderr)
		}
		mustContain(t, e.Name, stdout, "gdisim: v1", "name: "+e.Name)
	}
	for args, want := range map[string]string{
		"examples show":       "needs one NAME",
		"examples show sizse": `did you mean "sizes"?`,
		"examples shwo x":     `unknown command "shwo"`,
	} {
		code, stdout, stderr := exec(fake, strings.Fields(args)...)
		if mustContain(t, args, stderr, want); code != 2 || stdout != "" {
			t.Errorf("%s: code %d, stdout %q", args, code, stdout)
		}
	}
}

func TestProfiles(t *testing.T) { testList(t, "profiles", scenarios.Profiles()) }

func TestStacks(t *testing.T) { testList(t, "stacks", scenarios.Stacks()) }

func testList(t *testing.T, verb string, infos []scenarios.Info) {
	code, stdout, stderr := exec(fake, verb)
	if code != 0 || stderr != "" {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	words := strings.Join(strings.Fields(stdout), " ")
	for _, i := range infos {
		mustContain(t, verb, words, i.Name+" "+strings.Join(strings.Fields(i.Title), " ")) // whole, if in several lines
	}
	for l := range strings.Lines(stdout) {
		if w := utf8.RuneCountInString(strings.TrimSuffix(l, "\n")); w > textWidth {
			t.Errorf("a line of %d columns: %s", w, l)
		}
	}
	if code, _, _ := exec(fake, verb, "x"); code != 2 {
		t.Errorf("with an argument: code %d", code)
	}
}

func TestVersion(t *testing.T) {
	_, a, _ := exec(fake, "version")
	_, b, _ := exec(fake, "--version")
	if a != b || !strings.HasPrefix(a, "gdisim "+Version+" (") || strings.Count(a, "\n") != 1 {
		t.Errorf("version %q, --version %q", a, b)
	}
	facts := buildFacts(&debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"},
	}})
	if got := strings.Join(facts, " "); got != "0123456789ab modified" {
		t.Errorf("facts %q", got)
	}
}
