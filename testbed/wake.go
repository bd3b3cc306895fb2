package testbed

import (
	"fmt"

	"gdisim/model/cpu"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// wake is a thread that sleeps and is woken, over and over; or one that yields,
// or sleeps for a time.
type wake struct {
	b       *bench
	by      string
	sleeper cpu.Sleeper
	asleep  sim.Duration
	slack   sim.Duration
	done    sim.Sink
	arg     uint32
	c       sim.Cause
	ended   sim.HandlerID
}

func (b *bench) wake() (*step, error) {
	c := b.cfg
	w := &wake{b: b, by: "futex", asleep: c.Duration("workload.asleep")}
	if c.Has("workload.by") {
		w.by = c.Enum("workload.by")
	}
	w.sleeper.Core = b.node.Core(0)
	w.sleeper.Waker = w.sleeper.Core
	title := fmt.Sprintf("sleep of %v by %s", w.asleep, w.by)
	switch w.by {
	case "nanosleep":
		w.slack = c.Duration("host.proxy.timer_slack")
	case "yield":
		title = "sched_yield to another thread and back"
	default:
		w.sleeper.By, _ = cpu.ParseMeans(w.by)
		where := c.Enum("workload.cpu")
		if where == "other" {
			w.sleeper.Waker = b.node.Core(1)
		}
		title = fmt.Sprintf("%s wake-up after %v asleep, waker on %s core", w.by, w.asleep, map[string]string{"same": "the same", "other": "another"}[where])
	}
	w.ended = b.run.Eng.Register(w)
	return &step{title: title, metric: stage.Latency, agents: []workload.Operation{w}, cores: 1}, nil
}

// Prepare is the time asleep before the waker calls.
func (w *wake) Prepare() sim.Duration {
	if w.by == "yield" || w.by == "nanosleep" {
		return 0
	}
	return w.asleep
}

// Begin wakes the sleeper, or calls what the thread itself waits in.
func (w *wake) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	now, core := w.b.run.Eng.Now(), w.sleeper.Core
	var end sim.Time
	switch w.by {
	case "nanosleep":
		end = core.Sleep(now, w.asleep+w.slack)
		c = w.b.run.Rec.Span(c, w.b.kind(stage.CPUWait), now, end, 0)
	case "yield":
		end = core.Yielded(now)
		c = w.b.run.Rec.Span(c, w.b.kind(stage.CPUWait), now, end, 0)
	default:
		var runnable sim.Time
		runnable, end = w.sleeper.Wake(now.Add(-w.asleep), now)
		c = w.b.run.Rec.Span(c, w.b.kind(stage.CPUPublish), now, runnable, 0)
		c = w.b.run.Rec.Span(c, w.b.kind(stage.CPUWake), runnable, end, 0)
	}
	w.done, w.arg, w.c = done, arg, c
	w.b.run.Eng.At(end, w.ended, 0)
}

// Handle is the thread that runs again.
func (w *wake) Handle(uint32) { w.done.Done(w.arg, w.c) }
