//go:build cgo && linux

package cuda

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gdisim/sim"
)

// The kernels that travel in the program are those of the source beside it.
func TestPTXIsOfTheSource(t *testing.T) {
	var src []byte
	for _, name := range []string{"kernels.h", "kernels.cu"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		src = append(src, b...)
	}
	want := fmt.Sprintf("// sources sha256:%x\n", sha256.Sum256(src))
	if !strings.HasPrefix(ptx, want) {
		t.Errorf("kernels.ptx is not of this kernels.cu and kernels.h: run make ptx")
	}
	entries := map[string]bool{}
	for _, m := range regexp.MustCompile(`\.entry (\w+)\(`).FindAllStringSubmatch(ptx, -1) {
		entries[m[1]] = true
	}
	for _, r := range Matrix(132, 2000, Placement{}) {
		for _, k := range []string{r.Kernel, r.Answer} {
			if k != "" && !entries[k] {
				t.Errorf("%s: the PTX has no kernel %s", r.Name, k)
			}
		}
	}
}

// fake builds a driver library without a GPU. held says how much of it is
// allocated.
func fake(t *testing.T) (library string, held func() string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	library = filepath.Join(dir, "libfakecuda.so")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-pthread", "testdata/fakecuda.c", "-o", library).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log := filepath.Join(dir, "held")
	t.Setenv("FAKECUDA_LOG", log)
	t.Setenv("FAKECUDA_FAULT", "")
	return library, func() string {
		b, err := os.ReadFile(log)
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(string(b))
	}
}

// Every experiment runs to its end and gives everything back, on a driver whose
// kernels are threads that exchange the same flags, descriptors and WQEs.
func TestMatrixOnAFakeDriver(t *testing.T) {
	library, held := fake(t)
	t.Setenv("FAKECUDA_FAULT", "two")
	d, err := open(library, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const sms = 4
	if d.SMs() != sms || d.Peer() != nil || !slices.Contains(d.Facts(), Fact{"gpu", "fake GPU 0"}) {
		t.Errorf("%d SMs, peer %v, facts %v", d.SMs(), d.Peer(), d.Facts())
	}
	if x, err := d.Run(t.Context(), Busy(time.Millisecond)); err != nil || x.Hz != 2_000_000_000 {
		t.Errorf("busy: %+v, %v", x, err)
	}
	p, err := Place(t.Context(), d)
	if err != nil || p.Near == p.Far || p.Near%4096 != 0 {
		t.Errorf("placement %+v, %v", p, err)
	}
	seen := map[string]bool{}
	for _, r := range Matrix(sms, 40, p) {
		if seen[r.Name] {
			t.Errorf("%s: twice", r.Name)
		}
		seen[r.Name] = true
		if r.CTAs > sms {
			r.CTAs = sms
		}
		switch {
		case r.Background >= CopyToHost && r.Background <= CopyBoth: // its copies are over at once
			continue
		case r.How == GraphStore && r.Kind == Launch || r.How == GraphSync && r.Kind == Launch: // it has no graphs
			continue
		case r.Competing > 0 || r.N*max(r.Blocks, 1) > 3000:
			continue
		}
		r.N, r.Deadline = min(r.N, 10), 20*time.Second
		if r.Bytes > 16<<20 {
			r.Bytes = 1 << 20
		}
		x, err := d.Run(t.Context(), r.Experiment)
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		rate := r.Kind == Rate || r.Kind == Proxy && r.Window > 1
		want := r.N
		if r.Kind == Polls || r.Kind == Proxy {
			want *= r.Blocks
		}
		switch {
		case rate && (x.Messages == 0 || x.Elapsed != sim.Millisecond):
			t.Errorf("%s: %d messages in %v", r.Name, x.Messages, x.Elapsed)
		case !rate && len(x.Each) != want:
			t.Errorf("%s: %d samples, want %d", r.Name, len(x.Each), want)
		case r.SecondName != "" && len(x.Second) == 0:
			t.Errorf("%s: no second row", r.Name)
		case (r.Kind == Samples && !strings.HasPrefix(r.Kernel, "store_")) && x.Each[0] != 160*sim.Nanosecond, r.Kind == Polls && x.Each[0] != 10*sim.Nanosecond:
			t.Errorf("%s: %v", r.Name, x.Each[0])
		}
	}
	d.Close()
	d.Close()
	if held() != "0" {
		t.Errorf("%s things are left allocated", held())
	}
}

func TestAbsent(t *testing.T) {
	library, held := fake(t)
	for _, c := range []struct{ name, library, fault, want string }{
		{"no driver", "libnosuchcuda.so.1", "", "no NVIDIA driver"},
		{"another library", "libc.so.6", "", "has no cuInit"},
		{"no GPU", library, "nodevice", "no GPU"},
		{"no right", library, "init=800", "CUDA_ERROR_NOT_PERMITTED"},
	} {
		t.Setenv("FAKECUDA_FAULT", c.fault)
		_, err := open(c.library, Options{})
		if !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	t.Setenv("FAKECUDA_FAULT", "")
	if _, err := open(library, Options{GPU: 3}); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "no GPU 3: this machine has 1") {
		t.Errorf("ordinal: %v", err)
	}
	for fault, want := range map[string]string{"oom": "CUDA_ERROR_OUT_OF_MEMORY (2), out of memory", "hostoom": "cuMemHostAlloc", "ptx=218": "CUDA_ERROR_INVALID_PTX (218): ptxas: line 1"} {
		t.Setenv("FAKECUDA_FAULT", fault)
		_, err := open(library, Options{})
		if err == nil || errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", fault, err)
		}
		if held() != "0" {
			t.Errorf("%s: %s things are left allocated", fault, held())
		}
	}
}

