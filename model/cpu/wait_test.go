package cpu_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gdisim/model/cpu"
	"gdisim/sim"
)

func fixed(d sim.Duration) sim.Delay { return sim.Fixed(d) }

// prices are round figures, so that sums can be read.
func prices() *cpu.Config {
	return &cpu.Config{Arm: fixed(1 * us), Interrupt: fixed(20 * us), WakeUp: fixed(300 * us), Switch: fixed(4000 * us), Timer: fixed(7 * us)}
}

// TestNotice: when a thread finds what becomes visible, by how it waits. A look
// takes 10 us and sees the place after 4.
func TestNotice(t *testing.T) {
	wake := 20*us + 300*us + 4000*us // handler, wake-up, switch
	for _, tt := range []struct {
		name   string
		policy cpu.Policy
		event  sim.Duration
		found  sim.Duration
		lost   bool
	}{
		{"the look under way", cpu.Policy{}, 3 * us, 4 * us, false},
		{"the next look", cpu.Policy{}, 5 * us, 14 * us, false},
		{"many looks later", cpu.Policy{}, 101 * us, 104 * us, false},
		{"sleep-poll: the look under way", cpu.Policy{Waiting: cpu.SleepPoll, Sleep: 3 * us, Slack: 50 * us}, 3 * us, 4 * us, false},
		{"sleep-poll: after a sleep of 3+50 and the timer's 7", cpu.Policy{Waiting: cpu.SleepPoll, Sleep: 3 * us, Slack: 50 * us}, 5 * us, 74 * us, false},
		{"sleep-poll: after two", cpu.Policy{Waiting: cpu.SleepPoll, Sleep: 3 * us, Slack: 50 * us}, 75 * us, 144 * us, false},
		{"interrupt: the look under way", cpu.Policy{Waiting: cpu.Interrupt}, 3 * us, 4 * us, false},
		{"interrupt: the look behind the arming", cpu.Policy{Waiting: cpu.Interrupt}, 5 * us, 15 * us, false},
		{"interrupt: the same, up to where it sees the place", cpu.Policy{Waiting: cpu.Interrupt}, 15 * us, 15 * us, false},
		{"interrupt: behind it", cpu.Policy{Waiting: cpu.Interrupt}, 50 * us, 50*us + wake, false},
		{"interrupt: one look, between it and the arming", cpu.Policy{Waiting: cpu.Interrupt, OneLook: true}, 5 * us, 0, true},
		{"interrupt: one look, after the arming", cpu.Policy{Waiting: cpu.Interrupt, OneLook: true}, 12 * us, 12*us + wake, false},
		{"spin: still looking", cpu.Policy{Waiting: cpu.SpinThenSleep, Spin: 100 * us}, 90 * us, 94 * us, false},
		{"spin: behind the arming", cpu.Policy{Waiting: cpu.SpinThenSleep, Spin: 100 * us}, 96 * us, 105 * us, false},
		{"spin: asleep", cpu.Policy{Waiting: cpu.SpinThenSleep, Spin: 100 * us}, 120 * us, 120*us + wake, false},
		{"moderation from the event", cpu.Policy{Waiting: cpu.Interrupt, Moderation: cpu.Moderation{Time: 16 * us, FromEvent: true}}, 50 * us, 66*us + wake, false},
		{"moderation ended by the first frame", cpu.Policy{Waiting: cpu.Interrupt, Moderation: cpu.Moderation{Time: 16 * us, FromEvent: true, Frames: 1}}, 50 * us, 50*us + wake, false},
	} {
		core := cpu.NewCore(prices(), rand.New(rand.NewPCG(1, 1)), cpu.Load{})
		w := cpu.NewWaiter(core, &tt.policy)
		w.Begin(0, 10*us)
		found, moved, lost := w.Notice(at(tt.event), 4*us)
		if found != at(tt.found) || moved == tt.lost || lost != tt.lost {
			t.Errorf("%s: found at %v (moved %v, lost %v), want %v", tt.name, found, moved, lost, tt.found)
		}
		if _, moved, _ := w.Notice(at(tt.event+1), 4*us); !tt.lost && moved && tt.policy.Waiting != cpu.Poll {
			t.Errorf("%s: a second event moves it", tt.name)
		}
	}
}

// TestLostUntilTheNext: an event that raised no interrupt is found with the next
// one that does.
func TestLostUntilTheNext(t *testing.T) {
	core := cpu.NewCore(prices(), nil, cpu.Load{})
	w := cpu.NewWaiter(core, &cpu.Policy{Waiting: cpu.Interrupt, OneLook: true})
	w.Begin(0, 10*us)
	if _, _, lost := w.Notice(at(7*us), 4*us); !lost {
		t.Fatal("an event before the arming is not lost")
	}
	if found, moved, _ := w.Notice(at(900*us), 4*us); !moved || found != at(900*us+4320*us) {
		t.Errorf("the next event wakes at %v", found)
	}
	if s := w.Asleep(at(900*us), true); s < 880*us || s > 910*us+20*us {
		t.Errorf("slept %v of 900 us", s)
	}
}

