package scenarios

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"gdisim/sim"
)

// Kind is the type of a field's value and with it the notation in YAML.
type Kind uint8

// The kinds. The zero Kind is none.
const (
	_         Kind = iota
	Duration       // 250ns, 1.5us, 0
	Cost           // 392cy, 392cy+27ns, 27ns: cycles of the unit's clock plus a fixed part
	Bytes          // 8B, 4KiB, 1MB
	Rate           // 400Gb/s, 50GB/s
	Frequency      // 1980MHz, 2.5GHz
	Ratio          // 30%, 1.5x
	Count          // 4
	Integer        // -5
	Enum           // a word of a list
	Bool           // true, false
	Link           // 32GT/s x16
	Text           // any string

	messageRate // 1.8Mmsg/s, in expect only
)

type unit struct {
	name string
	mult uint64 // base units
}

// kindInfo is what the loader, the schema and the reference page know of a kind.
type kindInfo struct {
	name, want, unit string
	units            []unit // largest first
	min, max         int64  // sane range in base units
	bare0            bool   // "0" needs no unit
	pattern          string // of the notation, for the schema; the loader checks more
}

const decimal = `(0|[1-9][0-9]*)(\.[0-9]+)?`

var (
	durationUnits = []unit{{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}, {"ps", 1}}

	kinds = [...]kindInfo{
		Duration: {
			name: "duration", want: "a duration such as 250ns, 1.5us or 3ms", unit: "time", units: durationUnits,
			max: 1000 * int64(sim.Second), bare0: true, pattern: `^(0|` + decimal + `(ps|ns|us|ms|s))$`,
		},
		Cost: {
			name: "cost", want: "cycles and a fixed part, such as 392cy, 392cy+27ns or 27ns", unit: "cycles+time", units: []unit{{"cy", 1000}},
			max: 1e15, bare0: true, pattern: `^(0|` + decimal + `cy(\+` + decimal + `(ps|ns|us|ms|s))?|` + decimal + `(ps|ns|us|ms|s))$`,
		},
		Bytes: {
			name: "size", want: "a size such as 8B, 4KiB or 1MiB", unit: "B", units: []unit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1}},
			max: 1 << 40, pattern: `^` + decimal + `(B|kB|KiB|MB|MiB|GB|GiB|TiB)$`,
		},
		Rate: {
			name: "rate", want: "a rate such as 400Gb/s (bits) or 50GB/s (bytes)", unit: "b/s", units: []unit{{"TB/s", 8e12}, {"Tb/s", 1e12}, {"GB/s", 8e9}, {"Gb/s", 1e9}, {"MB/s", 8e6}, {"Mb/s", 1e6}, {"kB/s", 8e3}, {"kb/s", 1e3}, {"B/s", 8}, {"b/s", 1}},
			min: 1, max: 1e15, pattern: `^` + decimal + `(|k|M|G|T)[bB]/s$`,
		},
		Frequency: {
			name: "frequency", want: "a frequency such as 1980MHz or 2.5GHz", unit: "Hz", units: []unit{{"GHz", 1e9}, {"MHz", 1e6}, {"kHz", 1e3}, {"Hz", 1}},
			min: 1e6, max: 100e9, pattern: `^` + decimal + `(Hz|kHz|MHz|GHz)$`,
		},
		Ratio: {
			name: "ratio", want: "a ratio such as 30% or 1.5x", units: []unit{{"x", 1e9}, {"%", 1e7}},
			max: 1e12, pattern: `^` + decimal + `(%|x)$`,
		},
		Count:   {name: "count", want: "a whole number such as 16", max: 1e9},
		Integer: {name: "integer", want: "a whole number such as -5", min: -1e9, max: 1e9},
		Enum:    {name: "word", want: "a word"},
		Bool:    {name: "switch", want: "true or false"},
		Link:    {name: "link", want: "a link such as 32GT/s x16", unit: "GT/s x lanes", pattern: `^(2\.5|5|8|16|32|64|128)GT/s x(1|2|4|8|16|32)$`},
		Text:    {name: "text", want: "a text"},

		messageRate: {
			name: "message rate", want: "a message rate such as 1.8Mmsg/s", units: []unit{{"Gmsg/s", 1e12}, {"Mmsg/s", 1e9}, {"kmsg/s", 1e6}, {"msg/s", 1e3}},
			max: 1e15, pattern: `^` + decimal + `(|k|M|G)msg/s$`,
		},
	}
)

