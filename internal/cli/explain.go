package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gdisim/internal/table"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

// defaultProfile is what explain prices a stack's steps on.
const defaultProfile = "h200-cx7-ib200"

func newExplain() *cobra.Command {
	e := &explainer{}
	cmd := &cobra.Command{
		Use:   "explain [KEY|STAGE|METRIC|FINDING|STACK|PROFILE]",
		Short: "Explain a parameter, a stage, a metric, a finding, a stack or a profile",
		Long: `Explain a parameter (value, unit, source, kind, who uses it, range, default), what a
stage covers, how a metric is defined, what a finding means, or all parameters of a
stack or a profile. A key may lack its first part: gpu.sm_clock, fence. With a stack
come the steps of one put by it, as they are with what --set changes:

    gdisim explain gin-gdaki --set paths.*.completion=context --set paths.*.peers.count=8

Without an argument: the list of what can be explained.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeExplain,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Nothing is written before all was found.
			var b bytes.Buffer
			e.w = &textWriter{w: &b}
			if len(args) == 0 {
				e.index()
			} else if err := e.explain(args[0]); err != nil {
				return err
			}
			_, err := cmd.OutOrStdout().Write(b.Bytes())
			return err
		},
	}
	cmd.Flags().StringVar(&e.profile, "hardware", "", "profile (name or file) whose values are shown; all embedded ones if not given, and a stack's steps on "+defaultProfile)
	cmd.Flags().StringVar(&e.stack, "stack", "", "stack (name or file) whose values are shown; all embedded ones if not given")
	cmd.Flags().StringArrayVar(&e.sets, "set", nil, "show a stack's steps with a `KEY=VALUE`, as in a scenario's sweep (repeatable)")
	_ = cmd.RegisterFlagCompletionFunc("hardware", completeNames(scenarios.Profiles))
	_ = cmd.RegisterFlagCompletionFunc("stack", completeNames(scenarios.Stacks))
	return cmd
}

type explainer struct {
	profile, stack string
	sets           []string
	w              *textWriter
}

// topic is something that can be explained under a name.
type topic struct {
	name string
	tell func() error
}

// topics lists everything, in the order of the index. A word may stand for more
// than one: nic.tx is a stage and a key.
func (e *explainer) topics() []topic {
	var ts []topic
	for _, f := range scenarios.Fields() {
		ts = append(ts, topic{f.Key, func() error { return e.field(&f) }})
	}
	for s := stage.Stage(1); s < stage.Count; s++ {
		ts = append(ts, topic{s.String(), func() error { e.stage(s); return nil }})
	}
	for m := stage.Metric(1); m < stage.MetricCount; m++ {
		ts = append(ts, topic{m.String(), func() error { e.metric(m); return nil }})
	}
	for f := stage.Finding(1); f < stage.FindingCount; f++ {
		ts = append(ts, topic{f.String(), func() error { e.para("finding ", f.String(), f.Text()+"; avoid: "+f.Avoid()); return nil }})
	}
	for _, s := range scenarios.Stacks() {
		ts = append(ts, topic{s.Name, func() error { return e.stackTopic(s) }})
	}
	for _, p := range scenarios.Profiles() {
		ts = append(ts, topic{p.Name, func() error { return e.params("profile ", p, scenarios.ProfileParams) }})
	}
	return ts
}

func (e *explainer) explain(word string) error {
	ts := e.topics()
	var hits []topic
	for _, t := range ts {
		if t.name == canonical(word) {
			hits = append(hits, t)
		}
	}
	// hardware., path. and the other first parts may be left out.
	for _, t := range ts {
		if _, rest, _ := strings.Cut(t.name, "."); rest == word && isField(t.name) {
			hits = append(hits, t)
		}
	}
	if len(hits) == 0 {
		var known []string
		for _, t := range ts {
			known = append(known, t.name)
			if _, rest, ok := strings.Cut(t.name, "."); ok && isField(t.name) {
				known = append(known, rest)
			}
		}
		if like := containing(word, known); like != "" {
			return fmt.Errorf("nothing to explain under %q; these have it in their name: %s", word, like)
		}
		return fmt.Errorf("nothing to explain under %q%s", word, didYouMean(word, known))
	}
	for i, t := range hits {
		if i > 0 {
			e.w.line("")
		}
		if err := t.tell(); err != nil {
			return err
		}
	}
	return nil
}

// containing lists the topics, at most a dozen, that have word in their name.
func containing(word string, known []string) string {
	const most = 12
	var like []string
	for _, k := range known {
		if strings.Contains(k, word) && !slices.Contains(like, k) {
			like = append(like, k)
		}
	}
	if len(like) > most {
		like = append(like[:most], "...")
	}
	return strings.Join(like, ", ")
}

// canonical maps the spellings of scenarios to a topic's name: a path's key in a
// sweep, a metric with a statistic.
func canonical(word string) string {
	if rest, ok := strings.CutPrefix(word, "paths."); ok {
		if _, key, ok := strings.Cut(rest, "."); ok {
			return "path." + key
		}
	}
	if _, ok := scenarios.FieldOf(word); ok {
		return word
	}
	if n, err := result.ParseName(word); err == nil {
		if n.Stage != stage.None {
			return n.Stage.String()
		}
		return n.Metric.String()
	}
	return word
}

func isField(name string) bool { _, ok := scenarios.FieldOf(name); return ok }

func (e *explainer) para(kind, name, text string) {
	e.w.line(kind + name)
	e.w.para("  ", text)
}

func (e *explainer) stage(s stage.Stage) {
	e.para("stage ", s.String(), s.Text())
	e.w.line("  lane: " + s.Lane().String())
}

func (e *explainer) metric(m stage.Metric) {
	e.para("metric ", m.String(), m.Text())
	e.w.para("  ", "kinds: "+strings.Join(scenarios.MetricKinds(m), ", "))
	if !m.IsTime() {
		e.w.line("  unit: " + m.Unit())
		return
	}
	e.w.line("  unit: time; with .p50 (default) .p99 .p99.9 .max .min .mean, by nearest rank")
	e.w.para("  ", fmt.Sprintf("stages: %s/STAGE, and its fraction %s/STAGE.share", m, m))
}

func (e *explainer) field(f *scenarios.Field) error {
	e.para("key ", f.Key, f.Text)
	e.fact("notation", kindText(f))
	if f.Kind == scenarios.Enum {
		e.fact("words", strings.Join(f.Enum, ", "))
	}
	if len(f.Later) > 0 {
		e.fact("not yet", strings.Join(f.Later, ", "))
	}
	switch {
	case f.Min != "" && f.Max != "":
		e.fact("range", f.Min+" to "+f.Max)
	case f.Min != "":
		e.fact("range", "from "+f.Min)
	case f.Max != "":
		e.fact("range", "up to "+f.Max)
	}
	switch {
	case f.Default != "":
		e.fact("default", f.Default)
	case f.Optional:
		e.fact("default", "none; it may be absent")
	case f.Section() == "hardware":
		e.fact("default", "none; the profile must give it")
	case f.Section() == "path":
		e.fact("default", "none; the stack must give it")
	default:
		e.fact("default", "none; the scenario must give it")
	}
	e.fact("used by", f.Used)
	return e.values(f)
}

func (e *explainer) fact(label, text string) {
	if text != "" {
		e.w.para(fmt.Sprintf("  %-10s", label+":"), text)
	}
}

func kindText(f *scenarios.Field) string {
	s := f.Kind.String()
	if f.Alt != 0 {
		s += ", or " + f.Alt.String()
	}
	if f.Dist {
		s += ", or a distribution"
	}
	if f.List {
		s += ", or a list of them"
	}
	return s
}

// values shows what profiles and stacks give the field, sources in full; those
// that give it alike together.
func (e *explainer) values(f *scenarios.Field) error {
	one, all, params := e.profile, scenarios.Profiles, scenarios.ProfileParams
	switch f.Section() {
	case "hardware":
	case "path":
		one, all, params = e.stack, scenarios.Stacks, scenarios.StackParams
	default:
		return nil
	}
	names := []string{one}
	if one == "" {
		names = infoNames(all())
	}
	var order []scenarios.Param
	in := map[scenarios.Param][]string{}
	for _, name := range names {
		ps, err := params(name)
		if err != nil {
			return err
		}
		for _, p := range ps {
			if p.Key != f.Key {
				continue
			}
			p.Owner = "" // the same by two files is the same
			if in[p] == nil {
				order = append(order, p)
			}
			in[p] = append(in[p], name)
		}
	}
	for _, p := range order {
		e.w.line("")
		e.w.para("  ", "in "+strings.Join(in[p], ", "))
		e.fact("value", p.Value)
		e.fact("unit", p.Unit)
		e.fact("kind", p.Kind)
		e.fact("source", p.Source)
	}
	return nil
}

// stackTopic shows a stack's steps, as its code takes them, and its keys.
func (e *explainer) stackTopic(i scenarios.Info) error {
	if err := e.params("stack ", i, scenarios.StackParams); err != nil {
		return err
	}
	on := cmp.Or(e.profile, defaultProfile)
	src := fmt.Sprintf("gdisim: v1\nhardware: %s\npaths: [%s]\nworkload: {kind: put, bytes: 8B}\n", on, i.Name)
	s, err := scenarios.Parse("explain", []byte(src))
	if err != nil {
		return err
	}
	if err := s.Apply(e.sets); err != nil {
		return err
	}
	steps, err := testbed.Steps(s, 0)
	if err != nil {
		return err
	}
	e.w.line("")
	e.w.para("  ", "Steps of one 8-byte put on "+strings.Join(append([]string{on}, e.sets...), ", ")+", with a warm L1 and a cold worker; + is what a cold L1 adds; no price: it waits for others or for PCIe")
	who := ""
	for _, st := range steps {
		if st.Who != who {
			who = st.Who
			e.w.line("  " + pad(who, 18) + "      ns         +  step")
		}
		price := func(d sim.Duration) string {
			if d == 0 {
				return ""
			}
			return fixed(int64(d), int64(sim.Nanosecond), 1)
		}
		e.w.para(fmt.Sprintf("    %-16s %7s  %8s  ", st.Stage, price(st.Price), price(st.Cold)), st.What+": "+st.Why)
	}
	return nil
}

// params shows all of a stack or a profile.
func (e *explainer) params(kind string, i scenarios.Info, read func(string) ([]scenarios.Param, error)) error {
	ps, err := read(i.Name)
	if err != nil {
		return err
	}
	e.para(kind, i.Name, i.Title)
	e.w.line("")
	t := table.Table{Columns: []table.Column{{Head: "key"}, {Head: "value"}, {Head: "kind"}, {Head: "source", Wrap: true}}}
	for _, p := range ps {
		t.Rows = append(t.Rows, []string{p.Key, p.Value, p.Kind, p.Source})
	}
	e.w.indented(&t)
	return nil
}

func (t *textWriter) indented(tab *table.Table) {
	if t.err == nil {
		_, t.err = tab.Text(t.w, textWidth, "  ")
	}
}

// index lists what can be explained.
func (e *explainer) index() {
	section := func(title string, names []string) {
		e.w.line(title)
		e.w.put(table.Wrap(strings.Join(names, "  "), textWidth, "  ", "  "))
		e.w.line("")
	}
	keys := map[string][]string{}
	var order []string
	for _, f := range scenarios.Fields() {
		s, rest, _ := strings.Cut(f.Key, ".")
		if !slices.Contains(order, s) {
			order = append(order, s)
		}
		keys[s] = append(keys[s], rest)
	}
	for _, s := range order {
		section("keys of "+s, keys[s])
	}
	section("stages", words(stage.Stage(1), stage.Count))
	section("metrics", words(stage.Metric(1), stage.MetricCount))
	section("findings", words(stage.Finding(1), stage.FindingCount))
	section("stacks", infoNames(scenarios.Stacks()))
	section("profiles", infoNames(scenarios.Profiles()))
}

// words are the names of an enumeration.
func words[T interface {
	~uint8
	fmt.Stringer
}](from, to T) []string {
	var out []string
	for x := from; x < to; x++ {
		out = append(out, x.String())
	}
	return out
}

func infoNames(infos []scenarios.Info) []string {
	var out []string
	for _, i := range infos {
		out = append(out, i.Name)
	}
	return out
}

func completeExplain(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, t := range (&explainer{}).topics() {
		out = append(out, t.name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
