package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"gdisim/hw/mlx5"
	"gdisim/internal/table"
)

func newSelftest() *cobra.Command {
	var backend, poster string
	var gpu int
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Try the GPU doorbell against the image of a queue, without a NIC",
		Long: `Let the poster of the backend gpu-doorbell build WQEs, write the record, ring and
poll on the image of a mlx5 queue in memory. The NIC there is a thread that holds
every WQE against what it should be when its doorbell arrives. Twice on a GPU: on
queues in pinned host memory with a CPU thread as NIC, and on queues in GPU
memory, which no CPU thread can read, with a second GPU thread as NIC.

Waits are those for room in the queue; post is the median from the call until the
doorbell's store was issued, with no NIC's page behind it.

  --poster cpu    the same program, compiled for a CPU thread; needs no GPU

What passes here has met no HCA. Exit code 3: no GPU here.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if backend != "gpu-doorbell" {
				return fmt.Errorf("--backend %q has no self-test (want gpu-doorbell)", backend)
			}
			ps, done, err := selftestPlaces(poster, gpu)
			if err != nil {
				return err
			}
			defer done()
			return selftest(cmd.OutOrStdout(), ps)
		},
	}
	cmd.Flags().StringVar(&backend, "backend", "gpu-doorbell", "gpu-doorbell")
	cmd.Flags().StringVar(&poster, "poster", "gpu", "gpu or cpu: what builds and rings")
	cmd.Flags().IntVar(&gpu, "gpu", 0, "which GPU")
	return cmd
}

// testPlace is where a case of the self-test runs.
type testPlace struct {
	name string
	run  func(*mlx5.Case) (*mlx5.Outcome, error)
	can  func(*mlx5.Case) bool
}

func selftestPlaces(poster string, gpu int) ([]testPlace, func(), error) {
	all := func(*mlx5.Case) bool { return true }
	switch poster {
	case "cpu":
		return []testPlace{{"a CPU thread posts, another is the NIC", (*mlx5.Case).OnCPU, all}}, func() {}, nil
	case "gpu":
		g, err := mlx5.OpenGPU(gpu)
		if errors.Is(err, mlx5.ErrNoGPU) {
			return nil, nil, &absent{err}
		}
		if err != nil {
			return nil, nil, &failure{err}
		}
		return []testPlace{
			{g.Name + " posts, queues and payload in pinned host memory, a CPU thread is the NIC", func(c *mlx5.Case) (*mlx5.Outcome, error) { return c.OnGPU(g, false) }, all},
			{
				g.Name + " posts, queues and payload in GPU memory, a second GPU thread is the NIC", func(c *mlx5.Case) (*mlx5.Outcome, error) { return c.OnGPU(g, true) },
				func(c *mlx5.Case) bool { return !c.CPURings },
			},
		}, g.Close, nil
	}
	return nil, nil, fmt.Errorf("unknown --poster %q (want gpu or cpu)", poster)
}

func selftest(w io.Writer, ps []testPlace) error {
	t := &textWriter{w: w}
	bad := 0
	for _, p := range ps {
		t.line(p.name)
		failed, err := p.cases(t)
		if err != nil {
			return err
		}
		bad += failed
		t.line("")
	}
	t.line("untested on hardware: no HCA has seen these WQEs")
	if t.err != nil {
		return &failure{t.err}
	}
	if bad > 0 {
		return errFailed
	}
	return nil
}

// cases runs all and writes a table of them, with what was seen below. It returns
// how many failed.
func (p *testPlace) cases(t *textWriter) (failed int, err error) {
	tab := &table.Table{Columns: []table.Column{
		{Head: "case"}, {Head: "messages", Right: true}, {Head: "doorbells", Right: true}, {Head: "seen by NIC", Right: true}, {Head: "waits", Right: true}, {Head: "post ns", Right: true}, {Head: "verdict"},
	}}
	var notes []string
	for _, c := range mlx5.Cases() {
		if !p.can(&c) {
			continue
		}
		row, verdict, note := []string{c.Name, "-", "-", "-", "-", "-"}, "ok", ""
		o, err := p.run(&c)
		if errors.Is(err, mlx5.ErrNoGPU) {
			return failed, &absent{err}
		}
		if err == nil {
			row = []string{c.Name, strconv.Itoa(o.Posted), strconv.Itoa(o.Rings), strconv.Itoa(o.Seen), strconv.Itoa(o.Full), "-"}
			if n := len(o.Issue); n > 0 {
				slices.Sort(o.Issue)
				row[5] = strconv.FormatInt(o.Issue[(n-1)/2], 10)
			}
			err = c.Verify(o)
		}
		switch {
		case err != nil:
			verdict, note = "FAILED", err.Error()
			failed++
		case c.Planted():
			verdict, note = "caught", o.String()
		case o.Fault != mlx5.NoFault:
			verdict, note = "seen", fmt.Sprintf("%d faults, the first: %v", o.Faults, o)
		case o.Why == mlx5.TimedOut:
			note = "the poster gave up by itself"
		case o.Why == mlx5.WCError:
			note = fmt.Sprintf("%v, vendor error %#x, at WQE %#x after %d completed", o.Syndrome, o.Vendor, o.WQECounter, o.Completed)
		}
		tab.Rows = append(tab.Rows, append(row, verdict))
		if note != "" {
			notes = append(notes, table.Wrap(note, textWidth, "  "+c.Name+": ", "    "))
		}
		if errors.Is(err, mlx5.ErrHang) {
			break // what it holds cannot be used again
		}
	}
	if t.err == nil {
		_, t.err = tab.Text(t.w, textWidth, "  ")
	}
	for _, n := range notes {
		t.put(n)
	}
	return failed, nil
}