// TestFramesEndModeration: the interrupt that waits leaves with its last frame.
func TestFramesEndModeration(t *testing.T) {
	core := cpu.NewCore(prices(), nil, cpu.Load{})
	w := cpu.NewWaiter(core, &cpu.Policy{Waiting: cpu.Interrupt, Moderation: cpu.Moderation{Time: 1000 * us, FromEvent: true, Frames: 3}})
	w.Begin(0, 10*us)
	wake := 20*us + 300*us + 4000*us
	for i, tt := range []struct {
		event, found sim.Duration
		moved        bool
	}{{100 * us, 1100*us + wake, true}, {200 * us, 1100*us + wake, false}, {300 * us, 300*us + wake, true}, {310 * us, 300*us + wake, false}} {
		if found, moved, _ := w.Notice(at(tt.event), 4*us); found != at(tt.found) || moved != tt.moved {
			t.Errorf("event %d: wakes at %v, moved %v, want %v, %v", i, found, moved, tt.found, tt.moved)
		}
	}
}

// rounds lets a waiter be woken n times by events that come a gap after it began
// to wait, and returns what each waited beyond.
func rounds(w *cpu.Waiter, n int, gap sim.Duration) []sim.Duration {
	var out []sim.Duration
	now := sim.Time(0)
	for range n {
		w.Begin(now, 1)
		event := now.Add(gap)
		due, _, _ := w.Notice(event, 0)
		now = w.Wake(due)
		out = append(out, now.Sub(event))
	}
	return out
}

// TestModerationMean: a free timer holds an interrupt for half its time in the
// mean, and never for more than all.
func TestModerationMean(t *testing.T) {
	core := cpu.NewCore(&cpu.Config{}, rand.New(rand.NewPCG(3, 3)), cpu.Load{})
	var sum, most sim.Duration
	const n = 20000
	for _, d := range rounds(cpu.NewWaiter(core, &cpu.Policy{Waiting: cpu.Interrupt, Moderation: cpu.Moderation{Time: 16 * us, Frames: 88}}), n, 100*us) {
		sum += d
		most = max(most, d)
	}
	if mean := float64(sum) / n / float64(us); math.Abs(mean-8) > 0.15 || most >= 16*us || most < 15900*sim.Nanosecond {
		t.Errorf("held for %.2f us in the mean, %v at most; want 8 and up to 16", mean, most)
	}
}

// TestAdaptiveModeration: the time follows the rate of the last sample.
func TestAdaptiveModeration(t *testing.T) {
	for _, tt := range []struct {
		gap  sim.Duration // between events, from one wake to the next
		hold sim.Duration
	}{
		{10 * us, 0},                     // 100,000 events a second
		{2353 * sim.Nanosecond, 64 * us}, // 424,989: about the middle of 400,000 to 450,000
		{2 * us, 128 * us},               // 500,000
	} {
		core := cpu.NewCore(&cpu.Config{}, nil, cpu.Load{})
		w := cpu.NewWaiter(core, &cpu.Policy{Waiting: cpu.Interrupt, Moderation: cpu.Moderation{
			Time: 128 * us, FromEvent: true, Adaptive: cpu.Adaptive{RateLow: 400_000, RateHigh: 450_000, Sample: 1 * ms},
		}})
		w.Begin(0, 1)
		now := sim.Time(0)
		for now < at(3*ms) {
			now = now.Add(tt.gap)
			w.Notice(now, 0)
		}
		w.Begin(now, 1)
		found, _, _ := w.Notice(now.Add(10*us), 0)
		if got := found.Sub(now.Add(10 * us)); math.Abs(float64(got-tt.hold)) > 0.02*float64(tt.hold) {
			t.Errorf("every %v: held for %v, want %v", tt.gap, got, tt.hold)
		}
	}
}

