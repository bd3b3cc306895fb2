package sim

import "math/rand/v2"

// Trigger decides, chance by chance, whether something strikes: within a window
// of time, at a rate, so many times.
type Trigger struct {
	From, Until Time    // the window; Until 0: it never closes
	Rate        float64 // share of the chances that strike; 1: all
	Count       int     // strikes at most; 0: any number
	Rand        *rand.Rand
	Struck      int
	Chances     int // while it was open
}

// Strikes reports whether this chance, now, is one.
func (t *Trigger) Strikes(now Time) bool {
	if !t.Open(now) {
		return false
	}
	t.Chances++
	if t.Rate < 1 && t.Rand.Float64() >= t.Rate {
		return false
	}
	t.Struck++
	return true
}

// Open reports whether the trigger may strike now.
func (t *Trigger) Open(now Time) bool {
	return now >= t.From && (t.Until == 0 || now < t.Until) && (t.Count == 0 || t.Struck < t.Count)
}

// Triggers are several of the same; none never strikes and costs nothing.
type Triggers []*Trigger

// Strikes reports whether any of them does.
func (ts Triggers) Strikes(now Time) bool {
	for _, t := range ts {
		if t.Strikes(now) {
			return true
		}
	}
	return false
}
