package demux

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/sflow"
	"github.com/hopscope/hopscope/internal/sflowtest"
)

// datagramOf is a datagram of an agent, of which up is the uptime in ms.
func datagramOf(seq, up uint32, samples ...sflow.Sample) []byte {
	d := sflow.Datagram{IPv: 4, Seq: seq, Uptime: up, SubAgent: 3, Samples: uint32(len(samples)), Agent: decode.AddrFrom4([]byte{10, 0, 0, 9})}
	b := sflow.AppendDatagram(nil, &d)
	for i := range samples {
		b = sflow.AppendSample(b, &samples[i])
	}
	return b
}

// What the agent says is a report of its own node: a drop with its reason, a hop with its delay, the use of an interface.
func TestSFlow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	made := func(kind sflow.Kind, has sflow.Field) sflow.Sample {
		s := sflowtest.Sample(rnd)
		for s.Kind != kind {
			s = sflowtest.Sample(rnd)
		}
		s.Has, s.Input, s.Output, s.Seq, s.Drops, s.Class, s.Index = has, sflow.Port{Value: 3}, sflow.Port{Value: 70000}, 1, 0, 0, 3
		return s
	}
	drop := made(sflow.Discard, sflow.HasHeader|sflow.HasQueue)
	drop.Reason, drop.Queue = 259, 5
	slow := made(sflow.Flow, sflow.HasHeader|sflow.HasDelay|sflow.HasDepth)
	slow.Delay, slow.Depth, slow.Rate = 1500, 9000, 512
	plain := made(sflow.Flow, sflow.HasHeader)
	discarded := made(sflow.Flow, sflow.HasHeader)
	discarded.Output = sflow.Port{Format: 1, Value: 258}
	counters := made(sflow.Counters, sflow.HasInterface)
	counters.Interface.Index, counters.Interface.Speed, counters.Interface.OutOctets = 7, 1e9, 1000

	d := New(profile(t, "auto"))
	var b decode.Batch
	src := decode.AddrFrom4([]byte{192, 0, 2, 1})
	read := func(payload []byte) []*decode.Report {
		b.Reset()
		if n := d.Datagram(&b, src, payload, 7); n != len(b.Reports) {
			t.Fatalf("%d reports, and says %d", len(b.Reports), n)
		}
		return b.Reports
	}
	r := read(datagramOf(41, 10_000, drop, slow, plain, discarded, counters))
	if len(r) != 4 {
		t.Fatalf("%d reports: %s", len(r), lines(&b))
	}
	for i, kind := range []decode.Kind{decode.KindDrop, decode.KindPostcard, decode.KindSample, decode.KindDrop} {
		x := r[i]
		if x.Kind != kind || x.Exporter != decode.AddrFrom4([]byte{10, 0, 0, 9}) || x.NodeID != 0x0a000009 || x.HWID != 3 || x.Seq != 41 || x.FirstOfGroup != (i == 0) || x.Has&decode.HasFlow == 0 || x.Err.Reason != 0 {
			t.Errorf("report %d: %+v", i, x)
		}
	}
	if h := r[0].Hops[0]; r[0].Units.DropReason(r[0].DropReason) != "no buffer space" || r[0].Flags&decode.Dropped == 0 || h.IngressIf != 3 || h.L2EgressIf != 70000 || h.QueueID != 5 {
		t.Errorf("drop: %+v", r[0])
	}
	if h := r[1].Hops[0]; h.Latency != 1500 || h.QueueOccupancy != 9000 || r[1].Weight != 512 {
		t.Errorf("hop: %+v", r[1])
	}
	if len(r[2].Hops) != 0 || r[2].Weight != plain.Rate {
		t.Errorf("sample: %+v", r[2])
	}
	if r[3].Units.DropReason(r[3].DropReason) != "acl" {
		t.Errorf("discarded sample: %+v", r[3])
	}

	// Half a second later: a tenth of what the line takes. One sample of the drops' source is missing, and the agent dropped four.
	counters.Interface.OutOctets += 1e9 / 8 / 10 / 2
	drop.Seq, drop.Drops = 3, 4
	r = read(datagramOf(42, 10_500, counters, drop))
	if len(r) != 2 || r[0].Kind != decode.KindCounters || r[0].Hops[0].TxUtilization != 1000 || r[0].Hops[0].EgressIf != 7 {
		t.Errorf("counters: %s", lines(&b))
	}
	if missing, dropped := d.sflow.missing.Load(), d.sflow.dropped.Load(); missing != 1 || dropped != 4 {
		t.Errorf("%d missing and %d dropped inside", missing, dropped)
	}
	// The device began anew, and counts from 0.
	counters.Interface.OutOctets = 5
	if r = read(datagramOf(1, 100, counters)); len(r) != 1 || len(r[0].Hops) != 0 || r[0].Seq != 1 || !r[0].FirstOfGroup {
		t.Errorf("restart: %s", lines(&b))
	}
	payload := datagramOf(43, 11_000, drop, slow, plain, counters)
	if n := testing.AllocsPerRun(100, func() { b.Reset(); d.Datagram(&b, src, payload, 7) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if r = read(payload[:len(payload)-4]); r[len(r)-1].Err.Field != "sample_length" || r[len(r)-1].Err.Format != decode.SFlow {
		t.Errorf("cut: %s", lines(&b))
	}
	// In a capture, at any port.
	frame := udpFrame(payload, profile(t, "auto"), 9999)
	b.Reset()
	if d.Frame(&b, packet.LinkEthernet, frame, len(frame), 7) == 0 || b.Reports[0].Format != decode.SFlow || b.Reports[0].Err.Reason != 0 {
		t.Errorf("frame: %s", lines(&b))
	}
	// The flow is that of the packet in a tunnel.
	vxlan := udpFrame(append([]byte{8, 0, 0, 0, 0, 0, 1, 0}, udpFrame(make([]byte, 30), Profile{}, 53)...), Profile{}, 4789)
	drop.Header, drop.FrameLen, drop.Protocol = vxlan, uint32(len(vxlan)), 1
	router := NewRouter(profile(t, "auto"), nil)
	b.Reset()
	if router.Datagram(&b, src, datagramOf(44, 11_100, drop), 7); len(b.Reports) != 1 || b.Reports[0].Flow.DstPort != 53 {
		t.Errorf("tunnel: %s", lines(&b))
	}
	// A profile that does not read it says so.
	other := New(profile(t, "fabric-tna"))
	b.Reset()
	if other.Datagram(&b, src, payload, 7); len(b.Reports) != 1 || b.Reports[0].Err.Reason != decode.NotRead || b.Reports[0].Format != decode.SFlow {
		t.Errorf("fabric-tna: %s", lines(&b))
	}
}

func FuzzSFlowReports(f *testing.F) {
	rnd := rand.New(rand.NewPCG(2, 1))
	for range 8 {
		f.Add(sflowtest.Datagram(rnd, true))
	}
	d := New(Profile{SFlow: true, Units: decode.DefaultUnits})
	var b decode.Batch
	f.Fuzz(func(t *testing.T, payload []byte) {
		b.Reset()
		if n := d.Datagram(&b, decode.Addr{}, payload, 7); n != len(b.Reports) || n == 0 {
			t.Fatalf("%d reports, and says %d", len(b.Reports), n)
		}
		sane(t, &b, len(payload))
	})
}
