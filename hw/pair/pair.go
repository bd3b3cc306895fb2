package pair

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Version is that of the protocol; both ends must have the same.
const Version = 1

const (
	magic    = "gdisim-hw"
	maxFrame = 64 << 10
	// MinToken is the least length of a token, in bytes.
	MinToken = 16
	// strangers is how many connections may be in their handshake at once, and
	// greeting how long each may take: one who says nothing holds up nobody.
	strangers = 16
	greeting  = 5 * time.Second
)

// The reasons why two ends do not come together, or part.
var (
	// ErrToken: the other end does not know the token.
	ErrToken = errors.New("the other end has another token")
	// ErrVersion: the other end is another gdisim.
	ErrVersion = errors.New("the other end has another version")
	// ErrDigest: the other end has another scenario.
	ErrDigest = errors.New("the other end has another scenario")
	// ErrPeerLost: the connection ended before the run did.
	ErrPeerLost = errors.New("the other end is lost")
	// ErrDeadline: the other end said nothing in time.
	ErrDeadline = errors.New("the other end did not answer in time")
	// ErrCrowd: too many connections were in their greeting at once.
	ErrCrowd = errors.New("too many strangers at once")
	// ErrProtocol: the other end says what no gdisim would.
	ErrProtocol = errors.New("the other end does not speak this protocol")
)

// Options are what both ends must agree on, and how long to wait.
type Options struct {
	Token  string
	Digest string        // of the scenario
	Tool   string        // name and version of the program
	Meet   time.Duration // for the other end to appear
	Answer time.Duration // for each frame after that
}

// NewToken returns a token that nobody can guess.
func NewToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}

func (o *Options) check() error {
	if len(o.Token) < MinToken {
		return fmt.Errorf("token of %d characters, want at least %d", len(o.Token), MinToken)
	}
	if o.Meet <= 0 || o.Answer <= 0 {
		return errors.New("a wait without a deadline")
	}
	return nil
}

// Conn is a connection to an end that has proven the token. One goroutine sends
// and receives.
type Conn struct {
	c      net.Conn
	answer time.Duration
	end    func() bool
}

// Address completes a listening address: without a host, only this machine can
// reach it.
func Address(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("address %q: want HOST:PORT", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// Accept waits on l for the other end. Connections that fail the token are
// dropped and told to refused, and the wait goes on; an end with the token but
// another version or scenario is told so, and ends it. Connections dropped because
// too many were in their greeting are told at the end, all as one, and may come
// again. The caller closes l.
func Accept(ctx context.Context, l net.Listener, o Options, refused func(addr net.Addr, why error)) (*Conn, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Meet)
	defer cancel()
	unblock := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer unblock()

	type met struct {
		c   *Conn
		err error
	}
	done := make(chan met)
	room := make(chan struct{}, strangers)
	var wg sync.WaitGroup
	var mu sync.Mutex // around refused, and who was dropped
	dropped := 0
	var last net.Addr
	defer func() {
		wg.Wait()
		if dropped > 0 && refused != nil {
			refused(last, fmt.Errorf("%w: %d were dropped in all, this one last", ErrCrowd, dropped))
		}
	}()
	defer cancel() // before the wait: it ends the handshakes that are left
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				select {
				case done <- met{err: err}:
				case <-ctx.Done():
				}
				return
			}
			select {
			case room <- struct{}{}:
			default:
				mu.Lock()
				dropped++
				last = nc.RemoteAddr()
				mu.Unlock()
				_ = nc.Close()
				continue
			}
			wg.Go(func() {
				defer func() { <-room }()
				c, err := greet(ctx, nc, o, false)
				if err != nil && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrDigest) {
					if refused != nil && ctx.Err() == nil {
						mu.Lock()
						refused(nc.RemoteAddr(), err)
						mu.Unlock()
					}
					return
				}
				select {
				case done <- met{c, err}:
				case <-ctx.Done():
					if c != nil {
						c.Close()
					}
				}
			})
		}
	})
	select {
	case m := <-done:
		if m.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("nobody came within %v: %w", o.Meet, ErrDeadline)
		}
		return m.c, m.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("nobody came within %v: %w", o.Meet, ErrDeadline)
		}
		return nil, ctx.Err()
	}
}

