package scenarios

import (
	"slices"
	"strings"
	"testing"
)

func TestFields(t *testing.T) {
	fields := Fields()
	for i, f := range fields {
		if i > 0 {
			if prev := fields[i-1].Key; prev >= f.Key {
				t.Errorf("%s comes after %s", f.Key, prev)
			} else if strings.HasPrefix(f.Key, prev+".") {
				t.Errorf("%s is a field and a group", prev)
			}
		}
		if !slices.Contains([]string{"hardware", "cluster", "host", "path", "workload", "fault"}, f.Section()) {
			t.Errorf("%s: unknown section", f.Key)
		}
		if f.Text == "" || f.Used == "" {
			t.Errorf("%s: no text, or nobody uses it", f.Key)
		}
		if (f.Kind == Enum) != (len(f.Enum) > 0) {
			t.Errorf("%s: an enum has words, and nothing else has", f.Key)
		}
		if f.Dist && f.Kind != Duration && f.Kind != Cost {
			t.Errorf("%s: a %s cannot be a distribution", f.Key, f.Kind)
		}
		if f.Default != "" && f.Optional {
			t.Errorf("%s: optional, but has a default", f.Key)
		}
		sample(t, &f)
	}
}

// What hardware takes is a profile's to say, with its source. A default may only
// switch a mechanism off, or be in words; the page is what software maps by.
func TestHardwareHasNoNumbersByDefault(t *testing.T) {
	for _, f := range Fields() {
		if f.Section() != "hardware" || f.Default == "" || f.Kind == Enum || f.Kind == Bool || f.Key == "hardware.pcie.iommu.page" {
			continue
		}
		if v := fieldTable().defaults[f.Key]; v.dist != nil || size(v) != 0 {
			t.Errorf("%s: a %s of %s by default: give it in a profile, with its source", f.Key, f.Kind, f.Default)
		}
	}
}

// The keys that files of users are written against.
func TestFixedKeys(t *testing.T) {
	for _, key := range strings.Fields(`cluster.nodes cluster.gpus_per_node cluster.nics_per_gpu cluster.fabric.kind host.clock host.uncore
		host.proxy.threads host.proxy.core host.proxy.wait host.competing.threads host.competing.slice workload.kind workload.bytes
		workload.initiators.ctas workload.initiators.threads workload.outstanding workload.wqes_per_doorbell workload.iterations workload.warmup
		workload.background.kind workload.background.bytes workload.background.initiators.ctas workload.background.initiators.threads workload.background.queue`) {
		if _, ok := FieldOf(key); !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if _, ok := FieldOf("host.nonsense"); ok {
		t.Error("host.nonsense is a field")
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"gpu.sm_clock", "fence", "put", "get", "ping-pong"}
	for word, want := range map[string]string{
		"fense": "fence", "pnig-pong": "ping-pong", "sm_clock": "gpu.sm_clock", "putt": "put", "gte": "get",
		"banana": "", "": "", strings.Repeat("x", 1000): "",
	} {
		got := didYouMean(word, known)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
