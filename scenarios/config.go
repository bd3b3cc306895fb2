package scenarios

import (
	"maps"
	"slices"
	"strings"

	"gdisim/sim"
)

// Param is a parameter that was read: its value as written and where it is from.
type Param struct {
	Key, Value, Unit string
	Source           string // a citation, "scenario.yaml:12", "--set" or "default"
	Kind             string // published, measured, derived, assumed, scenario or default
	// Owner is the profile or stack whose file gives the value (profile:nic-cx7),
	// empty for a scenario's or a default; Min and Max are the bounds that it
	// states, both empty where it states none.
	Owner, Min, Max string
}

func (v value) param(key string) Param {
	p := Param{Key: key, Value: v.text, Unit: v.kind.Unit(), Source: v.source, Kind: v.origin, Owner: v.owner}
	if v.low != nil {
		p.Min, p.Max = v.low.text, v.high.text
	}
	return p
}

// Param returns the parameter as Used does, without counting it as read; ok is
// false where it has no value.
func (c *Config) Param(key string) (p Param, ok bool) {
	v, ok := c.find(key)
	return v.param(key), ok
}

// CostSpec is work of a clocked unit: cycles, and a part that no clock changes.
type CostSpec struct {
	MilliCycles int64
	Fixed       sim.Delay
}

// Config holds the value of every field for one point and one path. Its getters
// panic for a key that is not in the field table, has another kind or has no
// value: all three are mistakes of the caller, since the loader has checked the
// scenario. A Config is for one goroutine.
type Config struct {
	layers []map[string]value // the first that has the key wins
	used   map[string]bool
	faults []faultConfig
}

func (c *Config) find(key string) (value, bool) {
	for _, m := range c.layers {
		if v, ok := m[key]; ok {
			return v, true
		}
	}
	v, ok := fieldTable().defaults[key]
	return v, ok
}

// Has reports whether the field has a value: set, or by default. Only optional
// fields may have none. It counts as reading the field.
func (c *Config) Has(key string) bool {
	if fieldTable().byKey[key] == nil {
		panic("scenarios: no field " + key)
	}
	_, ok := c.find(key)
	if ok {
		c.used[key] = true
	}
	return ok
}

func (c *Config) get(key string, k Kind) value {
	f := fieldTable().byKey[key]
	if f == nil {
		panic("scenarios: no field " + key)
	}
	if f.Kind != k && f.Alt != k {
		panic("scenarios: " + key + " is no " + k.String())
	}
	v, ok := c.find(key)
	if !ok {
		panic("scenarios: " + key + " has no value")
	}
	c.used[key] = true
	return v
}

// Duration returns the value of a Duration field that cannot be a distribution.
func (c *Config) Duration(key string) sim.Duration {
	v := c.get(key, Duration)
	if fieldTable().byKey[key].Dist {
		panic("scenarios: " + key + " may be a distribution")
	}
	return sim.Duration(v.n)
}

// Delay returns the value of a Duration field.
func (c *Config) Delay(key string) sim.Delay {
	v := c.get(key, Duration)
	if v.dist != nil {
		return *v.dist
	}
	return sim.Fixed(sim.Duration(v.n))
}

// Cost returns the value of a Cost field.
func (c *Config) Cost(key string) CostSpec {
	v := c.get(key, Cost)
	if v.dist != nil {
		return CostSpec{Fixed: *v.dist}
	}
	return CostSpec{MilliCycles: v.n, Fixed: sim.Fixed(sim.Duration(v.fixed))}
}

// Bytes returns the value of a Bytes field.
func (c *Config) Bytes(key string) int64 { return c.get(key, Bytes).n }

// Rate returns the value of a Rate field in bits per second.
func (c *Config) Rate(key string) int64 { return c.get(key, Rate).n }

// Hz returns the value of a Frequency field, or 0 where the field has a word
// instead (host.clock: cold).
func (c *Config) Hz(key string) int64 {
	if v := c.get(key, Frequency); v.kind == Frequency {
		return v.n
	}
	return 0
}

// Ratio returns the value of a Ratio field: 0.3 for 30%.
func (c *Config) Ratio(key string) float64 { return float64(c.get(key, Ratio).n) / 1e9 }

// Count returns the value of a Count field.
func (c *Config) Count(key string) int { return int(c.get(key, Count).n) }

// Int returns the value of an Integer field.
func (c *Config) Int(key string) int { return int(c.get(key, Integer).n) }

// Enum returns the word of an Enum field, or "" where the field has its other
// notation instead (host.clock: 2.5GHz).
func (c *Config) Enum(key string) string {
	if v := c.get(key, Enum); v.kind == Enum {
		return v.text
	}
	return ""
}

// Bool returns the value of a Bool field.
func (c *Config) Bool(key string) bool { return c.get(key, Bool).n != 0 }

// Link returns the value of a Link field.
func (c *Config) Link(key string) LinkSpec { return c.get(key, Link).link }

// Text returns the value of a Text field.
func (c *Config) Text(key string) string { return c.get(key, Text).text }

// Used returns the parameters that were read so far, in key order, those of
// faults last.
func (c *Config) Used() []Param {
	var ps []Param
	for _, key := range slices.Sorted(maps.Keys(c.used)) {
		v, _ := c.find(key)
		ps = append(ps, v.param(key))
	}
	for i := range c.faults {
		f := &c.faults[i]
		for _, p := range f.cfg.Used() {
			p.Key = faultScope + f.name + strings.TrimPrefix(p.Key, "fault")
			ps = append(ps, p)
		}
	}
	return ps
}

// Ignored returns the keys that the scenario sets itself and nothing has read so
// far, in order: what a run did not obey.
func (c *Config) Ignored() []string {
	seen := map[string]bool{}
	for _, m := range c.layers {
		for key, v := range m {
			if v.origin == "scenario" && !c.used[key] {
				seen[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
