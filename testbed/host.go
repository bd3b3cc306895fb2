package testbed

import (
	"math/rand/v2"
	"strings"

	"gdisim/model/cpu"
	"gdisim/scenarios"
	"gdisim/sim"
)

// cpuConfig returns the prices of a CPU's steps; those of idle states only where
// a thread sleeps.
func cpuConfig(c *scenarios.Config, core, uncore int64, sleeps bool) *cpu.Config {
	if c.Enum("host.proxy.core") == "smt-sibling" {
		core = int64(float64(core) / c.Ratio("hardware.cpu.smt_factor"))
	}
	onCore := func(key string) sim.Delay { return priced(c.Cost("hardware.cpu."+key), core) }
	onUncore := func(key string) sim.Delay { return priced(c.Cost("hardware.cpu."+key), uncore) }
	x := &cpu.Config{
		Stream: onUncore("stream"), Lookup: onCore("lookup"), Yield: onCore("yield"), Arm: onUncore("arm"), Interrupt: c.Delay("hardware.cpu.interrupt"), Switch: c.Delay("hardware.cpu.switch"),
		WakeUp: c.Delay("hardware.cpu.wake_up"), Syscall: c.Delay("hardware.cpu.syscall"), Remote: c.Delay("hardware.cpu.remote"), Object: c.Delay("hardware.cpu.object"), Line: c.Delay("hardware.cpu.line"), Timer: c.Delay("hardware.cpu.timer"),
		Loop: onCore("loop"), Check: onCore("check"), Miss: onUncore("miss"), Rewrite: onUncore("rewrite"), Dequeue: onCore("dequeue"), Build: onCore("build"),
		Post: onCore("post"), Flush: onUncore("flush"), PollEmpty: onCore("poll_empty"), PollCQE: onCore("poll_cqe"), Publish: onCore("publish"),
	}
	if sleeps {
		x.Idle, x.Halt = idleStates(c), cpu.IdleState{Residency: c.Duration("hardware.cpu.idle.halt.after"), Exit: c.Delay("hardware.cpu.idle.halt.exit")}
		x.Handler = cpu.IdleState{Residency: c.Duration("hardware.cpu.idle.handler.after"), Exit: c.Delay("hardware.cpu.idle.handler.exit")}
	}
	// A line of the other socket's memory, and a register of a device there.
	hop := c.Duration("hardware.cpu.socket_hop")
	if c.Enum("host.proxy.memory") != c.Enum("host.proxy.socket") {
		for _, d := range []*sim.Delay{&x.Miss, &x.Rewrite} {
			*d = d.Plus(hop)
		}
	}
	if c.Enum("host.proxy.socket") == "other" {
		x.Flush, x.Arm = x.Flush.Plus(hop), x.Arm.Plus(hop)
	} else if c.Enum("hardware.pcie.path.gpu_nic") != "SYS" || c.Enum("hardware.pcie.host_near") == "nic" {
		x.Drain = c.Delay("hardware.cpu.drain")
	}
	return x
}

// idleStates are those of the profile, down to the deepest that the host allows.
func idleStates(c *scenarios.Config) []cpu.IdleState {
	var out []cpu.IdleState
	deepest := strings.ToLower(c.Enum("host.idle.deepest"))
	if deepest == "none" {
		return nil
	}
	for _, s := range []string{"c1", "c1e", "c3", "c6"} {
		key := "hardware.cpu.idle." + s
		if r := c.Duration(key + ".residency"); r > 0 || s == "c1" {
			out = append(out, cpu.IdleState{Residency: r, Exit: c.Delay(key + ".exit")})
		}
		if s == deepest {
			break
		}
	}
	return out
}

// coreLoad is what takes a proxy's core away. Stalls have streams of their own:
// they move nobody else's draws.
func coreLoad(c *scenarios.Config, name string, rands sim.Streams, rng *rand.Rand) cpu.Load {
	var l cpu.Load
	tick := c.Duration("hardware.cpu.tick.period")
	if length := c.Duration("hardware.cpu.tick.length"); length > 0 {
		l.Outages = append(l.Outages, cpu.Outage{Period: tick, Length: length, Phase: sim.Duration(rng.Int64N(int64(tick)))})
	}
	for _, key := range stallKeys {
		if every := c.Delay(key + ".every"); every.Mean() > 0 {
			l.Stalls = append(l.Stalls, cpu.Stall{Every: every, Length: c.Delay(key + ".length"), Rand: rands.Stream(name + "." + key)})
		}
	}
	if l.Rivals = rivals(c); l.Rivals.Threads > 0 {
		l.Rivals.Phase = rng.Float64()
	}
	return l
}

