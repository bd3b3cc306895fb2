package cpu

// Guess is what a core expects of a branch: a two-bit saturating counter. Its zero
// value expects the branch not to be taken.
type Guess uint8

// Next tells which way the branch went, and reports whether that was expected.
func (g *Guess) Next(taken bool) bool {
	right := *g >= 2 == taken
	switch {
	case taken && *g < 3:
		*g++
	case !taken && *g > 0:
		*g--
	}
	return right
}
