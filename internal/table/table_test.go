package table

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	long := strings.Repeat("n", 90)
	for _, c := range []struct {
		name  string
		table Table
		width int
		want  string
		drop  string
	}{
		{
			"aligned",
			Table{[]Column{{Head: "path"}, {Head: "us", Right: true}}, [][]string{{"a", "1.5"}, {"long", "10.25"}, {"short"}}},
			100, "  path      us\n  a        1.5\n  long   10.25\n  short\n", "",
		},
		{
			"cut names",
			Table{[]Column{{Head: "path"}, {Head: "us", Right: true}}, [][]string{{long, "1.5"}}},
			20, "  path            us\n  nnnnnnnnnnnn…  1.5\n", "",
		},
		{
			"drop before cutting hard",
			Table{[]Column{{Head: "path"}, {Head: "p50", Right: true}, {Head: "p99", Right: true, Drop: 1}, {Head: "max", Right: true, Drop: 2}}, [][]string{{long, "11111", "22222", "33333"}}},
			36, "  path                        p50\n  nnnnnnnnnnnnnnnnnnnnnnn…  11111\n", "max p99",
		},
		{
			"groups",
			Table{
				[]Column{{Head: "path"}, {Group: "put+completion", Head: "p50", Right: true}, {Group: "put+completion", Head: "p99", Right: true}, {Group: "rtt", Head: "p50", Right: true}},
				[][]string{{"a", "1.5", "2.5", "10.25"}},
			},
			100, "        put+completion    rtt\n  path        p50  p99    p50\n  a           1.5  2.5  10.25\n", "",
		},
		{
			"wrapped",
			Table{[]Column{{Head: "name"}, {Head: "title", Wrap: true}, {Head: "us", Right: true}}, [][]string{{"a", "one two three four five six", "1.5"}, {"b", "short", "2.5"}}},
			28, "  name  title             us\n  a     one two three    1.5\n        four five six\n  b     short            2.5\n", "",
		},
		{
			"wrapped, and a word that is too long",
			Table{[]Column{{Head: "name"}, {Head: "title", Wrap: true}}, [][]string{{"a", long + " end"}}},
			20, "  name  title\n  a     nnnnnnnnnnn…\n        end\n", "",
		},
		{
			"only numbers",
			Table{[]Column{{Head: "1234567890", Right: true}, {Head: "1234567890", Right: true}}, nil},
			15, "  1234567890  …\n", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			drop, err := c.table.Text(&b, c.width, "  ")
			if err != nil || b.String() != c.want || strings.Join(drop, " ") != c.drop {
				t.Errorf("dropped %v, err %v, got\n%swant\n%s", drop, err, b.String(), c.want)
			}
		})
	}
}

func TestMarkdown(t *testing.T) {
	tab := Table{[]Column{{Head: "a|b"}, {Head: "n", Right: true}}, [][]string{{"x", "1"}, {"y"}}}
	var b strings.Builder
	if err := tab.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	if want := "| a\\|b | n |\n| --- | ---: |\n| x | 1 |\n| y |  |\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"one two three", "- one two\n  three\n"},
		{"", "-\n"},
		{"abcdefghijklmno", "- abcdefg…\n"},
	} {
		if got := Wrap(c.in, 10, "- ", "  "); got != c.want {
			t.Errorf("Wrap(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}
