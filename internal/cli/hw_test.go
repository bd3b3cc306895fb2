package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdisim/hw/cuda"
	"gdisim/hw/host"
	"gdisim/hw/mlx5"
	"gdisim/hw/verbs"
	"gdisim/result"
)

func TestHWUsage(t *testing.T) {
	fixture(t, "")
	for _, c := range []struct{ name, args, stderr string }{
		{"no role", "hw a.yaml", "one of --listen, --peer, --loopback"},
		{"two roles", "hw a.yaml --loopback --listen :1", "--listen and --loopback exclude each other: one of --listen, --peer, --loopback"},
		{"backend", "hw a.yaml --backend rocm --loopback", `unknown --backend "rocm"`},
		{"two backends", "hw a.yaml --backend cuda --loopback", "one of --listen, --peer, --loopback"},
		{"bench of a backend", "hw bench --backend verbs", `unknown --backend "verbs"`},
		{"bench samples", "hw bench --samples 0", "--samples must be"},
		{"GPU doorbell without a role", "hw a.yaml --backend gpu-doorbell", "--backend gpu-doorbell needs one of --listen, --peer and --loopback"},
		{"too many samples", "hw a.yaml --backend host --samples 99999999999", "--samples: 99999999999 samples, want at most 1000000"},
		{"too many samples of bench", "hw bench --backend host --samples 99999999999", "want at most 1000000"},
		{"negative samples", "hw a.yaml --backend host --samples -1", "--samples must be at least 1"},
		{"listen address", "hw a.yaml --listen foo", `--listen: address "foo": want HOST:PORT`},
		{"peer address", "hw a.yaml --peer foo --token 0123456789abcdef", `--peer: address "foo": want HOST:PORT`},
		{"device port", "hw a.yaml --loopback --port 0", "--port 0: want"},
		{"short token", "hw a.yaml --peer h:1 --token short", "--token of 5 characters, want at least 16"},
		{"GID", "hw a.yaml --loopback --gid 3", `--gid "3": want a value`},
		{"peer's GID", "hw a.yaml --loopback --peer-gid x", `--peer-gid "x": want a value`},
		{"peer without a token", "hw a.yaml --peer h:1", "--peer needs the --token"},
		{"timeout", "hw a.yaml --loopback --timeout 0", "must be above 0"},
		{"no file", "hw", "needs one FILE"},
		{"format", "hw a.yaml --loopback --format xml", `unknown --format "xml"`},
		{"probe format", "hw probe --format xml", `unknown --format "xml"`},
		{"poster", "hw a.yaml --backend gpu-doorbell --loopback --poster dpu", `unknown --poster "dpu"`},
		{"self-test's backend", "hw selftest --backend verbs", `--backend "verbs" has no self-test`},
		{"self-test's poster", "hw selftest --poster dpu", `unknown --poster "dpu"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GDISIM_HW_TOKEN", "")
			code, stdout, stderr := exec(fake, strings.Fields(c.args)...)
			if code != 2 || stdout != "" {
				t.Errorf("exit code %d, stdout %q", code, stdout)
			}
			mustContain(t, "stderr", stderr, c.stderr)
		})
	}
}

// A core that is not there is a fault of the command line, not of the run.
func TestHWCores(t *testing.T) {
	if err := host.Available(); err != nil {
		t.Skip(err)
	}
	fixture(t, "")
	for _, args := range []string{"hw a.yaml --backend host --cores 0,100000", "hw bench --backend host --cores 0,1,2", "hw bench --backend cuda --cores 100000", "hw a.yaml --loopback --cores -1"} {
		code, stdout, stderr := exec(fake, strings.Fields(args)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "--cores: ") {
			t.Errorf("%s: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
	may, err := host.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := exec(fake, "hw", "a.yaml", "--backend", "host", "--samples", "5", "-q", "--cores", fmt.Sprint(may[0]), "--format", "json")
	if code != 0 || !strings.Contains(stdout, "one core only") {
		t.Errorf("one core: exit code %d, %s", code, stderr)
	}
}

// Where there is no RDMA, every way to use it ends with exit code 3 and one line.
func TestHWAbsent(t *testing.T) {
	why := verbs.Available()
	if why == nil {
		t.Skip("this machine has an RDMA device")
	}
	fixture(t, "")
	for _, args := range [][]string{{"hw", "a.yaml", "--loopback"}, {"hw", "a.yaml", "--listen", "127.0.0.1:0"}, {"hw", "a.yaml", "--peer", "127.0.0.1:1", "--token", "0123456789abcdef"}} {
		code, stdout, stderr := exec(fake, args...)
		if code != 3 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "no RDMA") {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	// The GPU doorbell needs two things: a line each.
	if g, err := mlx5.OpenGPU(0); err == nil {
		g.Close()
	} else {
		code, stdout, stderr := exec(fake, "hw", "a.yaml", "--backend", "gpu-doorbell", "--loopback")
		if code != 3 || stdout != "" || strings.Count(stderr, "\n") != 2 {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		mustContain(t, "stderr", stderr, "gdisim: no RDMA", "gdisim: no GPU")
	}
	code, stdout, stderr := exec(fake, "hw", "probe")
	if code != 3 || strings.Count(stderr, "\n") != 1 {
		t.Errorf("probe: exit code %d, stderr %q", code, stderr)
	}
	mustContain(t, "stdout", stdout, "cpu.model", "Missing", "RDMA device")
}

func TestHWHost(t *testing.T) {
	fixture(t, "")
	args := []string{"hw", "a.yaml", "--backend", "host", "--samples", "20", "-q", "--format", "json", "-o", "h.json"}
	code, _, stderr := exec(fake, args...)
	if host.Available() != nil {
		if code != 3 || !strings.Contains(stderr, "without cgo") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		return
	}
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	f, err := os.Open("h.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := result.Decode(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if r.Backend != "hw" || r.Digest == "" || len(r.Machine) == 0 || len(r.Measured) < 30 || r.Partial {
		t.Errorf("backend %q, digest %q, %d facts, %d measured", r.Backend, r.Digest, len(r.Machine), len(r.Measured))
	}
	for _, format := range []string{"text", "md", "csv"} {
		code, stdout, stderr := exec(fake, "hw", "a.yaml", "--backend", "host", "--samples", "5", "-q", "--format", format)
		if code != 0 {
			t.Errorf("%s: exit code %d: %s", format, code, stderr)
		}
		mustContain(t, format, stdout, "wake.futex.same-core", "syscall")
	}
	if code, stdout, stderr := exec(fake, "compare", "h.json", "h.json"); code != 0 || !strings.Contains(stdout, "costs of the machine") {
		t.Errorf("compare: %d, %s", code, stderr)
	}
}

// A captured tree can be looked at on any machine.
func TestHWProbeRoot(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"proc/cpuinfo":                                       "processor\t: 0\nmodel name\t: Some CPU\n",
		"sys/class/infiniband/mlx5_0/fw_ver":                 "28.1.2\n",
		"sys/class/infiniband/mlx5_0/ports/1/state":          "4: ACTIVE\n",
		"sys/class/infiniband/mlx5_0/ports/1/link_layer":     "InfiniBand\n",
		"sys/class/infiniband/mlx5_0/ports/1/rate":           "200 Gb/sec (4X HDR)\n",
		"sys/class/infiniband/mlx5_0/ports/1/gids/0":         "fe80:0000:0000:0000:0000:0000:0000:0001\n",
		"sys/class/infiniband_verbs/uverbs0/ibdev":           "mlx5_0\n",
		"sys/class/infiniband/mlx5_0/device/numa_node":       "1\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_x":      "",
		"sys/devices/system/cpu/cpu0/cpuidle/state0/name":    "C1\n",
		"sys/devices/system/cpu/cpu0/cpuidle/state0/latency": "2\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := exec(fake, "hw", "probe", "--root", dir)
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	mustContain(t, "stdout", stdout, "Some CPU", "mlx5_0", "28.1.2", "ACTIVE, InfiniBand, 200 Gb/sec", "0 fe80:", "C1 exit 2us", "numa node                1")
	if strings.Contains(stdout, "Missing") {
		t.Errorf("nothing is missing here:\n%s", stdout)
	}
}

// The self-test runs on a CPU thread anywhere, and says what a machine without a
// GPU lacks.
func TestHWSelftest(t *testing.T) {
	code, stdout, stderr := exec(fake, "hw", "selftest", "--poster", "cpu")
	if host.Available() != nil {
		if code != 3 || !strings.Contains(stderr, "without cgo") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		return
	}
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d, stderr %q:\n%s", code, stderr, stdout)
	}
	mustContain(t, "stdout", stdout, "a NIC that answers nothing", "caught", "untested on hardware")
	g, err := mlx5.OpenGPU(0)
	if err == nil {
		g.Close()
		t.Skip("this machine has a GPU")
	}
	code, stdout, stderr = exec(fake, "hw", "selftest")
	if code != 3 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "no GPU") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// Where there is no GPU, both ways to ask for one end with exit code 3 and one line.
func TestHWNoGPU(t *testing.T) {
	d, err := cuda.Open(cuda.Options{})
	if err == nil {
		d.Close()
		t.Skip("this machine has a GPU")
	}
	fixture(t, "")
	for _, args := range [][]string{{"hw", "a.yaml", "--backend", "cuda"}, {"hw", "bench"}, {"hw", "bench", "--backend", "cuda", "-o", "no.json"}} {
		code, stdout, stderr := exec(fake, args...)
		if code != 3 || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
		mustContain(t, "stderr", stderr, err.Error())
	}
	if _, err := os.Stat("no.json"); err == nil {
		t.Error("an output was left behind")
	}
}
