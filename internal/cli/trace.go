package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gdisim/plots"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
)

func newTrace() *cobra.Command {
	var out, at, format string
	var dump bool
	cmd := &cobra.Command{
		Use:   "trace RESULT...",
		Short: "Write the operations that results keep as a trace for Perfetto, or dump them",
		Long: `Write the operations that results keep as a trace for Perfetto, or dump them.

A result (run --format json) keeps, for each metric, the operations at p50, p99
and max. All operations of a run are written by run --trace FILE.

The trace is in Chrome's Trace Event format. With --dump, the times of every
span are written instead, and when the operation lay in which queue; with --at,
also what the queues held at that time of the operation.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("trace needs a RESULT (run --format json)")
			}
			when := sim.Time(-1)
			switch {
			case !dump && (at != "" || cmd.Flags().Changed("format")):
				return errors.New("--at and --format belong to --dump")
			case format != "text" && format != "json":
				return fmt.Errorf("unknown --format %q (want text, json)", format)
			case at != "":
				d, err := time.ParseDuration(at)
				if err != nil || d < 0 {
					return fmt.Errorf("--at %q: want a time such as 1.5us", at)
				}
				when = sim.Time(d) * sim.Time(sim.Nanosecond)
			}
			rs, err := readResults(args)
			if err != nil {
				return err
			}
			return writeFile(cmd, out, func(w io.Writer) error {
				if dump {
					return plots.DumpGraphs(w, rs, format == "json", when)
				}
				return plots.TraceGraphs(w, rs)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&out, "output", "o", "", "write to this file instead of standard output")
	fs.BoolVar(&dump, "dump", false, "write times and queue entries, not a trace")
	fs.StringVar(&format, "format", "text", "of a dump: text, or json (one object a line)")
	fs.StringVar(&at, "at", "", "of a dump: what the queues held at this `TIME`, as 1.5us")
	return cmd
}

// recording is the file of run --trace. Its name's ending decides what it is.
type recording struct {
	out   *output
	run   func(name string) result.TraceSink
	close func() error
}

// openRecording prepares --trace FILE; nil without one.
func openRecording(name string) (*recording, error) {
	if name == "" {
		return nil, nil
	}
	endings := []string{".json", ".jsonl", ".txt"}
	ext := strings.ToLower(filepath.Ext(name))
	if !slices.Contains(endings, ext) {
		return nil, fmt.Errorf("--trace %s: want a name that ends in .json (for Perfetto), .txt or .jsonl (dumps)", name)
	}
	out, err := openOutput(io.Discard, name)
	if err != nil {
		return nil, errors.New(strings.Replace(err.Error(), "-o ", "--trace ", 1))
	}
	r := &recording{out: out}
	if ext == ".json" {
		t := plots.NewTrace(out.w)
		r.run = func(name string) result.TraceSink { return t.Run(name) }
		r.close = t.Close
	} else {
		d := plots.NewDump(out.w, ext == ".jsonl", -1)
		r.run = func(name string) result.TraceSink { return d.Run(name) }
		r.close = d.Close
	}
	return r, nil
}

// sink names a run by its point, if there is more than one, path and pass.
func (r *recording) sink(s *scenarios.Scenario) func(point int, path, pass string) result.TraceSink {
	points := s.Points()
	return func(point int, path, pass string) result.TraceSink {
		name := path + " " + pass
		if len(points) > 1 {
			var at []result.Setting
			for _, a := range points[point].At {
				at = append(at, result.Setting{Key: a.Key, Value: a.Value})
			}
			name = settings(at) + " " + name
		}
		return r.run(name)
	}
}

// commit ends the trace and makes the file appear.
func (r *recording) commit() error {
	if err := r.close(); err != nil {
		return err
	}
	return r.out.commit()
}
