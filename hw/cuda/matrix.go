package cuda

import (
	"fmt"
	"strings"
	"time"
)

// hostPages are how many pages of host memory and SMs an experiment on words of it
// is spread over, since a read of it takes 1.0 to 1.35 us by its address and SM.
const hostPages = 6

// Spread returns the experiment on several pages and SMs, each with a part of the
// samples, where that matters.
func Spread(e Experiment, sms int) []Experiment {
	flags := e.Kind == Ask || e.Kind == Answer && e.How == ByStore
	if !flags && (e.Memory != Host || e.Kind != Samples && e.Kind != Polls || strings.HasPrefix(e.Kernel, "store_")) {
		return []Experiment{e}
	}
	free := sms // of background kernels, which come first
	if e.Background >= StoreHost {
		free -= e.CTAs
	}
	var out []Experiment
	for i := range hostPages {
		x := e
		x.Offset = int64(i) * (9<<20 + 3*page + 5*128)
		x.N = max(e.N/hostPages, 1)
		if e.Kind != Polls {
			x.Blocks = 1 + i*max(free-1, 0)/hostPages
		}
		out = append(out, x)
	}
	return out
}

// Batch is how many polls a sample of Polls has.
const Batch = 16

// Row is one experiment of the matrix.
type Row struct {
	Name, Method string
	Experiment
	// Repeat is how often a Rate runs: each run is a sample, its time for one WQE
	// or message.
	Repeat int
	// SecondName names the second row, "" where it is not kept.
	SecondName string
}

// Rest of an SM before a sample, in clocks: what was stored has drained by then.
const (
	rest     = 6000
	restLoad = 3000
	alone    = 20_000
)

// Orders are what stands before record and doorbell, as path.fence says it, and
// the kernels' names for it.
var Orders = []struct {
	Word, Kernel string
	Record       bool // the record is fenced too
}{
	{"none", "none", false},
	{"gpu-release", "gpu", false},
	{"gpu+record", "gpu", true},
	{"device", "device", true},
	{"device-no-record", "device", false},
	{"system-release", "system_release", true},
	{"system", "system", true},
	{"system-no-record", "system", false},
}

// PostKernel names the kernel that posts in that order: prefix post, stream or
// shared. bare: everything but the queue itself is in registers.
func PostKernel(prefix, order string, record, bare bool) string {
	k := prefix + "_" + order
	if record {
		k += "_record"
	}
	if bare {
		k += "_bare"
	}
	return k
}

// PostOrder finds the kernel's name for what path.fence and path.record say, and
// whether the record is fenced too.
func PostOrder(fence, record string) (order string, fenced bool) {
	switch fence {
	case "gpu", "gpu-release":
		order = "gpu"
	case "gpu+record":
		order, fenced = "gpu", true
	case "device":
		order, fenced = "device", true
	case "system-release":
		order, fenced = "system_release", true
	case "system":
		order, fenced = "system", true
	default:
		order = "none"
	}
	if record != "auto" {
		fenced = record == "true"
	}
	return order, fenced
}

// MemoryNames are the words for Memory.
var MemoryNames = []string{"gpu", "host", "peer"}

// ClockRow is two clock reads: what every sample has in it.
func ClockRow(n int) Row {
	return Row{Name: "gpu.clock", Method: "two reads of clock64, back to back", Experiment: Experiment{Kind: Samples, Kernel: "clock_pair", N: n, Gap: restLoad}}
}

// Busy keeps an SM busy for d, which brings its clock up and measures it.
func Busy(d time.Duration) Experiment { return Experiment{Kind: Spin, N: 1, Delay: d} }

// Fence returns stores to lines of their own and a fence behind them.
func Fence(scope string, memory Memory, stores, n int, b Background, ctas int) Experiment {
	return Experiment{Kind: Samples, Kernel: "fence_" + scope, Memory: memory, Count: stores, N: n, Gap: rest, Background: b, CTAs: ctas}
}

// DefaultCTAs of each background, where nothing else is said.
func DefaultCTAs(b Background, sms int) int {
	switch b {
	case StoreHost, LoadHost:
		return 16
	case StoreGPU:
		return max(sms-12, 1)
	}
	return 0
}

