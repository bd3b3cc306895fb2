package testbed

import (
	"fmt"

	"gdisim/model/gpu"
	"gdisim/model/path"
	"gdisim/model/pcie"
	"gdisim/scenarios"
	"gdisim/sim"
)

type verbsSide struct{ *path.VerbsPath }

func (v verbsSide) thread(_ *gpu.SM, _, q int, c path.Client) thread { return v.NewThread(q, c) }
func (v verbsSide) busy() (d sim.Duration)                           { return v.Busy() }

// planVerbs reads the keys of a path that a CPU thread initiates.
func (r *runner) planVerbs(p *plan, payload pcie.Unit, wqes int) error {
	c := r.cfg
	p.cpu = true
	next, _ := path.ParseNextPut(c.Enum("path.next_put"))
	if next == path.NextProgress {
		return refuse("path.next_put", "progress over cpu-verbs (want at-once or completion)")
	}
	p.verbs = path.Verbs{
		Inline: c.Bool("path.inline"), BlueFlame: c.Bool("path.blueflame"), Payload: payload, CQEEvery: c.Count("path.cpu.cqe_every"), CQBatch: c.Count("path.cpu.cq_batch"), CQDepth: r.cqDepth(),
		Lookups: c.Count("path.steps.lookups"), Hops: c.Count("path.cpu.hops"), ReplyHops: c.Count("path.cpu.reply_hops"), Stream: p.kind == "stream", NextPut: next,
		KernelExits: c.Count("path.steps.kernel_exits"), Launches: c.Count("path.steps.launches"), Copies: c.Bool("path.staged"), Copy: copyEngine(c),
	}
	if c.Enum("workload.registration") == "per-operation" {
		in := registration{c}
		on := p.verbs.Payload == pcie.GPU && !p.verbs.Copies
		by, n, page := "nic", p.msg.Bytes, c.Bytes("workload.page")
		var err error
		if p.verbs.Register, err = in.sum("register", by, on, n, page); err != nil {
			return err
		}
		if p.verbs.Release, err = in.sum("unregister", by, on, n, page); err != nil {
			return err
		}
	}
	if n := c.Count("path.steps.front_ops"); n > 0 {
		p.verbs.Front = path.FrontEnd{Ops: n, Exit: c.Delay("hardware.gpu.stream.exit"), Op: c.Delay("hardware.gpu.stream.op"), Launch: c.Delay("hardware.gpu.stream.launch")}
	}
	if p.verbs.Copies {
		p.verbs.Payload = pcie.Host
	}
	n := c.Count("host.proxy.threads")
	if c.Has("path.proxy.workers") {
		n = c.Count("path.proxy.workers")
	}
	if g := c.Count("workload.initiators.ctas") * c.Count("workload.initiators.threads"); g > 1 {
		r.note("workload.initiators does not reach a path that CPU threads initiate (path key proxy.workers)")
	}
	p.fg = shape{agents: n, perCTA: 1, batch: wqes, queues: n}
	if p.kind == "stream" && wqes == 1 {
		p.fg.batch = c.Count("path.cpu.chain")
		if p.window < p.fg.batch { // a program chains what it may have outstanding
			r.note(fmt.Sprintf("%s: calls chain %d WRs, not %d: workload.outstanding is %d", r.name, p.window, p.fg.batch, p.window))
			p.fg.batch = p.window
		}
	}
	if most := p.window - p.fg.batch + 1; p.kind == "stream" && most > 0 && p.verbs.CQEEvery > most {
		// As perftest does where its CQ moderation exceeds the depth.
		r.note(fmt.Sprintf("%s: a CQE every %d messages, not %d: workload.outstanding is %d", r.name, most, p.verbs.CQEEvery, p.window))
		p.verbs.CQEEvery = most
	}
	switch {
	case c.Has("workload.background.kind"):
		return refuse("workload.background.kind", "a load beside a path that a CPU thread initiates (not available yet)")
	case p.msg.Get && p.verbs.Copies:
		return refuse("workload.kind", "get over a staged path (want a put)")
	}
	if p.verbs.Payload == pcie.GPU && !c.Bool("hardware.gpu.gpudirect") {
		p.block("no GPUDirect RDMA: the NIC cannot reach the payload in GPU memory (want payload_in host, or staged true)")
	}
	return nil
}

func copyEngine(c *scenarios.Config) path.CopyEngine {
	return path.CopyEngine{
		ToHost: c.Delay("hardware.gpu.copy.to_host"), ToGPU: c.Delay("hardware.gpu.copy.to_gpu"), Rate: c.Rate("hardware.gpu.copy.rate"),
		KernelExit: c.Delay("hardware.gpu.kernel_exit"), Launch: c.Delay("hardware.gpu.launch"),
	}
}