// TestIdleStates: the exit is that of the state which the governor chose by the
// last idle times: the deepest that pays off, or the deepest of all for the first. Residencies and exits are those of Sapphire Rapids.
func TestIdleStates(t *testing.T) {
	idle := []cpu.IdleState{{Residency: 1 * us, Exit: fixed(1 * us)}, {Residency: 4 * us, Exit: fixed(2 * us)}, {Residency: 800 * us, Exit: fixed(290 * us)}}
	for _, tt := range []struct {
		idle   []cpu.IdleState
		halt   cpu.IdleState
		gap    sim.Duration
		first  sim.Duration
		steady sim.Duration
	}{
		{idle, cpu.IdleState{}, 900 * us, 290 * us, 290 * us},
		{idle, cpu.IdleState{}, 100 * us, 290 * us, 2 * us},
		{idle, cpu.IdleState{}, 3 * us, 290 * us, 1 * us},
		{idle[:1], cpu.IdleState{}, 900 * us, 1 * us, 1 * us},
		{nil, cpu.IdleState{}, 900 * us, 0, 0},
		{nil, cpu.IdleState{Residency: 200 * us, Exit: fixed(32 * us)}, 199 * us, 0, 0},
		{nil, cpu.IdleState{Residency: 200 * us, Exit: fixed(32 * us)}, 201 * us, 32 * us, 32 * us},
	} {
		core := cpu.NewCore(&cpu.Config{Idle: tt.idle, Halt: tt.halt}, nil, cpu.Load{})
		got := rounds(cpu.NewWaiter(core, &cpu.Policy{Waiting: cpu.Interrupt}), 20, tt.gap)
		if got[0] != tt.first || got[19] != tt.steady {
			t.Errorf("idle for %v: exits %v, later %v, want %v, %v", tt.gap, got[0], got[19], tt.first, tt.steady)
		}
	}
	// A rival keeps the core awake.
	core := cpu.NewCore(&cpu.Config{Idle: idle}, nil, cpu.Load{Rivals: cpu.Rivals{Threads: 1, Slice: 4 * ms}})
	if got := rounds(cpu.NewWaiter(core, &cpu.Policy{Waiting: cpu.Interrupt}), 2, 900*us); got[0] != 0 || got[1] != 0 {
		t.Errorf("beside a rival it exits in %v", got)
	}
}

// TestGovernorLeavesOutliersOut: one long idle time among seven short ones does
// not make the next one look long.
func TestGovernorLeavesOutliersOut(t *testing.T) {
	idle := []cpu.IdleState{{Residency: 1 * us, Exit: fixed(1 * us)}, {Residency: 600 * us, Exit: fixed(170 * us)}}
	core := cpu.NewCore(&cpu.Config{Idle: idle}, nil, cpu.Load{})
	w := cpu.NewWaiter(core, &cpu.Policy{Waiting: cpu.Interrupt})
	rounds(w, 8, 100*us)
	rounds(w, 1, 5000*us)
	if got := rounds(w, 1, 100*us)[0]; got != 1*us {
		t.Errorf("after an outlier it exits in %v, want the shallow state's 1 us", got)
	}
	// With nothing typical the mean counts.
	for range 4 {
		rounds(w, 1, 100*us)
		rounds(w, 1, 3000*us)
	}
	if got := rounds(w, 1, 100*us)[0]; got != 170*us {
		t.Errorf("after sleeps of 100 us and 3 ms in turn it exits in %v, want the deep state's 170 us", got)
	}
}

// TestWaitsWithoutMemory: waiting allocates nothing.
func TestWaitsWithoutMemory(t *testing.T) {
	core := cpu.NewCore(prices(), rand.New(rand.NewPCG(1, 1)), cpu.Load{Rivals: cpu.Rivals{Threads: 2, Slice: 4 * ms}})
	for _, how := range []cpu.Waiting{cpu.Poll, cpu.SleepPoll, cpu.Interrupt, cpu.SpinThenSleep} {
		w := cpu.NewWaiter(core, &cpu.Policy{Waiting: how, Sleep: us, Spin: us})
		now := sim.Time(0)
		if n := testing.AllocsPerRun(100, func() {
			w.Begin(now, 10*us)
			due, _, _ := w.Notice(now.Add(100*us), 0)
			_, now = core.Run(w.Wake(due), us)
		}); n > 0 {
			t.Errorf("%v: %v allocations a wait", how, n)
		}
	}
}

// TestHandlerHalted has interrupts come soon after one another and late: the core that
// they go to is awake for the one, and halted for the other.
func TestHandlerHalted(t *testing.T) {
	cfg := prices()
	cfg.Handler = cpu.IdleState{Residency: 10000 * us, Exit: fixed(50000 * us)}
	w := cpu.NewWaiter(cpu.NewCore(cfg, rand.New(rand.NewPCG(1, 1)), cpu.Load{}), &cpu.Policy{Waiting: cpu.Interrupt})
	wake := 20*us + 300*us + 4000*us
	var event sim.Duration
	for i, tt := range []struct{ after, want sim.Duration }{{20000 * us, 50000*us + wake}, {5000 * us, wake}, {30000 * us, 50000*us + wake}} {
		event += tt.after
		w.Begin(at(event-100*us), 10*us)
		found, _, _ := w.Notice(at(event), 4*us)
		if got := found.Sub(at(event)); got != tt.want {
			t.Errorf("interrupt %d, %v after the last thread ran, found after %v, want %v", i, tt.after, got, tt.want)
		}
		w.Wake(found)
		event = found.Sub(0)
	}
}
