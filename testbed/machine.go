package testbed

import (
	"fmt"
	"sync"

	"gdisim/model/cpu"
	"gdisim/model/fabric"
	"gdisim/model/gpu"
	"gdisim/model/nic"
	"gdisim/model/path"
	"gdisim/model/pcie"
	"gdisim/scenarios"
	"gdisim/sim"
)

// machine is the cluster of one run.
type machine struct {
	env   *path.Env
	buses []*pcie.Fabric
	nics  []*nic.NIC
	net   *fabric.Network
	gpus  []*gpu.Config
	rands sim.Streams
	// faults strike on node 0 and on the network; waiters are the run's threads.
	faults  *faults
	waiters []waiter
}

// priced resolves a cost at a clock.
func priced(c scenarios.CostSpec, hz int64) sim.Delay {
	// milli-cycles / Hz in ps: x 1e12 / 1e3.
	return c.Fixed.Plus(sim.Duration((c.MilliCycles*1_000_000_000 + hz/2) / hz))
}

// build assembles two nodes for one path at one point. Component names carry no
// path, so that the paths of a point draw the same random numbers.
func (r *runner) build(rec *sim.Recorder) (*machine, error) {
	c := r.cfg
	eng := sim.New()
	m := &machine{rands: sim.NewStreams(r.seed, r.point)}
	m.faults = r.faults(m.rands)
	nodes := c.Count("cluster.nodes")
	hops := 1
	if c.Enum("cluster.fabric.kind") == "back-to-back" {
		hops = 0
	}
	transport, _ := fabric.ParseTransport(c.Enum("hardware.fabric.transport"))
	net, err := fabric.New(eng, rec, m.rands.Stream("fabric"), nodes, fabric.Config{
		Transport: transport, Rate: c.Rate("hardware.fabric.rate"), Hops: hops,
		SwitchLatency: c.Delay("hardware.fabric.switch"), CableLatency: c.Delay("hardware.fabric.cable"), Lose: m.faults.lose, Down: m.faults.down,
	})
	if err != nil {
		return nil, err
	}
	m.net = net
	core, uncore := clocks(c)
	bus := pcieConfig(c, uncore)
	for _, l := range []pcie.LinkSpec{bus.GPULink, bus.NICLink, bus.UpLink} {
		if l.MTps > 32_000 {
			r.note("64 GT/s: 236 of the 256 bytes of a flit carry TLPs; no figure of a real link has been held against that")
			break
		}
	}
	nicCfg := nicConfig(c)
	nicCfg.Retry = m.faults.retry
	gpuCfg := gpuConfig(c)
	cpuCfg := sync.OnceValue(func() *cpu.Config { return cpuConfig(c, core, uncore, !r.awake) }) // a path without a CPU reads none of it
	m.env = &path.Env{Eng: eng, Rec: rec, InlineLimit: nicCfg.InlineMax, BlueFlame: nicCfg.BlueFlame}
	for i := range nodes {
		name := fmt.Sprintf("node%d", i)
		b, err := pcie.New(eng, rec, m.rands.Stream(name+".pcie"), name, bus)
		if err != nil {
			return nil, err
		}
		n, err := nic.New(eng, rec, m.rands.Stream(name+".nic"), i, nicCfg, b, net)
		if err != nil {
			return nil, err
		}
		m.buses, m.nics, m.gpus = append(m.buses, b), append(m.nics, n), append(m.gpus, gpuCfg)
		m.env.Nodes = append(m.env.Nodes, &path.Node{
			Index: i, Bus: b, NIC: n, GPU: gpuCfg, Rand: m.rands.Stream(name + ".gpu"),
			Core: func(w int) *cpu.Core {
				name := fmt.Sprintf("%s.core%d", name, w)
				rng := m.rands.Stream(name)
				return cpu.NewCore(cpuCfg(), rng, coreLoad(c, name, m.rands, rng))
			},
		})
	}
	m.nics[0].Faults, m.env.Nodes[0].Faults = m.faults.nic, m.faults.path
	nic.Connect(m.nics)
	return m, nil
}

// report has the findings of all nodes told to find.
func (m *machine) report(find *findings) {
	m.env.Find = find.add
	for _, n := range m.nics {
		n.Find = find.add
	}
}

// clocks returns the core's and the uncore's frequency in Hz. An uncore that is
// not named follows the core's state; a core frequency means a loaded socket.
func clocks(c *scenarios.Config) (core, uncore int64) {
	state := c.Enum("host.clock")
	switch state {
	case "cold":
		core = c.Hz("hardware.cpu.clock.cold")
	case "warm":
		core = c.Hz("hardware.cpu.clock.warm")
	default:
		core = c.Hz("host.clock")
	}
	u := c.Enum("host.uncore")
	if u == "auto" {
		u = state
	}
	switch u {
	case "cold":
		return core, c.Hz("hardware.cpu.uncore.cold")
	case "warm":
		return core, c.Hz("hardware.cpu.uncore.warm")
	}
	if hz := c.Hz("host.uncore"); hz > 0 {
		return core, hz
	}
	return core, c.Hz("hardware.cpu.uncore.warm")
}

