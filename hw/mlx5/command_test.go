package mlx5

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fields is what testdata/command.c printed of a kernel's header (6.1): first bit
// and width of each.
func fields(t *testing.T) map[string]field {
	t.Helper()
	b, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]field{}
	for line := range strings.Lines(string(b)) {
		var name string
		var f field
		if _, err := fmt.Sscan(line, &name, &f.at, &f.bits); err != nil {
			t.Fatal(err)
		}
		m[name] = f
	}
	return m
}

func TestFieldsOfTheKernel(t *testing.T) {
	headers, _ := filepath.Glob("/usr/src/linux-headers-*-common/include/linux/mlx5/mlx5_ifc.h")
	if len(headers) == 0 {
		t.Skip("no kernel headers in /usr/src")
	}
	out, err := exec.Command(compile(t, "-I", filepath.Dir(headers[0]), "testdata/command.c")).Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != string(want) {
		t.Errorf("%s has\n%s", headers[0], out)
	}
}

func TestCommandFields(t *testing.T) {
	k := fields(t)
	whole := func(f field) field { return field{f.at, 64} } // of two halves
	for name, f := range map[string]field{
		"create_cq_in": {0, createCQBytes * 8}, "create_qp_in": {0, createQPBytes * 8}, "rst2init_qp_in": {0, transitionBytes * 8},
		"init2rtr_qp_in": {0, transitionBytes * 8}, "rtr2rts_qp_in": {0, transitionBytes * 8}, "create_cq_out": {0, outBytes * 8}, "create_qp_out": {0, outBytes * 8},
		"create_cq_in.opcode": opcodeField, "create_cq_out.status": statusField, "create_cq_out.syndrome": syndrome,
		"create_cq_out.cqn": numberField, "create_qp_out.qpn": numberField, "rst2init_qp_in.qpn": numberField,
		"create_cq_in.cq_context": {cqContext, 0x200}, "create_qp_in.qpc": {qpContext, 0x740}, "rst2init_qp_in.qpc": {qpContext, 0x740},
		"init2rtr_qp_in.qpc": {qpContext, 0x740}, "rtr2rts_qp_in.qpc": {qpContext, 0x740}, "qpc.primary_address_path": {path, 0x160},
		"create_cq_in.cq_umem_valid": createCQ.umemValid, "create_qp_in.wq_umem_valid": createQP.umemValid,
		"cqc.dbr_umem_valid": cqc.dbrUmemValid, "cqc.log_cq_size": cqc.logSize, "cqc.uar_page": cqc.uarPage, "cqc.log_page_size": cqc.logPageSize,
		"cqc.dbr_addr": whole(cqc.dbrAddr), "cqc.c_eqn_or_apu_element": cqc.eqn,
		"qpc.pm_state": qpc.pmState, "qpc.pd": qpc.pd, "qpc.mtu": qpc.mtu, "qpc.log_msg_max": qpc.logMsgMax, "qpc.log_sq_size": qpc.logSQSize,
		"qpc.uar_page": qpc.uarPage, "qpc.log_page_size": qpc.logPageSize, "qpc.remote_qpn": qpc.remoteQPN, "qpc.retry_count": qpc.retryCount,
		"qpc.rnr_retry": qpc.rnrRetry, "qpc.next_send_psn": qpc.nextSendPSN, "qpc.cqn_snd": qpc.cqnSnd, "qpc.min_rnr_nak": qpc.minRNRNak,
		"qpc.next_rcv_psn": qpc.nextRcvPSN, "qpc.cqn_rcv": qpc.cqnRcv, "qpc.dbr_addr": whole(qpc.dbrAddr), "qpc.rq_type": qpc.rqType,
		"qpc.dbr_umem_valid": qpc.dbrUmemValid,
		"ads.grh":            ads.grh, "ads.rlid": ads.rlid, "ads.ack_timeout": ads.ackTimeout, "ads.src_addr_index": ads.srcAddrIndex, "ads.hop_limit": ads.hopLimit,
		"ads.rgid_rip": {ads.rgid.at, 128}, "ads.udp_sport": ads.udpSPort, "ads.vhca_port_num": ads.vhcaPort, "ads.rmac_47_32": ads.rmacHigh, "ads.rmac_31_0": ads.rmacLow,
		"op.create_cq": {opCreateCQ, 0}, "op.create_qp": {opCreateQP, 0}, "op.rst2init": {opRST2INIT, 0}, "op.init2rtr": {opINIT2RTR, 0},
		"op.rtr2rts": {opRTR2RTS, 0}, "op.migrated": {migrated, 0},
	} {
		if k[name] != f {
			t.Errorf("%s is %+v, the kernel's %+v", name, f, k[name])
		}
		delete(k, name)
	}
	for name := range k {
		t.Errorf("%s is not compared", name)
	}
	// The low halves, and what that header calls reserved.
	for _, tt := range []struct{ low, high field }{
		{cqc.dbrAddrLow, cqc.dbrAddr},
		{qpc.dbrAddrLow, qpc.dbrAddr},
		{createCQ.umemOffsetLow, createCQ.umemOffset},
		{createQP.umemOffsetLow, createQP.umemOffset},
		{createCQ.umemID, createCQ.umemOffsetLow},
		{createQP.umemID, createQP.umemOffsetLow},
		{createCQ.umemValid, createCQ.umemID},
		{createQP.umemValid, createQP.umemID},
	} {
		if tt.low.at != tt.high.at+32 {
			t.Errorf("%+v is not behind %+v", tt.low, tt.high)
		}
	}
}