// What a worker's core must keep for it, and how many stalls may come in one turn
// of others: with less of a core, or shorter stalls, a run would look for a free
// moment without end.
const (
	leastOfCore   = 0.05
	stallsPerTurn = 2_000_000
)

// coreLeft refuses a core of which ticks and stalls leave nothing to speak of.
func coreLeft(c *scenarios.Config) error {
	period, length := c.Duration("hardware.cpu.tick.period"), c.Duration("hardware.cpu.tick.length")
	if length >= period {
		return refuse("hardware.cpu.tick.length", "%v of every %v leaves nothing (want less than hardware.cpu.tick.period)", length, period)
	}
	left := 1 - float64(length)/float64(period)
	x := rivals(c)
	for _, key := range stallKeys {
		every := c.Delay(key + ".every").Mean()
		if every <= 0 {
			continue
		}
		cycle := every + c.Delay(key+".length").Mean()
		left *= float64(every) / float64(cycle)
		if left < leastOfCore {
			return refuse(key+".every", "%v after every %v leave the worker %.2g %% of its core (want at least %.0f %%)", cycle-every, every, 100*left, 100*leastOfCore)
		}
		if x.Threads == 0 {
			continue
		}
		if _, others := x.Turns(); int64(others/cycle) > stallsPerTurn {
			return refuse(key+".every", "one every %v, beside turns of other threads of %v (want a longer host.stalls.every, or fewer competing threads)", cycle, others)
		}
	}
	return nil
}

// stallKeys are what takes a core away at random.
var stallKeys = []string{"hardware.cpu.stolen", "host.stalls"}

// rivals are the threads that share a proxy's core.
func rivals(c *scenarios.Config) cpu.Rivals {
	if c.Enum("host.proxy.core") != "shared" {
		return cpu.Rivals{}
	}
	k := c.Count("host.competing.threads")
	if k == 0 {
		return cpu.Rivals{}
	}
	x := cpu.Rivals{Threads: k, Slice: slice(c), Nice: c.Int("host.proxy.nice"), Other: c.Int("host.competing.nice")}
	if !c.Bool("host.proxy.pinned") && c.Count("host.competing.idle_cores") > 0 {
		x.Escape, x.Migration = c.Duration("hardware.cpu.tick.period"), c.Duration("hardware.cpu.migration")
	}
	return x
}

// slice is a thread's turn on a shared core: the scheduler looks at it at ticks.
func slice(c *scenarios.Config) sim.Duration {
	if c.Has("host.competing.slice") {
		return c.Duration("host.competing.slice")
	}
	tick, base := c.Duration("hardware.cpu.tick.period"), c.Duration("hardware.cpu.base_slice")
	return (base + tick - 1) / tick * tick
}

// waiting is how a path's workers wait for work.
func waiting(c *scenarios.Config, yields int) (cpu.Policy, error) {
	wait := c.Enum("host.proxy.wait")
	if wait == "auto" {
		wait = c.Enum("path.proxy.wait")
	}
	p := cpu.Policy{Yields: yields}
	switch wait {
	case "poll-yield":
		p.Yields = max(1, yields)
	default:
		p.Waiting, _ = cpu.ParseWaiting(wait)
	}
	switch p.Waiting {
	case cpu.SleepPoll:
		p.Sleep, p.Slack = c.Duration("host.proxy.sleep"), c.Duration("host.proxy.timer_slack")
	case cpu.SpinThenSleep:
		p.Spin = c.Duration("host.proxy.spin")
	}
	if p.Interrupts() {
		p.OneLook = !c.Bool("host.interrupt.second_look")
		p.Moderation = cpu.Moderation{
			Time: c.Duration("host.interrupt.moderation"), Frames: c.Count("host.interrupt.frames"), FromEvent: c.Enum("host.interrupt.timer") == "event",
			Adaptive: cpu.Adaptive{Sample: c.Duration("host.interrupt.adaptive.sample")},
		}
		if a := &p.Moderation.Adaptive; a.Sample > 0 {
			a.Low = c.Duration("host.interrupt.adaptive.low")
			a.RateLow, a.RateHigh = int64(c.Count("host.interrupt.adaptive.rate_low")), int64(c.Count("host.interrupt.adaptive.rate_high"))
			if a.RateLow > a.RateHigh {
				return p, refuse("host.interrupt.adaptive.rate_low", "%d, above the rate_high of %d (want that many at most)", a.RateLow, a.RateHigh)
			}
		}
	}
	return p, nil
}
