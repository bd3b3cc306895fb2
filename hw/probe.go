package hw

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"gdisim/hw/host"
	"gdisim/hw/verbs"
	"gdisim/result"
)

// Machine is what Probe found.
type Machine struct {
	Facts   []result.Setting // CPU, kernel, clocks, idle states, NUMA, limits
	Devices []Device
	Missing []Missing
}

// Device is an RDMA device as the kernel shows it, with its limits where the
// library could open it.
type Device struct {
	Name, Node string // "mlx5_0"; the uverbs node's name
	Firmware   string
	NUMA       string
	PCI        string // link, "32.0 GT/s PCIe x16"; "" for a software device
	Emulated   string // why its timings are not a NIC's; "" where they are
	Ports      []Port
	Limits     []result.Setting
}

// Port is one port of a device.
type Port struct {
	Number                      int
	State, LinkLayer, Rate, MTU string
	GIDs                        []string // "INDEX VALUE TYPE NETDEV", empty ones left out
}

// Missing is something that a run on hardware would need.
type Missing struct{ What, Why, Fix string }

// Probe reads the machine below root, "/" of a live one as a file system; the
// library is asked only if live. A captured tree (a folder with proc and sys)
// serves as well.
func Probe(root fs.FS, live bool) *Machine {
	m := &Machine{}
	p := prober{root, m}
	p.cpu()
	p.limits(live)
	p.devices()
	libErr := verbs.Library()
	if live {
		p.library(libErr)
	}
	p.missing(live, libErr)
	return m
}

type prober struct {
	root fs.FS
	m    *Machine
}