// What is put is got, and nothing else of the command moves.
func TestCommandPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(1, 32).Draw(t, "bits")
		f := field{rapid.IntRange(0, 31).Draw(t, "word")*32 + rapid.IntRange(0, 32-bits).Draw(t, "bit"), bits}
		v := uint32(rapid.Uint64Range(0, 1<<bits-1).Draw(t, "v"))
		fill := rapid.Byte().Draw(t, "fill")
		c, clean := make(command, 128), make(command, 128)
		for i := range c {
			c[i], clean[i] = fill, fill
		}
		old := c.get(f)
		c.put(f, v)
		if c.get(f) != v {
			t.Fatalf("%+v: put %#x, got %#x", f, v, c.get(f))
		}
		c.put(f, old)
		if string(c) != string(clean) {
			t.Fatalf("%+v touched its neighbours", f)
		}
	})
}

// Two whole commands, by the bytes that differ from zero.
func TestCommandBytes(t *testing.T) {
	q := queues{umem: 0x11, recordUmem: 0x12, uarPage: 0x22, pdn: 0x33, eqn: 0x44, pageBits: 16, sq: 0x10000, cq: 0x20000, record: 0x30008, cqRecord: 0x30040, logWQEBBs: 9, logCQEs: 7}
	r := route{port: 1, gidIndex: 3, ethernet: true, mtu: 5, qpn: 0x123456, psn: 0x654321, sendPSN: 0xabc, gid: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}, mac: [6]byte{2, 3, 4, 5, 6, 7}, hopLimit: 64}
	rtr, err := init2rtr(0x55, &r)
	if err != nil {
		t.Fatal(err)
	}
	ib := route{port: 2, mtu: 3, qpn: 1, psn: 2, lid: 0x77}
	ibRTR, err := init2rtr(0x55, &ib)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		c    command
		want string // offset:word of each word that is not zero
	}{
		{"create_cq", q.createCQ(), "00:04000000 10:02000000 14:00000012 1c:07000022 24:00000044 28:04000000 4c:00030040 54:00020000 58:00000011 5c:80000000"},
		{"create_qp", q.createQP(0x66), "00:05000000 18:00001800 1c:00000033 20:00004800 24:00000022 2c:04000000 94:00000066 b4:00000066 bc:00030008 c4:03000000 e8:10000000 fc:00000012 104:00010000 108:00000011 10c:80000000"},
		{"rst2init", rst2init(0x55, &r), "00:05020000 08:00000055 18:00001800 54:00010000"},
		{"init2rtr, RoCE", rtr, "00:05030000 08:00000055 20:be000000 2c:00123456 38:00030040 48:0000ffff 4c:0a000001 50:0000c000 54:00010203 58:04050607 ac:0c654321"},
		{"init2rtr, InfiniBand", ibRTR, "00:05030000 08:00000055 20:7e000000 2c:00000001 34:00000077 54:00020000 ac:0c000002"},
		{"rtr2rts", rtr2rts(0x55, &r), "00:05040000 08:00000055 38:70000000 88:0007c000 90:00000abc"},
	} {
		var got []string
		for i := 0; i < len(tt.c); i += 4 {
			if w := hex.EncodeToString(tt.c[i : i+4]); w != "00000000" {
				got = append(got, fmt.Sprintf("%02x:%s", i, w))
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, s, tt.want)
		}
	}
	if _, err := init2rtr(1, &route{mtu: 6}); err == nil {
		t.Error("an MTU that is none")
	}
	if _, err := (command{0: 3, 4: 0xab, 15: 0}).number("create_cq"); err == nil || !strings.Contains(err.Error(), "status is 0x3, syndrome 0xab000000") {
		t.Error(err)
	}
}