// String returns the kind's name, as the reference page prints it.
func (k Kind) String() string { return kinds[k].name }

// Unit returns what values of the kind are measured in; "" for kinds that have
// no unit of their own.
func (k Kind) Unit() string { return kinds[k].unit }

// LinkSpec is a PCIe link: its signalling rate and its width.
type LinkSpec struct {
	MTps  int // megatransfers per second and lane
	Lanes int
}

// value is a parsed value of a field, and where it came from.
type value struct {
	text  string // as written, in one line
	kind  Kind
	n     int64 // ps, B, b/s, Hz, count, 0 or 1, ratio in 1e-9, cycles in 1e-3
	fixed int64 // ps of a Cost beside its cycles
	link  LinkSpec
	dist  *sim.Delay // instead of n (Duration) or of fixed (Cost)

	source, origin string // Source and Kind of a Param
	place          place  // where the scenario or a --set gives it; zero: a profile, a stack or a default does
	owner          string // file of the profile or stack that gives it
	low, high      *value // bounds that its profile or stack states
}

// identity is what makes two values the same, however they are spelled.
type identity struct {
	kind     Kind
	text     string
	n, fixed int64
	link     LinkSpec
}

func (v value) identity() identity {
	if v.kind == Enum || v.kind == Text || v.dist != nil {
		return identity{kind: v.kind, text: v.text}
	}
	return identity{kind: v.kind, n: v.n, fixed: v.fixed, link: v.link}
}

// parse reads text in the notation of kind k. The error says what is wrong in a
// few words; what was wanted is kinds[k].want.
func parse(k Kind, text string) (value, error) {
	v := value{text: text, kind: k}
	var err error
	switch k {
	case Cost:
		cycles, fixed := text, ""
		if i := strings.Index(text, "+"); i >= 0 && strings.HasSuffix(text[:i], "cy") {
			cycles, fixed = text[:i], text[i+1:]
		} else if !strings.HasSuffix(text, "cy") {
			cycles, fixed = "0", text
		}
		if v.n, err = parseUnits(Cost, cycles); err != nil {
			return v, err
		}
		if fixed != "" {
			v.fixed, err = parseUnits(Duration, fixed)
		}
	case Duration, Bytes, Rate, Frequency, Ratio, messageRate:
		v.n, err = parseUnits(k, text)
	case Count:
		v.n, err = parseCount(text)
	case Integer:
		n, convErr := strconv.Atoi(text)
		switch v.n = int64(n); {
		case convErr != nil || strconv.Itoa(n) != text:
			err = fmt.Errorf("%q is not in plain decimal", text)
		case v.n < kinds[k].min || v.n > kinds[k].max:
			err = fmt.Errorf("%s is out of range", text)
		}
	case Bool:
		switch text {
		case "true":
			v.n = 1
		case "false":
		default:
			err = fmt.Errorf("%q is neither true nor false", text)
		}
	case Link:
		v.link, err = parseLink(text)
	case Enum, Text:
		if text == "" {
			err = fmt.Errorf("is empty")
		}
	}
	return v, err
}

