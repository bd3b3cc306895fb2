package hw

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"gdisim/hw/pair"
	"gdisim/hw/verbs"
	"gdisim/scenarios"
)

// target is the end that messages go to, in this process or another.
type target interface {
	// join opens an endpoint there that fits c, connects it to initiator and
	// returns its address.
	join(c verbs.Config, initiator verbs.Address) (verbs.Address, error)
	// prepare makes it ready for a batch, and lets it answer one that it must.
	prepare(b verbs.Batch) error
	// verify waits for its part and says whether the right bytes arrived.
	verify(b verbs.Batch) error
	// endpoint is the one in this process; nil for another.
	endpoint() verbs.Endpoint
	// leave releases the endpoint; bye ends everything.
	leave()
	bye()
}

// local is a target in this process.
type local struct {
	open        func(verbs.Config) (verbs.Endpoint, error)
	device, gid string
	port        int
	e           verbs.Endpoint
}

func (l *local) join(c verbs.Config, initiator verbs.Address) (verbs.Address, error) {
	if l.device != "" {
		c.Device = l.device
	}
	c.GID, c.Port = l.gid, l.port
	e, err := l.open(c)
	if err != nil {
		return verbs.Address{}, err
	}
	l.e = e
	return e.Address(), e.Connect(initiator)
}

func (l *local) prepare(b verbs.Batch) error { return l.e.Prepare(b) }

func (l *local) verify(b verbs.Batch) error {
	b.Target = true
	return l.e.Verify(b)
}

func (l *local) endpoint() verbs.Endpoint { return l.e }

func (l *local) leave() {
	if l.e != nil {
		l.e.Close()
		l.e = nil
	}
}

func (l *local) bye() { l.leave() }

// request and reply are what two processes say after they have met.
type request struct {
	Do      string         `json:"do"` // join, prepare, verify, leave, bye
	Config  *verbs.Config  `json:"config,omitempty"`
	Address *verbs.Address `json:"address,omitempty"`
	Batch   *verbs.Batch   `json:"batch,omitempty"`
}

type reply struct {
	Err     string         `json:"err,omitempty"`
	Address *verbs.Address `json:"address,omitempty"`
}

// remote is a target in another process.
type remote struct{ c *pair.Conn }

// grace is added to what an answer may take by itself.
const grace = 10 * time.Second

func (r *remote) call(q request, within time.Duration) (reply, error) {
	var a reply
	if err := r.c.Send(q); err != nil {
		return a, err
	}
	if err := r.c.ReceiveWithin(&a, within+grace); err != nil {
		return a, err
	}
	if a.Err != "" {
		return a, errors.New("the other end: " + a.Err)
	}
	return a, nil
}

func (r *remote) join(c verbs.Config, initiator verbs.Address) (verbs.Address, error) {
	c.Device, c.GID, c.Port = "", "", 0 // its own business
	a, err := r.call(request{Do: "join", Config: &c, Address: &initiator}, grace)
	if err == nil && a.Address == nil {
		err = fmt.Errorf("%w: no address", pair.ErrProtocol)
	}
	if err != nil {
		return verbs.Address{}, err
	}
	return *a.Address, nil
}

func (r *remote) prepare(b verbs.Batch) error {
	_, err := r.call(request{Do: "prepare", Batch: &b}, 0)
	return err
}

func (r *remote) verify(b verbs.Batch) error {
	_, err := r.call(request{Do: "verify", Batch: &b}, b.Timeout)
	return err
}

func (r *remote) endpoint() verbs.Endpoint { return nil }

func (r *remote) leave() { _, _ = r.call(request{Do: "leave"}, 0) }

func (r *remote) bye() { _ = r.c.Send(request{Do: "bye"}) }

// Serve waits at l for one process that runs the same scenario, and is its
// target until it says good-bye.
func Serve(ctx context.Context, s *scenarios.Scenario, l net.Listener, o Options) error {
	o.complete(s)
	c, err := pair.Accept(ctx, l, o.Pair, func(a net.Addr, why error) { o.Tell(fmt.Sprintf("refused %v: %v", a, why)) })
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, c.Close) // no read outlives the run
	defer stop()
	v := server{o: &o, c: c}
	defer v.leave()
	err = v.loop(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

type server struct {
	o      *Options
	c      *pair.Conn
	e      verbs.Endpoint
	answer error // of the batch that this end answered
}

func (v *server) leave() {
	if v.e != nil {
		v.e.Close()
		v.e = nil
	}
}

// Limits on what the other end may ask for, token or not.
const (
	maxBytes = 1 << 30
	maxWait  = time.Hour
)

func (v *server) loop(ctx context.Context) error {
	// The initiator measures its own machine before it says anything.
	wait := 10 * time.Minute
	for {
		var q request
		if err := v.c.ReceiveWithin(&q, wait); err != nil {
			return err
		}
		if q.Do == "bye" {
			return nil
		}
		a, err := v.do(&q)
		if err != nil {
			a.Err = err.Error()
		}
		if err := v.c.Send(a); err != nil {
			return err
		}
		wait = 10 * time.Minute
		if q.Do == "prepare" && err == nil {
			b := *q.Batch
			// It cannot take longer than its last message's deadline.
			wait = min(maxWait, max(wait, b.Timeout*time.Duration(min(b.N+b.Warmup, 1000))))
			v.answer = v.run(ctx, b)
		}
	}
}

func (v *server) do(q *request) (a reply, err error) {
	switch {
	case q.Do == "join" && q.Config != nil && q.Address != nil:
		v.leave()
		c := *q.Config
		if c.Bytes < 1 || c.Bytes > maxBytes {
			return a, fmt.Errorf("%d bytes, want 1 to %d", c.Bytes, maxBytes)
		}
		c.Device, c.GID, c.Port = v.o.Device, v.o.GID, v.o.Port
		if v.e, err = v.o.Open(c); err != nil {
			return a, err
		}
		addr := v.e.Address()
		a.Address = &addr
		return a, v.e.Connect(*q.Address)
	case q.Do == "leave":
		v.leave()
		return a, nil
	case q.Do == "prepare" && q.Batch != nil && v.e != nil:
		v.answer = nil
		return a, v.e.Prepare(*q.Batch)
	case q.Do == "verify" && q.Batch != nil && v.e != nil:
		if v.answer != nil {
			return a, v.answer
		}
		b := *q.Batch
		b.Target = true
		return a, v.e.Verify(b)
	}
	return a, fmt.Errorf("%w: request %q", pair.ErrProtocol, q.Do)
}

// run is this end's part of a batch: receives, or the ball that comes back.
func (v *server) run(ctx context.Context, b verbs.Batch) error {
	b.Target = true
	switch {
	case b.Loop == verbs.Latency && b.Op.TwoSided():
		b.Loop = verbs.Receive
	case b.Loop != verbs.PingPong:
		return nil
	}
	_, err := v.e.Run(ctx, b)
	return err
}
