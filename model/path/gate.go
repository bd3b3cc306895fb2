package path

import (
	"gdisim/model/gpu"
	"gdisim/sim"
	"gdisim/stage"
)

// gate is where a node's doorbell stores are held while too many doorbells wait in
// the NIC: flow control reaches back over PCIe into the GPU. The SMs take turns.
// An SM's accesses leave in order, so that the atomics of its other threads wait
// behind its held store.
type gate struct {
	env   *Env
	node  *Node
	h     sim.HandlerID
	lanes map[*gpu.SM]*lane
	turns sim.FIFO[*lane]
	timed bool
	after sim.Time // the next doorbell may leave
}

// lane is the held accesses of one SM, in order.
type lane struct{ held sim.FIFO[access] }

type access struct {
	t     *poster
	rings int // doorbells; 0: an atomic
}

// gate returns the node's gate.
func (n *Node) doorbells(env *Env) *gate {
	if n.gate == nil {
		n.gate = &gate{env: env, node: n, lanes: map[*gpu.SM]*lane{}}
		n.gate.h = env.Eng.Register(opening{n.gate})
	}
	return n.gate
}

// lane returns the SM's.
func (g *gate) lane(sm *gpu.SM) *lane {
	if g.lanes[sm] == nil {
		g.lanes[sm] = &lane{}
	}
	return g.lanes[sm]
}

// stall is how long from now on no doorbell may leave.
func (g *gate) stall() sim.Duration {
	return max(g.node.NIC.DoorbellStall(), g.after.Sub(g.env.Eng.Now()))
}

// pass reports whether the thread's access, of a number of doorbells, may leave
// now; if not the thread waits, and goes on when it may.
func (g *gate) pass(t *poster, rings int) bool {
	if t.let {
		t.let = false
		return true
	}
	l := t.lane
	if l.held.Len() == 0 {
		if rings == 0 || g.turns.Len() == 0 && g.stall() <= 0 {
			return true
		}
		g.turns.Push(l)
	}
	l.held.Push(access{t, rings})
	t.state = parked
	g.wait()
	return false
}

func (g *gate) wait() {
	if !g.timed && g.turns.Len() > 0 {
		g.timed = true
		g.env.Eng.After(max(0, g.stall()), g.h, 0)
	}
}

type opening struct{ *gate }

// Handle lets the next SM's doorbell leave, with the atomics behind it.
func (o opening) Handle(uint32) {
	g := o.gate
	g.timed = false
	if g.stall() > 0 {
		g.wait()
		return
	}
	l := g.turns.Pop()
	a := l.held.Pop()
	g.after = g.env.Eng.Now().Add(sim.Duration(a.rings) * g.node.NIC.DoorbellTime())
	g.let(a.t)
	for l.held.Len() > 0 && l.held.Front().rings == 0 {
		g.let(l.held.Pop().t)
	}
	if l.held.Len() > 0 {
		g.turns.Push(l)
	}
	g.wait()
}

func (g *gate) let(t *poster) {
	t.let = true
	t.waited(stage.GPURing, 0)
	g.env.Eng.At(t.t, t.h, 0)
}
