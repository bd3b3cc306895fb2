package nic_test

import (
	"math/rand/v2"
	"testing"

	"gdisim/model/fabric"
	"gdisim/model/nic"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"

	"pgregory.net/rapid"
)

const ns = sim.Nanosecond

func fixed(n int64) sim.Delay { return sim.Fixed(sim.Duration(n) * ns) }

func nicConfig() nic.Config {
	return nic.Config{
		MTU: 4096, Sched: fixed(90), TxLatency: fixed(250), RxLatency: fixed(308), AckLatency: fixed(404), Response: fixed(145), Atomic: fixed(51),
		TxMessage: 4 * ns, RxMessage: 3 * ns, QPMessage: 33 * ns, CQEBytes: 64, FetchMax: 16, ReadAhead: 32, InlineMax: 92, BlueFlame: 256, MaxQP: 64, SQDepth: 128,
	}
}

// rig is two nodes on a switch.
type rig struct {
	eng  *sim.Engine
	bus  [2]*pcie.Fabric
	net  *fabric.Network
	nics []*nic.NIC
	cfg  nic.Config
}

const (
	cable  = 21 * ns
	hop    = 130 * ns
	gbps   = 200
	header = 8 + 12 + 4 + 2 // LRH, BTH, ICRC, VCRC
	reth   = 16
	aeth   = 4
	atomic = 28
)

func build(t interface{ Fatal(...any) }, cfg nic.Config, random bool) *rig {
	return buildOn(t, cfg, fabric.Config{Rate: gbps * 1e9, Hops: 1, SwitchLatency: sim.Fixed(hop), CableLatency: sim.Fixed(cable)}, random)
}

func buildOn(t interface{ Fatal(...any) }, cfg nic.Config, wire fabric.Config, random bool) *rig {
	r := &rig{eng: sim.New(), cfg: cfg}
	var err error
	if r.net, err = fabric.New(r.eng, nil, rand.New(rand.NewPCG(1, 1)), 2, wire); err != nil {
		t.Fatal(err)
	}
	link := pcie.LinkSpec{MTps: 32000, Lanes: 16}
	p := pcie.Config{
		Class: pcie.PIX, GPULink: link, NICLink: link, UpLink: link, MPS: 256, MRRS: 512, RCB: 64, RequestHeader: 24, CompletionHeader: 20,
		LinkLatency: fixed(25), SwitchLatency: fixed(110), RootLatency: fixed(40), PostedCredits: 512, NonPostedCredits: 256, CompletionCredits: 512,
	}
	if random {
		p.LinkLatency, p.SwitchLatency = sim.Exponential(25*ns), sim.Uniform(0, 400*ns)
	}
	p.Tags[pcie.GPU], p.Tags[pcie.NIC] = 256, 256
	p.Units[pcie.GPU] = pcie.Timing{Egress: fixed(250), Read: fixed(180), Write: fixed(445), Return: fixed(300)}
	p.Units[pcie.NIC] = pcie.Timing{Egress: fixed(60), Write: fixed(20), Return: fixed(50)}
	p.Units[pcie.Host] = pcie.Timing{Read: fixed(130), Write: fixed(30)}
	p.Units[pcie.CPU] = pcie.Timing{Egress: fixed(90)}
	for i := range 2 {
		if r.bus[i], err = pcie.New(r.eng, nil, rand.New(rand.NewPCG(2, uint64(i))), "node", p); err != nil {
			t.Fatal(err)
		}
		n, err := nic.New(r.eng, nil, rand.New(rand.NewPCG(3, uint64(i))), i, cfg, r.bus[i], r.net)
		if err != nil {
			t.Fatal(err)
		}
		r.nics = append(r.nics, n)
	}
	nic.Connect(r.nics)
	return r
}

// events notes when sinks are told, and what.
type events struct {
	eng  *sim.Engine
	at   []sim.Time
	args []uint32
}

func (e *events) Done(arg uint32, _ sim.Cause) {
	e.at = append(e.at, e.eng.Now())
	e.args = append(e.args, arg)
}

func (e *events) last() sim.Duration {
	if len(e.at) == 0 {
		return -1
	}
	return sim.Duration(e.at[len(e.at)-1])
}