// What goes wrong in an experiment has a name, and the next one runs unless the
// GPU is lost.
func TestFaults(t *testing.T) {
	library, held := fake(t)
	fence := Fence("system", GPU, 1, 10, Quiet, 0)
	for _, c := range []struct {
		fault, want string
		e           Experiment
		err         error
	}{
		{"launch=800", "CUDA_ERROR_NOT_PERMITTED", fence, ErrRefused},
		{"launch=719", "CUDA_ERROR_LAUNCH_FAILED", fence, ErrLost},
		{"ecc", "CUDA_ERROR_ECC_UNCORRECTABLE", fence, ErrLost},
		{"late", "deadline", fence, ErrLate},
		{"sum", "sum", Experiment{Kind: Samples, Kernel: "atomic_add_system", N: 5}, ErrWrong},
		{"payload", "not what was posted", Experiment{Kind: Samples, Kernel: "post_gpu", N: 5, Count: 1}, ErrWrong},
		{"order", "out of order", echo("none", 10, 0, Quiet, 0), ErrWrong},
		{"descriptor", "wrong contents", ring("flag", 2, 1, 10, 1), ErrWrong},
		{"copy", "other bytes", Experiment{Kind: Copy, Bytes: 64, N: 4}, ErrWrong},
		{"export=801", "dma-buf refused", Experiment{Kind: Export, Bytes: 4096, N: 3}, ErrRefused},
		{"register=800", "cuMemHostRegister", Experiment{Kind: Register, Bytes: 4096, N: 3}, ErrRefused},
		{"none", "one GPU", Experiment{Kind: PeerEcho, Kernel: "ask", Answer: "answer", N: 3}, ErrRefused},
		{"none", "no graphs", Experiment{Kind: Launch, How: GraphStore, Count: 1, N: 3}, ErrRefused},
		{"none", "lays out", Experiment{Kind: Samples, Kernel: "fence_gpu", N: 100_000}, ErrRefused},
	} {
		t.Setenv("FAKECUDA_FAULT", "")
		d, err := open(library, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("FAKECUDA_FAULT", c.fault)
		c.e.Deadline = 300 * time.Millisecond
		_, err = d.Run(t.Context(), c.e)
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.fault, err)
		}
		if lost := Ends(c.err); Ends(err) != lost {
			t.Errorf("%s: ends the run: %t", c.fault, Ends(err))
		}
		t.Setenv("FAKECUDA_FAULT", "")
		if _, err := d.Run(t.Context(), fence); err != nil && !Ends(c.err) {
			t.Errorf("after %s: %v", c.fault, err)
		}
		d.Close()
		if held() != "0" {
			t.Errorf("%s: %s things are left allocated", c.fault, held())
		}
	}
}

// A kernel that does not end is waited for until its deadline and a grace, and no
// call that could block is made after that.
func TestHang(t *testing.T) {
	library, _ := fake(t)
	d, err := open(library, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAKECUDA_FAULT", "hang")
	e := Fence("gpu", GPU, 0, 10, Quiet, 0)
	e.Deadline = 100 * time.Millisecond
	begin := time.Now()
	_, err = d.Run(t.Context(), e)
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "does not end") || time.Since(begin) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	if _, err := d.Run(t.Context(), e); !errors.Is(err, ErrLost) {
		t.Errorf("again: %v", err)
	}
	d.Close()
}

func TestCancelled(t *testing.T) {
	library, held := fake(t)
	d, err := open(library, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = d.Run(ctx, Experiment{Kind: Launch, How: Sync, N: 1_000_000, Deadline: time.Minute})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	d.Close()
	if held() != "0" {
		t.Errorf("%s things are left allocated", held())
	}
}
