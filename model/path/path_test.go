package path_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gdisim/model/cpu"
	"gdisim/model/fabric"
	"gdisim/model/gpu"
	"gdisim/model/nic"
	"gdisim/model/path"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ns = sim.Nanosecond

func fixed(n int64) sim.Delay { return sim.Fixed(sim.Duration(n) * ns) }

// words prints a program, one word a step: what it does, how often, and the
// fence's reach.
func words(p path.Program) []string {
	var out []string
	for _, part := range []struct {
		name string
		list []path.Step
	}{{"before", p.Before}, {"each", p.Each}, {"after", p.After}} {
		var words []string
		for _, s := range part.list {
			w := s.Do.String()
			if s.Do == path.DoFence {
				w += map[gpu.Scope]string{gpu.ScopeGPU: " gpu", gpu.ScopeSystem: " system"}[s.Scope]
				if s.Full {
					w += " full"
				}
			}
			if s.N != 1 {
				w += fmt.Sprintf(" x%d", s.N)
			}
			words = append(words, w)
		}
		out = append(out, part.name+": "+strings.Join(words, "; "))
	}
	return out
}

func TestDoorbellProgram(t *testing.T) {
	counts := path.Counts{Calls: 1, StateLoads: 2}
	small := path.Message{Bytes: 8}
	const before = "before: call; load, L1 x2"
	const each = "each: build; inline copy"
	for _, tt := range []struct {
		name   string
		cfg    path.Doorbell
		msg    path.Message
		checks bool
		want   []string
	}{
		{"none", path.Doorbell{Fence: path.FenceNone}, small, false, []string{before, each, "after: doorbell"}},
		{"none with record", path.Doorbell{Fence: path.FenceNone, Record: true}, small, false, []string{before, each, "after: doorbell record; doorbell"}},
		{"gpu", path.Doorbell{Fence: path.FenceGPU}, small, false, []string{before, each, "after: fence gpu; doorbell"}},
		{"gpu-release", path.Doorbell{Fence: path.FenceGPURelease}, small, false, []string{before, each, "after: fence gpu; doorbell"}},
		// The driver's order: fence, record, fence, doorbell.
		{"gpu+record", path.Doorbell{Fence: path.FenceGPURecord, Record: true}, small, false, []string{before, each, "after: fence gpu; doorbell record; fence gpu; doorbell"}},
		{"device", path.Doorbell{Fence: path.FenceDevice, Record: true}, small, false, []string{
			before, each, "after: fence gpu full; reload if cold; doorbell record; fence gpu full; reload if cold; doorbell",
		}},
		{"system-release", path.Doorbell{Fence: path.FenceSystemRelease, Record: true}, small, false, []string{
			before, each, "after: fence system; doorbell record; fence system; doorbell",
		}},
		{"system", path.Doorbell{Fence: path.FenceSystem, Record: true}, small, false, []string{
			before, each, "after: fence system full; reload if cold; doorbell record; fence system full; reload if cold; doorbell",
		}},
		{"system without record", path.Doorbell{Fence: path.FenceSystem}, small, false, []string{before, each, "after: fence system full; reload if cold; doorbell"}},
		{"pointer", path.Doorbell{Fence: path.FenceGPU}, path.Message{Bytes: 93}, false, []string{before, "each: build; load, L1 x2", "after: fence gpu; doorbell"}},
		{"payload in host memory", path.Doorbell{Fence: path.FenceGPU, Payload: pcie.Host}, small, false, []string{before, "each: build; load, host; inline copy", "after: fence gpu; doorbell"}},
		{"get", path.Doorbell{Fence: path.FenceGPU}, path.Message{Bytes: 8, Get: true}, false, []string{before, "each: build", "after: fence gpu; doorbell"}},
		{"signal", path.Doorbell{Fence: path.FenceGPU}, path.Message{Bytes: 8, Signal: path.SignalWrite}, false, []string{before, "each: build; inline copy; build", "after: fence gpu; doorbell"}},
		{"stream", path.Doorbell{Fence: path.FenceGPU}, small, true, []string{before, "each: load, L2 (async); build; inline copy; wait for it", "after: fence gpu; doorbell"}},
		{"lock", path.Doorbell{Fence: path.FenceGPU, Posting: path.PostLock}, small, true, []string{
			before + "; lock; load, L2", "each: load, L2 (async); build; inline copy; wait for it", "after: fence gpu; doorbell; unlock",
		}},
		{"handoff", path.Doorbell{Fence: path.FenceGPU, Posting: path.PostHandoff, RingUnit: 16}, small, false, []string{
			before, "each: await turn; build; inline copy", "after: fence gpu; doorbell x16; pass turn",
		}},
		{"cooperative", path.Doorbell{Fence: path.FenceGPU, Posting: path.PostCooperative}, small, false, []string{
			before + "; atomic", each, "after: syncwarp; fence gpu; await turn; atomic; acquire; doorbell; fence gpu; pass turn",
		}},
	} {
		tt.cfg.Inline, tt.cfg.Counts = true, counts
		if diff := cmp.Diff(tt.want, words(tt.cfg.Program(tt.msg, 92, tt.checks))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestProxyProgram(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  path.Proxy
		want string
	}{
		{"single producer", path.Proxy{Handoff: path.HandoffSingleProducer, Counts: path.Counts{Calls: 1, ConstLoads: 2}}, "each: call; load, read-only x2; await room; build; store, host"},
		{"general", path.Proxy{Handoff: path.HandoffGeneral, Counts: path.Counts{Calls: 1, StateLoads: 2, RingLoads: 1, Atomics: 1, HostLoads: 2}}, "each: call; load, L1 x2; load, L1; atomic; load, host x2; await room; build; fence system; store, host"},
		{"general, nothing counted", path.Proxy{Handoff: path.HandoffGeneral}, "each: atomic; load, host; await room; build; fence system; store, host"},
	} {
		tt.cfg.DescriptorBytes = 16
		want := []string{"before: ", tt.want, "after: "}
		if diff := cmp.Diff(want, words(tt.cfg.Program(path.Message{Bytes: 8}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestWorkerSteps(t *testing.T) {
	stages := func(x path.Proxy) (out []stage.Stage) {
		for _, s := range x.Worker(&cpu.Config{}, path.Message{Bytes: 8}) {
			out = append(out, s.Stage)
		}
		return out
	}
	plain := []stage.Stage{stage.CPUWait, stage.CPUDequeue, stage.CPUDequeue, stage.CPUPost, stage.CPUPost, stage.CPURing, stage.CPUPoll, stage.CPUPublish}
	if got := stages(path.Proxy{}); !slices.Equal(got, plain) {
		t.Errorf("plain worker: %v, want %v", got, plain)
	}
	general := slices.Insert(slices.Clone(plain), 3, stage.CPUDequeue)
	general = slices.Insert(general, 8, stage.CPUPoll)
	if got := stages(path.Proxy{TailLines: 1, Rewrites: 2, BlueFlame: true}); !slices.Equal(got, general) {
		t.Errorf("general worker: %v, want %v", got, general)
	}
}

func TestNames(t *testing.T) {
	for f := path.FenceNone; f <= path.FenceSystem; f++ {
		if got, ok := path.ParseFence(f.String()); !ok || got != f {
			t.Errorf("fence %v parses as %v, %v", f, got, ok)
		}
	}
	for p := path.PostSingle; p <= path.PostCooperative; p++ {
		if got, ok := path.ParsePosting(p.String()); !ok || got != p {
			t.Errorf("posting %v parses as %v, %v", p, got, ok)
		}
	}
	for h := path.HandoffGeneral; h <= path.HandoffSingleProducer; h++ {
		if got, ok := path.ParseHandoff(h.String()); !ok || got != h {
			t.Errorf("hand-off %v parses as %v, %v", h, got, ok)
		}
	}
}

// TestOrdered: what makes a WQE visible before its doorbell depends on where
// the queue lives.
func TestOrdered(t *testing.T) {
	for f := path.FenceNone; f <= path.FenceSystem; f++ {
		d := path.Doorbell{Fence: f, Queues: pcie.GPU}
		if got, want := d.Ordered(), f != path.FenceNone; got != want {
			t.Errorf("%v, queues in GPU memory: %v", f, got)
		}
		d.Queues = pcie.Host
		if got, want := d.Ordered(), f == path.FenceSystem || f == path.FenceSystemRelease; got != want {
			t.Errorf("%v, queues in host memory: %v", f, got)
		}
	}
}

// rig is two nodes on a switch with test-own prices.
type rig struct {
	env  *path.Env
	gpu  *gpu.Config
	cpu  *cpu.Config
	core *cpu.Core // of every worker
}

func build(t interface{ Fatal(...any) }, outages ...cpu.Outage) *rig {
	eng, rec := sim.New(), sim.NewRecorder()
	link := pcie.LinkSpec{MTps: 32000, Lanes: 16}
	bus := pcie.Config{
		Class: pcie.PIX, GPULink: link, NICLink: link, UpLink: link, MPS: 256, MRRS: 512, RCB: 64, RequestHeader: 24, CompletionHeader: 20,
		LinkLatency: fixed(25), SwitchLatency: fixed(110), RootLatency: fixed(40), PostedCredits: 512, NonPostedCredits: 256, CompletionCredits: 512,
	}
	bus.Tags[pcie.GPU], bus.Tags[pcie.NIC] = 256, 256
	bus.Units[pcie.GPU] = pcie.Timing{Egress: fixed(250), Read: fixed(180), Write: fixed(445), Return: fixed(300)}
	bus.Units[pcie.NIC] = pcie.Timing{Egress: fixed(60), Write: fixed(20), Return: fixed(50)}
	bus.Units[pcie.Host] = pcie.Timing{Read: fixed(130), Write: fixed(30)}
	bus.Units[pcie.CPU] = pcie.Timing{Egress: fixed(90)}
	nc := nic.Config{
		MTU: 4096, Sched: fixed(90), TxLatency: fixed(250), RxLatency: fixed(308), AckLatency: fixed(404), Atomic: fixed(50),
		TxMessage: 4 * ns, RxMessage: 3 * ns, QPMessage: 33 * ns, CQEBytes: 64, FetchMax: 16, ReadAhead: 32, InlineMax: 92, BlueFlame: 256, MaxQP: 64, SQDepth: 64,
	}
	r := &rig{
		gpu: &gpu.Config{
			Call: fixed(39), L1Hit: fixed(29), L1Refill: fixed(131), Sector: 32, L2Load: fixed(205), Atomic: fixed(215), Build: fixed(26), InlineWord: fixed(27), Record: fixed(5), Ring: fixed(14),
			HostStore: fixed(8), SyncWarp: fixed(1), Turn: fixed(61), ReleaseGPU: fixed(225), ReleaseSystem: fixed(580), SystemStores: fixed(360), FullExtra: fixed(42), Acquire: fixed(18),
			PollPeriod: fixed(167), Routine: fixed(10), StoreVisible: fixed(300), FixedPhase: true, SMs: 132, WarpSize: 32,
		},
		cpu: &cpu.Config{
			Loop: fixed(24), Check: fixed(3), Miss: fixed(90), Rewrite: fixed(91), Dequeue: fixed(12), Build: fixed(20), Post: fixed(16), Flush: fixed(150), PollEmpty: fixed(17),
			PollCQE: fixed(23), Publish: fixed(8),
		},
	}
	r.core = cpu.NewCore(r.cpu, nil, cpu.Load{Outages: outages})
	net, err := fabric.New(eng, rec, nil, 2, fabric.Config{Rate: 200e9, Hops: 1, SwitchLatency: fixed(130), CableLatency: fixed(20)})
	if err != nil {
		t.Fatal(err)
	}
	r.env = &path.Env{Eng: eng, Rec: rec, InlineLimit: nc.InlineMax, BlueFlame: nc.BlueFlame}
	var nics []*nic.NIC
	for i := range 2 {
		b, err := pcie.New(eng, rec, nil, "node", bus)
		if err != nil {
			t.Fatal(err)
		}
		n, err := nic.New(eng, rec, nil, i, nc, b, net)
		if err != nil {
			t.Fatal(err)
		}
		nics = append(nics, n)
		r.env.Nodes = append(r.env.Nodes, &path.Node{Index: i, Bus: b, NIC: n, GPU: r.gpu, Core: func(int) *cpu.Core { return r.core }, Rand: rand.New(rand.NewPCG(1, 2))})
	}
	nic.Connect(nics)
	return r
}

func (r *rig) sm() *gpu.SM { return gpu.NewSM(r.gpu, r.env.Nodes[0].Rand) }

// client notes when a thread has posted and completed; a test may act on it.
type client struct {
	eng               *sim.Engine
	posted, completed []sim.Time
	onPosted          func(c sim.Cause)
	onCompleted       func(c sim.Cause)
	last              sim.Cause
}

func (c *client) Posted(x sim.Cause) {
	c.posted = append(c.posted, c.eng.Now())
	c.last = x
	if c.onPosted != nil {
		c.onPosted(x)
	}
}

func (c *client) Completed(x sim.Cause) {
	c.completed = append(c.completed, c.eng.Now())
	c.last = x
	if c.onCompleted != nil {
		c.onCompleted(x)
	}
}

func (c *client) Observed(sim.Cause) {}

// at runs a function at an event.
type at func(arg uint32)

func (a at) Handle(arg uint32) { a(arg) }

// TestLock: threads get the queue in the order in which they came, and hold it
// one at a time.
func TestLock(t *testing.T) {
	r := build(t)
	eng := r.env.Eng
	const threads = 9
	p, err := path.NewDoorbell(r.env, 0, 1, path.Doorbell{Fence: path.FenceGPU, Inline: true, Posting: path.PostLock, Queues: pcie.GPU, Payload: pcie.GPU}, path.Message{Bytes: 8}, 1, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	var when []sim.Time
	completed := 0
	for i := range threads {
		c := &client{eng: eng}
		// Each on an SM of its own, coming a nanosecond after the one before.
		th := p.NewThread(r.sm(), 0, c)
		c.onPosted = func(x sim.Cause) {
			order, when = append(order, i), append(when, eng.Now())
			th.AwaitCompletion(x)
		}
		c.onCompleted = func(sim.Cause) { completed++ }
		eng.At(sim.Time(sim.Duration(i)*ns), eng.Register(at(func(uint32) { th.Post(r.env.Rec.Begin(eng.Now())) })), 0)
	}
	eng.Run()
	// Swap, fresh index, build, cold payload line, two words, fence, doorbell.
	const held = (215 + 205 + 26 + 131 + 2*27 + 225 + 14) * ns
	for i := range order {
		if order[i] != i {
			t.Fatalf("posted in the order %v", order)
		}
		if want := sim.Time(held * sim.Duration(i+1)); when[i] != want {
			t.Errorf("thread %d posted at %v, want %v", i, when[i], want)
		}
	}
	if len(order) != threads || completed != threads {
		t.Errorf("%d posted and %d completed of %d", len(order), completed, threads)
	}
}

// TestHandoff: slots are published in the order of their tickets, and the
// thread that fills the batch rings.
func TestHandoff(t *testing.T) {
	r := build(t)
	eng := r.env.Eng
	const threads, unit = 8, 4
	p, err := path.NewDoorbell(r.env, 0, 1, path.Doorbell{Fence: path.FenceGPU, Inline: true, Posting: path.PostHandoff, Queues: pcie.GPU, Payload: pcie.GPU, RingUnit: unit}, path.Message{Bytes: 8}, 1, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	completed := 0
	for i := range threads {
		c := &client{eng: eng}
		th := p.NewThread(r.sm(), 0, c)
		c.onPosted = func(x sim.Cause) {
			order = append(order, i)
			th.AwaitCompletion(x)
		}
		c.onCompleted = func(sim.Cause) { completed++ }
		eng.At(sim.Time(sim.Duration(i)*ns), eng.Register(at(func(uint32) { th.Post(sim.Cause{}) })), 0)
	}
	eng.Run()
	if n := r.env.Nodes[0].NIC.Doorbells; n != threads/unit {
		t.Errorf("%d doorbells for %d WQEs, want one in %d", n, threads, unit)
	}
	if !slices.IsSorted(order) || len(order) != threads || completed != threads {
		t.Errorf("posted in the order %v, %d completed", order, completed)
	}
}

// TestRoom: a thread that finds the send queue full waits for a CQE.
func TestRoom(t *testing.T) {
	r := build(t)
	eng := r.env.Eng
	const posts = 200 // the queue holds 64
	p, err := path.NewDoorbell(r.env, 0, 1, path.Doorbell{Fence: path.FenceGPU, Inline: true, Queues: pcie.GPU, Payload: pcie.GPU}, path.Message{Bytes: 8}, 1, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{eng: eng}
	r.gpu.ReleaseGPU, r.gpu.Build, r.gpu.InlineWord = fixed(1), fixed(1), fixed(1)
	r.gpu.L2Load = fixed(1) // posts faster than a round trip
	th := p.NewThread(r.sm(), 0, c)
	left := posts
	next := func(sim.Cause) {
		if left--; left >= 0 {
			th.Post(r.env.Rec.Begin(eng.Now()))
		}
	}
	c.onPosted = next
	next(sim.Cause{})
	eng.Run()
	if len(c.posted) != posts {
		t.Fatalf("%d of %d posted", len(c.posted), posts)
	}
	retired := 0
	for {
		if _, ok := th.Retire(sim.Cause{}); !ok {
			break
		}
		retired++
	}
	if retired != posts {
		t.Errorf("%d of %d retired", retired, posts)
	}
	reserve := sim.Duration(0)
	for _, rec := range r.env.Rec.Records() {
		for _, s := range rec.Spans {
			if stage.Stage(s.Stage) == stage.GPUReserve {
				reserve += s.Start.Sub(s.Arrival)
			}
		}
	}
	if reserve < sim.Microsecond {
		t.Errorf("waited %v for slots", reserve)
	}
}

func (r *rig) proxy(t interface{ Fatal(...any) }, change func(*path.Proxy)) *path.ProxyPath {
	x := path.Proxy{
		Handoff: path.HandoffSingleProducer, Workers: 1, Rings: 1, Chain: 1, Depth: 16, Inline: true, ValueBytes: 8, BlueFlame: true, CompletionIn: pcie.GPU, Payload: pcie.GPU,
		DescriptorBytes: 16, CQBatch: 1, PublishEvery: 1,
	}
	if change != nil {
		change(&x)
	}
	if x.Burst == 0 {
		x.Burst = x.Chain
	}
	p, err := path.NewProxy(r.env, 0, 1, x, path.Message{Bytes: 8}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestIdleWorker: a descriptor waits for the worker's pass to come by, less
// than a pass, whatever the moment; the rest of the way is the sum of prices.
func TestIdleWorker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := build(t)
		rings := rapid.IntRange(1, 6).Draw(t, "rings")
		p := r.proxy(t, func(x *path.Proxy) { x.Rings = rings })
		eng, c := r.env.Eng, &client{eng: r.env.Eng}
		ring := rapid.IntRange(0, rings-1).Draw(t, "ring")
		th := p.NewThread(r.sm(), 0, ring, c)
		c.onPosted = th.AwaitCompletion
		at0 := sim.Time(rapid.Int64Range(0, 100_000).Draw(t, "at"))
		eng.RunUntil(at0)
		th.Post(r.env.Rec.Begin(eng.Now()))
		eng.Run()
		if len(c.completed) != 1 {
			t.Fatalf("%d completed", len(c.completed))
		}
		spent := map[stage.Stage]sim.Duration{}
		r.env.Rec.Mark(c.last, uint8(stage.PutCompletion))
		rec := &r.env.Rec.Records()[0]
		rec.Walk(rec.Marks[0], func(s sim.Step) { spent[stage.Stage(s.Stage)] += s.Time })
		pass := (24 + 17 + 3*sim.Duration(rings)) * ns
		// The descriptor and the CQE both wait for the pass.
		if w := spent[stage.CPUWait]; w < 0 || w >= 2*pass {
			t.Fatalf("waited %v for two passes of %v", w, pass)
		}
		want := map[stage.Stage]sim.Duration{
			stage.CPUDequeue: 90 + 12, stage.CPUPost: 20 + 16, stage.CPURing: 150, stage.CPUPoll: 90 + 23, stage.CPUPublish: 8, stage.GPUBuild: 26, stage.GPURing: 8,
		}
		priced := map[stage.Stage]sim.Duration{}
		x := path.Proxy{BlueFlame: true, CompletionIn: pcie.GPU, DescriptorBytes: 16}
		for _, s := range x.Worker(r.cpu, path.Message{Bytes: 8})[1:] {
			priced[s.Stage] += s.Price
		}
		for s, d := range priced {
			if d != want[s]*ns {
				t.Fatalf("%v is listed with %v, want %v", s, d, want[s]*ns)
			}
		}
		for s, want := range want {
			if spent[s] != want*ns {
				t.Fatalf("%v: %v, want %v", s, spent[s], want*ns)
			}
		}
		if p.Busy() != (90+12+20+16+150+90+23+8)*ns {
			t.Fatalf("worker busy for %v", p.Busy())
		}
		if got := r.env.Nodes[0].NIC; got.WQEFetches != 0 || got.Doorbells != 1 {
			t.Fatalf("%d fetches, %d doorbells of a BlueFlame post", got.WQEFetches, got.Doorbells)
		}
	})
}

// TestChain: one doorbell for the descriptors that are there, and one CQE.
func TestChain(t *testing.T) {
	r := build(t)
	eng := r.env.Eng
	p := r.proxy(t, func(x *path.Proxy) { x.Chain = 4 })
	c := &client{eng: eng}
	th := p.NewThread(r.sm(), 0, 0, c)
	left := 12
	c.onPosted = func(x sim.Cause) {
		if left--; left > 0 {
			th.Post(sim.Cause{})
		}
	}
	th.Post(sim.Cause{})
	eng.Run()
	n := 0
	for _, ok := th.Retire(sim.Cause{}); ok; _, ok = th.Retire(sim.Cause{}) {
		n++
	}
	// The first goes alone at once; the others gather while the worker posts.
	if d := r.env.Nodes[0].NIC.Doorbells; n != 12 || d < 4 || d > 6 {
		t.Errorf("%d completed, %d doorbells", n, d)
	}
}

// TestDepth: with a ring of two the third enqueue waits for a completion.
func TestDepth(t *testing.T) {
	r := build(t)
	eng := r.env.Eng
	p := r.proxy(t, func(x *path.Proxy) { x.Depth = 2 })
	c := &client{eng: eng}
	th := p.NewThread(r.sm(), 0, 0, c)
	left := 6
	c.onPosted = func(x sim.Cause) {
		if left--; left > 0 {
			th.Post(r.env.Rec.Begin(eng.Now()))
		}
	}
	th.Post(r.env.Rec.Begin(eng.Now()))
	eng.Run()
	if len(c.posted) != 6 {
		t.Fatalf("%d of 6 enqueued", len(c.posted))
	}
	if d := c.posted[1].Sub(c.posted[0]); d > 100*ns {
		t.Errorf("the second enqueue took %v", d)
	}
	if d := c.posted[2].Sub(c.posted[1]); d < 2*sim.Microsecond {
		t.Errorf("the third enqueue took %v, without a slot", d)
	}
}

// TestSharedCore: while another thread has the worker's core nothing is posted,
// and everything is once it comes back.
func TestSharedCore(t *testing.T) {
	slice := 100 * sim.Microsecond
	r := build(t, cpu.Outage{Period: 2 * slice, Length: slice, Phase: slice})
	eng := r.env.Eng
	p := r.proxy(t, nil)
	c := &client{eng: eng}
	th := p.NewThread(r.sm(), 0, 0, c)
	c.onPosted = th.AwaitCompletion
	post := func(us int64) {
		eng.RunUntil(sim.Time(sim.Duration(us) * sim.Microsecond))
		th.Post(r.env.Rec.Begin(eng.Now()))
	}
	post(20)
	eng.RunUntil(sim.Time(30 * sim.Microsecond))
	if len(c.completed) != 1 {
		t.Fatal("not completed on a free core")
	}
	post(130) // inside the outage
	eng.RunUntil(sim.Time(2 * slice))
	if len(c.completed) != 1 || r.env.Nodes[0].NIC.Doorbells != 1 {
		t.Fatal("posted while another thread had the core")
	}
	eng.RunUntil(sim.Time(210 * sim.Microsecond))
	if len(c.completed) != 2 {
		t.Fatalf("completed at %v, with the core since %v", c.completed, 2*slice)
	}
}

// TestHostPolling: several threads that poll a queue in host memory each see
// their own completion, by reads over PCIe.
func TestHostPolling(t *testing.T) {
	r := build(t)
	eng := r.env.Eng
	p, err := path.NewDoorbell(r.env, 0, 1, path.Doorbell{Fence: path.FenceSystem, Inline: true, Posting: path.PostLock, Queues: pcie.Host, Payload: pcie.GPU}, path.Message{Bytes: 8}, 1, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	var clients []*client
	for range 4 {
		c := &client{eng: eng}
		th := p.NewThread(r.sm(), 0, c)
		left := 3
		c.onPosted = th.AwaitCompletion
		c.onCompleted = func(sim.Cause) {
			if left--; left > 0 {
				th.Post(r.env.Rec.Begin(eng.Now()))
			}
		}
		clients = append(clients, c)
		th.Post(r.env.Rec.Begin(0))
	}
	eng.Run()
	for i, c := range clients {
		if len(c.completed) != 3 {
			t.Errorf("thread %d: %d of 3 completed", i, len(c.completed))
		}
	}
	if err := r.env.Nodes[0].Bus.Idle(); err != nil {
		t.Error(err)
	}
}

// TestTooManyQueues: the NIC's limit is an error with its number.
func TestTooManyQueues(t *testing.T) {
	r := build(t)
	if _, err := path.NewDoorbell(r.env, 0, 1, path.Doorbell{}, path.Message{Bytes: 8}, 65, 1, false); err == nil || !strings.Contains(err.Error(), "64") {
		t.Errorf("65 queues on a NIC of 64: %v", err)
	}
	if _, err := path.NewProxy(r.env, 0, 1, path.Proxy{Workers: 1, Rings: 1}, path.Message{Bytes: 8}, 1); err == nil || !strings.Contains(err.Error(), "64") {
		t.Errorf("a worker on a NIC without a QP left: %v", err)
	}
}
