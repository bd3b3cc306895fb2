package cli

import (
	"fmt"
	"strings"

	"gdisim/scenarios"
)

// didYouMean returns `, did you mean "x"?` for the candidate that is nearest to
// word or has it in it, "" where there is none.
func didYouMean(word string, candidates []string) string {
	best := scenarios.Nearest(word, candidates, 2)
	for _, c := range candidates {
		if best == "" && len(word) > 2 && strings.Contains(c, word) {
			best = c
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}