func (r *rig) qp(t interface{ Fatal(...any) }, node int, queues pcie.Unit) (*nic.QP, *events) {
	e := &events{eng: r.eng}
	q, err := r.nics[node].NewQP(1-node, queues, e)
	if err != nil {
		t.Fatal(err)
	}
	return q, e
}

// ring sends the doorbell for all that is posted.
func (r *rig) ring(node int, q *nic.QP) {
	r.bus[node].Write(pcie.GPU, pcie.NIC, 8, sim.Cause{}, sim.Kind{}, q.Doorbell(), q.Head())
}

// wire is the idle time of a packet from port to port.
func wire(bytes int64) sim.Duration {
	return sim.NewPipe(gbps*1e9).Transfer(bytes) + 2*cable + hop
}

func TestSize(t *testing.T) {
	// 16 control + 16 address + 16 pointer, or 32 + 4 + payload, in blocks of 64:
	// 28 B fit one block, 92 B two.
	for _, tt := range []struct {
		wqe  nic.WQE
		want int64
	}{
		{nic.WQE{Opcode: nic.RDMAWrite, Bytes: 1 << 20}, 64},
		{nic.WQE{Opcode: nic.RDMAWrite, Bytes: 8, Vector: 16}, 64},
		{nic.WQE{Opcode: nic.RDMAWrite, Bytes: 8, Vector: 48}, 128},
		{nic.WQE{Opcode: nic.RDMARead, Bytes: 8}, 64},
		{nic.WQE{Opcode: nic.FetchAdd, Bytes: 8}, 64},
		{nic.WQE{Opcode: nic.RDMAWrite, Inline: true, Bytes: 1}, 64},
		{nic.WQE{Opcode: nic.RDMAWrite, Inline: true, Bytes: 28}, 64},
		{nic.WQE{Opcode: nic.RDMAWrite, Inline: true, Bytes: 29}, 128},
		{nic.WQE{Opcode: nic.RDMAWrite, Inline: true, Bytes: 92}, 128},
		{nic.WQE{Opcode: nic.RDMAWrite, Inline: true, Bytes: 93}, 192},
	} {
		if got := tt.wqe.Size(); got != tt.want {
			t.Errorf("%+v: %d B, want %d", tt.wqe, got, tt.want)
		}
	}
}

