package cpu_test

import (
	"testing"

	"gdisim/model/cpu"
	"gdisim/sim"
)

// wakePrices are a digit each, so that a sum tells what was counted.
func wakePrices() *cpu.Config {
	return &cpu.Config{
		Syscall: fixed(1 * us), WakeUp: fixed(10 * us), Switch: fixed(100 * us), Remote: fixed(1000 * us), Object: fixed(10_000 * us), Line: fixed(100_000 * us),
		Timer: fixed(7 * us),
	}
}

// TestWakeByMeans counts what a wake-up is made of.
func TestWakeByMeans(t *testing.T) {
	for _, tt := range []struct {
		by          cpu.Means
		same, other sim.Duration
	}{
		{cpu.Futex, 112 * us, 1112 * us},
		{cpu.Eventfd, 10_112 * us, 11_112 * us},
		{cpu.Epoll, 30_113 * us, 31_113 * us},
		{cpu.Condvar, 112 * us, 501_112 * us},
		{cpu.Pipe, 10_112 * us, 11_112 * us},
	} {
		a, b := cpu.NewCore(wakePrices(), nil, cpu.Load{}), cpu.NewCore(wakePrices(), nil, cpu.Load{})
		one, two := cpu.Sleeper{Core: a, Waker: a, By: tt.by}, cpu.Sleeper{Core: a, Waker: b, By: tt.by}
		if _, got := one.Wake(0, at(500*us)); got != at(500*us+tt.same) {
			t.Errorf("means %d on one core: %v, want %v", tt.by, got.Sub(at(500*us)), tt.same)
		}
		if _, got := two.Wake(0, at(500*us)); got != at(500*us+tt.other) {
			t.Errorf("means %d on two cores: %v, want %v", tt.by, got.Sub(at(500*us)), tt.other)
		}
	}
}

// TestSleepAndYield: a sleep pays the timer and the state that its length is
// worth; a yield to one that yields back is two switches.
func TestSleepAndYield(t *testing.T) {
	cfg := wakePrices()
	cfg.Idle = []cpu.IdleState{{Residency: 1 * us, Exit: fixed(3 * us)}, {Residency: 90 * us, Exit: fixed(40 * us)}}
	cfg.Halt = cpu.IdleState{Residency: 1 * ms, Exit: fixed(500 * us)}
	for _, tt := range []struct{ sleep, end sim.Duration }{
		{10 * us, 1*us + 10*us + 7*us + 3*us}, {90 * us, 1*us + 90*us + 7*us + 40*us}, {1 * ms, 1*us + 1*ms + 7*us + 540*us},
	} {
		if got := cpu.NewCore(cfg, nil, cpu.Load{}).Sleep(0, tt.sleep); got != at(tt.end) {
			t.Errorf("a sleep of %v ends at %v, want %v", tt.sleep, got, tt.end)
		}
	}
	if got := cpu.NewCore(cfg, nil, cpu.Load{}).Yielded(0); got != at(202*us) {
		t.Errorf("a yield and back takes %v, want 202 us", got)
	}
	busy := cpu.NewCore(cfg, nil, cpu.Load{Rivals: cpu.Rivals{Threads: 1, Slice: 4 * ms}})
	if got := busy.Yielded(0); got != at(4*ms+201*us) {
		t.Errorf("a yield beside a busy thread takes %v", got)
	}
	if got := busy.Sleep(at(4*ms+201*us), 200*us); got != at(4*ms+201*us+1*us+200*us+7*us) {
		t.Errorf("a sleeper beside a busy thread, which keeps the core awake, is back at %v", got)
	}
}