func link(l scenarios.LinkSpec) pcie.LinkSpec {
	return pcie.LinkSpec{MTps: int64(l.MTps), Lanes: l.Lanes}
}

func pcieConfig(c *scenarios.Config, uncore int64) pcie.Config {
	class, _ := pcie.ParseClass(c.Enum("hardware.pcie.path.gpu_nic"))
	p := pcie.Config{
		Class:   class,
		NICLink: link(c.Link("hardware.pcie.nic_link")),
		MPS:     c.Bytes("hardware.pcie.mps"), MRRS: c.Bytes("hardware.pcie.mrrs"), RCB: c.Bytes("hardware.pcie.rcb"),
		RequestHeader: c.Bytes("hardware.pcie.header.request"), CompletionHeader: c.Bytes("hardware.pcie.header.completion"),
		DLLPShare:   c.Ratio("hardware.pcie.dllp"),
		LinkLatency: c.Delay("hardware.pcie.link_latency"), RootLatency: c.Delay("hardware.pcie.root_latency"),
		PostedCredits: c.Count("hardware.pcie.credits.posted"), NonPostedCredits: c.Count("hardware.pcie.credits.non_posted"), CompletionCredits: c.Count("hardware.pcie.credits.completion"),
	}
	// What a class does not have on its ways is not read, so that who sets it is told.
	if class != pcie.C2C {
		p.GPULink = link(c.Link("hardware.pcie.gpu_link"))
	}
	switched := class == pcie.PIX || class == pcie.PXB
	if switched {
		p.UpLink, p.SwitchLatency = link(c.Link("hardware.pcie.up_link")), c.Delay("hardware.pcie.switch_latency")
		p.Redirect = c.Enum("hardware.pcie.acs") == "redirect"
	}
	if class != pcie.C2C && (!switched || p.Redirect) {
		p.RootPeerLatency = c.Delay("hardware.pcie.root_peer_latency")
	}
	p.OrderedWrite = c.Duration("hardware.pcie.ordered_write")
	p.IOMMU = iommuConfig(c)
	p.ColdRead = c.Delay("hardware.host.pcie.miss")
	p.HostNearGPU = c.Enum("hardware.pcie.host_near") == "gpu"
	if scenarios.IsStep(c.Enum("workload.kind")) && c.Enum("workload.socket") == "remote" {
		if class == pcie.SYS {
			p.HostNearGPU = true
		} else {
			p.HostFar, p.SocketLatency = true, c.Delay("hardware.pcie.socket_latency")
		}
	}
	switch class {
	case pcie.NODE:
		p.MeshLatency = c.Delay("hardware.pcie.mesh_latency")
	case pcie.SYS:
		p.SocketLatency = c.Delay("hardware.pcie.socket_latency")
		if c.Enum("host.other_socket") == "cold" {
			ratio := float64(c.Hz("hardware.cpu.uncore.warm")) / float64(c.Hz("hardware.cpu.uncore.cold"))
			p.SocketLatency = p.SocketLatency.Plus(sim.Duration(float64(p.SocketLatency.Mean()) * (ratio - 1)))
		}
		p.SocketP2PRate = c.Rate("hardware.pcie.socket_p2p_rate")
	case pcie.C2C:
		p.C2CRate = c.Rate("hardware.pcie.c2c_rate")
	}
	p.Tags[pcie.GPU], p.Tags[pcie.NIC] = c.Count("hardware.gpu.pcie.tags"), c.Count("hardware.nic.pcie.tags")
	p.Units[pcie.GPU] = pcie.Timing{Egress: c.Delay("hardware.gpu.pcie.egress"), Read: c.Delay("hardware.gpu.pcie.read"), Write: c.Delay("hardware.gpu.pcie.write"), Return: c.Delay("hardware.gpu.pcie.return")}
	p.Units[pcie.NIC] = pcie.Timing{Egress: c.Delay("hardware.nic.pcie.egress"), Write: c.Delay("hardware.nic.pcie.write"), Return: c.Delay("hardware.nic.pcie.return")}
	p.Units[pcie.Host] = pcie.Timing{Read: c.Delay("hardware.host.pcie.read"), Write: c.Delay("hardware.host.pcie.write")}
	p.Units[pcie.CPU] = pcie.Timing{Egress: priced(c.Cost("hardware.cpu.egress"), uncore)}
	hop := c.Duration("hardware.cpu.socket_hop")
	if c.Enum("host.proxy.memory") == "other" {
		p.Units[pcie.Host].Read, p.Units[pcie.Host].Write = p.Units[pcie.Host].Read.Plus(hop), p.Units[pcie.Host].Write.Plus(hop)
	}
	if c.Enum("host.proxy.socket") == "other" {
		p.Units[pcie.CPU].Egress = p.Units[pcie.CPU].Egress.Plus(hop)
	}
	return p
}

