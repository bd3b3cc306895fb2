package testbed_test

import (
	"strings"
	"testing"

	"gdisim/testbed"
)

// TestUntold: what a run does not obey is told of, in a notice or as an error, and what
// it obeys is not.
func TestUntold(t *testing.T) {
	const put = "{kind: put, bytes: 8B, iterations: 5}"
	for _, tt := range []struct{ path, workload, want string }{
		{"{name: p, stack: mini-gda, set: {dcis: 5}}", put, "without effect here: path.dcis"},
		{"{name: p, stack: nvshmem-ibgda, set: {dcis: 5, completion: used-qp}}", put, "without effect here: path.dcis"},
		{"{name: p, stack: nvshmem-ibgda, set: {dcis: 5}}", put, ""},
		{"{name: p, stack: ibgda-cpu-doorbell, set: {dcis: 5, completion: used-qp}}", put, ""},
		{"{name: p, stack: mini-gda, set: {dcis: 5, transport: dc}}", put, ""},
		{"{name: p, stack: nvshmem-ibgda, set: {transport: dc, qps_per_peer: 3}}", put, "without effect here: path.qps_per_peer"},
		{"{name: p, stack: gin-proxy, set: {completion: context, peers.count: 4, peers.used: 2}}", put, "without effect here: path.peers.used"},
		{"{name: p, stack: gin-gdaki, set: {completion: context, peers.count: 4, peers.used: 2}}", put, ""},
		{"{name: p, stack: mini-gda, set: {payload_in: register}}", put, ""},
		{"{name: p, stack: mini-gda, set: {payload_in: register, inline: false}}", put, "payload_in: register, but 8 B do not travel inline: they lie in GPU memory"},
		{"{name: p, stack: mini-gda, set: {payload_in: register}}", "{kind: get, bytes: 8B, iterations: 5}", "register, but 8 B do not"},
		{"{name: p, stack: mini-proxy-tuned, set: {payload_in: register}}", "{kind: put, bytes: 1MiB, iterations: 5}", "register, but 1048576 B do not travel inline: they lie in GPU"},
		{"{name: p, stack: verbs-cpu, set: {payload_in: register}}", put, ""},
		{"{name: p, stack: verbs-cpu, set: {payload_in: register}}", "{kind: put, bytes: 1MiB, iterations: 5}", "they lie in host memory"},
		{"{name: p, stack: mini-gda, set: {next_put: completion}}", put, "next_put: completion over gpu-doorbell (want at-once"},
		{"{name: p, stack: mini-gda, set: {next_put: progress}}", put, "next_put: progress over gpu-doorbell (want at-once"},
		{"{name: p, stack: verbs-cpu, set: {next_put: progress}}", put, "next_put: progress over cpu-verbs (want at-once or completion)"},
		{"", "{kind: load, memory: host, iterations: 5, background: {kind: poll-line}}", "poll-line does nothing to this load"},
		{"", "{kind: flag-echo, iterations: 5, background: {kind: poll-words}}", "poll-words does nothing to this flag-echo"},
		{"", "{kind: fence, scope: gpu, stores: 1, memory: host, iterations: 5, background: {kind: poll-words}}", "poll-words does nothing to this fence"},
		{"", "{kind: fence, scope: system, stores: 1, memory: host, iterations: 5, background: {kind: poll-words}}", ""},
		{"", "{kind: flag-echo, release: system, iterations: 5, background: {kind: poll-words}}", ""},
	} {
		s := scene{paths: []string{tt.path}, workload: tt.workload}
		text := s.text()
		if tt.path == "" {
			text = strings.Replace(text, "paths:\n  - \n", "", 1)
		}
		var told string
		if res, err := testbed.Run(t.Context(), parse(t, text), testbed.Options{Workers: 1}); err != nil {
			told = err.Error()
		} else {
			told = strings.Join(res.Notices, "\n")
		}
		if tt.want == "" && told != "" || !strings.Contains(told, tt.want) {
			t.Errorf("%s %s: told %q, want %q", tt.path, tt.workload, told, tt.want)
		}
	}
}
