package pcie

import "gdisim/sim"

// build lays the links of the distance class and the routes over them.
func (f *Fabric) build(node string) {
	c := &f.cfg
	add := func(name string, rate int64) *pipe {
		p := &pipe{name: node + "." + name, bw: sim.NewPipe(rate), credits: [3]int{c.PostedCredits, c.NonPostedCredits, c.CompletionCredits}}
		p.limit = p.credits
		f.pipes = append(f.pipes, p)
		return p
	}
	link := func(name string, rate int64) (up, down *pipe) {
		rate -= int64(float64(rate) * c.DLLPShare)
		return add("pcie."+name+".up", rate), add("pcie."+name+".down", rate)
	}
	gpuRate := c.GPULink.BitsPerSecond()
	if c.Class == C2C {
		gpuRate = c.C2CRate
	}
	gpuUp, gpuDown := link("gpu", gpuRate)
	nicUp, nicDown := link("nic", c.NICLink.BitsPerSecond())
	wire, sw, root := c.LinkLatency, c.SwitchLatency, c.RootLatency

	// The ways between a device and the root complex; the last hop up meets it.
	var gpu, nic way
	through := func(p *pipe) hop { return hop{pipe: p, latency: []sim.Delay{wire, sw}} }
	ends := func(p *pipe) hop { return hop{pipe: p, latency: []sim.Delay{wire}} }
	var toNIC, toGPU []hop
	switch c.Class {
	case PIX:
		up, down := link("switch", c.UpLink.BitsPerSecond())
		toNIC = []hop{through(gpuUp), ends(nicDown)}
		toGPU = []hop{through(nicUp), ends(gpuDown)}
		nic = way{up: []hop{through(nicUp), ends(up)}, down: []hop{through(down), ends(nicDown)}}
		gpu = way{up: []hop{through(gpuUp), ends(up)}, down: []hop{through(down), ends(gpuDown)}}
	case PXB: // each device under a switch of its own, both under a third
		up, down := link("switch", c.UpLink.BitsPerSecond())
		u1, d1 := link("switch1", c.UpLink.BitsPerSecond())
		u2, d2 := link("switch2", c.UpLink.BitsPerSecond())
		toNIC = []hop{through(gpuUp), through(u1), through(d2), ends(nicDown)}
		toGPU = []hop{through(nicUp), through(u2), through(d1), ends(gpuDown)}
		nic = way{up: []hop{through(nicUp), through(u2), ends(up)}, down: []hop{through(down), through(d2), ends(nicDown)}}
		gpu = way{up: []hop{through(gpuUp), through(u1), ends(up)}, down: []hop{through(down), through(d1), ends(gpuDown)}}
	default:
		nic = way{up: []hop{ends(nicUp)}, down: []hop{ends(nicDown)}}
		gpu = way{up: []hop{ends(gpuUp)}, down: []hop{ends(gpuDown)}}
	}
	peer := func(from, to way, gate ...hop) []hop {
		between := []sim.Delay{c.RootPeerLatency}
		switch c.Class {
		case NODE:
			between = append(between, c.MeshLatency)
		case SYS:
			between = append(between, c.SocketLatency)
		case C2C:
			between = []sim.Delay{root}
		}
		h := append(from.upTo(between...), gate...)
		return append(h, to.down...)
	}
	f.direct[GPU][NIC], f.direct[NIC][GPU] = toNIC, toGPU
	switch {
	case toNIC == nil && c.Class == SYS:
		gate := func(dir string) hop { return hop{pipe: add("socket."+dir, c.SocketP2PRate)} }
		f.routes[GPU][NIC], f.routes[NIC][GPU] = peer(gpu, nic, gate("to-nic")), peer(nic, gpu, gate("to-gpu"))
	case toNIC == nil || c.Redirect:
		f.routes[GPU][NIC], f.routes[NIC][GPU] = peer(gpu, nic), peer(nic, gpu)
	default:
		f.routes[GPU][NIC], f.routes[NIC][GPU] = toNIC, toGPU
	}

	// Memory traffic crosses the sockets without the limit of peers'.
	nicFar := c.HostFar || c.Class == SYS && c.HostNearGPU
	gpuFar := c.HostFar || c.Class == SYS && !c.HostNearGPU
	for _, h := range []Unit{Host, CPU} {
		f.routes[NIC][h], f.routes[h][NIC] = nic.host(c, nicFar)
		f.routes[GPU][h], f.routes[h][GPU] = gpu.host(c, gpuFar)
		if c.Class == C2C { // not a PCIe device: the IOMMU is not in its way
			f.routes[GPU][h][0].root = false
		}
	}
	if c.Class == C2C {
		f.routes[GPU][NIC][0].root = false
	}
	for from := range f.routes {
		for to := range f.routes[from] {
			if f.direct[from][to] == nil {
				f.direct[from][to] = f.routes[from][to]
			}
		}
	}
}

// way is the hops of a device up to the root complex and down from it.
type way struct{ up, down []hop }

// upTo returns the hops up with what the root complex takes behind the last.
func (w way) upTo(root ...sim.Delay) []hop {
	h := append([]hop(nil), w.up...)
	last := &h[len(h)-1]
	last.latency = append(append([]sim.Delay(nil), last.latency...), root...)
	last.root = true
	return h
}

// host returns the routes to and from the host, whose root latency comes first
// on the way down.
func (w way) host(c *Config, far bool) (to, from []hop) {
	root := []sim.Delay{c.RootLatency}
	if far {
		root = append(root, c.SocketLatency)
	}
	from = append([]hop(nil), w.down...)
	from[0].latency = append(append([]sim.Delay(nil), root...), from[0].latency...)
	return w.upTo(root...), from
}
