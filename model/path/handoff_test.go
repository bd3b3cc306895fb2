package path

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdisim/model/pcie"
	"gdisim/sim"
)

// text writes a list of steps, one word each.
func text(steps []Step) string {
	var out []string
	for i := range steps {
		s := steps[i].Do.String()
		if n := steps[i].N; n > 1 {
			s += fmt.Sprintf("x%d", n)
		}
		out = append(out, s)
	}
	return strings.Join(out, " > ")
}

// TestHandoffPrograms holds the enqueue of each hand-off against the order that
// the libraries' sources show.
func TestHandoffPrograms(t *testing.T) {
	signal := Message{Bytes: 8, Signal: SignalAtomic}
	for _, c := range []struct {
		name string
		cfg  Proxy
		msg  Message
		want string
	}{
		{
			"many producers",
			Proxy{Handoff: HandoffGeneral, DescriptorBytes: 16},
			Message{Bytes: 8},
			"atomic > load, host > await room > build > fence > store, host",
		},
		{
			"a new word, by its address",
			Proxy{Handoff: HandoffFIFO, DescriptorBytes: 16},
			Message{Bytes: 8, Fresh: true},
			"stores, local > atomic > load, L2 > await room > build > fence > store, host",
		},
		{
			"a new word, inside the descriptor",
			Proxy{Handoff: HandoffFIFO, DescriptorBytes: 16, Inline: true, ValueBytes: 8},
			Message{Bytes: 8, Fresh: true},
			"atomic > load, L2 > await room > build > fence > store, host",
		},
		{
			"one producer",
			Proxy{Handoff: HandoffSingleProducer, DescriptorBytes: 16},
			Message{Bytes: 8},
			"await room > build > store, host",
		},
		{
			"words: put",
			Proxy{Handoff: HandoffWords, DescriptorBytes: 32, SignalBytes: 16},
			Message{Bytes: 8},
			"fence > atomic > load, L2 > await room > build > store, hostx4",
		},
		{
			"words: put with signal",
			Proxy{Handoff: HandoffWords, DescriptorBytes: 32, SignalBytes: 16},
			signal,
			"fence > atomic > load, L2 > await room > build > store, hostx6",
		},
		{
			"entry, index in host memory",
			Proxy{Handoff: HandoffEntry, DescriptorBytes: 128, CompletionIn: pcie.Host, Counts: Counts{Stores: 2}},
			signal,
			"stores, localx2 > fence > atomic > load, host > await room > build > store, hostx8",
		},
		{
			"entry, index in GPU memory",
			Proxy{Handoff: HandoffEntry, DescriptorBytes: 128, CompletionIn: pcie.GPU},
			signal,
			"fence > atomic > load, L2 > await room > build > store, hostx8",
		},
		{
			"fifo",
			Proxy{Handoff: HandoffFIFO, DescriptorBytes: 16, Counts: Counts{Calls: 1}},
			Message{Bytes: 8},
			"call > atomic > load, L2 > await room > build > fence > store, host",
		},
	} {
		p := c.cfg.Program(c.msg)
		if d := cmp.Diff(c.want, text(p.Steps())); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// TestQuietPrograms does the same for what a thread does to learn of completion.
func TestQuietPrograms(t *testing.T) {
	entry := "atomic > load, L2 > await room > build > fence > store, host"
	for _, c := range []struct {
		name string
		cfg  Proxy
		want string
	}{
		{"counter", Proxy{Quiet: QuietCounter}, ""},
		{"counter, one ring for all peers", Proxy{Quiet: QuietCounter, Context: true, Peers: Peers{Count: 8}}, ""},
		{
			"counter, every peer's ring",
			Proxy{Quiet: QuietCounter, Context: true, RingPerPeer: true, CompletionIn: pcie.Host, Peers: Peers{Count: 8, Before: 2}},
			"load, L2x2 > load, hostx2 > load, L2 > poll counter > load, L2x5 > load, hostx5",
		},
		{
			"counters in GPU memory",
			Proxy{Quiet: QuietCounter, Context: true, RingPerPeer: true, CompletionIn: pcie.GPU, Peers: Peers{Count: 3}},
			"load, L2 > poll counter > load, L2x2 > load, L2x2",
		},
		{"request", Proxy{Quiet: QuietRequest}, "load, L2 > atomic, host > poll answer > fence"},
		{"entry", Proxy{Quiet: QuietEntry, Handoff: HandoffFIFO, DescriptorBytes: 16, Workers: 2}, entry + " > poll answer"},
		{
			"entries to all workers",
			Proxy{Quiet: QuietEntry, Context: true, Handoff: HandoffFIFO, DescriptorBytes: 16, Workers: 2},
			entry + " > " + entry + " > poll answer > poll answer",
		},
	} {
		if d := cmp.Diff(c.want, text(c.cfg.QuietProgram())); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// TestLines counts cache lines: small descriptors share one, large ones take
// several each.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		n     int
		want  int
	}{{16, 1, 1}, {16, 4, 1}, {16, 5, 2}, {16, 16, 4}, {32, 2, 1}, {128, 1, 2}, {128, 3, 6}} {
		w := worker{path: &ProxyPath{cfg: Proxy{DescriptorBytes: c.bytes}}}
		if got := w.lines(c.n); got != c.want {
			t.Errorf("%d descriptors of %d B: got %d lines, want %d", c.n, c.bytes, got, c.want)
		}
	}
}

// TestSlotsInOrder: a descriptor whose slot comes behind one that is not filled yet
// is out of the worker's sight.
func TestSlotsInOrder(t *testing.T) {
	p := &ProxyPath{env: &Env{Eng: sim.New()}, cfg: Proxy{Depth: 4}}
	r := &ring{path: p, worker: &worker{state: workerLooking}}
	var early, late producer
	r.issue(&early)
	r.issue(&late)
	if free := r.free(); free != 2 {
		t.Errorf("%d slots free, want 2", free)
	}
	r.fill(late.slot, descriptor{plain: true})
	if n := r.visible.Len(); n != 0 {
		t.Errorf("%d descriptors in sight behind an empty slot", n)
	}
	r.fill(early.slot, descriptor{})
	if r.visible.Len() != 2 || r.visible.At(0).plain || !r.visible.At(1).plain {
		t.Errorf("%d descriptors in sight, want both in the order of their slots", r.visible.Len())
	}
}