// Dial connects to a listening end, trying until it is there. One that goes in the
// middle of the greeting, as a listener whom too many strangers keep busy does, is
// tried again until Meet is over.
func Dial(ctx context.Context, addr string, o Options) (*Conn, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	meet, cancel := context.WithTimeout(ctx, o.Meet)
	defer cancel()
	for {
		var d net.Dialer
		nc, err := d.DialContext(meet, "tcp", addr)
		if err == nil {
			var c *Conn
			if c, err = greet(ctx, nc, o, true); !errors.Is(err, ErrPeerLost) {
				return c, err
			}
		}
		select {
		case <-meet.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if errors.Is(err, ErrPeerLost) {
				return nil, fmt.Errorf("%s did not greet within %v: %w", addr, o.Meet, err)
			}
			return nil, fmt.Errorf("nobody at %s within %v: %w", addr, o.Meet, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// hello is the first frame of both ends; proof the second.
type hello struct {
	Magic   string `json:"magic"`
	Version int    `json:"version"`
	Nonce   string `json:"nonce"`
}

type proof struct {
	MAC    string `json:"mac"`
	Tool   string `json:"tool"`
	Digest string `json:"digest"`
	Refuse string `json:"refuse,omitempty"` // why the listener does not go on
}

const refuseToken = "token"

func (o *Options) mac(role, nonceDial, nonceListen string, p *proof) string {
	m := hmac.New(sha256.New, []byte(o.Token))
	for _, s := range []string{role, nonceDial, nonceListen, p.Tool, p.Digest} {
		_ = binary.Write(m, binary.BigEndian, uint32(len(s)))
		m.Write([]byte(s))
	}
	return hex.EncodeToString(m.Sum(nil))
}

// greet makes a Conn of nc, or closes it. The end that dials proves itself
// first, so that a stranger learns nothing from a listener.
func greet(ctx context.Context, nc net.Conn, o Options, dial bool) (*Conn, error) {
	c := &Conn{c: nc, answer: min(greeting, o.Answer)}
	c.end = context.AfterFunc(ctx, func() { _ = nc.Close() })
	if err := c.handshake(o, dial); err != nil {
		c.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	// From here on the connection's life is the caller's.
	if !c.end() {
		c.Close()
		return nil, ctx.Err()
	}
	c.end, c.answer = nil, o.Answer
	return c, nil
}

func (c *Conn) handshake(o Options, dial bool) error {
	ours := hello{magic, Version, NewToken()}
	if err := c.Send(ours); err != nil {
		return err
	}
	var theirs hello
	if err := c.Receive(&theirs); err != nil {
		return err
	}
	if theirs.Magic != magic || len(theirs.Nonce) != len(ours.Nonce) || theirs.Nonce == ours.Nonce {
		return ErrProtocol
	}
	if theirs.Version != Version {
		return fmt.Errorf("%w: protocol %d, this one speaks %d", ErrVersion, theirs.Version, Version)
	}
	dialNonce, listenNonce, role, other := ours.Nonce, theirs.Nonce, "dial", "listen"
	if !dial {
		dialNonce, listenNonce, role, other = listenNonce, dialNonce, other, role
	}
	mine := proof{Tool: o.Tool, Digest: o.Digest}
	mine.MAC = o.mac(role, dialNonce, listenNonce, &mine)
	verify := func(p *proof) error {
		want := o.mac(other, dialNonce, listenNonce, p)
		if p.Refuse == refuseToken || !hmac.Equal([]byte(want), []byte(p.MAC)) {
			return ErrToken
		}
		if p.Tool != o.Tool {
			return fmt.Errorf("%w: %s, this is %s", ErrVersion, p.Tool, o.Tool)
		}
		if p.Digest != o.Digest {
			return fmt.Errorf("%w: digest %.12s, here %.12s", ErrDigest, p.Digest, o.Digest)
		}
		return nil
	}
	var p proof
	if dial {
		if err := c.Send(mine); err != nil {
			return err
		}
		if err := c.Receive(&p); err != nil {
			return err
		}
		return verify(&p)
	}
	if err := c.Receive(&p); err != nil {
		return err
	}
	err := verify(&p)
	if errors.Is(err, ErrToken) {
		mine = proof{Refuse: refuseToken} // no word of what we would have said
	}
	if e := c.Send(mine); err == nil {
		err = e
	}
	return err
}

// Send writes one frame. v must fit in 64 KiB of JSON.
func (c *Conn) Send(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrame {
		return fmt.Errorf("frame of %d bytes, at most %d", len(body), maxFrame)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	if err := c.c.SetWriteDeadline(time.Now().Add(c.answer)); err != nil {
		return lost(err)
	}
	_, err = c.c.Write(append(frame, body...))
	return lost(err)
}

// Receive reads one frame into v, waiting as long as an answer may take.
func (c *Conn) Receive(v any) error { return c.ReceiveWithin(v, c.answer) }

// ReceiveWithin is Receive with a deadline of its own.
func (c *Conn) ReceiveWithin(v any, d time.Duration) error {
	if err := c.c.SetReadDeadline(time.Now().Add(d)); err != nil {
		return lost(err)
	}
	return readFrame(c.c, v)
}

// readFrame believes no length before it is in bounds, and no unknown word.
func readFrame(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return lost(err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxFrame {
		return fmt.Errorf("%w: a frame of %d bytes", ErrProtocol, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return lost(err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if d.More() {
		return fmt.Errorf("%w: more than one value in a frame", ErrProtocol)
	}
	return nil
}

func lost(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrDeadline
	}
	return fmt.Errorf("%w: %w", ErrPeerLost, err)
}

// Close ends the connection.
func (c *Conn) Close() {
	if c.end != nil {
		c.end()
	}
	_ = c.c.Close()
}
