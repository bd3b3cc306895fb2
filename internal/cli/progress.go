package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// progress tells on standard error how far a run is: a line that is rewritten on
// a terminal, a plain line now and then elsewhere.
type progress struct {
	w           io.Writer
	tty         bool
	start       time.Time
	done, total atomic.Int64
	shown       bool
	stopped     chan struct{}
	wait        sync.WaitGroup
}

// startProgress begins to tell after first and then every interval.
func startProgress(w io.Writer, tty bool, first, every time.Duration) *progress {
	p := &progress{w: w, tty: tty, start: time.Now(), stopped: make(chan struct{})}
	p.wait.Go(func() {
		t := time.NewTimer(first)
		defer t.Stop()
		for {
			select {
			case <-p.stopped:
				return
			case <-t.C:
				p.tell()
				t.Reset(every)
			}
		}
	})
	return p
}

// update may be called from any goroutine.
func (p *progress) update(done, total int) {
	p.total.Store(int64(total))
	p.done.Store(int64(done))
}

func (p *progress) tell() {
	s := progressLine(p.done.Load(), p.total.Load(), time.Since(p.start))
	if s == "" {
		return
	}
	p.shown = true
	if p.tty {
		say(p.w, "\r\x1b[K%s", s)
	} else {
		say(p.w, "%s\n", s)
	}
}

// stop ends it; on a terminal the line goes away.
func (p *progress) stop() {
	close(p.stopped)
	p.wait.Wait()
	if p.tty && p.shown {
		say(p.w, "\r\x1b[K")
	}
}

// progressLine is "" as long as nothing is known.
func progressLine(done, total int64, elapsed time.Duration) string {
	if total == 0 {
		return ""
	}
	s := fmt.Sprintf("%d of %d points, %s", done, total, elapsed.Round(time.Second))
	if done > 0 && done < total {
		left := time.Duration(float64(elapsed) / float64(done) * float64(total-done))
		s += fmt.Sprintf(", about %s left", left.Round(time.Second))
	}
	return s
}

// isTerminal reports whether w is a terminal, or another character device.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