// TestOneMessage recomputes the time of each opcode from the times of the units
// on its way.
func TestOneMessage(t *testing.T) {
	cfg := nicConfig()
	msg := func(d sim.Delay) sim.Duration { return d.Mean() }
	sched, tx, rx, ack, resp := msg(cfg.Sched), msg(cfg.TxLatency), msg(cfg.RxLatency), msg(cfg.AckLatency), msg(cfg.Response)
	type parts struct{ ring, fetch, payload, land, cqe sim.Duration }
	for _, tt := range []struct {
		name   string
		queues pcie.Unit
		blue   bool
		wqe    nic.WQE
		want   func(b *pcie.Fabric) parts
	}{
		{"inline by doorbell", pcie.GPU, false, nic.WQE{Bytes: 8, Inline: true, Local: pcie.GPU, Remote: pcie.GPU}, func(b *pcie.Fabric) parts {
			sent := wire(8 + header + reth)
			return parts{
				b.OneWay(pcie.GPU, pcie.NIC, 8), b.RoundTrip(pcie.NIC, pcie.GPU, 64), 0,
				sent + rx + b.OneWay(pcie.NIC, pcie.GPU, 8), sent + rx + wire(header+aeth) + ack + b.OneWay(pcie.NIC, pcie.GPU, 64),
			}
		}},
		{"inline of two blocks, queues in host memory", pcie.Host, false, nic.WQE{Bytes: 92, Inline: true, Local: pcie.GPU, Remote: pcie.Host}, func(b *pcie.Fabric) parts {
			sent := wire(92 + header + reth)
			return parts{
				b.OneWay(pcie.GPU, pcie.NIC, 8), b.RoundTrip(pcie.NIC, pcie.Host, 128), 0,
				sent + rx + b.OneWay(pcie.NIC, pcie.Host, 92), sent + rx + wire(header+aeth) + ack + b.OneWay(pcie.NIC, pcie.Host, 64),
			}
		}},
		{"pointer to GPU memory", pcie.GPU, false, nic.WQE{Bytes: 1024, Local: pcie.GPU, Remote: pcie.GPU}, func(b *pcie.Fabric) parts {
			sent := wire(1024 + header + reth)
			return parts{
				b.OneWay(pcie.GPU, pcie.NIC, 8), b.RoundTrip(pcie.NIC, pcie.GPU, 64), b.RoundTrip(pcie.NIC, pcie.GPU, 1024),
				sent + rx + b.OneWay(pcie.NIC, pcie.GPU, 1024), sent + rx + wire(header+aeth) + ack + b.OneWay(pcie.NIC, pcie.GPU, 64),
			}
		}},
		{"pointer to host memory", pcie.GPU, false, nic.WQE{Bytes: 1024, Local: pcie.Host, Remote: pcie.GPU}, func(b *pcie.Fabric) parts {
			sent := wire(1024 + header + reth)
			return parts{
				b.OneWay(pcie.GPU, pcie.NIC, 8), b.RoundTrip(pcie.NIC, pcie.GPU, 64), b.RoundTrip(pcie.NIC, pcie.Host, 1024),
				sent + rx + b.OneWay(pcie.NIC, pcie.GPU, 1024), sent + rx + wire(header+aeth) + ack + b.OneWay(pcie.NIC, pcie.GPU, 64),
			}
		}},
		{"BlueFlame", pcie.Host, true, nic.WQE{Bytes: 8, Inline: true, Local: pcie.GPU, Remote: pcie.GPU}, func(b *pcie.Fabric) parts {
			sent := wire(8 + header + reth)
			return parts{
				b.OneWay(pcie.CPU, pcie.NIC, 64), 0, 0,
				sent + rx + b.OneWay(pcie.NIC, pcie.GPU, 8), sent + rx + wire(header+aeth) + ack + b.OneWay(pcie.NIC, pcie.Host, 64),
			}
		}},
		{"BlueFlame with a pointer", pcie.Host, true, nic.WQE{Bytes: 64, Local: pcie.GPU, Remote: pcie.GPU}, func(b *pcie.Fabric) parts {
			sent := wire(64 + header + reth)
			return parts{
				b.OneWay(pcie.CPU, pcie.NIC, 64), 0, b.RoundTrip(pcie.NIC, pcie.GPU, 64),
				sent + rx + b.OneWay(pcie.NIC, pcie.GPU, 64), sent + rx + wire(header+aeth) + ack + b.OneWay(pcie.NIC, pcie.Host, 64),
			}
		}},
		{"READ", pcie.GPU, false, nic.WQE{Opcode: nic.RDMARead, Bytes: 1024, Local: pcie.GPU, Remote: pcie.Host}, func(b *pcie.Fabric) parts {
			back := wire(header+reth) + rx + b.RoundTrip(pcie.NIC, pcie.Host, 1024) + tx + wire(1024+header+aeth) + rx
			return parts{
				b.OneWay(pcie.GPU, pcie.NIC, 8), b.RoundTrip(pcie.NIC, pcie.GPU, 64), 0, -1,
				back + resp + b.OneWay(pcie.NIC, pcie.GPU, 64),
			}
		}},
		{"FetchAdd", pcie.GPU, false, nic.WQE{Opcode: nic.FetchAdd, Bytes: 8, Local: pcie.GPU, Remote: pcie.GPU}, func(b *pcie.Fabric) parts {
			there := wire(header+atomic) + rx + b.RoundTrip(pcie.NIC, pcie.GPU, 8) + msg(cfg.Atomic)
			return parts{
				b.OneWay(pcie.GPU, pcie.NIC, 8), b.RoundTrip(pcie.NIC, pcie.GPU, 64), 0,
				there + b.OneWay(pcie.NIC, pcie.GPU, 8), there + wire(header+aeth) + ack + b.OneWay(pcie.NIC, pcie.GPU, 64),
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := build(t, cfg, false)
			q, cqe := r.qp(t, 0, tt.queues)
			land := &events{eng: r.eng}
			w := tt.wqe
			w.Signaled, w.Land = true, land
			head := q.Post(w)
			if tt.blue {
				r.bus[0].Write(pcie.CPU, pcie.NIC, w.Size(), sim.Cause{}, sim.Kind{}, q.BlueFlame(), head)
			} else {
				r.ring(0, q)
			}
			r.eng.Run()
			want := tt.want(r.bus[0])
			begin := want.ring + sched + want.fetch + want.payload + tx
			if got := land.last(); want.land < 0 && got != -1 || want.land >= 0 && got != begin+want.land {
				t.Errorf("landed at %v, want %v", got, begin+want.land)
			}
			if got := cqe.last(); got != begin+want.cqe {
				t.Errorf("CQE at %v, want %v", got, begin+want.cqe)
			}
			fetches := 1
			if tt.blue {
				fetches = 0
			}
			if n := r.nics[0]; n.Doorbells != 1 || n.WQEFetches != fetches {
				t.Errorf("%d doorbells, %d WQE fetches, want 1 and %d", n.Doorbells, n.WQEFetches, fetches)
			}
			r.idle(t)
		})
	}
}

func (r *rig) idle(t interface{ Fatal(...any) }) {
	for _, b := range r.bus {
		if err := b.Idle(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMTU: a message is cut into packets, whose first alone has the RETH, and
// the three legs overlap beyond the first.
func TestMTU(t *testing.T) {
	r := build(t, nicConfig(), false)
	q, _ := r.qp(t, 0, pcie.GPU)
	land := &events{eng: r.eng}
	const n = 100_000
	q.Post(nic.WQE{Bytes: n, Signaled: true, Local: pcie.GPU, Remote: pcie.GPU, Land: land})
	r.ring(0, q)
	r.eng.Run()
	port := r.net.Traffic()[0]
	if want := int64(n + 25*header + reth); port.Packets != 25 || port.Bytes != want {
		t.Errorf("%d packets, %d B, want 25 and %d", port.Packets, port.Bytes, want)
	}
	if len(land.at) != 1 {
		t.Fatalf("landed %d times", len(land.at))
	}
	b, c := r.bus[0], r.cfg
	one := b.OneWay(pcie.GPU, pcie.NIC, 8) + c.Sched.Mean() + b.RoundTrip(pcie.NIC, pcie.GPU, 64) + b.RoundTrip(pcie.NIC, pcie.GPU, c.MTU) + c.TxLatency.Mean() +
		wire(c.MTU+header+reth) + c.RxLatency.Mean() + b.OneWay(pcie.NIC, pcie.GPU, c.MTU)
	rest := sim.NewPipe(gbps * 1e9).Transfer(n - c.MTU + 24*header)
	// The wire is the slowest leg: the other packets follow at its rate.
	if got := land.last(); got < one+rest-200*ns || got > one+rest+10*ns {
		t.Errorf("landed at %v, want about %v", got, one+rest)
	}
	r.idle(t)
}

// TestReadOfManyMTUs: a READ's responses are cut like a write, and complete once.
func TestReadOfManyMTUs(t *testing.T) {
	r := build(t, nicConfig(), true)
	q, cqe := r.qp(t, 0, pcie.GPU)
	for range 5 {
		q.Post(nic.WQE{Opcode: nic.RDMARead, Bytes: 10_000, Signaled: true, Local: pcie.GPU, Remote: pcie.GPU})
	}
	r.ring(0, q)
	r.eng.Run()
	ports := r.net.Traffic()
	if ports[0].Packets != 5 || ports[1].Packets != 15 || ports[1].Bytes != 5*10_000+15*(header+aeth) {
		t.Errorf("requests %+v, responses %+v", ports[0], ports[1])
	}
	want := []uint32{1, 2, 3, 4, 5}
	if len(cqe.args) != 5 {
		t.Fatalf("CQEs %v, want %v", cqe.args, want)
	}
	for i := range want {
		if cqe.args[i] != want[i] {
			t.Errorf("CQEs %v, want %v", cqe.args, want)
		}
	}
	r.idle(t)
}

// TestAtomicsOneAtATime: a read-modify-write starts when the one before it is
// over, whichever queue it came from.
func TestAtomicsOneAtATime(t *testing.T) {
	r := build(t, nicConfig(), false)
	land := &events{eng: r.eng}
	for range 4 {
		q, _ := r.qp(t, 0, pcie.GPU)
		q.Post(nic.WQE{Opcode: nic.FetchAdd, Bytes: 8, Signaled: true, Local: pcie.GPU, Remote: pcie.GPU, Land: land})
		r.ring(0, q)
	}
	r.eng.Run()
	b := r.bus[1]
	each := b.RoundTrip(pcie.NIC, pcie.GPU, 8) + r.cfg.Atomic.Mean() + b.OneWay(pcie.NIC, pcie.GPU, 8)
	for i := 1; i < len(land.at); i++ {
		if d := land.at[i].Sub(land.at[i-1]); d != each {
			t.Errorf("atomic %d landed %v after the one before it, want %v", i, d, each)
		}
	}
	if len(land.at) != 4 {
		t.Errorf("%d atomics landed", len(land.at))
	}
	r.idle(t)
}

func TestRingTwice(t *testing.T) {
	r := build(t, nicConfig(), false)
	q, cqe := r.qp(t, 0, pcie.GPU)
	q.Post(nic.WQE{Bytes: 8, Inline: true, Signaled: true, Remote: pcie.GPU})
	r.ring(0, q)
	r.ring(0, q)
	r.eng.Run()
	r.ring(0, q) // late, as a recovery would
	r.eng.Run()
	if n := r.nics[0]; n.Doorbells != 3 || n.WQEFetches != 1 || len(cqe.at) != 1 {
		t.Errorf("%d doorbells, %d fetches, %d CQEs, want 3, 1, 1", n.Doorbells, n.WQEFetches, len(cqe.at))
	}
	if r.net.Traffic()[0].Packets != 1 {
		t.Errorf("%d packets, want 1", r.net.Traffic()[0].Packets)
	}
}

// TestCQERetiresAll: one CQE frees the slots of all WQEs before it.
func TestCQERetiresAll(t *testing.T) {
	r := build(t, nicConfig(), false)
	q, cqe := r.qp(t, 0, pcie.GPU)
	for lap := range 5 {
		for i := range r.cfg.SQDepth {
			q.Post(nic.WQE{Bytes: 8, Inline: true, Signaled: i == r.cfg.SQDepth-1, Remote: pcie.GPU})
		}
		if q.Free() != 0 {
			t.Errorf("%d slots free in a full queue", q.Free())
		}
		r.ring(0, q)
		r.eng.Run()
		if q.Free() != r.cfg.SQDepth || len(cqe.args) != lap+1 || q.Completed() != q.Head() {
			t.Errorf("lap %d: %d slots free, CQEs %v, completed %d of %d", lap, q.Free(), cqe.args, q.Completed(), q.Head())
		}
	}
	// 64 B WQEs, 16 a fetch.
	if want := 5 * r.cfg.SQDepth / r.cfg.FetchMax; r.nics[0].WQEFetches != want {
		t.Errorf("%d WQE fetches, want %d", r.nics[0].WQEFetches, want)
	}
}

func TestFullQueue(t *testing.T) {
	r := build(t, nicConfig(), false)
	q, _ := r.qp(t, 0, pcie.GPU)
	for range r.cfg.SQDepth {
		q.Post(nic.WQE{Bytes: 8})
	}
	defer func() {
		if recover() == nil {
			t.Error("a post to a full queue overwrote a WQE")
		}
	}()
	q.Post(nic.WQE{Bytes: 8})
}

func TestLimits(t *testing.T) {
	r := build(t, nicConfig(), false)
	for range r.cfg.MaxQP {
		r.qp(t, 0, pcie.GPU)
	}
	if _, err := r.nics[0].NewQP(1, pcie.GPU, nil); err == nil {
		t.Error("no error beyond the NIC's queue pairs")
	}
	for _, change := range []func(*nic.Config){
		func(c *nic.Config) { c.MTU = 0 }, func(c *nic.Config) { c.FetchMax = 0 }, func(c *nic.Config) { c.ReadAhead = 0 }, func(c *nic.Config) { c.SQDepth = 0 },
	} {
		c := nicConfig()
		change(&c)
		if _, err := nic.New(r.eng, nil, nil, 0, c, r.bus[0], r.net); err == nil {
			t.Errorf("no error for %+v", c)
		}
	}
}

// TestStale: a WQE that the fetch reads before its bytes are visible is told.
func TestStale(t *testing.T) {
	for _, late := range []bool{false, true} {
		r := build(t, nicConfig(), false)
		q, _ := r.qp(t, 0, pcie.GPU)
		stale := 0
		r.nics[0].Find = func(sim.Time, stage.Hazard) { stale++ }
		b := r.bus[0]
		visible := sim.Time(0)
		if late { // when the WQE is at the NIC already
			visible = sim.Time(b.OneWay(pcie.GPU, pcie.NIC, 8) + r.cfg.Sched.Mean() + b.RoundTrip(pcie.NIC, pcie.GPU, 64))
		}
		q.Post(nic.WQE{Bytes: 8, Inline: true, Signaled: true, Remote: pcie.GPU, Visible: visible})
		r.ring(0, q)
		r.eng.Run()
		if got := stale == 1; got != late || stale > 1 {
			t.Errorf("visible at %v: %d stale WQEs", visible, stale)
		}
	}
}

// TestRates: a queue is served by one unit, all queues by one engine that both
// directions share.
func TestRates(t *testing.T) {
	const each = 1000
	rate := func(queues int, both bool) sim.Duration {
		cfg := nicConfig()
		cfg.SQDepth = each
		r := build(t, cfg, false)
		land := &events{eng: r.eng}
		nodes := 1
		if both {
			nodes = 2
		}
		for node := range nodes {
			for range queues {
				q, _ := r.qp(t, node, pcie.GPU)
				for range each {
					q.Post(nic.WQE{Bytes: 8, Inline: true, Remote: pcie.GPU, Land: land})
				}
				r.ring(node, q)
			}
		}
		r.eng.Run()
		if len(land.at) != nodes*queues*each {
			t.Fatalf("%d of %d landed", len(land.at), nodes*queues*each)
		}
		lo, hi := len(land.at)/4, len(land.at)*3/4
		if both { // the nodes are not in step: all of it, the first message's latency left out
			lo, hi = 0, len(land.at)-1
		}
		return land.at[hi].Sub(land.at[lo]) * sim.Duration(nodes) / sim.Duration(hi-lo)
	}
	c := nicConfig()
	for _, tt := range []struct {
		name   string
		queues int
		both   bool
		want   sim.Duration
	}{
		{"one queue", 1, false, c.QPMessage},
		{"four queues", 4, false, c.QPMessage / 4},
		{"64 queues", 64, false, c.TxMessage},
		{"64 queues both ways", 64, true, c.TxMessage + c.RxMessage},
	} {
		if got := rate(tt.queues, tt.both); got < tt.want-tt.want/50 || got > tt.want+tt.want/20 {
			t.Errorf("%s: %v a message, want %v", tt.name, got, tt.want)
		}
	}
}

// TestOrder: whatever the sizes, latencies and doorbells, a queue's messages
// land and complete in the order of their WQEs.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := nicConfig()
		cfg.MTU = rapid.SampledFrom([]int64{256, 1024, 4096}).Draw(t, "mtu")
		cfg.FetchMax = rapid.SampledFrom([]int{1, 2, 16}).Draw(t, "fetch")
		cfg.ReadAhead = rapid.SampledFrom([]int{1, 3, 32}).Draw(t, "read-ahead")
		cfg.SQDepth = rapid.IntRange(32, 40).Draw(t, "depth")
		random := rapid.Bool().Draw(t, "random latencies")
		if random {
			cfg.Sched, cfg.TxLatency, cfg.RxLatency, cfg.AckLatency = sim.Uniform(0, 300*ns), sim.Exponential(200*ns), sim.Exponential(300*ns), sim.Exponential(400*ns)
		}
		r := build(t, cfg, random)
		type queue struct {
			q    *nic.QP
			land *events
			n    uint32
		}
		cqes := make([]*events, rapid.IntRange(1, 3).Draw(t, "queues"))
		queues := make([]queue, len(cqes))
		for i := range queues {
			q, e := r.qp(t, i%2, pcie.Host)
			queues[i], cqes[i] = queue{q: q, land: &events{eng: r.eng}}, e
		}
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			i := rapid.IntRange(0, len(queues)-1).Draw(t, "queue")
			x := &queues[i]
			n := min(rapid.IntRange(1, 9).Draw(t, "wqes"), x.q.Free())
			blue := n == 1 && rapid.Bool().Draw(t, "blueflame")
			for range n {
				w := nic.WQE{Bytes: rapid.Int64Range(1, 20_000).Draw(t, "bytes"), Local: pcie.Host, Remote: pcie.GPU, Land: x.land, LandArg: x.n, Signaled: rapid.Bool().Draw(t, "signaled")}
				w.Inline = w.Bytes <= cfg.InlineMax
				x.n++
				x.q.Post(w)
			}
			if blue {
				r.bus[i%2].Write(pcie.CPU, pcie.NIC, 64, sim.Cause{}, sim.Kind{}, x.q.BlueFlame(), x.q.Head())
			} else if n > 0 {
				r.bus[i%2].Write(pcie.CPU, pcie.NIC, 8, sim.Cause{}, sim.Kind{}, x.q.Doorbell(), x.q.Head())
			}
			r.eng.RunUntil(r.eng.Now().Add(sim.Duration(rapid.Int64Range(0, 3000).Draw(t, "pause")) * ns))
		}
		r.eng.Run()
		r.idle(t)
		for i, x := range queues {
			if len(x.land.args) != int(x.n) {
				t.Fatalf("queue %d: %d of %d landed", i, len(x.land.args), x.n)
			}
			for k, a := range x.land.args {
				if a != uint32(k) {
					t.Fatalf("queue %d: message %d landed as number %d", i, a, k)
				}
			}
			for k := 1; k < len(cqes[i].args); k++ {
				if cqes[i].args[k] <= cqes[i].args[k-1] {
					t.Fatalf("queue %d: CQEs %v", i, cqes[i].args)
				}
			}
		}
	})
}