// read returns a file's text without white space around, "" where there is none.
func (p *prober) read(name string) string {
	b, err := fs.ReadFile(p.root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (p *prober) list(dir string) []string {
	es, _ := fs.ReadDir(p.root, dir)
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

func (p *prober) fact(key, value string) {
	if value == "" {
		value = "not shown by this kernel"
	}
	p.m.Facts = append(p.m.Facts, result.Setting{Key: key, Value: value})
}

func (p *prober) cpu() {
	info := p.read("proc/cpuinfo")
	field := func(name string) string {
		for line := range strings.Lines(info) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
				return strings.TrimSpace(v)
			}
		}
		return ""
	}
	p.fact("cpu.model", field("model name"))
	n := 0
	for line := range strings.Lines(info) {
		if strings.HasPrefix(line, "processor") {
			n++
		}
	}
	p.fact("cpu.count", strconv.Itoa(n))
	virtual := "no sign of a hypervisor"
	if slices.Contains(strings.Fields(field("flags")), "hypervisor") {
		virtual = "virtual: wake-ups, timers and interrupts include the hypervisor's part"
	}
	p.fact("cpu.virtual", virtual)
	p.fact("kernel", p.read("proc/sys/kernel/osrelease"))
	p.fact("clocksource", p.read("sys/devices/system/clocksource/clocksource0/current_clocksource"))
	const freq = "sys/devices/system/cpu/cpu0/cpufreq/"
	p.fact("cpu.governor", p.read(freq+"scaling_governor"))
	clock := p.read(freq + "scaling_cur_freq")
	if clock != "" {
		clock += " kHz, " + p.read(freq+"cpuinfo_min_freq") + " to " + p.read(freq+"cpuinfo_max_freq")
	} else if mhz := field("cpu MHz"); mhz != "" {
		clock = mhz + " MHz, by /proc/cpuinfo"
	}
	p.fact("cpu.clock", clock)
	var states []string
	const idle = "sys/devices/system/cpu/cpu0/cpuidle"
	for _, s := range p.list(idle) {
		if name := p.read(path.Join(idle, s, "name")); name != "" {
			state := name + " exit " + p.read(path.Join(idle, s, "latency")) + "us"
			if p.read(path.Join(idle, s, "disable")) == "1" {
				state += " (disabled)"
			}
			states = append(states, state)
		}
	}
	p.fact("cpu.idle-states", strings.Join(states, ", "))
	p.fact("cpu.isolated", orNone(p.read("sys/devices/system/cpu/isolated")))
	p.fact("cpu.smt", p.read("sys/devices/system/cpu/smt/control"))
	var nodes []string
	for _, d := range p.list("sys/devices/system/node") {
		if _, err := strconv.Atoi(strings.TrimPrefix(d, "node")); err == nil {
			nodes = append(nodes, d+" cpus "+p.read("sys/devices/system/node/"+d+"/cpulist"))
		}
	}
	p.fact("numa", strings.Join(nodes, "; "))
	p.fact("pages.transparent-huge", p.read("sys/kernel/mm/transparent_hugepage/enabled"))
	huge := p.read("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if huge != "" {
		huge += " free of 2 MiB"
	}
	p.fact("pages.hugetlb", huge)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (p *prober) limits(live bool) {
	if live {
		p.fact("limit.locked-memory", lockedMemory())
	}
}

func (p *prober) devices() {
	const class = "sys/class/infiniband"
	for _, name := range p.list(class) {
		dir := path.Join(class, name)
		d := Device{Name: name, Firmware: p.read(path.Join(dir, "fw_ver")), NUMA: p.read(path.Join(dir, "device/numa_node"))}
		if speed := p.read(path.Join(dir, "device/current_link_speed")); speed != "" {
			d.PCI = speed + " x" + p.read(path.Join(dir, "device/current_link_width"))
		}
		for _, u := range p.list("sys/class/infiniband_verbs") {
			if p.read(path.Join("sys/class/infiniband_verbs", u, "ibdev")) == name {
				d.Node = u
			}
		}
		for _, num := range p.list(path.Join(dir, "ports")) {
			n, err := strconv.Atoi(num)
			if err != nil {
				continue
			}
			at := path.Join(dir, "ports", num)
			port := Port{Number: n, State: after(p.read(path.Join(at, "state"))), LinkLayer: p.read(path.Join(at, "link_layer")), Rate: p.read(path.Join(at, "rate"))}
			for i := range len(p.list(path.Join(at, "gids"))) {
				index := strconv.Itoa(i)
				gid := p.read(path.Join(at, "gids", index))
				if strings.Trim(gid, "0:") == "" {
					continue
				}
				port.GIDs = append(port.GIDs, strings.TrimSpace(index+" "+gid+" "+p.read(path.Join(at, "gid_attrs/types", index))+" "+p.read(path.Join(at, "gid_attrs/ndevs", index))))
			}
			d.Ports = append(d.Ports, port)
		}
		if strings.HasPrefix(name, "rxe") || strings.HasPrefix(name, "siw") {
			d.Emulated = "software device by its name"
		}
		p.m.Devices = append(p.m.Devices, d)
	}
}

// after returns "ACTIVE" of "4: ACTIVE".
func after(s string) string {
	if _, v, ok := strings.Cut(s, ": "); ok {
		return v
	}
	return s
}

// library adds to each device what only the library tells.
func (p *prober) library(libErr error) {
	if libErr != nil {
		return
	}
	for i := range p.m.Devices {
		d := &p.m.Devices[i]
		info, err := verbs.Describe(d.Name)
		if err != nil {
			p.m.Missing = append(p.m.Missing, Missing{d.Name, err.Error(), "see the permissions of /dev/infiniband"})
			continue
		}
		if info.Emulated != "" {
			d.Emulated = info.Emulated
		}
		for j := range d.Ports {
			for _, q := range info.Ports {
				if q.Number == d.Ports[j].Number {
					d.Ports[j].MTU = fmt.Sprintf("%d B of %d B", q.MTU, q.MaxMTU)
				}
			}
		}
		for _, l := range info.Limits {
			d.Limits = append(d.Limits, result.Setting(l))
		}
	}
}

func (p *prober) missing(live bool, libErr error) {
	add := func(what, why, fix string) { p.m.Missing = append(p.m.Missing, Missing{what, why, fix}) }
	if len(p.m.Devices) == 0 {
		why := "the kernel shows no device in /sys/class/infiniband"
		if len(p.list("sys/class/infiniband_verbs")) == 0 {
			why = "the kernel has no RDMA: no /sys/class/infiniband"
		}
		add("RDMA device", why, "load the NIC's driver (mlx5_ib) or rdma_rxe")
	}
	for _, d := range p.m.Devices {
		if !slices.ContainsFunc(d.Ports, func(q Port) bool { return q.State == "ACTIVE" }) {
			add(d.Name, "no port is ACTIVE", "cable, subnet manager, or `ip link set up`")
		}
		if d.Node == "" {
			add(d.Name, "no uverbs node", "load ib_uverbs")
		}
	}
	if live && libErr != nil {
		fix := "install libibverbs1 and ibverbs-providers"
		if host.Available() != nil {
			fix = "" // without cgo none can be opened, and the error says what to do
		}
		add("libibverbs", libErr.Error(), fix)
	}
	if _, err := fs.Stat(p.root, "sys/devices/system/cpu/cpu0/cpufreq"); err != nil {
		add("core clock", "no cpufreq: the clock during a run is not known", "")
	}
}
