package testbed_test

import (
	"strings"
	"testing"

	"gdisim/testbed"
)

// A core that ticks, stalls and others leave nothing of ends a run before it
// begins: it would look for a free moment without end.
func TestCoreLeft(t *testing.T) {
	for _, tt := range []struct{ hardware, host, want string }{
		{host: "{stalls: {every: 1ns}}", want: "host.stalls.every: 10ms after every 1ns leave the worker"},
		{host: "{stalls: {every: 10ms, length: 10ms}}"},
		{hardware: "cpu.stolen.every: 1ns", want: "hardware.set.cpu.stolen.every:"},
		{hardware: "cpu.tick.length: 10ms", want: "leaves nothing"},
		{host: "{proxy: {core: shared, nice: 19}, competing: {threads: 64, nice: -20}, stalls: {every: 20us, length: 10us}}", want: "beside turns of other threads of"},
	} {
		message := scene{hardware: tt.hardware, host: tt.host, paths: []string{"mini-proxy-tuned"}, workload: "{kind: put, bytes: 8B, iterations: 20}"}.text()
		step := strings.Replace(message, "paths:\n  - mini-proxy-tuned\n", "", 1)
		step = strings.Replace(step, "kind: put, bytes: 8B", "kind: proxy-echo", 1)
		for _, text := range []string{message, step} {
			if why := refusal(t, text); why == "" != (tt.want == "") || !strings.Contains(why, tt.want) {
				t.Errorf("refused with %q, want %q\n%s", why, tt.want, text)
			}
		}
	}
}

// TestKeysOfNobody: keys of a part that the path does not use are told.
func TestKeysOfNobody(t *testing.T) {
	const host = "{idle: {deepest: C6}, proxy: {core: shared}, competing: {threads: 2}}"
	for _, tt := range []struct{ hardware, host, path, want string }{
		{"", host, "mini-gda", "host.competing.threads, host.idle.deepest, host.proxy.core"},
		{"", host, "mini-proxy", "host.idle.deepest"},
		{"", host, "proxy-interrupt", ""},
		{"pcie.path.gpu_nic: SYS\npcie.acs: redirect\npcie.switch_latency: 1us", "", "mini-gda", "hardware.pcie.acs, hardware.pcie.switch_latency"},
		{"pcie.acs: redirect\npcie.switch_latency: 1us", "", "mini-gda", ""},
		{"pcie.root_peer_latency: 1us", "", "mini-gda", "hardware.pcie.root_peer_latency"},
	} {
		res := run(t, scene{hardware: tt.hardware, host: tt.host, paths: []string{tt.path}, workload: "{kind: put, bytes: 8B, iterations: 2, warmup: 1}"}, testbed.Options{Workers: 1})
		got := ""
		for _, n := range res.Notices {
			if _, keys, ok := strings.Cut(n, "without effect here: "); ok {
				got = keys
			}
		}
		if got != tt.want {
			t.Errorf("%s with %s %s: told of %q, want %q", tt.path, tt.hardware, tt.host, got, tt.want)
		}
	}
}
