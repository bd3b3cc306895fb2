package testbed

import (
	"slices"
	"strings"

	"gdisim/model/path"
)

// scope reads what a completion covers, and refuses what the path's software has
// no call for.
func (r *runner) scope(p *plan) error {
	c := r.cfg
	scope := c.Enum("path.completion")
	who, can := r.scopes(p)
	if !slices.Contains(can, scope) {
		return refuse("path.completion", "%s with %s (want %s)", scope, who, strings.Join(can, ", "))
	}
	if err := r.peers(p, scope); err != nil {
		return err
	}
	if scope != "signal" && scope != "immediate" {
		return nil
	}
	p.answered = true
	p.prox.Answered, p.prox.NextPut, p.verbs.NextPut = true, path.NextAtOnce, path.NextAtOnce
	handed := p.doorbell.Posting == path.PostHandoff && p.doorbell.RingUnit > 1
	switch {
	case p.kind == "get" || p.kind == "stream":
		return refuse("path.completion", "%s with workload.kind %s (want put, put-signal or ping-pong: the peer answers a message that it was told of)", scope, p.kind)
	case scope == "immediate" && p.kind == "put-signal":
		return refuse("path.completion", "immediate with workload.kind put-signal (want put, or completion signal)")
	case scope == "immediate" && p.notify != path.SignalImmediate:
		return refuse("path.completion", "immediate with notify %s (want notify immediate: messages and answers are told alike)", c.Enum("path.notify"))
	case scope == "signal" && p.kind != "put-signal" && p.notify == path.SignalImmediate:
		return refuse("path.completion", "signal with notify immediate (want completion immediate)")
	case c.Has("workload.background.kind"):
		return refuse("path.completion", "%s beside workload.background (want used-qp, or the metric rtt)", scope)
	case p.fg.batch > 1 || handed:
		return refuse("path.completion", "%s with several messages a post (want one: each is answered)", scope)
	case p.cpu && (p.verbs.Copies || p.verbs.KernelExits > 0 || p.verbs.Launches > 0 || p.verbs.Front.Ops > 0):
		return refuse("path.completion", "%s with kernels that begin or end beside the messages (want used-qp: the peer answers from a thread that runs on)", scope)
	}
	return nil
}

// scopes names the path's software and the scopes that it has.
func (r *runner) scopes(p *plan) (who string, can []string) {
	switch {
	case p.cpu:
		return "protocol cpu-verbs", []string{"used-qp", "signal", "immediate"}
	case p.proxy:
		return "protocol cpu-proxy", []string{"used-qp", "context", "signal", "immediate"}
	}
	who = "post " + p.doorbell.Library.String()
	switch p.doorbell.Library {
	case path.LibDOCA:
		return who, []string{"used-qp", "context", "signal"}
	case path.LibNVSHMEM:
		return who, []string{"used-qp", "all-qps", "signal"}
	case path.LibDeepEP:
		return who, []string{"used-qp", "signal"}
	case path.LibBare:
	}
	return who, []string{"used-qp", "signal", "immediate"}
}

// peers reads whom a completion call looks at beside the messages' peer, and a
// worker's pass where each peer has a ring of its own.
func (r *runner) peers(p *plan, scope string) error {
	c := r.cfg
	d, x := &p.doorbell, &p.prox
	d.AllQueues, d.Context, x.Context = scope == "all-qps", scope == "context", scope == "context"
	if p.cpu || !p.proxy && !d.AllQueues && !d.Context {
		return nil
	}
	if p.proxy {
		x.RingPerPeer = c.Bool("path.proxy.ring_per_peer")
		if !x.RingPerPeer && x.Quiet != path.QuietRequest {
			return nil
		}
	}
	n := path.Peers{Count: c.Count("path.peers.count")}
	if !p.proxy || x.RingPerPeer && x.Context && x.Quiet == path.QuietCounter {
		n.Before, n.Lanes = c.Count("path.peers.before"), c.Count("path.peers.lanes")
	}
	if d.Library == path.LibDOCA && d.Context {
		n.Used = c.Count("path.peers.used")
	}
	const rings = 65536 // as many as proxy.rings may be
	switch {
	case n.Before >= n.Count:
		return refuse("path.peers.before", "%d of %d peers (want less than peers.count)", n.Before, n.Count)
	case n.Used > n.Count:
		return refuse("path.peers.used", "%d of %d peers (want peers.count at most)", n.Used, n.Count)
	case p.proxy && x.RingPerPeer && n.Count*p.fg.queues > rings:
		return refuse("path.peers.count", "%d with %d rings to each (want %d rings of a node at most)", n.Count, p.fg.queues, rings)
	}
	d.Peers, x.Peers = n, n
	return nil
}