// iommuConfig returns what devices' requests meet in the root complex.
func iommuConfig(c *scenarios.Config) pcie.IOMMU {
	if m := c.Enum("hardware.pcie.iommu.mode"); m == "off" || m == "passthrough" {
		return pcie.IOMMU{}
	}
	m := pcie.IOMMU{
		Page: c.Bytes("hardware.pcie.iommu.page"), Entries: c.Count("hardware.pcie.iommu.entries"), Hit: c.Delay("hardware.pcie.iommu.hit"),
		Walk: c.Delay("hardware.pcie.iommu.walk"), Interval: c.Duration("hardware.pcie.iommu.interval"),
	}
	if c.Bool("hardware.pcie.ats") {
		m.ATC = c.Count("hardware.pcie.atc")
	}
	return m
}

// window is the buffer that a queue's messages walk through; 0 where each uses
// the same bytes.
func window(c *scenarios.Config) int64 {
	if !c.Has("workload.window") {
		return 0
	}
	return c.Bytes("workload.window")
}

func nicConfig(c *scenarios.Config) nic.Config {
	return nic.Config{
		MTU: c.Bytes("hardware.nic.mtu"), Sched: c.Delay("hardware.nic.sched"), TxLatency: c.Delay("hardware.nic.tx"), RxLatency: c.Delay("hardware.nic.rx"),
		AckLatency: c.Delay("hardware.nic.ack"), Response: c.Delay("hardware.nic.response"), Doorbell: c.Duration("hardware.nic.doorbell"), DoorbellMax: c.Count("hardware.nic.doorbells"), TxMessage: c.Duration("hardware.nic.tx_message"), RxMessage: c.Duration("hardware.nic.rx_message"),
		QPMessage: c.Duration("hardware.nic.qp_message"), CQEBytes: c.Bytes("hardware.nic.cqe"), FetchMax: c.Count("hardware.nic.wqe_fetch_max"),
		ReadAhead: c.Count("hardware.nic.read_ahead"), Atomic: c.Delay("hardware.nic.atomic"), InlineMax: c.Bytes("hardware.nic.inline_max"),
		Relaxed: relaxed(c), RelaxedFlag: relaxedFlag(c), OnDemand: c.Enum("workload.registration") == "on-demand", PageFault: c.Delay("hardware.nic.page_fault"), Window: window(c),
		BlueFlame: c.Bytes("hardware.nic.blueflame"), MaxQP: c.Count("hardware.nic.max_qp"), SQDepth: c.Count("hardware.nic.sq_depth"),
		Context: nic.Context{
			Cache: c.Bytes("hardware.nic.context.cache"), Line: c.Bytes("hardware.nic.context.line"), Requester: c.Bytes("hardware.nic.context.requester"), Responder: c.Bytes("hardware.nic.context.responder"),
			Page: c.Bytes("hardware.nic.context.page"), DCR: c.Bytes("hardware.nic.context.dcr"), DCRReads: c.Count("hardware.nic.context.dcr_reads"),
			Fetch: c.Bytes("hardware.nic.context.fetch"), Reads: c.Count("hardware.nic.context.reads"), Install: c.Delay("hardware.nic.context.install"),
		},
	}
}

func gpuConfig(c *scenarios.Config) *gpu.Config {
	hz := c.Hz("hardware.gpu.sm_clock")
	cost := func(key string) sim.Delay { return priced(c.Cost("hardware.gpu."+key), hz) }
	half := "." + c.Enum("hardware.gpu.placement")
	idle := "fence.release_gpu" + half
	if c.Has("hardware.gpu.fence.idle") {
		idle = "fence.idle"
	}
	return &gpu.Config{
		ReleaseIdle: cost(idle),
		Call:        cost("call"), L1Hit: cost("l1_hit"), L1Refill: cost("l1_refill"), Sector: c.Bytes("hardware.gpu.sector"), L2Load: cost("l2_load" + half), Atomic: cost("atomic" + half),
		Build: cost("build"), AtomicInterval: cost("atomic_interval"), FenceCTA: cost("fence.cta"), ReadOnlyHit: cost("nc_hit"), InlineWord: cost("inline_word"), Record: cost("record"), Ring: cost("ring"), HostStore: cost("host_store"),
		SyncWarp: cost("syncwarp"), Turn: cost("turn"), ReleaseGPU: cost("fence.release_gpu" + half), ReleaseSystem: cost("fence.release_system"),
		SystemStores: cost("fence.system_stores"), FullExtra: cost("fence.full_extra"), Acquire: cost("fence.acquire"), PollPeriod: cost("poll"), HostAcquire: cost("host_acquire"),
		FixedPhase: c.Enum("hardware.gpu.poll_phase") == "fixed",
		LineWay:    cost("line_way"), Routine: cost("routine"), StoreVisible: cost("store_visible"), SMs: c.Count("hardware.gpu.sms"), WarpSize: c.Count("hardware.gpu.warp"),
	}
}
