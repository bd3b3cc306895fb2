package testbed

import (
	"fmt"
	"slices"
	"strings"

	"gdisim/model/nic"
	"gdisim/model/path"
	"gdisim/sim"
	"gdisim/stage"
)

// faults are the scenario's faults as the models take them.
type faults struct {
	lose, down sim.Triggers
	nic        nic.Faults
	path       path.Faults
	retry      nic.Retry
	triggers   []namedTrigger
}

// namedTrigger is a fault's trigger in one run.
type namedTrigger struct {
	*sim.Trigger
	name  string
	lasts bool // a strike lasts as long as the window
	warm  int  // its strikes that were over before measuring began
}

// strikes are a fault's in the path's runs.
type strikes struct{ all, warm, chances int }

// faults reads the path's faults; each draws from a stream of its own name.
func (r *runner) faults(streams sim.Streams) *faults {
	f := &faults{}
	for _, x := range r.cfg.Faults() {
		t := &sim.Trigger{From: sim.Time(x.At), Rate: x.Rate, Count: x.Count}
		if x.For > 0 {
			t.Until = t.From.Add(x.For)
		}
		if x.Rate < 1 {
			t.Rand = streams.Stream("faults." + x.Name)
		}
		var into *sim.Triggers
		switch x.Kind {
		case "drop-fence":
			into = &f.path.DropFence
		case "reorder":
			into = &f.path.Reorder
		case "skip-doorbell":
			into = &f.path.SkipDoorbell
		case "two-producers":
			f.path.TwoProducers = r.cfg.Enum("path.protocol") == "gpu-doorbell" && r.cfg.Enum("path.post") != "bare"
			into = &f.path.Producers
		case "slow-reader":
			into = &f.path.Stalls
		case "loss":
			into = &f.lose
		case "link-down":
			into = &f.down
		case "cqe-error":
			into = &f.nic.CQEError
		case "wrong-rkey":
			into = &f.nic.WrongRKey
		case "unregistered":
			into = &f.nic.Unregistered
		case "no-recv":
			into = &f.nic.NoReceive
		default:
			panic("testbed: fault " + x.Kind)
		}
		*into = append(*into, t)
		f.triggers = append(f.triggers, namedTrigger{Trigger: t, name: x.Name, lasts: x.Kind == "slow-reader"})
	}
	if len(f.lose)+len(f.down)+len(f.nic.WrongRKey)+len(f.nic.NoReceive) > 0 || r.cfg.Enum("workload.registration") == "on-demand" {
		f.retry = nic.Retry{On: true, Count: r.cfg.Count("path.qp.retry_cnt"), RNR: r.cfg.Count("path.qp.rnr_retry"), RNRWait: r.cfg.Duration("path.qp.min_rnr_timer")}
		if n := r.cfg.Count("path.qp.timeout"); n > 0 {
			f.retry.Timeout = 4096 * sim.Nanosecond << n
		}
	}
	return f
}

// measure marks the strikes that are over as those of the warm-up.
func (f *faults) measure(now sim.Time) {
	for i := range f.triggers {
		if t := &f.triggers[i]; !t.lasts || !t.Open(now) {
			t.warm = t.Struck
		}
	}
}

// blame names the faults that have struck, as the end of a cause.
func (f *faults) blame() string {
	var b strings.Builder
	for _, t := range f.triggers {
		if t.Struck > 0 {
			fmt.Fprintf(&b, "; fault %s struck %s", t.name, times(t.Struck))
		}
	}
	return b.String()
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// strikes counts the strikes of a run.
func (r *runner) strikes(f *faults) {
	if r.struck == nil {
		r.struck = map[string]strikes{}
	}
	for _, t := range f.triggers {
		s := r.struck[t.name]
		r.struck[t.name] = strikes{all: s.all + t.Struck, warm: s.warm + t.warm, chances: s.chances + t.Chances}
	}
}

// spared tells of the faults that never struck what is measured. A run that did
// not finish names those that struck.
func (r *runner) spared() {
	for _, x := range r.cfg.Faults() {
		var why string
		switch s := r.struck[x.Name]; {
		case s.all > s.warm, s.all > 0 && r.out.Err != "":
			continue
		case s.all == 1:
			why = "struck once, before the measured operations began"
		case s.all > 0:
			why = fmt.Sprintf("struck %s, all before the measured operations began", times(s.all))
		case s.chances > 0:
			why = "never struck: it had chances and none was drawn"
		default:
			why = "never struck: the path gave it no chance, or none in its time"
		}
		r.note(fmt.Sprintf("%s: fault %s %s", r.name, x.Name, why))
	}
}

// waiter is a thread that can say what it waits for.
type waiter struct {
	who    string
	thread interface{ Waits() string }
}

// maxWaiters bounds how many are named.
const maxWaiters = 4

// stuck says why a run did not finish, and adds what it finds: the queues in
// error, those that nobody rings, and who waits for what.
func (r *runner) stuck(m *machine, open, agents int, sides []side, find *findings) string {
	now := m.env.Eng.Now()
	dry := m.env.Eng.Pending() == 0
	var parts []string
	for _, n := range m.nics {
		for _, f := range n.Failed() {
			parts = append(parts, fmt.Sprintf("queue %d of node %d is in error since %v (%s, WQE %d)", f.Queue, n.Node(), f.At, f.Why, f.WQE))
		}
		for _, q := range n.Unrung() {
			find.add(now, stage.Hazard{
				Finding: stage.LostDoorbell, Grade: stage.Occurred, Node: n.Node(), Queue: q.ID(), Index: int(q.Rung()),
				Cause: fmt.Sprintf("WQEs wait in a send queue, and no doorbell came for them (%d came in all)", n.Doorbells),
			})
		}
	}
	for i, s := range sides {
		if p, ok := s.(interface{ Unread() []int }); ok {
			for _, q := range p.Unread() {
				find.add(now, stage.Hazard{Finding: stage.LostDoorbell, Grade: stage.Occurred, Node: i, Queue: q, Index: -1, Cause: "descriptors wait in a ring that no proxy thread reads"})
			}
		}
	}
	var waits []string
	for _, w := range m.waiters {
		if s := w.thread.Waits(); s != "" {
			waits = append(waits, w.who+" for "+s)
		}
	}
	if n := len(waits); n > maxWaiters {
		waits = append(waits[:maxWaiters], fmt.Sprintf("and %d more", n-maxWaiters))
	}
	who := fmt.Sprintf("%d of %d initiators wait (%d doorbells rung)", open, agents, m.nics[0].Doorbells)
	end := fmt.Sprintf("gave up at %v: %s and nothing that they need has happened for long%s", now, who, m.faults.blame())
	if dry {
		end = fmt.Sprintf("deadlock at %v: %s and no event is left that could wake them", now, who)
		cause := "initiators wait and nothing is left that could wake them"
		if len(parts) > 0 {
			cause = "initiators wait for completions that a queue in error does not bring"
		}
		find.add(now, stage.Hazard{Finding: stage.Deadlock, Grade: stage.Occurred, Queue: -1, Cause: cause + m.faults.blame()})
	}
	return strings.Join(slices.Concat([]string{end}, parts, waits), "; ")
}
