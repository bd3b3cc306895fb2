// Package docs_test holds README.md and the pages of docs against the program:
// what they show is run, what they list is generated, what they link exists.
// go test ./docs -update writes all of it again.
package docs_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gdisim/internal/cli"
	"gdisim/scenarios"
)

var update = flag.Bool("update", false, "write the pages instead of comparing them")

// root is the top of the tree, seen from this folder.
const root = ".."

// TestMain puts gdisim on the PATH of the commands that pages show.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gdisim": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		code := cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}})
}

// pages returns the Markdown files, paths from this folder.
func pages(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	return files
}

// rewrite maps a page to what it should be; a difference fails, or is written.
func rewrite(t *testing.T, page string, f func(text string) string) {
	t.Helper()
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := f(string(got))
	switch {
	case string(got) == want || t.Failed():
	case *update:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not current, run `make docs`; %s", page, firstDifference(string(got), want))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "it has\n  " + g[i] + "\nwhere the program says\n  " + w[i]
		}
	}
	return "one is longer"
}

var console = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// A console block is commands after "$ ", each with its standard output.
func TestConsole(t *testing.T) {
	commands := 0
	for _, page := range pages(t) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			dir := workDir(t)
			rewrite(t, page, func(text string) string {
				return console.ReplaceAllStringFunc(text, func(block string) string {
					var out strings.Builder
					out.WriteString("```console\n")
					for line := range strings.Lines(console.FindStringSubmatch(block)[1]) {
						if command, ok := strings.CutPrefix(line, "$ "); ok {
							commands++
							out.WriteString(line + shell(t, dir, strings.TrimSpace(command)))
						}
					}
					return out.String() + "```"
				})
			})
		})
	}
	if commands < 5 {
		t.Errorf("%d commands found in all pages", commands)
	}
}

// workDir is a folder in which a page's commands find the tree's scenarios, and
// may write.
func workDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	target, err := filepath.Abs(filepath.Join(root, "scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, "scenarios")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// shell runs a command, which must succeed, and returns its standard output.
func shell(t *testing.T, dir, command string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.Command("sh", "-c", command)
	c.Dir, c.Stdout, c.Stderr = dir, &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Errorf("$ %s: %v\n%s", command, err, stderr.String())
	}
	out := stdout.String()
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "$ ") || strings.HasPrefix(line, "```") {
			t.Errorf("$ %s prints a line that no page can hold: %s", command, line)
		}
	}
	return out
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(gdisim: v1\n.*?)^```$")

// A whole scenario on a page is one that loads.
func TestScenariosOfPages(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlBlock.FindAllSubmatch(text, -1) {
			if _, err := scenarios.Parse(page, m[1]); err != nil {
				t.Error(err)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

func TestLinks(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			if strings.Contains(string(m[1]), "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), string(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if links == 0 {
		t.Error("no link found")
	}
}

var anyFailed = regexp.MustCompile(`of which [1-9]`)

// Every example runs, and what it expects holds. One whose point is that something
// fails ends in exit code 1, as it says in what it expects.
func TestExamplesRun(t *testing.T) {
	for _, e := range scenarios.Examples() {
		t.Run(e.Name, func(t *testing.T) {
			loaded, err := scenarios.LoadExample(e.Name)
			if err != nil {
				t.Fatal(err)
			}
			fails := slices.ContainsFunc(loaded.Expect, func(x scenarios.Expect) bool { return x.Finding != "" && x.Is == "occurred" })
			var stdout, stderr bytes.Buffer
			if code := cli.Main(t.Context(), []string{"run", "-q", "example:" + e.Name}, &stdout, &stderr); code != 0 && !(code == 1 && fails) {
				t.Errorf("exit code %d: %s", code, stderr.String())
			}
			if said := strings.Join(strings.Fields(stdout.String()), " "); len(loaded.Expect) > 0 && (!strings.Contains(said, "of which 0 failed") || anyFailed.MatchString(said)) {
				t.Errorf("not as expected:\n%s", stdout.String())
			}
			if !strings.HasPrefix(stdout.String(), e.Name+": "+e.Title) {
				t.Errorf("the output does not begin with name and title: %.80s", stdout.String())
			}
		})
	}
}
