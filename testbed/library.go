package testbed

import (
	"gdisim/model/path"
	"gdisim/model/pcie"
)

// library reads what the path's library makes of posts and completions, and
// returns how its threads share the queues and the messages per post.
func (r *runner) library(p *plan, posting path.Posting, wqes, warp int) (path.Posting, int, error) {
	c := r.cfg
	d := &p.doorbell
	d.Library, _ = path.ParseLibrary(c.Enum("path.post"))
	if c.Enum("path.rings_by") == "host" {
		d.HostRings, d.SlotIn = true, memory(c, "path.doorbell_slot_in")
	}
	if d.Library == path.LibBare || d.Library == path.LibNVSHMEM {
		switch {
		case c.Enum("path.transport") == "dc": // the pool's are the queues that carry the messages
			if p.overDC, d.Vector = 1, c.Bytes("path.address_vector"); posting == path.PostSingle && d.Library == path.LibBare {
				p.overDC = c.Count("workload.initiators.ctas") * c.Count("workload.initiators.threads")
			}
			if c.Has("path.dcis") {
				p.overDC = c.Count("path.dcis")
			}
			if p.overDC == 0 {
				return posting, wqes, refuse("path.dcis", "0 with transport dc (want at least 1)")
			}
		case (d.HostRings || c.Enum("path.completion") == "all-qps") && c.Has("path.dcis"): // which look at all of them
			d.DCIs = c.Count("path.dcis")
		}
	}
	if d.Library == path.LibBare {
		return posting, wqes, nil
	}
	if p.notify == path.SignalImmediate {
		return posting, wqes, refuse("path.notify", "immediate with post %s (want data, signal-write or signal-atomic: the library posts no receives, and has no thread that takes their CQEs)", d.Library)
	}
	d.Counts.TurnRounds = c.Count("path.steps.turn_rounds")
	d.Counts.ColdLines = c.Count("path.steps.cold_lines")
	d.Insist = p.kind != "stream"
	d.SystemEnd = c.Enum("path.completion_fence") == "system"
	d.SystemWait = c.Enum("path.wait_fence") == "system"
	if c.Has("path.sq_depth") {
		d.Depth = c.Count("path.sq_depth")
	}
	threads := c.Count("workload.initiators.threads")
	switch d.Library {
	case path.LibBare:
	case path.LibDOCA:
		d.Sharing, _ = path.ParseSharing(c.Enum("path.sharing"))
		d.SlotCheck = c.Bool("path.slot_check")
		p.byCTA = true
		switch {
		case c.Enum("path.lanes") == "drift" || threads == 1:
		case threads%warp != 0:
			return posting, wqes, refuse("workload.initiators.threads", "%d with lanes together (want a multiple of the warp's %d)", threads, warp)
		case d.Sharing != path.ShareGPU || c.Enum("path.record") == "true":
			return posting, wqes, refuse("path.lanes", "together (want sharing gpu and no record: lanes that wait for each other cannot hold a lock each)")
		default:
			d.Lanes = warp
			if p.kind == "stream" {
				p.window *= warp // an initiator is a lane
			}
			return path.PostCooperative, 1, nil
		}
		if d.Sharing == path.ShareThread && threads > 1 {
			return posting, wqes, refuse("path.sharing", "%d threads of a CTA on one context with sharing thread (want cta or gpu)", threads)
		}
		return path.PostLock, wqes, nil
	case path.LibNVSHMEM:
		d.Public = c.Enum("path.call") == "public"
		if d.Public {
			d.Counts.PublicCalls, d.Counts.PublicLines = c.Count("path.steps.public_calls"), c.Count("path.steps.public_lines")
		}
		d.SlotCheck = c.Bool("path.slot_check")
		// The internal routine is told its QP; the public one takes the next. A
		// connection's QP is its own.
		d.PicksQueue = d.Public && !c.Has("workload.background.kind") && !c.Has("workload.connections")
		if d.Queues == pcie.Host && d.Fence == path.FenceDevice {
			d.Fence = path.FenceSystem // the library's own choice
		}
		if threads%warp == 0 { // a full warp with one peer is coalesced
			posting = path.PostCooperative
		} else {
			posting = path.PostLock
		}
		d.Posting = posting
	case path.LibDeepEP:
		posting = path.PostLock
	}
	d.RingBatch = c.Count("path.ring_batch")
	if wqes > 1 {
		r.note("wqes_per_doorbell does not reach this library, whose batch boundary decides (path key ring_batch)")
	}
	return posting, 1, nil
}
