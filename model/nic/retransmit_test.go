package nic_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gdisim/model/fabric"
	"gdisim/model/nic"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"

	"pgregory.net/rapid"
)

func lossy() (nic.Config, fabric.Config) {
	cfg := nicConfig()
	cfg.Retry = nic.Retry{On: true, Timeout: 67 * sim.Microsecond, Count: 7, RNR: 7, RNRWait: 10 * sim.Microsecond}
	return cfg, fabric.Config{Rate: gbps * 1e9, Hops: 1, SwitchLatency: sim.Fixed(hop), CableLatency: sim.Fixed(cable)}
}

// Whatever is lost: each message lands once and completes once, in order, or its
// queue ends in the error state with a finding that says so; what the ports were
// given has arrived or was lost; and no event is left.
func TestEverythingEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, wire := lossy()
		cfg.Retry.Count = rapid.IntRange(0, 7).Draw(t, "retry_cnt")
		rate := rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.4}).Draw(t, "loss")
		wire.Lose = sim.Triggers{{Rate: rate, Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}}
		if rapid.Bool().Draw(t, "link goes down") {
			wire.Down = sim.Triggers{{From: sim.Time(3 * sim.Microsecond), Until: sim.Time(rapid.IntRange(5, 300).Draw(t, "until, us")) * sim.Time(sim.Microsecond), Rate: 1}}
		}
		r := buildOn(t, cfg, wire, rapid.Bool().Draw(t, "random latencies"))
		var hazards []stage.Hazard
		for _, n := range r.nics {
			n.Find = func(_ sim.Time, h stage.Hazard) { hazards = append(hazards, h) }
		}
		type queue struct {
			qp          *nic.QP
			cqes, lands *events
			signaled    []uint32
			writes      []uint32
		}
		var qs []*queue
		for range rapid.IntRange(1, 3).Draw(t, "queues") {
			q := &queue{lands: &events{eng: r.eng}}
			q.qp, q.cqes = r.qp(t, 0, pcie.GPU)
			qs = append(qs, q)
			n := rapid.IntRange(1, 12).Draw(t, "messages")
			for i := range n {
				w := nic.WQE{
					Opcode: nic.Opcode(rapid.IntRange(0, 2).Draw(t, "opcode")), Bytes: int64(rapid.SampledFrom([]int{1, 8, 4096, 4097, 20000}).Draw(t, "bytes")),
					Signaled: i == n-1 || rapid.Bool().Draw(t, "signaled"), Local: pcie.GPU, Remote: pcie.GPU,
				}
				if w.Opcode == nic.FetchAdd {
					w.Bytes = 8
				}
				w.Inline = w.Opcode == nic.RDMAWrite && w.Bytes <= 8 && rapid.Bool().Draw(t, "inline")
				if w.Opcode != nic.RDMARead {
					w.Land, w.LandArg = q.lands, uint32(i)
					q.writes = append(q.writes, uint32(i))
				}
				if w.Signaled {
					q.signaled = append(q.signaled, uint32(i+1))
				}
				q.qp.Post(w)
			}
			r.ring(0, q.qp)
		}
		r.eng.Run()
		failed := map[int]bool{}
		for _, f := range r.nics[0].Failed() {
			failed[f.Queue] = true
		}
		named := 0
		for _, h := range hazards {
			if h.Finding == stage.RetryExceeded && h.Cause != "" && failed[h.Queue] {
				named++
			}
		}
		if named != len(failed) || len(hazards) != named {
			t.Fatalf("failed %v, findings %+v", failed, hazards)
		}
		for i, q := range qs {
			slices.Sort(q.lands.args)
			if d := slices.Compact(slices.Clone(q.lands.args)); len(d) != len(q.lands.args) {
				t.Fatalf("queue %d: landed %v: one landed twice", i, q.lands.args)
			}
			if !slices.IsSorted(q.cqes.args) {
				t.Fatalf("queue %d: completed %v", i, q.cqes.args)
			}
			if failed[i] {
				continue
			}
			if !slices.Equal(q.lands.args, q.writes) || !slices.Equal(q.cqes.args, q.signaled) {
				t.Fatalf("queue %d: landed %v of %v, completed %v of %v", i, q.lands.args, q.writes, q.cqes.args, q.signaled)
			}
		}
		if rate == 0 && wire.Down == nil && (len(failed) > 0 || r.nics[0].Retransmits > 0) {
			t.Fatalf("nothing was lost, but %d packets were sent again and %d queues failed", r.nics[0].Retransmits, len(failed))
		}
		if r.eng.Pending() != 0 {
			t.Fatalf("%d events are left", r.eng.Pending())
		}
		for n, p := range r.net.Traffic() {
			if l := r.net.Lost()[n]; l.Packets > p.Packets || l.Bytes > p.Bytes || p.Packets-l.Packets != r.net.Delivered()[n] {
				t.Fatalf("node %d: sent %d packets, lost %d, delivered %d", n, p.Packets, l.Packets, r.net.Delivered()[n])
			}
		}
		r.idle(t)
	})
}