// TestAllocations: a message in the steady state costs no memory.
func TestAllocations(t *testing.T) {
	r := build(t, nicConfig(), false)
	q, err := r.nics[0].NewQP(1, pcie.GPU, discard{})
	if err != nil {
		t.Fatal(err)
	}
	bell := q.Doorbell() // converted once, as a path that posts does not
	post := func() {
		for range 64 {
			q.Post(nic.WQE{Bytes: 6000, Signaled: true, Local: pcie.GPU, Remote: pcie.GPU, Land: discard{}})
		}
		r.bus[0].Write(pcie.GPU, pcie.NIC, 8, sim.Cause{}, sim.Kind{}, bell, q.Head())
		r.eng.Run()
	}
	for range 20 {
		post()
	}
	if n := testing.AllocsPerRun(50, post); n > 0 {
		t.Errorf("%v allocations per 64 messages", n)
	}
}

type discard struct{}

func (discard) Done(uint32, sim.Cause) {}

// TestBlueFlameBehindFetch: a WQE that is pushed while earlier ones are still
// being fetched does not overtake them; pushed later it needs no fetch.
func TestBlueFlameBehindFetch(t *testing.T) {
	for _, tt := range []struct {
		pause   sim.Duration
		fetches int
	}{{0, 2}, {300 * ns, 2}, {5 * sim.Microsecond, 1}} {
		r := build(t, nicConfig(), false)
		q, _ := r.qp(t, 0, pcie.Host)
		land := &events{eng: r.eng}
		w := nic.WQE{Bytes: 8, Inline: true, Signaled: true, Remote: pcie.GPU, Land: land}
		for w.LandArg = range 3 {
			q.Post(w)
		}
		r.bus[0].Write(pcie.CPU, pcie.NIC, 8, sim.Cause{}, sim.Kind{}, q.Doorbell(), q.Head())
		for r.nics[0].WQEFetches == 0 {
			r.eng.Step()
		}
		r.eng.RunUntil(r.eng.Now().Add(tt.pause))
		w.LandArg = 3
		q.Post(w)
		r.bus[0].Write(pcie.CPU, pcie.NIC, 64, sim.Cause{}, sim.Kind{}, q.BlueFlame(), q.Head())
		r.eng.Run()
		for i, a := range land.args {
			if a != uint32(i) {
				t.Errorf("pushed %v after the fetch began: landed in the order %v", tt.pause, land.args)
				break
			}
		}
		if len(land.args) != 4 || r.nics[0].WQEFetches != tt.fetches {
			t.Errorf("pushed %v after the fetch began: %d landed, %d fetches, want 4 and %d", tt.pause, len(land.args), r.nics[0].WQEFetches, tt.fetches)
		}
	}
}

