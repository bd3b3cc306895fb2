package verbs

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// Every declaration of abi.h against the header of libibverbs-dev, by the
// compiler. scripts/vm/run.sh does the same and installs the header.
func TestABI(t *testing.T) {
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil {
		t.Skip("libibverbs-dev is not installed")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	if out, err := exec.Command(cc, "-std=gnu11", "-fsyntax-only", "testdata/abi_check.c").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAvailableSaysWhy(t *testing.T) {
	err := Available()
	if err == nil {
		t.Skip("this machine has an RDMA device")
	}
	if !errors.Is(err, ErrNoRDMA) {
		t.Error(err)
	}
	if _, openErr := Open(Config{QPs: 1}); !errors.Is(openErr, ErrNoRDMA) {
		t.Errorf("open: %v", openErr)
	}
}

func TestEmulated(t *testing.T) {
	for _, c := range []struct {
		name   string
		vendor uint32
		want   bool
	}{{"mlx5_0", 0x2c9, false}, {"rxe0", 0xffffff, true}, {"rxe_eth0", 0, true}, {"renamed", 0xffffff, true}, {"siw0", 0, true}} {
		if got := emulated(c.name, c.vendor) != ""; got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestStamps(t *testing.T) {
	for i := range 1000 {
		if stamp(i) == 0 || stamp(i) == stamp(i+1) {
			t.Fatalf("stamp %d", i)
		}
	}
	same := 0
	for i := range 4096 {
		if pattern(1, i) == pattern(18, i) {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d bytes of two patterns are the same", same)
	}
}
