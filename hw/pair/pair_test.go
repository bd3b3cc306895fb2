package pair

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func options(change func(*Options)) Options {
	o := Options{Token: "0123456789abcdef", Digest: "d1", Tool: "gdisim test", Meet: 10 * time.Second, Answer: 5 * time.Second}
	if change != nil {
		change(&o)
	}
	return o
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// accept runs Accept beside the test.
func accept(t *testing.T, l net.Listener, o Options) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		c, err := Accept(t.Context(), l, o, func(a net.Addr, why error) { t.Logf("refused %v: %v", a, why) })
		if err == nil {
			var s string
			if err = c.Receive(&s); err == nil {
				err = c.Send(s + s)
			}
			c.Close()
		}
		done <- err
	}()
	return done
}

func TestMeet(t *testing.T) {
	l := listen(t)
	done := accept(t, l, options(nil))
	c, err := Dial(t.Context(), l.Addr().String(), options(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got string
	if err := errors.Join(c.Send("ab"), c.Receive(&got)); err != nil || got != "abab" {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestMismatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   error
	}{
		{"digest", func(o *Options) { o.Digest = "d2" }, ErrDigest},
		{"version", func(o *Options) { o.Tool = "gdisim other" }, ErrVersion},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listen(t)
			done := accept(t, l, options(nil))
			if _, err := Dial(t.Context(), l.Addr().String(), options(c.change)); !errors.Is(err, c.want) {
				t.Errorf("the one that dials: %v", err)
			}
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("the one that listens: %v", err)
			}
		})
	}
}

// A wrong token is refused, and the right one still gets in after it.
func TestStrangersDoNotEndTheWait(t *testing.T) {
	l := listen(t)
	done := accept(t, l, options(nil))
	if _, err := Dial(t.Context(), l.Addr().String(), options(func(o *Options) { o.Token = strings.Repeat("x", 16) })); !errors.Is(err, ErrToken) {
		t.Errorf("wrong token: %v", err)
	}
	huge := binary.BigEndian.AppendUint32(nil, 0xffffffff)
	hostile := map[string][]byte{
		"nothing":       nil,
		"garbage":       []byte("GET / HTTP/1.1\r\n\r\n"),
		"huge length":   append(huge, bytes.Repeat([]byte("x"), 100)...),
		"zero length":   {0, 0, 0, 0},
		"short body":    append(binary.BigEndian.AppendUint32(nil, 50), "{"...),
		"unknown key":   frame(`{"magic":"gdisim-hw","version":1,"nonce":"00000000000000000000000000000000","x":1}`),
		"other magic":   frame(`{"magic":"x","version":1,"nonce":"00000000000000000000000000000000"}`),
		"short nonce":   frame(`{"magic":"gdisim-hw","version":1,"nonce":""}`),
		"two values":    frame(`{} {}`),
		"no json":       frame("\x00\x01\x02\x03"),
		"proof too big": append(frame(`{"magic":"gdisim-hw","version":1,"nonce":"00000000000000000000000000000000"}`), huge...),
		"empty proof":   append(frame(`{"magic":"gdisim-hw","version":1,"nonce":"00000000000000000000000000000000"}`), frame(`{}`)...),
	}
	for name, text := range hostile {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = c.Close()
	}
	// One that stays and says nothing must not be in the way either.
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()

	c, err := Dial(t.Context(), l.Addr().String(), options(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got string
	if err := errors.Join(c.Send("z"), c.Receive(&got)); err != nil || got != "zz" {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Strangers who fill the room and say nothing do not lock the real end out: it comes
// again when they are dropped, and who was turned away is told.
func TestCrowd(t *testing.T) {
	l := listen(t)
	o := options(func(o *Options) { o.Answer = 500 * time.Millisecond }) // of a greeting too
	told := make(chan error, 100)
	done := make(chan error, 1)
	go func() {
		c, err := Accept(t.Context(), l, o, func(_ net.Addr, why error) { told <- why })
		if err == nil {
			c.Close()
		}
		done <- err
	}()
	for range strangers + 4 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	c, err := Dial(t.Context(), l.Addr().String(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	close(told)
	crowd := 0
	for why := range told {
		if errors.Is(why, ErrCrowd) {
			crowd++
		}
	}
	if crowd != 1 {
		t.Errorf("told %d times of those dropped, want once", crowd)
	}
}

// A listener that goes in every greeting is not waited for beyond Meet.
func TestLostInGreeting(t *testing.T) {
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	start := time.Now()
	_, err := Dial(t.Context(), l.Addr().String(), options(func(o *Options) { o.Meet = 300 * time.Millisecond }))
	if !errors.Is(err, ErrPeerLost) || time.Since(start) < 200*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

// An echo of our own hello is no proof that the other end knows anything.
func TestReflection(t *testing.T) {
	l := listen(t)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
		}
	}()
	if _, err := Dial(t.Context(), l.Addr().String(), options(nil)); !errors.Is(err, ErrProtocol) {
		t.Errorf("an echo: %v", err)
	}
}

func frame(s string) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...) }

func TestEveryWaitEnds(t *testing.T) {
	short := options(func(o *Options) { o.Meet, o.Answer = 100*time.Millisecond, 100*time.Millisecond })
	t.Run("nobody comes", func(t *testing.T) {
		if _, err := Accept(t.Context(), listen(t), short, nil); !errors.Is(err, ErrDeadline) {
			t.Error(err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		l := listen(t)
		addr := l.Addr().String()
		_ = l.Close()
		if _, err := Dial(t.Context(), addr, short); err == nil || !strings.Contains(err.Error(), "nobody at") {
			t.Error(err)
		}
	})
	t.Run("the other end says nothing", func(t *testing.T) {
		if _, err := Dial(t.Context(), listen(t).Addr().String(), short); !errors.Is(err, ErrDeadline) {
			t.Error(err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Accept(ctx, listen(t), options(nil), nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("the other end goes", func(t *testing.T) {
		l := listen(t)
		go func() {
			if c, err := Accept(t.Context(), l, options(nil), nil); err == nil {
				c.Close()
			}
		}()
		c, err := Dial(t.Context(), l.Addr().String(), options(nil))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Receive(new(string)); !errors.Is(err, ErrPeerLost) {
			t.Error(err)
		}
	})
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"short token": options(func(o *Options) { o.Token = "short" }),
		"no deadline": options(func(o *Options) { o.Answer = 0 }),
	} {
		if _, err := Dial(t.Context(), "127.0.0.1:1", o); err == nil {
			t.Error(name)
		}
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{":7": "127.0.0.1:7", "10.0.0.1:7": "10.0.0.1:7", "[::1]:7": "[::1]:7", "host": "", "": ""} {
		got, err := Address(in)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestFrameTooLarge(t *testing.T) {
	if err := (&Conn{}).Send(strings.Repeat("x", maxFrame)); err == nil {
		t.Error("sent")
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(frame(`{"magic":"gdisim-hw","version":1,"nonce":"00"}`))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h hello
		if err := readFrame(bytes.NewReader(b), &h); err != nil && !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrPeerLost) {
			t.Errorf("%v", err)
		}
	})
}
