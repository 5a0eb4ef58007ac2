package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// sourceReport returns the first switch's report of a packet, sinkReport that of the last one.
func sourceReport(at int64, flow uint16, id uint16) *decode.Report {
	return &decode.Report{
		Time: at, Kind: decode.KindPostcard, Flags: decode.Transit | decode.Tracked, Has: decode.HasFlow | decode.HasPacketID | decode.HasNodeID,
		Flow: decode.FlowKey{SrcPort: flow, IPVersion: 4, Proto: 17}, PacketID: id, NodeID: 1,
	}
}

func sinkReport(at int64, flow uint16, id uint16) *decode.Report {
	r := sourceReport(at, flow, id)
	r.Kind, r.Flags, r.INT = decode.KindStack, decode.Tracked, decode.V21
	for n := range uint32(3) {
		r.Hops = append(r.Hops, decode.Hop{Has: decode.HopNodeID | decode.HopEgressIf | decode.HopLatency, NodeID: n + 1, EgressIf: uint16(n + 5), Latency: 1000})
	}
	return r
}

// The losses of flows are counted for each of them, with its path, and reports of first switches are no packets of the
// flow.
func TestPairs(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MemoryBytes = 1 << 20
	s := New(cfg, 1)
	r := rand.New(rand.NewPCG(1, 1))
	lost, sent := map[uint16]uint64{}, map[uint16]uint64{}
	var reports []*decode.Report
	for i := range 2000 {
		at := int64(i) * 20e6
		flow := uint16(i % 10)
		reports = append(reports, sourceReport(at, flow, uint16(i)))
		sent[flow]++
		switch {
		case i < 100 || flow != 3 && flow != 4 || r.IntN(4) > 0:
			reports = append(reports, sinkReport(at+3e6, flow, uint16(i)))
		case flow == 4: // a drop that a switch reports is no silent loss
			d := sinkReport(at+3e6, flow, uint16(i))
			d.Kind, d.Flags, d.Hops = decode.KindDrop, decode.Tracked|decode.Dropped, d.Hops[:1]
			reports = append(reports, d)
		default:
			lost[flow]++
		}
	}
	s.Update(reports)
	c := s.Cut(50e9)
	var p window.Partial
	c.AddTo(&p)
	limits := cfg.Limits()
	w := p.Window(limits)
	if len(w.Losses) != 10 {
		t.Fatalf("%d flows are compared, want 10", len(w.Losses))
	}
	for _, l := range w.Losses {
		flow := l.Flow.SrcPort
		if l.Packets != sent[flow] || l.Lost != lost[flow] || len(l.Path) != 3 || l.Path[2] != (inference.HopKey{Node: 3, EgressIf: 7}) {
			t.Errorf("flow %d: %+v, want %d of %d", flow, l, lost[flow], sent[flow])
		}
	}
	for _, f := range s.Flows(10) {
		if want := sent[f.Key.SrcPort] - lost[f.Key.SrcPort]; f.Packets != want {
			t.Errorf("flow %d has %d packets, want %d", f.Key.SrcPort, f.Packets, want)
		}
	}
	// As bytes and in slices it is the same.
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	wide := limits
	wide.Exporters, wide.Numbers, wide.Arrivals = 10, 10, 10
	var q, all, rest window.Partial
	if err := q.ReadBinary(b, wide); err != nil {
		t.Fatal(err)
	}
	slicer := window.NewSlicer(7, 3)
	parts := []*window.Partial{{}, {}, {}}
	q.Split(&slicer, parts)
	for _, x := range parts {
		pb, err := x.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := all.MergeBinary(pb, wide, &rest); err != nil {
			t.Fatal(err)
		}
	}
	second := all.Window(limits)
	if got, want := fmt.Sprint(second.Losses), fmt.Sprint(w.Losses); got != want {
		t.Errorf("read back: %s\nwant %s", got, want)
	}
	if back, err := all.AppendBinary(nil); err != nil || !slices.Equal(back, b) {
		t.Errorf("bytes differ, %v", err)
	}
	few := wide
	few.Losses = 9
	if err := q.ReadBinary(b, few); err == nil {
		t.Error("10 flows are read with a limit of 9")
	}
	few.Losses = 4
	if w := all.Window(few); len(w.Losses) != 4 || w.OtherLosses == 0 {
		t.Errorf("%d flows and %d further packets with a limit of 4", len(w.Losses), w.OtherLosses)
	}
	// The cut is used again, and nothing is published twice.
	s.Recycle(c)
	var empty window.Partial
	s.Cut(60e9).AddTo(&empty)
	if w := empty.Window(limits); len(w.Losses) != 0 {
		t.Errorf("reported again: %+v", w.Losses)
	}
}

// Where the last switch sends postcards, the one with the least TTL shows that a packet left.
func TestPairsOfPostcards(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MemoryBytes = 1 << 20
	s := New(cfg, 1)
	var reports []*decode.Report
	for i := range 500 {
		at := int64(i) * 50e6
		reports = append(reports, sourceReport(at, 1, uint16(i)))
		for n := range uint32(2) {
			if n == 1 && i >= 100 && i%5 == 0 { // lost behind the first of them
				continue
			}
			r := sourceReport(at+int64(n+1)*1e6, 1, uint16(i))
			r.Flags, r.NodeID, r.TTL = decode.Tracked, 20+n, uint8(60-n)
			r.Has |= decode.HasTTL
			r.Hops = []decode.Hop{{Has: decode.HopNodeID | decode.HopEgressIf, NodeID: 20 + n, EgressIf: 1}}
			reports = append(reports, r)
		}
	}
	s.Update(reports)
	var p window.Partial
	s.Cut(40e9).AddTo(&p)
	w := p.Window(cfg.Limits())
	if len(w.Losses) != 1 || w.Losses[0].Lost != 80 || w.Losses[0].Packets < 498 {
		t.Errorf("%+v, want 80 of 500 lost", w.Losses)
	}
}

// More flows than there is room for are not compared, and those that are forgotten make room.
func TestPairsAreBounded(t *testing.T) {
	cfg := DefaultConfig()
	s := New(cfg, 1)
	for i := range maxPairs + 100 {
		at := int64(i) * 1e3
		s.Update([]*decode.Report{sourceReport(at, uint16(i), uint16(i)), sinkReport(at+100, uint16(i), uint16(i))})
	}
	if n := len(s.pairs.flows); n != maxPairs || len(s.pairs.placeBySlot) != maxPairs {
		t.Fatalf("%d flows are compared, want %d", n, maxPairs)
	}
	for i := range 100 { // half an hour later, so that all are forgotten
		at := int64(1800e9) + int64(i)*1e9
		for k := range 10 {
			s.Update([]*decode.Report{sourceReport(at, uint16(k), uint16(i)), sinkReport(at+100, uint16(k), uint16(i))})
		}
	}
	if n := len(s.pairs.placeBySlot); n >= maxPairs/2 || len(s.pairs.flows) != maxPairs || n+len(s.pairs.free) != maxPairs {
		t.Errorf("%d flows are compared and %d places are free, of %d", n, len(s.pairs.free), len(s.pairs.flows))
	}
}
