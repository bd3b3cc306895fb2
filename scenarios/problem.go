package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong in a file, or in a --set.
type Problem struct {
	File      string
	Line, Col int    // from 1; 0 where there is none
	Path      string // where in the document: "hardware.set.gpu.sm_clock"
	What      string // what is wrong
	Want      string // what to write instead; may be empty
}

// Error returns the problem as one line: file:line:col: path: what (want ...).
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
		if p.Col > 0 {
			fmt.Fprintf(&b, ":%d", p.Col)
		}
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.What)
	if p.Want != "" {
		b.WriteString(" (want " + p.Want + ")")
	}
	return b.String()
}

// joinProblems returns all problems as one error, those of the scenario first,
// each file's by position; nil for none.
func joinProblems(main string, ps []*Problem) error {
	slices.SortStableFunc(ps, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(b2i(a.File != main), b2i(b.File != main)), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errors.Join(errs...)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// didYouMean returns `, did you mean "x"?` for the candidate nearest to word, or
// nothing when none is near.
func didYouMean(word string, candidates []string) string {
	best := Nearest(word, candidates, 1)
	if best == "" { // the end of a longer key?
		for _, c := range candidates {
			if strings.HasSuffix(c, "."+word) {
				best = c
				break
			}
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// Nearest returns the candidate that the fewest changed letters make of word: as
// many as few, or a third of a longer word. It returns "" where none is that near.
func Nearest(word string, candidates []string, few int) string {
	best, bestD := "", max(few, len(word)/3)+1
	if len(word) > 64 { // no typing mistake, and the time grows with both
		return ""
	}
	for _, c := range candidates {
		if d := distance(word, c); d < bestD && d < len(c) {
			best, bestD = c, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete, change or swap.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+b2i(a[i-1] != b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