// parseUnits reads a plain decimal number with a unit, exactly.
func parseUnits(k Kind, text string) (int64, error) {
	info := &kinds[k]
	if text == "" {
		return 0, fmt.Errorf("is empty")
	}
	if text[0] == '-' {
		return 0, fmt.Errorf("%q is negative", text)
	}
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	num, name := text[:i], text[i:]
	if name == "" && num != "" && (num != "0" || !info.bare0) {
		return 0, fmt.Errorf("%q has no unit", text)
	}
	mult := uint64(1)
	if name != "" {
		mult = 0
		for _, u := range info.units {
			if u.name == name {
				mult = u.mult
			}
		}
		if mult == 0 || num == "" {
			return 0, fmt.Errorf("%q is not %s", text, article(info.name))
		}
	}
	n, err := scale(num, mult)
	if err != nil {
		return 0, fmt.Errorf("%q %w", text, err)
	}
	if n > info.max || n < info.min {
		return 0, fmt.Errorf("%q is out of any sane range (%s to %s)", text, format(k, info.min), format(k, info.max))
	}
	return n, nil
}

func article(name string) string {
	if strings.ContainsRune("aeiou", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}

// scale returns num x mult exactly.
func scale(num string, mult uint64) (int64, error) {
	whole, frac, dot := strings.Cut(num, ".")
	if whole == "" || dot && frac == "" || strings.Contains(frac, ".") || len(whole) > 1 && whole[0] == '0' {
		return 0, fmt.Errorf("is not a plain decimal number")
	}
	frac = strings.TrimRight(frac, "0")
	if len(whole)+len(frac) > 18 {
		return 0, fmt.Errorf("has too many digits")
	}
	digits, err := strconv.ParseUint(whole+frac, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("is not a plain decimal number")
	}
	div := uint64(1)
	for range frac {
		div *= 10
	}
	hi, lo := bits.Mul64(digits, mult)
	if hi >= div {
		return 0, fmt.Errorf("is too large")
	}
	n, rem := bits.Div64(hi, lo, div)
	if n > math.MaxInt64 {
		return 0, fmt.Errorf("is too large")
	}
	if rem != 0 {
		return 0, fmt.Errorf("is finer than the smallest unit can hold")
	}
	return int64(n), nil
}

func parseCount(text string) (int64, error) {
	if strings.HasPrefix(text, "-") {
		return 0, fmt.Errorf("%q is negative", text)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, fmt.Errorf("%q is not in plain decimal", text)
	}
	if n > uint64(kinds[Count].max) {
		return 0, fmt.Errorf("%q is out of any sane range (0 to %d)", text, kinds[Count].max)
	}
	return int64(n), nil
}

var linkRates = []string{"2.5", "5", "8", "16", "32", "64", "128"}

func parseLink(text string) (LinkSpec, error) {
	rate, lanes, ok := strings.Cut(text, "GT/s x")
	if !ok {
		return LinkSpec{}, fmt.Errorf("%q is not a link", text)
	}
	for _, r := range linkRates {
		if r == rate {
			gt, _ := strconv.ParseFloat(r, 64)
			for w := 1; w <= 32; w *= 2 {
				if strconv.Itoa(w) == lanes {
					return LinkSpec{MTps: int(gt * 1000), Lanes: w}, nil
				}
			}
			return LinkSpec{}, fmt.Errorf("%q has no width that PCIe knows (x1, x2, x4, x8, x16, x32)", text)
		}
	}
	return LinkSpec{}, fmt.Errorf("%q has no rate that PCIe knows (%s GT/s)", text, strings.Join(linkRates, ", "))
}

// format writes n base units of a kind in the largest unit that holds it exactly.
func format(k Kind, n int64) string {
	if n == 0 && kinds[k].bare0 {
		return "0"
	}
	for _, u := range kinds[k].units {
		if n != 0 && n%int64(u.mult) == 0 {
			return strconv.FormatInt(n/int64(u.mult), 10) + u.name
		}
	}
	us := kinds[k].units
	if len(us) == 0 {
		return strconv.FormatInt(n, 10)
	}
	least := us[len(us)-1]
	text := strconv.FormatInt(n/int64(least.mult), 10)
	if rest := uint64(n) % least.mult; rest != 0 { // only where the least unit is a power of ten
		text += "." + strings.TrimRight(strconv.FormatUint(least.mult+rest, 10)[1:], "0")
	}
	return text + least.name
}
