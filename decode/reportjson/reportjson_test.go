package reportjson

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/internal/testkit"
)

func addr(s string) decode.Addr { return decode.AddrFrom(netip.MustParseAddr(s)) }

func flow(src, dst string, proto uint8, ports ...uint16) decode.FlowKey {
	k := decode.FlowKey{Src: addr(src), Dst: addr(dst), Proto: proto, IPVersion: 4}
	if strings.Contains(src, ":") {
		k.IPVersion = 6
	}
	if len(ports) == 2 {
		k.SrcPort, k.DstPort = ports[0], ports[1]
	}
	return k
}

const (
	hasReport = decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq
	hasFlow   = decode.HasFlow | decode.HasPorts
	hopPorts  = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf
	hopTimes  = hopPorts | decode.HopIngressTime | decode.HopEgressTime
	hopProbe  = hopPorts | decode.HopQueueOccupancy | decode.HopEnqTime | decode.HopQueueDelay | decode.HopDeqOccupancy | decode.HopIngressTime
)

// Lines of the recordings that the decoders' tests use, and cases around them.
var cases = []struct {
	name  string
	frame uint64
	r     decode.Report
	want  string
}{
	{
		"drop report 0.5", 1471,
		decode.Report{
			Time: 1795171850330628000, Format: decode.TelemetryReport, Version: decode.V05, Exporter: addr("10.0.0.1"),
			NodeID: 1, Seq: 491, HeaderTime: 17758315, Kind: decode.KindDrop, Flow: flow("10.0.1.1", "10.0.9.9", 17, 4607, 8959),
			Flags: decode.Dropped, DropReason: 29, TTL: 63,
			Has: hasReport | hasFlow | decode.HasHeaderTime | decode.HasPacketID | decode.HasDropReason | decode.HasTTL,
			Hops: []decode.Hop{{
				Has: hopPorts | decode.HopQueueID | decode.HopIngressTime, NodeID: 1, IngressIf: 1, IngressTime: 17758315,
			}},
		},
		`{"frame":1471,"time_ns":1795171850330628000,"format":"telemetry-report","version":"0.5","exporter":"10.0.0.1","node_id":1,"hw_id":0,"seq":491,
"header_time":17758315,"kind":"drop","flow":{"src":"10.0.1.1","dst":"10.0.9.9","proto":17,"src_port":4607,"dst_port":8959},"packet_id":0,
"flags":["dropped"],"drop_reason":29,"hops":[{"node_id":1,"ingress_if":1,"egress_if":0,"queue_id":0,"ingress_time":17758315}]}`,
	}, {
		"loss report of a host", 14,
		decode.Report{
			Time: 1795172144386527000, Format: decode.TelemetryReport, Version: decode.V05, Exporter: addr("10.0.0.2"),
			NodeID: 22, Seq: 14, HeaderTime: 1795172144, Kind: decode.KindDrop, Flow: flow("10.0.0.1", "10.0.0.2", 17, 38562, 6000),
			Flags: decode.Dropped | decode.Tracked, SourceSeq: 6, GapTime: 1795172143, Lost: 11,
			Has: hasReport | hasFlow | decode.HasHeaderTime | decode.HasSourceSeq | decode.HasGap,
			Hops: []decode.Hop{
				{Has: decode.HopNodeID | decode.HopEgressIf, NodeID: 11, EgressIf: 2},
				{Has: decode.HopNodeID | decode.HopIngressIf, NodeID: 22, IngressIf: 2},
			},
		},
		`{"frame":14,"time_ns":1795172144386527000,"format":"telemetry-report","version":"0.5","exporter":"10.0.0.2","node_id":22,"hw_id":0,"seq":14,
"header_time":1795172144,"kind":"drop","flow":{"src":"10.0.0.1","dst":"10.0.0.2","proto":17,"src_port":38562,"dst_port":6000},"flags":["dropped",
"tracked"],"source_seq":6,"gap_time":1795172143,"lost":11,"hops":[{"node_id":11,"egress_if":2},{"node_id":22,"ingress_if":2}]}`,
	}, {
		"INT 1.0 in report 1.0", 1,
		decode.Report{
			Time: 1795171402057242000, Format: decode.TelemetryReport, Version: decode.V10, Exporter: addr("10.0.0.4"),
			Kind: decode.KindStack, Flow: flow("10.0.1.1", "10.0.2.2", 17, 4607, 8959), Flags: decode.Tracked | decode.HopLimit,
			INT: decode.V10, Instructions: 0xcc00,
			Has: hasReport | hasFlow | decode.HasHeaderTime | decode.HasPacketID | decode.HasInstructions |
				decode.HasRemainingHops | decode.HasSourceSeq,
			Hops: []decode.Hop{
				{Has: hopTimes, NodeID: 101, IngressIf: 1, EgressIf: 2, IngressTime: 7723576000, EgressTime: 7728996000},
				{Has: hopTimes, NodeID: 65538, IngressIf: 2, EgressIf: 7, IngressTime: 7745079000, EgressTime: 1<<64 - 1},
			},
		},
		`{"frame":1,"time_ns":1795171402057242000,"format":"telemetry-report","version":"1.0","exporter":"10.0.0.4","node_id":0,"hw_id":0,"seq":0,
"header_time":0,"kind":"int-stack","flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":4607,"dst_port":8959},"packet_id":0,
"flags":["tracked","hop-limit"],"int_version":"1.0","instructions":"0xcc00","remaining_hops":0,"source_seq":0,"hops":[{"node_id":101,
"ingress_if":1,"egress_if":2,"ingress_time":7723576000,"egress_time":7728996000},{"node_id":65538,"ingress_if":2,"egress_if":7,
"ingress_time":7745079000,"egress_time":18446744073709551615}]}`,
	}, {
		"postcard", 1,
		decode.Report{
			Time: 1795172393690447000, Format: decode.TelemetryReport, Version: decode.V10, Exporter: addr("10.0.0.1"), NodeID: 1, HWID: 1,
			Kind: decode.KindPostcard, FlowID: 77, Flags: decode.Tracked, Has: hasReport | decode.HasFlowID,
			Hops: []decode.Hop{{
				Has:    hopTimes | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy | decode.HopTxUtilization,
				NodeID: 1, IngressIf: 1, EgressIf: 9, Latency: 8006, QueueOccupancy: 2, IngressTime: 3500709, EgressTime: 3508715,
			}},
		},
		`{"frame":1,"time_ns":1795172393690447000,"format":"telemetry-report","version":"1.0","exporter":"10.0.0.1","node_id":1,"hw_id":1,"seq":0,
"kind":"postcard","flow_id":77,"flags":["tracked"],"hops":[{"node_id":1,"ingress_if":1,"egress_if":9,"latency":8006,"queue_id":0,
"queue_occupancy":2,"ingress_time":3500709,"egress_time":3508715,"tx_utilization":0}]}`,
	}, {
		"rejected report 2.0", 1,
		decode.Report{
			Time: 1795171540708094000, Format: decode.TelemetryReport, Version: decode.V20, Exporter: addr("10.0.0.1"), NodeID: 3, HWID: 1,
			Has: hasReport,
			Err: decode.Error{Format: decode.TelemetryReport, Field: "report_length", Offset: 51, Reason: decode.BadLength},
		},
		`{"frame":1,"time_ns":1795171540708094000,"format":"telemetry-report","version":"2.0","exporter":"10.0.0.1","node_id":3,"hw_id":1,"seq":0,
"error":{"format":"telemetry-report","field":"report_length","offset":51,"reason":"bad-length"}}`,
	}, {
		"INT 2.1 in the network", 1,
		decode.Report{
			Time: 1795172338192517000, Format: decode.INTMD, Version: decode.V21, Kind: decode.KindStack,
			Flow: flow("10.0.1.1", "10.0.3.3", 17, 4607, 5001), FlowID: 1, Instructions: 0xd, RemainingHops: 8,
			Has:  hasFlow | decode.HasPacketID | decode.HasFlowID | decode.HasInstructions | decode.HasRemainingHops,
			Hops: []decode.Hop{{Has: decode.HopNodeID | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy, NodeID: 1, Latency: 8620, QueueOccupancy: 9}},
		},
		`{"frame":1,"time_ns":1795172338192517000,"format":"int-md","version":"2.1","kind":"int-stack","flow":{"src":"10.0.1.1","dst":"10.0.3.3",
"proto":17,"src_port":4607,"dst_port":5001},"packet_id":0,"flow_id":1,"instructions":"0x000d","remaining_hops":8,"hops":[{"node_id":1,
"latency":8620,"queue_id":0,"queue_occupancy":9}]}`,
	}, {
		"INT-path", 14,
		decode.Report{
			Time: 1795171158893581000, Format: decode.INTPath, Kind: decode.KindProbe, Flow: flow("10.0.0.101", "10.0.0.102", 17, 59371, 2222),
			PacketID: 31663, ActionID: 5, Has: hasFlow | decode.HasPacketID | decode.HasActionID,
			Hops: []decode.Hop{
				{Has: hopProbe, IngressIf: 1, EgressIf: 2, EnqTime: 6035997, QueueDelay: 17, IngressTime: 6035860},
				{Has: hopProbe, NodeID: 1, IngressIf: 3, EgressIf: 4, EnqTime: 6037577, QueueDelay: 13, IngressTime: 6037485},
			},
		},
		`{"frame":14,"time_ns":1795171158893581000,"format":"int-path","kind":"probe","flow":{"src":"10.0.0.101","dst":"10.0.0.102","proto":17,
"src_port":59371,"dst_port":2222},"packet_id":31663,"action_id":5,"hops":[{"node_id":0,"ingress_if":1,"egress_if":2,"queue_occupancy":0,
"enq_time":6035997,"queue_delay":17,"deq_occupancy":0,"ingress_time":6035860},{"node_id":1,"ingress_if":3,"egress_if":4,"queue_occupancy":0,
"enq_time":6037577,"queue_delay":13,"deq_occupancy":0,"ingress_time":6037485}]}`,
	}, {
		"INT-Probe", 1,
		decode.Report{
			Time: 1795171518136746000, Format: decode.INTProbe, Kind: decode.KindProbe, SRPorts: []byte{0, 2, 0, 1}, Has: decode.HasSRPorts,
			Hops: []decode.Hop{{
				Has: hopProbe | decode.HopEgressTime, NodeID: 4, IngressIf: 1, EgressIf: 2, EnqTime: 10959955, QueueDelay: 6773,
				DeqOccupancy: 4, IngressTime: 10959782, EgressTime: 10966722,
			}},
		},
		`{"frame":1,"time_ns":1795171518136746000,"format":"int-probe","kind":"probe","sr_ports":[2,1],"hops":[{"node_id":4,"ingress_if":1,"egress_if":2,
"queue_occupancy":0,"enq_time":10959955,"queue_delay":6773,"deq_occupancy":4,"ingress_time":10959782,"egress_time":10966722}]}`,
	}, {
		"empty blocks, IPv6, a time before 1970", 1 << 63,
		decode.Report{
			Time: -1, Format: decode.INTMX, Version: decode.V21, Kind: decode.KindInstruction, Has: decode.HasFlow | decode.HasSourceMetadata | decode.HasDomainID,
			Flow: flow("fd00:1:0:0::1", "::ffff:10.0.0.1", 59), Flags: 0x1ff, DomainID: 65535, SourceMetadata: []byte{0, 0xab}, Hops: make([]decode.Hop, 2),
		},
		`{"frame":9223372036854775808,"time_ns":-1,"format":"int-mx","version":"2.1","kind":"instruction","flow":{"src":"fd00:1::1",
"dst":"::ffff:10.0.0.1","proto":59},"flags":["dropped","congested","tracked","transit","hop-limit","mtu","copy","discard","truncated"],
"domain_id":65535,"source_metadata":"0x00ab","hops":[{},{}]}`,
	},
}