// both returns a row of GPU memory for each half of the L2.
func both(rows []Row, p Placement) []Row {
	var out []Row
	for _, r := range rows {
		halves := r.Memory == GPU && (r.Kind == Samples && r.Background == Quiet && !strings.HasPrefix(r.Kernel, "clock") && !strings.HasPrefix(r.Kernel, "store_") || r.Kind == Polls && r.Blocks == 1)
		if !halves {
			out = append(out, r)
			continue
		}
		for _, half := range []string{"near", "far"} {
			x := r
			x.Name, x.Offset = r.Name+"."+half, p.Offset(half)
			x.Method += "; in the L2 half that is " + half
			if x.SecondName != "" {
				x.SecondName += "." + half
			}
			out = append(out, x)
		}
	}
	return out
}

// Matrix is every experiment, for a GPU of that many SMs, with n samples where
// they are cheap. The kinds are in the order of the names.
func Matrix(sms, n int, p Placement) []Row { return both(matrix(sms, n), p) }

func matrix(sms, n int) []Row {
	n = min(max(n, 10), 4000)
	few := max(n/4, 10)
	var rows []Row
	add := func(name, method string, e Experiment) *Row {
		rows = append(rows, Row{Name: name, Method: method, Experiment: e})
		return &rows[len(rows)-1]
	}
	rows = append(rows, ClockRow(n))

	for _, scope := range []string{"block", "gpu", "system"} {
		for _, m := range []Memory{GPU, Host} {
			for _, k := range []int{0, 1, 8, 64} {
				if scope == "block" && (m != GPU || k > 1) {
					continue
				}
				r := add(fmt.Sprintf("gpu.fence.%s.%s.%d-stores", scope, MemoryNames[m], k), "membar of that scope behind so many 8 B stores to lines of their own, each after 3 us of rest", Fence(scope, m, k, n, Quiet, 0))
				if k == 64 && scope == "system" {
					r.Second, r.SecondName = true, fmt.Sprintf("gpu.store.%s.64-lines", MemoryNames[m])
				}
			}
		}
	}
	type load struct {
		b    Background
		ctas int
		name string
	}
	loads := []load{
		{CopyToHost, 0, "copy-to-host"},
		{CopyToGPU, 0, "copy-to-gpu"},
		{CopyBoth, 0, "copy-both"},
		{StoreHost, 1, "store-host-1"},
		{StoreHost, 16, "store-host-16"},
		{LoadHost, 16, "load-host-16"},
		{StoreGPU, DefaultCTAs(StoreGPU, sms), fmt.Sprintf("store-gpu-%d", DefaultCTAs(StoreGPU, sms))},
	}
	for _, l := range loads {
		k := few
		if l.b == StoreHost {
			k = max(n/8, 10)
		}
		for _, m := range []Memory{GPU, Host} {
			add(fmt.Sprintf("gpu.fence.system.%s.1-stores.%s", MemoryNames[m], l.name), "the same beside that traffic (the number: CTAs of 512 threads)", Fence("system", m, 1, k, l.b, l.ctas))
		}
		e := Experiment{Kind: Samples, Kernel: "load_volatile", Memory: Host, N: k, Gap: restLoad, Background: l.b, CTAs: l.ctas}
		add("gpu.load.host.volatile."+l.name, "volatile load of pinned host memory beside that traffic", e)
		for _, f := range []string{"none", "system"} {
			add("echo.gpu."+f+"."+l.name, "flag to a polling thread and back beside that traffic", echo(f, k, 0, l.b, l.ctas))
		}
	}
	for _, m := range []Memory{GPU, Host} {
		for _, w := range []int{4, 8, 16, 64} {
			add(fmt.Sprintf("gpu.store.%s.%dB", MemoryNames[m], w), "volatile stores of one thread, 256 back to back (64 B are four of 16), time of one", Experiment{Kind: Samples, Kernel: fmt.Sprintf("store_%d", w), Memory: m, Count: 256, N: few, Gap: alone})
			add(fmt.Sprintf("gpu.store.%s.%dB.alone", MemoryNames[m], w), "one such store", Experiment{Kind: Samples, Kernel: fmt.Sprintf("store_%d_alone", w), Memory: m, Count: 1, N: few, Gap: alone})
		}
		for _, l := range []string{"weak", "volatile", "relaxed_gpu", "relaxed_system", "acquire_gpu", "acquire_system"} {
			if l == "weak" && m != GPU {
				continue
			}
			if m == GPU && l == "volatile" {
				add("gpu.load.gpu.changed", "one load of a word that an atomic changed before, until its value is there", Experiment{Kind: Samples, Kernel: "load_volatile", N: n, Gap: restLoad, Count: 1})
			}
			add(fmt.Sprintf("gpu.load.%s.%s", MemoryNames[m], dashes(l)), "one load, until its value is there", Experiment{Kind: Samples, Kernel: "load_" + l, Memory: m, N: n, Gap: restLoad})
		}
		for _, scope := range []string{"gpu", "system"} {
			for _, blocks := range []int{1, 8, 32, sms} {
				for _, own := range []bool{false, true} {
					if own && blocks == 1 {
						continue
					}
					line := "shared"
					if own {
						line = "own"
					}
					add(fmt.Sprintf("gpu.poll.%s.%s.%d-pollers.%s", MemoryNames[m], scope, blocks, line), "loop of loads of an unchanging flag, 16 a sample, time of one",
						Experiment{Kind: Polls, Kernel: "poll_" + scope, Memory: m, Blocks: blocks, N: max(min(few, 4000/blocks), 20), Own: own})
				}
			}
		}
		for _, a := range []string{"add_gpu", "add_system", "cas_system", "exchange_system", "reduce_system"} {
			add(fmt.Sprintf("gpu.atomic.%s.%s", MemoryNames[m], dashes(a)), "one atomic, until its result is there (reduce: its issue)", Experiment{Kind: Samples, Kernel: "atomic_" + a, Memory: m, N: n, Gap: 4000})
		}
	}

	for _, f := range []string{"none", "system"} {
		add("echo.gpu."+f, "a GPU thread raises a flag in host memory, with that fence before it, a polling thread answers by another", echo(f, n, 0, Quiet, 0))
	}
	for _, d := range []time.Duration{100, 150, 200, 250, 300, 500, 1000} {
		add(fmt.Sprintf("echo.gpu.none.look-after-%dns", d), "the same, looking for the answer for the first time after that delay", echo("none", few, d, Quiet, 0))
	}
	for _, f := range []string{"answer", "answer_fenced"} {
		name := map[string]string{"answer": "none", "answer_fenced": "system"}[f]
		add("echo.cpu."+name, "a thread raises a flag in host memory, a polling GPU thread answers, with that fence before its flag", Experiment{Kind: Answer, Kernel: f, N: n, How: ByStore})
	}
	for i, name := range []string{"stream-write", "copied-word"} {
		r := add("echo.cpu."+name, "the flag is in GPU memory, and written by a stream memory operation or an 8 B copy", Experiment{Kind: Answer, Kernel: "answer", N: few, How: ByStreamWrite + i, Second: true})
		r.SecondName = r.Name + ".call"
	}

	for _, form := range []string{"lanes", "thread", "flag"} {
		for _, bp := range [][2]int{{1, 1}, {8, 1}, {32, 1}, {sms, 1}, {sms, 2}, {sms, 4}} {
			if form != "lanes" && (bp[0] == 32 || bp[1] == 2) {
				continue
			}
			b, p := bp[0], bp[1]
			add(fmt.Sprintf("proxy.%s.%d-blocks.%d-proxies", form, b, p), "64 B descriptor in a ring of the block's own, polling proxy, completion word in host memory, one in flight", ring(form, b, p, perBlock(few, b), 1))
			add(fmt.Sprintf("proxy.%s.%d-blocks.%d-proxies.window-64", form, b, p), "the same, 64 in flight: time per message of all", ring(form, b, p, 40*perBlock(few, b)/10+100, 64)).Repeat = 3
		}
	}
	for i, w := range []string{"poll", "yield", "sleep-1us", "sleep-50us", "futex", "eventfd"} {
		e := ring("lanes", 1, 1, few, 1)
		e.Wait = i
		add("proxy.wait."+w, "1 block, 1 proxy that waits so (futex, eventfd: woken by a thread that polls the ring)", e)
		if i == WaitYield || i == WaitSleep50us {
			continue // every message would wait a slice
		}
		e.Competing, e.N = 1, max(few/2, 20)
		add("proxy.wait."+w+".competing-1", "the same beside a spinning thread on the proxy's core", e)
	}

	for _, o := range Orders {
		for _, after := range []int{1, 0} {
			name := "post." + o.Word
			if after == 0 {
				name += ".warm"
			}
			add(name, "WQE of an 8 B inline write, record, doorbell to a host page, with that order; no NIC. After an acquire, as a completion leaves it (warm: without)",
				Experiment{Kind: Samples, Kernel: PostKernel("post", o.Kernel, o.Record, false), N: n, Count: after, Gap: rest})
		}
		for _, b := range []int{1, 2, 8, 32, sms} {
			for _, w := range []int{1, 8, 32} {
				if w > 1 && b != 1 && b != sms {
					continue
				}
				add(fmt.Sprintf("post-rate.%s.%d-queues.%d-wqes", o.Word, b, w), "posts back to back, a queue for each block, so many WQEs a doorbell: time per WQE of all", Experiment{Kind: Rate, Kernel: PostKernel("stream", o.Kernel, o.Record, false), Blocks: b, N: max(n/w, 50), Count: w}).Repeat = 3
			}
		}
	}
	for _, o := range Orders {
		add("post."+o.Word+".bare", "the same with everything in registers but the queue itself", Experiment{Kind: Samples, Kernel: PostKernel("post", o.Kernel, o.Record, true), N: n, Gap: rest})
		for _, b := range []int{1, 2, 8, 32, sms} {
			for _, w := range []int{1, 8, 32} {
				if w > 1 && b != 1 && b != sms {
					continue
				}
				add(fmt.Sprintf("post-rate.%s.%d-queues.%d-wqes.bare", o.Word, b, w), "posts back to back with everything in registers: time per WQE of all", Experiment{Kind: Rate, Kernel: PostKernel("stream", o.Kernel, o.Record, true), Blocks: b, N: max(n/w, 50), Count: w}).Repeat = 3
			}
		}
	}
	for _, o := range []string{"device", "system"} {
		for _, b := range []int{1, 2, 8, 32, sms} {
			add(fmt.Sprintf("post-rate.%s.shared.%d-blocks", o, b), "all blocks post to one queue and ring in the order of their slots: time per WQE of all", Experiment{Kind: Rate, Kernel: PostKernel("shared", o, true, true), Blocks: b, N: max(4*n/(3+b), 20), Count: 1}).Repeat = 3
		}
	}

	for _, l := range []struct {
		name   string
		how, k int
		block  bool
	}{
		{"first-store", FirstStore, 0, false},
		{"stream-sync", Sync, 0, false},
		{"blocking-sync", Sync, 0, true},
		{"graph-1.first-store", GraphStore, 1, false},
		{"graph-64.stream-sync", GraphSync, 64, false},
	} {
		r := add("launch."+l.name, "one kernel (or a graph of so many) launched, until that", Experiment{Kind: Launch, N: few, How: l.how, Count: l.k, Blocking: l.block, Second: true})
		r.SecondName = r.Name + ".call"
	}
	for i, by := range NoticeBy {
		for _, d := range []time.Duration{20 * time.Microsecond, 200 * time.Microsecond} {
			add(fmt.Sprintf("notice.%s.after-%dus", by, d.Microseconds()), "from when a polling thread sees the last store of a kernel of that length until the waiter knows", Experiment{Kind: Notice, N: max(few/2, 20), How: i, Delay: d})
		}
	}
	add("notice.stream-sync.blocking.after-20us", "the same in a context whose waits block", Experiment{Kind: Notice, N: max(few/2, 20), How: 2, Delay: 20 * time.Microsecond, Blocking: true})
	for i, dir := range []string{"to-host", "to-gpu"} {
		for _, size := range []int64{8, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20} {
			r := add(fmt.Sprintf("copy.%s.%dB", dir, size), "asynchronous copy and wait for its stream, pinned memory", Experiment{Kind: Copy, How: i, Bytes: size, N: max(few/2, 20), Second: true})
			r.SecondName = r.Name + ".call"
			if i == ToHost {
				add(fmt.Sprintf("copy.%s.%dB.polled", dir, size), "the same until a thread that polls for it sees the last byte, in memory that this thread has just written", Experiment{Kind: Copy, How: i, Bytes: size, N: max(few/4, 20), Wait: 1})
			}
		}
	}
	for _, size := range []int64{4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20} {
		for _, huge := range []bool{false, true} {
			pages := "4KiB-pages"
			if huge {
				pages = "huge-pages"
			}
			name := fmt.Sprintf("%dKiB.%s", size>>10, pages)
			r := add("gpu.register."+name, "cuMemHostRegister of touched memory", Experiment{Kind: Register, Bytes: size, Huge: huge, N: max(min(30, int((1<<30)/size)), 4), Deadline: 20 * time.Second})
			r.SecondName = "gpu.unregister." + name
		}
	}
	for _, size := range []int64{2 << 20, 64 << 20} {
		add(fmt.Sprintf("gpu.export.%dMiB", size>>20), "dma-buf of GPU memory: cuMemGetHandleForAddressRange", Experiment{Kind: Export, Bytes: size, N: 20})
	}
	return append(rows, peerRows(n, few)...)
}

