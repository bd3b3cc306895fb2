package path_test

import (
	"fmt"
	"strings"
	"testing"

	"gdisim/model/path"
	"gdisim/model/pcie"
)

// listed prints a program as the words of its actions.
func listed(list []path.Step) string {
	var out []string
	for _, s := range list {
		w := s.Do.String()
		if s.Do == path.DoFence {
			w = fmt.Sprintf("fence.%s", [...]string{"gpu", "sys", "cta"}[s.Scope])
			if s.Full {
				w += ".full"
			}
		}
		if s.N != 1 {
			w += fmt.Sprintf("*%d", s.N)
		}
		out = append(out, w)
	}
	return strings.Join(out, " > ")
}

// TestLibraryPrograms holds the libraries' sequences against the order of
// their sources: what is published before what, and what rings.
func TestLibraryPrograms(t *testing.T) {
	doca := path.Doorbell{Protocol: path.Protocol{Library: path.LibDOCA}, Fence: path.FenceGPU, Inline: true, InRegister: true, Counts: path.Counts{ConstLoads: 11}}
	nvshmem := path.Doorbell{Protocol: path.Protocol{Library: path.LibNVSHMEM}, Fence: path.FenceDevice, Record: true, Counts: path.Counts{ConstLoads: 8, ColdLines: 2}}
	deepep := path.Doorbell{Protocol: path.Protocol{Library: path.LibDeepEP}, Fence: path.FenceGPURelease, Record: true, Counts: path.Counts{ConstLoads: 8}}
	put, signal := path.Message{Bytes: 8}, path.Message{Bytes: 8, Signal: path.SignalAtomic}
	for _, c := range []struct {
		name string
		cfg  path.Doorbell
		with func(*path.Doorbell)
		msg  path.Message
		want string
	}{
		{
			"doca without record: no lock, one doorbell", doca, nil, put,
			"load, nc*11 > reserve > build > fence.gpu > publish > acquire > atomic max > acquire > doorbell",
		},
		{
			"doca with record: early doorbell, record, again", doca, func(d *path.Doorbell) { d.Record, d.SlotCheck = true, true }, put,
			"load, nc*11 > reserve > load, L2 > acquire > atomic > build > fence.gpu > publish > acquire > lock > acquire > atomic max > acquire > doorbell > doorbell record > fence.gpu > doorbell > fence.gpu > unlock",
		},
		{
			"doca, one block: no swap", doca, func(d *path.Doorbell) { d.Record, d.Sharing = true, path.ShareCTA }, put,
			"load, nc*11 > reserve > build > fence.cta > load, L2 > publish*0 > fence.cta*2 > lock > atomic max > fence.gpu > doorbell > doorbell record > fence.gpu > doorbell > unlock",
		},
		{
			"doca, one thread: no atomic", doca, func(d *path.Doorbell) { d.Record, d.Sharing = true, path.ShareThread }, put,
			"load, nc*11 > load, L2*2 > reserve*0 > build > publish*0 > fence.gpu > doorbell > doorbell record > fence.gpu > doorbell",
		},
		{
			"doca, the CPU rings", doca, func(d *path.Doorbell) { d.HostRings = true }, put,
			"load, nc*11 > reserve > build > fence.gpu > publish > acquire > doorbell slot",
		},
		{
			"nvshmem", nvshmem, nil, put,
			"reload if cold*2 > load, L2 > load, read-only*8 > reserve > fence.cta > build > load, L1*2 > fence.gpu.full > publish > fence.cta > must it ring > " +
				"lock > fence.cta > atomic max > fence.gpu.full > reload if cold > doorbell record > fence.gpu.full > reload if cold > doorbell > fence.cta > unlock",
		},
		{
			"nvshmem put with signal: one reservation, one doorbell", nvshmem, nil, signal,
			"reload if cold*2 > load, L2 > load, read-only*8 > reserve > fence.cta > build > load, L1*2 > build > fence.gpu.full > publish > fence.cta > must it ring > " +
				"lock > fence.cta > atomic max > fence.gpu.full > reload if cold > doorbell record > fence.gpu.full > reload if cold > doorbell > fence.cta > unlock",
		},
		{
			"nvshmem, the CPU rings: neither lock nor record", nvshmem, func(d *path.Doorbell) { d.HostRings, d.SlotIn = true, pcie.Host }, put,
			"reload if cold*2 > load, L2 > load, read-only*8 > reserve > fence.cta > build > load, L1*2 > fence.gpu.full > publish > fence.cta > must it ring > atomic max > doorbell slot",
		},
		{
			"deepep: no slot check, releases around the record", deepep, nil, put,
			"load, read-only*8 > reserve > build > load, L1*2 > fence.gpu.full > publish > must it ring*0 > lock > fence.cta > atomic max > fence.gpu > doorbell record > fence.gpu > doorbell > fence.cta > unlock",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := c.cfg
			if c.with != nil {
				c.with(&d)
			}
			p := d.Program(c.msg, 92, true)
			if got := listed(p.Steps()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestWaitPrograms: what a completion routine visits, and in which order.
func TestWaitPrograms(t *testing.T) {
	for _, c := range []struct {
		name         string
		cfg          path.Protocol
		used, queues int
		want         string
	}{
		{"bare", path.Protocol{}, 0, 1, ""},
		{"doca", path.Protocol{Library: path.LibDOCA, SystemEnd: true}, 0, 1, "load, L2*3 > poll CQ*2 > fence.sys.full > atomic"},
		{
			"doca, context: flushed one after the other",
			path.Protocol{Library: path.LibDOCA, Context: true, Peers: path.Peers{Count: 8, Used: 3, Before: 1}},
			0, 1,
			"load, L2*4 > acquire > atomic > load, L2*3 > poll CQ*2 > acquire > atomic > load, L2*4 > acquire > atomic > load, L2*15",
		},
		{
			"doca, context: lanes of a warp share the peers out",
			path.Protocol{Library: path.LibDOCA, Context: true, Peers: path.Peers{Count: 65, Used: 40, Before: 32, Lanes: 32}},
			0, 1,
			"load, L2*4 > acquire > atomic > load, L2*3 > poll CQ*2 > acquire > atomic > load, L2*4 > acquire > atomic > syncwarp",
		},
		{"doca, context of one peer", path.Protocol{Library: path.LibDOCA, Context: true}, 0, 1, "load, L2*3 > poll CQ*2 > acquire > atomic"},
		{"deepep looks at one queue", path.Protocol{Library: path.LibDeepEP, AllQueues: true}, 2, 8, "load, L2*2 > poll CQ > fence.cta*2"},
		{
			"nvshmem, used queue",
			path.Protocol{Library: path.LibNVSHMEM},
			2, 8,
			"load, L2 > load, read-only*2 > load, L2*2 > fence.cta > poll CQ*2 > atomic > load, L2 > fence.cta > acquire",
		},
		{
			"nvshmem, all: DCIs first, then the QPs in order",
			path.Protocol{Library: path.LibNVSHMEM, AllQueues: true, DCIs: 3, SystemEnd: true},
			2, 8,
			"visit idle queue*5 > load, L2 > load, read-only*2 > load, L2*2 > fence.cta > poll CQ*2 > atomic > load, L2 > fence.cta > visit idle queue*5 > fence.sys.full",
		},
		{
			"nvshmem, all: a warp shares 153 DCIs and 2 QPs out",
			path.Protocol{Library: path.LibNVSHMEM, AllQueues: true, DCIs: 153, Peers: path.Peers{Lanes: 32}},
			0, 2,
			"visit idle queue*4 > load, L2 > load, read-only*2 > load, L2*2 > fence.cta > poll CQ*2 > atomic > load, L2 > fence.cta > syncwarp > acquire",
		},
		{
			"nvshmem, all: the QPs to every PE",
			path.Protocol{Library: path.LibNVSHMEM, AllQueues: true, DCIs: 3, Peers: path.Peers{Count: 4, Before: 1}},
			1, 2,
			"visit idle queue*6 > load, L2 > load, read-only*2 > load, L2*2 > fence.cta > poll CQ*2 > atomic > load, L2 > fence.cta > visit idle queue*4 > acquire",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := path.Doorbell{Protocol: c.cfg}
			if got := listed(d.Wait(c.used, c.queues)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