func TestAppend(t *testing.T) {
	for _, tt := range cases {
		want := strings.ReplaceAll(tt.want, "\n", "")
		if got := Append([]byte("x"), tt.frame, &tt.r); string(got) != "x"+want {
			t.Errorf("%s:\n got %s\nwant x%s", tt.name, got, want)
		}
	}
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		for i := range cases {
			buf = Append(buf[:0], 1, &cases[i].r)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// objectOf builds what encoding/json would be given: one map entry for every value that is there.
func objectOf(frame uint64, r *decode.Report) map[string]any {
	o := map[string]any{"frame": frame, "time_ns": r.Time, "format": r.Format.String()}
	for key, v := range map[string]struct {
		field decode.Field
		value any
	}{
		"exporter": {decode.HasExporter, r.Exporter.String()}, "node_id": {decode.HasNodeID, r.NodeID}, "hw_id": {decode.HasHWID, r.HWID},
		"seq": {decode.HasSeq, r.Seq}, "header_time": {decode.HasHeaderTime, r.HeaderTime}, "packet_id": {decode.HasPacketID, r.PacketID},
		"flow_id": {decode.HasFlowID, r.FlowID}, "domain_id": {decode.HasDomainID, r.DomainID},
		"instructions":    {decode.HasInstructions, fmt.Sprintf("0x%04x", r.Instructions)},
		"remaining_hops":  {decode.HasRemainingHops, r.RemainingHops},
		"source_seq":      {decode.HasSourceSeq, r.SourceSeq},
		"source_metadata": {decode.HasSourceMetadata, "0x" + hex.EncodeToString(r.SourceMetadata)},
		"drop_reason":     {decode.HasDropReason, r.DropReason},
		"gap_time":        {decode.HasGap, r.GapTime}, "lost": {decode.HasGap, r.Lost},
		"action_id": {decode.HasActionID, r.ActionID}, "sr_list": {decode.HasSRList, "0x" + hex.EncodeToString(r.SRList)},
	} {
		if r.Has&v.field != 0 {
			o[key] = v.value
		}
	}
	version := r.Version.String()
	if r.Format == decode.IFA {
		version, _, _ = strings.Cut(version, ".")
	}
	for key, s := range map[string]string{"version": version, "int_version": r.INT.String()} {
		if s != "" {
			o[key] = s
		}
	}
	if r.Kind != 0 {
		o["kind"] = r.Kind.String()
	}
	if r.Flags != 0 {
		o["flags"] = r.Flags.AppendNames(nil)
	}
	if r.Has&decode.HasFlow != 0 {
		f := map[string]any{"src": r.Flow.SrcString(), "dst": r.Flow.DstString(), "proto": r.Flow.Proto}
		if r.Has&decode.HasPorts != 0 {
			f["src_port"], f["dst_port"] = r.Flow.SrcPort, r.Flow.DstPort
		}
		o["flow"] = f
	}
	if r.Has&decode.HasInner != 0 {
		f := map[string]any{"src": r.Rare.Inner.SrcString(), "dst": r.Rare.Inner.DstString(), "proto": r.Rare.Inner.Proto}
		if r.Has&decode.HasInnerPorts != 0 {
			f["src_port"], f["dst_port"] = r.Rare.Inner.SrcPort, r.Rare.Inner.DstPort
		}
		o["inner_flow"] = f
	}
	if r.Rare != nil && r.Rare.Counters.Has != 0 {
		all := map[string]any{"interface": r.Rare.Counters.Interface}
		for i, key := range []string{"in_packets", "out_packets", "in_errors", "out_errors", "in_discards", "out_discards", "in_octets", "out_octets"} {
			if r.Rare.Counters.Has>>i&1 != 0 {
				all[key] = *r.Rare.Counters.All()[i]
			}
		}
		if r.Rare.Counters.Has&decode.CountRxUtilization != 0 {
			all["rx_utilization"] = r.Rare.Counters.RxUtilization
		}
		o["counters"] = all
	}
	if r.Has&decode.HasSRPorts != 0 {
		var ports []int
		for i := 0; i < len(r.SRPorts)/2; i++ {
			ports = append(ports, int(r.SRPorts[2*i+1]))
		}
		o["sr_ports"] = ports
	}
	if d := r.Digest; r.Has&decode.HasDigest != 0 {
		switch d.Coding {
		case decode.CodingMininet:
			o["digest"] = fmt.Sprintf("0x%012x", d.Value&(1<<48-1))
			o["ams_digest"] = fmt.Sprintf("0x%04x", d.AMS)
			o["ttl"] = r.TTL
			o["last_writer"] = d.LastWriter
		case decode.CodingTofino:
			o["digest"] = fmt.Sprintf("0x%08x", d.Value&(1<<32-1))
			o["ttl"] = r.TTL
		case decode.CodingHPCC:
			o["digest"] = fmt.Sprintf("0x%04x", d.Value&(1<<16-1))
		default:
			o["plan_epoch"], o["digest_id"], o["digest_hops"] = d.Epoch, d.ID, d.Hops
			o["digest"] = fmt.Sprintf("0x%016x", d.Value)
		}
	}
	if r.Remarks&(decode.RemarkDomainData|decode.RemarkMoreData) != 0 && len(r.Unknown) > 0 {
		o["unknown"] = fmt.Sprintf("0x%x", r.Unknown)
	}
	if r.Err.Reason != 0 {
		o["error"] = map[string]any{"format": r.Err.Format.String(), "field": r.Err.Field, "offset": r.Err.Offset, "reason": r.Err.Reason.String()}
	}
	var hops []map[string]any
	for _, h := range r.Hops {
		m := map[string]any{}
		for key, v := range map[string]struct {
			field decode.HopField
			value any
		}{
			"node_id": {decode.HopNodeID, h.NodeID}, "ingress_if": {decode.HopIngressIf, h.IngressIf}, "egress_if": {decode.HopEgressIf, h.EgressIf},
			"l2_ingress_if": {decode.HopL2IngressIf, h.L2IngressIf}, "l2_egress_if": {decode.HopL2EgressIf, h.L2EgressIf},
			"latency": {decode.HopLatency, h.Latency}, "queue_id": {decode.HopQueueID, h.QueueID},
			"queue_occupancy": {decode.HopQueueOccupancy, h.QueueOccupancy}, "enq_time": {decode.HopEnqTime, h.EnqTime},
			"queue_delay": {decode.HopQueueDelay, h.QueueDelay}, "deq_occupancy": {decode.HopDeqOccupancy, h.DeqOccupancy},
			"ingress_time": {decode.HopIngressTime, h.IngressTime}, "egress_time": {decode.HopEgressTime, h.EgressTime},
			"tx_utilization": {decode.HopTxUtilization, h.TxUtilization}, "buffer_id": {decode.HopBufferID, h.BufferID},
			"buffer_occupancy": {decode.HopBufferOccupancy, h.BufferOccupancy}, "queue_congestion": {decode.HopQueueCongestion, h.QueueCongestion},
		} {
			if h.Has&v.field != 0 {
				m[key] = v.value
			}
		}
		hops = append(hops, m)
	}
	if len(hops) > 0 {
		o["hops"] = hops
	}
	return o
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func randomReport(rng *rand.Rand) *decode.Report {
	r := &decode.Report{
		Time: int64(rng.Uint64()), Format: decode.Format(1 + rng.IntN(decode.NumFormats-1)), Kind: decode.Kind(rng.IntN(decode.NumKinds)),
		Version: []decode.Version{0, 5, 10, 20, 21}[rng.IntN(5)], INT: []decode.Version{0, 5, 10, 21}[rng.IntN(4)],
		Flags: decode.Flags(rng.Uint32() & 0x3ff), Has: decode.Field(rng.Uint32()),
		NodeID: rng.Uint32(), HWID: uint8(rng.Uint32()), Seq: rng.Uint32(), HeaderTime: rng.Uint32(), PacketID: uint16(rng.Uint32()),
		TTL: uint8(rng.Uint32()), DropReason: uint8(rng.Uint32()), RemainingHops: uint8(rng.Uint32()), DomainID: uint16(rng.Uint32()),
		Instructions: uint16(rng.Uint32()), FlowID: rng.Uint32(), SourceSeq: rng.Uint32(), GapTime: rng.Uint32(), Lost: rng.Uint32(),
		ActionID: rng.Uint32(), SourceMetadata: randomBytes(rng, 4+rng.IntN(20)), SRList: randomBytes(rng, 64), SRPorts: randomBytes(rng, 2+2*rng.IntN(16)),
		Digest: decode.Digest{
			Value: rng.Uint64(), ID: rng.Uint32(), Hops: uint8(rng.Uint32()), Epoch: uint8(rng.Uint32()), Coding: decode.Coding(rng.IntN(4)),
			AMS: uint16(rng.Uint32()), LastWriter: uint16(rng.Uint32()),
		},
		Flow: decode.FlowKey{SrcPort: uint16(rng.Uint32()), DstPort: uint16(rng.Uint32()), Proto: uint8(rng.Uint32())},
	}
	if r.Flow.IPVersion = 4; rng.IntN(2) == 0 {
		r.Flow.IPVersion = 6
		copy(r.Flow.Src[:], randomBytes(rng, 16))
		copy(r.Flow.Dst[:], randomBytes(rng, rng.IntN(16)))
	} else {
		r.Flow.Src, r.Flow.Dst = decode.AddrFrom4(randomBytes(rng, 4)), decode.AddrFrom4(randomBytes(rng, 4))
	}
	copy(r.Exporter[:], randomBytes(rng, 16))
	if rng.IntN(3) == 0 {
		r.Fail(r.Format, "hop_ml", rng.IntN(1<<20), decode.Reason(1+rng.IntN(decode.NumReasons-1)))
	}
	if r.Has&decode.HasInner != 0 {
		r.AddRare().Inner = r.Flow
	}
	if rng.IntN(3) == 0 {
		r.AddRare().Counters = decode.Counters{Has: decode.CounterField(rng.Uint32N(512)), Interface: rng.Uint32(), RxUtilization: uint16(rng.Uint32())}
		for i, n := range r.Rare.Counters.All() {
			if r.Rare.Counters.Has>>i&1 != 0 {
				*n = rng.Uint64() >> rng.IntN(64)
			}
		}
	}
	for range rng.IntN(4) {
		r.Hops = append(r.Hops, decode.Hop{
			Has: decode.HopField(rng.Uint32() & rng.Uint32()), NodeID: rng.Uint32(), IngressIf: uint16(rng.Uint32()), EgressIf: uint16(rng.Uint32()),
			Latency: rng.Uint32(), QueueOccupancy: rng.Uint32(), BufferOccupancy: rng.Uint32(), TxUtilization: rng.Uint32(),
			QueueCongestion: rng.Uint32(), L2IngressIf: rng.Uint32(), L2EgressIf: rng.Uint32(), IngressTime: rng.Uint64(),
			EgressTime: rng.Uint64(), EnqTime: rng.Uint32(), QueueDelay: rng.Uint32(), DeqOccupancy: rng.Uint32(), QueueID: uint8(rng.Uint32()), BufferID: uint8(rng.Uint32()),
		})
	}
	return r
}

func TestAppendAgreesWithEncodingJSON(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	parse := func(b []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("seed %d: %v in %s", seed, err, b)
		}
		return v
	}
	for range 2000 {
		r, frame := randomReport(rng), rng.Uint64()
		got := Append(nil, frame, r)
		if i := bytes.IndexFunc(got, func(c rune) bool { return c < ' ' || c > '~' }); i >= 0 {
			t.Fatalf("seed %d: byte %d is no printed ASCII: %q", seed, i, got)
		}
		want, err := json.Marshal(objectOf(frame, r))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(parse(got), parse(want)) {
			t.Fatalf("seed %d:\n got %s\nwant %s", seed, got, want)
		}
	}
}

// TestAppendPrintedASCII: no byte that a packet has comes out as it is, in whichever field it stands. The command
// that prints reports without another look at their bytes relies on it. Fields are found by reflection, so that new
// ones are covered; names are of this program.
func TestAppendPrintedASCII(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		hostile := func() uint64 {
			return [...]uint64{rng.Uint64(), 0x1b5b_1b5d_9b07_0d0a, 0x1b1b_1b1b_1b1b_1b1b, math.MaxUint64}[rng.IntN(4)]
		}
		switch {
		case v.Type() == reflect.TypeFor[decode.Format]():
			v.SetUint(uint64(rng.IntN(decode.NumFormats)))
		case v.Type() == reflect.TypeFor[decode.Kind]():
			v.SetUint(uint64(rng.IntN(decode.NumKinds)))
		case v.Type() == reflect.TypeFor[decode.Reason]():
			v.SetUint(uint64(rng.IntN(decode.NumReasons)))
		case v.CanUint():
			v.SetUint(hostile() & (1<<v.Type().Bits() - 1))
		case v.CanInt():
			v.SetInt(int64(hostile()) >> (64 - v.Type().Bits()))
		case v.Kind() == reflect.Bool:
			v.SetBool(rng.IntN(4) == 0)
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					fill(v.Field(i))
				}
			}
		case v.Kind() == reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case v.Kind() == reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), rng.IntN(5), 5))
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case v.Kind() == reflect.Pointer && rng.IntN(2) == 0 && v.Type().Elem() != reflect.TypeFor[decode.Template]():
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		}
	}
	digests := NewDigests([]uint32{0x1b5b, 0x9b})
	for range 20_000 {
		var r decode.Report
		fill(reflect.ValueOf(&r).Elem())
		if rng.IntN(3) == 0 {
			x := &decode.Template{ID: uint16(rng.Uint32()), Domain: rng.Uint32(), Scopes: rng.IntN(3)}
			for range rng.IntN(3) {
				x.Fields = append(x.Fields, decode.Element{ID: uint16(rng.Uint32()), PEN: rng.Uint32(), Length: uint16(rng.IntN(3))})
			}
			r.AddRare().Template = x
		}
		for _, got := range [][]byte{Append(nil, rng.Uint64(), &r), bytes.TrimSuffix(digests.Append(nil, rng.Uint64(), &r), []byte("\n"))} {
			if i := bytes.IndexFunc(got, func(c rune) bool { return c < ' ' || c > '~' }); i >= 0 {
				t.Fatalf("seed %d: byte %d is no printed ASCII: %q", seed, i, got)
			}
			if !json.Valid(got) {
				t.Fatalf("seed %d: no JSON: %q", seed, got)
			}
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, i := range []int{0, 2, 6} {
		r := &cases[i].r
		b.Run(strings.ReplaceAll(cases[i].name, " ", "-"), func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = Append(buf[:0], 1, r)
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}

// Numbers are those of strconv, at the ends of each count of digits and bits and between them.
func TestAppendUint(t *testing.T) {
	check := func(v uint64) {
		if got, want := string(appendUint([]byte("x"), v)), "x"+strconv.FormatUint(v, 10); got != want {
			t.Fatalf("appendUint(%d) = %q", v, got)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for p := uint64(1); ; p *= 10 {
		for d := range uint64(3) {
			check(p + d - 1)
		}
		if p == 1e19 {
			break
		}
	}
	for n := range 65 {
		check(1<<n - 1)
		check(1 << n)
		for range 200 {
			check(rng.Uint64() >> (64 - n))
		}
	}
	for _, v := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
		r := decode.Report{Time: v}
		if got, want := string(Append(nil, 1, &r)), `"time_ns":`+strconv.FormatInt(v, 10)+","; !strings.Contains(got, want) {
			t.Errorf("time %d: %s", v, got)
		}
	}
}
