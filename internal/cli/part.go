package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gdisim/check"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/testbed"
)

// shard is a flag's value that says what it wants.
type shard testbed.Shard

func (s *shard) String() string {
	if s.N == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.K, s.N)
}

// Type is what the help calls it.
func (s *shard) Type() string { return "K/N" }

// Set takes K/N, with K from 0 and below N.
func (s *shard) Set(text string) error {
	a, b, _ := strings.Cut(text, "/")
	k, errK := strconv.Atoi(a)
	n, errN := strconv.Atoi(b)
	switch {
	case errK != nil || errN != nil || n < 1:
		return errors.New("want K/N, such as 0/4")
	case k < 0 || k >= n:
		return fmt.Errorf("shards count from 0 (want 0/%d to %d/%d)", n, n-1, n)
	}
	*s = shard{k, n}
	return nil
}

// partial checks the flags of runs that do not do the whole, and reads the part
// that --resume goes on from; or the whole, where that is there already.
func (f *runFlags) partial(s *scenarios.Scenario, o *testbed.Options) (whole *result.Result, err error) {
	if err := f.partialFlags(); err != nil || !f.resume {
		return nil, err
	}
	src, err := os.ReadFile(f.out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fileError(err)
	}
	r, err := result.Decode(bytes.NewReader(src))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--resume: %s: %w", f.out, err)
	case r.Part == nil && (r.Partial || r.Backend != "sim"):
		return nil, fmt.Errorf("--resume: %s: is no sweep's", f.out)
	case r.Tool != tool():
		return nil, fmt.Errorf("--resume: %s: by %s, this is %s", f.out, r.Tool, tool())
	case r.Part == nil && !wholeOf(s, o, r), r.Part != nil && r.Part.Of != testbed.Digest(s, *o):
		return nil, fmt.Errorf("--resume: %s: of another sweep: the scenario, what it includes, --set, --seed or --no-breakdown differ", f.out)
	case r.Part == nil && f.shard.N > 1:
		return nil, fmt.Errorf("--resume: %s: is the whole, and no part %s of it", f.out, &f.shard)
	case r.Part == nil:
		return r, nil
	}
	for _, p := range r.Points {
		if !o.Shard.Has(p.Index) {
			return nil, fmt.Errorf("--resume: %s: holds point %d, which is none of shard %s", f.out, p.Index, &f.shard)
		}
	}
	o.Done = r.Points
	return nil, nil
}

// wholeOf reports whether a complete result is what a run of s gives: of the same
// text, what was set, points, and parameters, be they of a file that it names.
func wholeOf(s *scenarios.Scenario, o *testbed.Options, r *result.Result) bool {
	isSet := func(n string) bool { return strings.HasPrefix(n, "--set ") }
	only := func(notices []string) []string {
		return slices.DeleteFunc(slices.Clone(notices), func(n string) bool { return !isSet(n) })
	}
	points := s.Points()
	if s.Digest != r.Digest || s.Seed != r.Seed || len(points) != len(r.Points) || !slices.Equal(only(s.Notices), only(r.Notices)) {
		return false
	}
	for i := range r.Points {
		p := &r.Points[i]
		if p.Index != i || len(p.Paths) != len(s.Paths) || !slices.EqualFunc(p.At, points[i].At, func(a result.Setting, b scenarios.Setting) bool { return scenarios.Setting(a) == b }) {
			return false
		}
		for k := range p.Paths {
			x, cfg := &p.Paths[k], s.Config(i, k)
			if x.Name != s.Paths[k].Name || x.Stack != s.Paths[k].Stack || x.Err == "" && o.Breakdown != (len(x.Breakdowns) > 0) {
				return false
			}
			for _, param := range x.Params {
				if strings.HasPrefix(param.Key, "faults.") {
					continue // written in the scenario or set
				}
				if now, ok := cfg.Param(param.Key); !ok || now.Value != param.Value {
					return false
				}
			}
		}
	}
	return true
}

func (f *runFlags) partialFlags() error {
	switch {
	case f.shard.N == 0 && !f.resume:
		return nil
	case f.format != "json":
		return fmt.Errorf("--format %s: no part of a sweep can be read from that (want json with --shard and --resume)", f.format)
	case f.plot != "":
		return errors.New("--plot: of a part of a sweep (want gdisim plot of the merged result)")
	case !f.resume:
		return nil
	case f.out == "" || f.out == "-":
		return errors.New("--resume: without -o, the file to go on from")
	case f.trace != "":
		return errors.New("--trace: with --resume, which does not run all points again")
	}
	return nil
}

func newMerge() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "merge PART...",
		Short: "Put the parts of a sweep (sweep --shard) together",
		Long: `Put the parts of a sweep together. A PART is what sweep --shard or an interrupted
sweep wrote, or a folder of such .json files; together they must have every point
once. What comes out is what a run of the whole would have given. With the
scenario's file among the arguments, its expectations are checked.`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.merge(cmd, args) },
	}
	f.output(cmd)
	return cmd
}

func (f *runFlags) merge(cmd *cobra.Command, args []string) error {
	write, err := choose(writers(), f.format)
	if err != nil {
		return err
	}
	var s *scenarios.Scenario
	var names []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case isScenarioFile(arg) && s != nil:
			return fmt.Errorf("%s: a second scenario", arg)
		case isScenarioFile(arg):
			if s, err = load(arg); err != nil {
				return err
			}
		case err == nil && info.IsDir():
			in, err := filepath.Glob(filepath.Join(arg, "*.json"))
			if err != nil || len(in) == 0 {
				return fmt.Errorf("%s: no .json files in it", arg)
			}
			names = append(names, in...)
		default:
			names = append(names, arg)
		}
	}
	if len(names) == 0 {
		return errors.New("merge needs the parts of a sweep (sweep --shard K/N --format json -o PART.json)")
	}
	if i := slices.IndexFunc(names, func(n string) bool { return sameFile(n, f.out) }); i >= 0 {
		return fmt.Errorf("-o %s: is an input", f.out)
	}
	parts, err := readResults(names)
	if err != nil {
		return err
	}
	r, err := result.Merge(names, parts)
	if err != nil {
		return err
	}
	var verdicts []check.Verdict
	if s != nil {
		if s.Digest != r.Digest {
			return fmt.Errorf("%s: is not the scenario of these parts", s.File)
		}
		verdicts = check.Run(s, r)
	}
	var b bytes.Buffer
	if err := write(&b, r, f.view); err != nil {
		return &failure{err}
	}
	if err := f.verdicts(&b, cmd.ErrOrStderr(), verdicts); err != nil {
		return &failure{err}
	}
	if err := writeFile(cmd, f.out, func(w io.Writer) error { _, err := b.WriteTo(w); return err }); err != nil {
		return err
	}
	if failed(r) || !check.Hold(verdicts) {
		f.sayFailed(cmd.ErrOrStderr(), r)
		return errFailed
	}
	return nil
}