// TestPayloadBuffer: what a queue with long messages reads ahead is bounded, so
// that another queue's message comes through within the buffer's time on the wire,
// and its own messages come one after the other at the wire's rate.
func TestPayloadBuffer(t *testing.T) {
	const long, count = int64(1 << 20), 16
	cfg := nicConfig()
	alone := func() sim.Duration {
		r := build(t, cfg, false)
		q, e := r.qp(t, 0, pcie.GPU)
		q.Post(nic.WQE{Bytes: 8, Signaled: true, Local: pcie.GPU, Remote: pcie.GPU})
		r.ring(0, q)
		r.eng.Run()
		return e.last()
	}()
	r := build(t, cfg, false)
	q, _ := r.qp(t, 0, pcie.GPU)
	land := &events{eng: r.eng}
	for range count {
		q.Post(nic.WQE{Bytes: long, Signaled: true, Local: pcie.GPU, Remote: pcie.GPU, Land: land})
	}
	r.ring(0, q)
	r.eng.RunUntil(sim.Time(100 * sim.Microsecond))
	probe, e := r.qp(t, 0, pcie.GPU)
	probe.Post(nic.WQE{Bytes: 8, Signaled: true, Local: pcie.GPU, Remote: pcie.GPU})
	r.ring(0, probe)
	r.eng.Run()
	buffered := sim.NewPipe(gbps * 1e9).Transfer(int64(cfg.ReadAhead+1) * (cfg.MTU + header + reth))
	if got := e.last() - 100*sim.Microsecond; got > alone+buffered {
		t.Errorf("a message beside %d of %d B takes %v, alone %v: want at most %v more", count, long, got, alone, buffered)
	}
	packets := (long + cfg.MTU - 1) / cfg.MTU
	each := sim.NewPipe(gbps * 1e9).Transfer(long + packets*header + reth)
	for i := 1; i < len(land.at); i++ {
		if got := land.at[i].Sub(land.at[i-1]); got < each-each/100 || got > each+each/100 {
			t.Errorf("message %d lands %v after the one before, on the wire it takes %v", i, got, each)
		}
	}
	r.idle(t)
}

// TestQueuesTakeTurns: beside more queues than the buffer holds packets, each with
// a deep backlog of long messages, a message gets its share of the wire from the
// start.
func TestQueuesTakeTurns(t *testing.T) {
	const others, size = 48, int64(64 << 10)
	r := build(t, nicConfig(), false)
	post := func(messages int) *events {
		q, e := r.qp(t, 0, pcie.GPU)
		for range messages {
			q.Post(nic.WQE{Bytes: size, Signaled: true, Local: pcie.GPU, Remote: pcie.GPU})
		}
		r.ring(0, q)
		return e
	}
	for range others {
		post(32)
	}
	const begin = 100 * sim.Microsecond
	r.eng.RunUntil(sim.Time(begin))
	probe := post(1)
	r.eng.Run()
	packets := size / r.cfg.MTU
	share := (others + 1) * sim.NewPipe(gbps*1e9).Transfer(size+packets*(header+reth))
	if got := probe.last() - begin; got < share*9/10 || got > share*11/10 {
		t.Errorf("%d B beside %d queues take %v, want their share, %v", size, others, got, share)
	}
	r.idle(t)
}
