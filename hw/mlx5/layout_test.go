package mlx5

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// compile builds a C program of testdata, or skips.
func compile(t *testing.T, args ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	bin := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command(cc, append([]string{"-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-o", bin}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

func output(t *rapid.T, bin string, args ...any) []string {
	var text []string
	for _, a := range args {
		text = append(text, fmt.Sprint(a))
	}
	out, err := exec.Command(bin, text...).Output()
	if err != nil {
		t.Fatalf("%v: %v", text, err)
	}
	return strings.Fields(string(out))
}

func needHeaders(t *testing.T) {
	if _, err := os.Stat("/usr/include/infiniband/mlx5dv.h"); err != nil {
		t.Skip("libibverbs-dev is not installed")
	}
}

// Every byte of a WQE and its doorbell against rdma-core's own helpers; compiling
// layout.c holds the constants of layout.h against its header.
func TestWQEAsRdmaCoreBuildsIt(t *testing.T) {
	needHeaders(t)
	bin := compile(t, "testdata/layout.c")
	bit := map[bool]int{true: 1}
	rapid.Check(t, func(t *rapid.T) {
		w := WQE{
			Op:         rapid.SampledFrom([]Opcode{RDMAWrite, RDMAWriteImm}).Draw(t, "op"),
			Index:      rapid.Uint16().Draw(t, "index"),
			QPN:        rapid.Uint32Range(0, 1<<24-1).Draw(t, "qpn"),
			Flags:      rapid.SampledFrom([]Flags{0, CQUpdate, Fence, SmallFence, CQUpdate | Fence}).Draw(t, "flags"),
			Imm:        rapid.Uint32().Draw(t, "imm"),
			RemoteAddr: rapid.Uint64().Draw(t, "raddr"), RKey: rapid.Uint32().Draw(t, "rkey"),
			Bytes: rapid.Uint32().Draw(t, "bytes"), LKey: rapid.Uint32().Draw(t, "lkey"), Addr: rapid.Uint64().Draw(t, "addr"),
		}
		inline := rapid.Bool().Draw(t, "inline")
		if inline {
			w.Bytes = rapid.Uint32Range(1, 972).Draw(t, "inline bytes")
			for k := range w.Bytes {
				w.Inline = append(w.Inline, byte(3*k+1))
			}
		}
		want := output(t, bin, "wqe", int(w.Op), w.Index, w.QPN, int(w.Flags), w.Imm, w.RemoteAddr, w.RKey, bit[inline], w.Bytes, w.LKey, w.Addr)
		got, err := w.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if hex.EncodeToString(got) != want[0] {
			t.Errorf("%+v:\n%x, rdma-core\n%s", w, got, want[0])
		}
		if d := w.Doorbell(); hex.EncodeToString(d[:]) != want[1] {
			t.Errorf("doorbell %x, rdma-core %s", d, want[1])
		}
		if len(got) != w.Segments()*16 || w.WQEBBs() != (len(got)+63)/64 {
			t.Errorf("%d segments, %d WQEBBs, %d bytes", w.Segments(), w.WQEBBs(), len(got))
		}
	})
}

func TestCQEAsRdmaCoreReadsIt(t *testing.T) {
	needHeaders(t)
	bin := compile(t, "testdata/layout.c")
	rapid.Check(t, func(t *rapid.T) {
		c := CQE{
			Opcode: rapid.SampledFrom([]CQEOpcode{CQERequest, CQERequesterError, CQEResponderError, CQEInvalid}).Draw(t, "opcode"),
			Owner:  rapid.Uint8Range(0, 1).Draw(t, "owner"), WQECounter: rapid.Uint16().Draw(t, "counter"),
			QPN: rapid.Uint32Range(0, 1<<24-1).Draw(t, "qpn"), Op: RDMAWrite,
		}
		if c.Opcode == CQERequesterError || c.Opcode == CQEResponderError {
			c.Syndrome, c.Vendor = Syndrome(rapid.Uint8().Draw(t, "syndrome")), rapid.Uint8().Draw(t, "vendor")
		}
		want := output(t, bin, "cqe", int(c.Opcode), c.Owner, c.WQECounter, c.QPN, int(c.Op), int(c.Syndrome), c.Vendor)
		b := c.Bytes()
		if hex.EncodeToString(b[:]) != want[0] {
			t.Errorf("%x, rdma-core %s", b[:], want[0])
		}
		if fmt.Sprint(int(c.Opcode), c.Owner) != want[1]+" "+want[2] {
			t.Errorf("opcode and owner %v", want[1:])
		}
		if got := ParseCQE(b); got != c {
			t.Errorf("%+v, want %+v", got, c)
		}
	})
}

func TestRecords(t *testing.T) {
	for _, tt := range []struct {
		n          uint32
		send, cons string
	}{
		{0, "00000000", "00000000"},
		{1, "00000001", "00000001"},
		{0xffff, "0000ffff", "0000ffff"},
		{0x10000, "00000000", "00010000"},
		{0x1000001, "00000001", "00000001"},
	} {
		send, cons := Record(tt.n), ConsumerRecord(tt.n)
		if hex.EncodeToString(send[:]) != tt.send || hex.EncodeToString(cons[:]) != tt.cons {
			t.Errorf("%#x: send %x, consumer %x", tt.n, send, cons)
		}
	}
}

func TestWQERefused(t *testing.T) {
	for _, w := range []WQE{{Inline: make([]byte, 973)}, {QPN: 1 << 24}} {
		if b, err := w.Append(nil); err == nil {
			t.Errorf("%d bytes", len(b))
		}
	}
}

// A poster owns a CQE by the lap's parity, whatever stands in it before.
func TestMine(t *testing.T) {
	for _, tt := range []struct {
		opcode CQEOpcode
		owner  uint8
		n      uint32
		want   bool
	}{
		{CQERequest, 0, 0, true},
		{CQERequest, 1, 0, false},
		{CQERequest, 1, 8, true},
		{CQERequest, 0, 8, false},
		{CQERequest, 0, 16, true},
		{CQEInvalid, 0, 0, false},
		{CQERequesterError, 1, 15, true},
	} {
		c := CQE{Opcode: tt.opcode, Owner: tt.owner}
		if c.Mine(tt.n, 8) != tt.want {
			t.Errorf("%+v", tt)
		}
	}
}

// The poster on a machine that reorders stores, against a NIC that strikes at
// once: no order at all is caught for every seed, every other is clean for all; a
// record that may pass its WQEs is caught.
func TestOrders(t *testing.T) {
	const seeds = 300
	clean := compile(t, "testdata/weak.c", "testdata/weak_nic.c")
	loose := compile(t, "-DPLANT_LOOSE_RECORD", "testdata/weak.c", "testdata/weak_nic.c")
	faults := func(bin string, order Order, record, eager, pointer int) (n int) {
		out, err := exec.Command(bin, fmt.Sprint(int(order)), fmt.Sprint(record), fmt.Sprint(eager), fmt.Sprint(pointer), fmt.Sprint(seeds)).Output()
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if len(lines) != seeds {
			t.Fatalf("%d lines", len(lines))
		}
		for _, l := range lines {
			var why, bad, fault, word, done int
			if _, err := fmt.Sscan(l, &why, &bad, &fault, &word, &done); err != nil {
				t.Fatal(err)
			}
			if bad > 0 {
				n++
			} else if why != 0 || done != 40 {
				t.Errorf("order %v: no fault, and yet %v after %d", order, Why(why), done)
			}
		}
		return n
	}
	for order := NoOrder; order <= SystemFence; order++ {
		for bits := range 8 {
			record, eager, pointer := bits&1, bits>>1&1, bits>>2&1
			n := faults(clean, order, record, eager, pointer)
			if want := map[bool]int{true: seeds}[order == NoOrder]; n != want {
				t.Errorf("order %v, record %d, eager %d, pointer %d: %d of %d seeds at fault, want %d", order, record, eager, pointer, n, seeds, want)
			}
		}
	}
	if n := faults(loose, GPURelease, 1, 1, 1); n < seeds/4 {
		t.Errorf("a record before its WQEs: %d of %d seeds at fault", n, seeds)
	}
}

func TestKernelsAreOfTheirSource(t *testing.T) {
	var all bytes.Buffer
	for _, f := range []string{"layout.h", "mem_gpu.h", "post.h", "nic.h", "post.cu"} {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	head, _, _ := strings.Cut(kernels, "\n")
	if want := "// sources sha256:" + fmt.Sprintf("%x", sha256.Sum256(all.Bytes())); head != want {
		t.Errorf("post.ptx begins %q, want %q: run make ptx", head, want)
	}
}
