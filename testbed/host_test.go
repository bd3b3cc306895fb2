package testbed_test

import (
	"strings"
	"testing"
)

// A core that ticks, stalls and others leave nothing of ends a run before it
// begins: it would look for a free moment without end.
func TestCoreLeft(t *testing.T) {
	for _, tt := range []struct{ hardware, host, want string }{
		{host: "{stalls: {every: 1ns}}", want: "host.stalls: 10ms after every 1ns leave the worker"},
		{host: "{stalls: {every: 10ms, length: 10ms}}"},
		{hardware: "cpu.stolen.every: 1ns", want: "hardware.cpu.stolen:"},
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