func peerRows(n, few int) []Row {
	var rows []Row
	add := func(name, method string, e Experiment) {
		rows = append(rows, Row{Name: name, Method: method, Experiment: e})
	}
	for _, scope := range []string{"gpu", "system"} {
		for _, k := range []int{0, 1, 8, 64} {
			add(fmt.Sprintf("gpu.fence.%s.peer.%d-stores", scope, k), "membar behind so many stores to another GPU's memory", Fence(scope, Peer, k, n, Quiet, 0))
		}
	}
	add("gpu.load.peer.volatile", "one load of another GPU's memory", Experiment{Kind: Samples, Kernel: "load_volatile", Memory: Peer, N: n, Gap: restLoad})
	for _, a := range []string{"add_system", "cas_system"} {
		add("gpu.atomic.peer."+dashes(a), "one atomic on another GPU's memory", Experiment{Kind: Samples, Kernel: "atomic_" + a, Memory: Peer, N: n, Gap: 4000})
	}
	for i, f := range []string{"none", "system"} {
		e := Experiment{Kind: PeerEcho, Kernel: []string{"ask", "ask_fenced"}[i], Answer: []string{"answer", "answer_fenced"}[i], N: n, Gap: 2000, Blocks: 1}
		add("echo.peer."+f, "two GPUs raise flags in each other's memory, with that fence before them, each polls its own", e)
	}
	for _, b := range []int{0, 1, 4, 16, 132} {
		name, method := fmt.Sprintf("copy.peer.%d-blocks", b), "blocks of 512 threads copy 64 MiB into another GPU's memory: time of one"
		if b == 0 {
			name, method = "copy.peer.engine", "copy engine, 64 MiB into another GPU's memory: time of one"
		}
		add(name, method, Experiment{Kind: PeerCopy, Blocks: b, Bytes: 64 << 20, N: max(few/50, 5), Count: 10})
	}
	return rows
}

func echo(fence string, n int, delay time.Duration, b Background, ctas int) Experiment {
	k := "ask"
	if fence == "system" {
		k = "ask_fenced"
	}
	return Experiment{Kind: Ask, Kernel: k, N: n, Gap: restLoad, Delay: delay, Background: b, CTAs: ctas}
}

func ring(form string, blocks, proxies, n, window int) Experiment {
	return Experiment{Kind: Proxy, Kernel: "ring_" + form, Blocks: blocks, Proxies: proxies, N: n, Window: window, Gap: 2000}
}

// perBlock keeps the messages of all blocks in bounds.
func perBlock(n, blocks int) int { return max(min(n, 60_000/blocks), 20) }

func dashes(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '_' {
			b[i] = '-'
		}
	}
	return string(b)
}
