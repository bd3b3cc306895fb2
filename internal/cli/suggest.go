package cli

import (
	"fmt"
	"strings"
)

// didYouMean returns `, did you mean "x"?` for the candidate that is nearest to
// word, "" where none is near.
func didYouMean(word string, candidates []string) string {
	best, bestD := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if d := distance(word, c); d < bestD && d < len(c) {
			best, bestD = c, d
		}
	}
	if best == "" {
		for _, c := range candidates {
			if len(word) > 2 && strings.Contains(c, word) {
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

// distance is the number of bytes to insert, delete or change from a to b, a
// swap of neighbours counted as one.
func distance(a, b string) int {
	if len(a) > 200 { // no typing mistake, and the table is quadratic
		return len(a)
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
