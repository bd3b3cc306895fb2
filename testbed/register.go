package testbed

import (
	"fmt"

	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// registration prices what makes memory reachable for a device, and what ends
// that. All of it is the work of a core and its kernel.
type registration struct{ c *scenarios.Config }

// part is one call: a fixed time, and one for each of the bytes' pages.
func (r registration) part(key string, bytes, page int64) sim.Delay {
	n := (bytes + page - 1) / page
	key = "hardware.registration." + key
	return r.c.Delay(key + ".fixed").Plus(sim.Duration(n) * r.c.Duration(key+".page"))
}

// mapped is what an IOMMU that translates adds for the bytes: entries of its
// tables, or (strict) the wait until its caches have lost them.
func (r registration) mapped(bytes int64, release bool) sim.Duration {
	m := iommuConfig(r.c)
	switch {
	case m.Page == 0:
		return 0
	case !release:
		return sim.Duration((bytes+m.Page-1)/m.Page) * r.c.Duration("hardware.pcie.iommu.map")
	case r.c.Enum("hardware.pcie.iommu.mode") == "strict":
		return r.c.Duration("hardware.pcie.iommu.invalidate")
	}
	return 0
}

// host prices the registration of host memory of that page with the NIC.
func (r registration) host(bytes, page int64, release bool) sim.Delay {
	key := "host.pin"
	if release {
		key = "host.unpin"
	}
	return r.part(key, bytes, page).Plus(r.mapped(bytes, release))
}

// gpu prices a call on GPU memory: pin, map, unmap or unpin.
func (r registration) gpu(call string, bytes int64) sim.Delay {
	return r.part("gpu."+call, bytes, r.c.Bytes("hardware.registration.gpu.granule"))
}

// calls returns what an operation is made of. by says for whom: the NIC, which
// pins GPU memory too where that is meant; the CPU's own mapping of GPU memory
// (GDRCopy); or a dma-buf handle, which the GPU's driver has pinned already.
func (r registration) calls(op, by string, gpu bool, bytes, page int64) ([]sim.Delay, error) {
	release := op == "unregister"
	if gpu {
		page = r.c.Bytes("hardware.registration.gpu.granule")
	}
	nic := r.host(bytes, page, release)
	switch {
	case by == "gpu" && !gpu:
		return nil, refuse("workload.by", "gpu with memory host (want nic)")
	case by == "dma-buf" && !gpu:
		return nil, refuse("workload.by", "dma-buf with memory host (want nic)")
	case op == "pin" || op == "map" || op == "unmap" || op == "unpin":
		if by != "gpu" {
			return nil, refuse("workload.op", "%s with by %s (want register or unregister, or by gpu)", op, by)
		}
		return []sim.Delay{r.gpu(op, bytes)}, nil
	case op != "register" && op != "unregister":
		return nil, refuse("workload.op", "%s with kind register (want register, unregister, pin, map, unmap or unpin)", op)
	case !gpu || by == "dma-buf":
		return []sim.Delay{nic}, nil
	case by == "gpu" && release:
		return []sim.Delay{r.gpu("unmap", bytes), r.gpu("unpin", bytes)}, nil
	case by == "gpu":
		return []sim.Delay{r.gpu("pin", bytes), r.gpu("map", bytes)}, nil
	case release:
		return []sim.Delay{nic, r.gpu("unpin", bytes)}, nil
	}
	return []sim.Delay{r.gpu("pin", bytes), nic}, nil
}

// sum is an operation's calls as one, at their means.
func (r registration) sum(op, by string, gpu bool, bytes, page int64) (total sim.Delay, err error) {
	calls, err := r.calls(op, by, gpu, bytes, page)
	for _, d := range calls {
		total = total.Plus(d.Mean())
	}
	return total, err
}

// register is a core that registers or releases memory.
type register struct {
	b     *bench
	calls []sim.Delay
	done  sim.Sink
	arg   uint32
	c     sim.Cause
	ended sim.HandlerID
}

func (b *bench) register() (*step, error) {
	c := b.cfg
	op, by, gpu, n := c.Enum("workload.op"), "nic", c.Enum("workload.memory") == "gpu", c.Bytes("workload.bytes")
	if c.Has("workload.by") {
		by = c.Enum("workload.by")
	}
	calls, err := registration{c}.calls(op, by, gpu, n, c.Bytes("workload.page"))
	if err != nil {
		return nil, err
	}
	if c.Enum("workload.reuse") == "pool" {
		calls = []sim.Delay{c.Delay("hardware.registration.lookup")}
	}
	r := &register{b: b, calls: calls}
	r.ended = b.run.Eng.Register(r)
	return &step{
		title: fmt.Sprintf("%s %d B of %s memory, by %s", op, n, c.Enum("workload.memory"), by), metric: stage.Latency,
		agents: []workload.Operation{r}, cores: 1,
	}, nil
}

// Begin makes the calls one after the other.
func (r *register) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	at := r.b.run.Eng.Now()
	for _, d := range r.calls {
		end := at.Add(d.Draw(r.b.node.Rand))
		c = r.b.run.Rec.Span(c, r.b.kind(stage.CPUPost), at, end, 0)
		at = end
	}
	r.done, r.arg, r.c = done, arg, c
	r.b.run.Eng.At(at, r.ended, 0)
}

// Handle ends the last call.
func (r *register) Handle(uint32) { r.done.Done(r.arg, r.c) }