// TestTimeout: a message whose packet is lost is late by the timeout, exactly.
func TestTimeout(t *testing.T) {
	late := func(lose int) sim.Duration {
		cfg, wire := lossy()
		wire.Lose = sim.Triggers{{Rate: 1, Count: lose}}
		if lose == 0 {
			wire.Lose = nil
		}
		r := buildOn(t, cfg, wire, false)
		q, _ := r.qp(t, 0, pcie.GPU)
		land := &events{eng: r.eng}
		q.Post(nic.WQE{Bytes: 8, Inline: true, Signaled: true, Remote: pcie.GPU, Land: land})
		r.ring(0, q)
		r.eng.Run()
		return land.last()
	}
	cfg, _ := lossy()
	// A packet sent again passes the transmit pipeline; its timer began when it
	// entered it.
	for lose := range 3 {
		if got, want := late(lose)-late(0), sim.Duration(lose)*cfg.Retry.Timeout; got != want {
			t.Errorf("%d lost: %v late, want %v", lose, got, want)
		}
	}
}

// TestNAK: the packet behind a lost one brings a NAK, which is faster than the
// timeout, and everything from the lost one on is sent again.
func TestNAK(t *testing.T) {
	cfg, wire := lossy()
	wire.Lose = sim.Triggers{{Rate: 1, Count: 1}}
	r := buildOn(t, cfg, wire, false)
	q, cqe := r.qp(t, 0, pcie.GPU)
	for range 3 {
		q.Post(nic.WQE{Bytes: 8, Inline: true, Signaled: true, Remote: pcie.GPU})
	}
	r.ring(0, q)
	r.eng.Run()
	if !slices.Equal(cqe.args, []uint32{1, 2, 3}) || cqe.last() > 10*sim.Microsecond {
		t.Errorf("completed %v at %v", cqe.args, cqe.last())
	}
	if n := r.nics[0].Retransmits; n != 3 {
		t.Errorf("%d packets sent again, want 3", n)
	}
}

// TestRefused: what the responder refuses ends in a finding and an error state
// that keeps the messages behind it from landing.
func TestRefused(t *testing.T) {
	strike := sim.Triggers{{Rate: 1, Count: 1, From: 1}}
	for _, tt := range []struct {
		name   string
		faults nic.Faults
		rnr    int
		want   []stage.Finding
		why    string
		lands  int
	}{
		{"wrong R_Key", nic.Faults{WrongRKey: strike}, 7, []stage.Finding{stage.RKeyViolation}, "remote access error", 0},
		{"unregistered", nic.Faults{Unregistered: strike}, 7, []stage.Finding{stage.UnregisteredMemory}, "local protection error", 0},
		{"error CQE", nic.Faults{CQEError: strike}, 7, nil, "CQE with an error, by a fault", 3},
		{"no receive, once", nic.Faults{NoReceive: strike}, 7, []stage.Finding{stage.RNR}, "", 3},
		{"never a receive", nic.Faults{NoReceive: sim.Triggers{{Rate: 1}}}, 2, []stage.Finding{stage.RNR, stage.RNR, stage.RNR, stage.RetryExceeded}, "RNR retry counter exceeded", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			strike[0].Struck = 0
			cfg, wire := lossy()
			cfg.Retry.RNR = tt.rnr
			r := buildOn(t, cfg, wire, false)
			r.nics[0].Faults = tt.faults
			var got []stage.Finding
			r.nics[0].Find = func(_ sim.Time, h stage.Hazard) { got = append(got, h.Finding) }
			q, cqe := r.qp(t, 0, pcie.GPU)
			land := &events{eng: r.eng}
			for range 3 {
				q.Post(nic.WQE{Bytes: 8, Imm: true, Signaled: true, Local: pcie.GPU, Remote: pcie.GPU, Land: land})
			}
			r.ring(0, q)
			r.eng.Run()
			if !slices.Equal(got, tt.want) || len(land.at) != tt.lands {
				t.Errorf("found %v, want %v; %d landed, want %d", got, tt.want, len(land.at), tt.lands)
			}
			f := r.nics[0].Failed()
			if tt.why == "" {
				if len(f) != 0 || len(cqe.at) != 3 {
					t.Errorf("failed %v, %d CQEs", f, len(cqe.at))
				}
			} else if len(f) != 1 || f[0].Why != tt.why || f[0].WQE != 0 || len(cqe.at) != 0 {
				t.Errorf("failed %+v, %d CQEs", f, len(cqe.at))
			}
		})
	}
}
