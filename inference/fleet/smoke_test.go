package fleet

import (
	"bytes"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

func TestSmoke(t *testing.T) {
	const window = 10e9
	slicer := inference.NewSlicer(7, 4)
	limits := inference.Limits{Hops: 1e4, Flows: 1e4, Paths: 1e4, Drops: 1e4, Faults: 1e4, Exporters: 1e4}
	pub := NewPublisher(PublisherConfig{From: "c1", Boot: 5, Slicer: slicer, Window: window})
	var p inference.Partial
	p.Span(990e9, 1000e9)
	p.Reports = 9
	for n := range uint32(100) {
		h := p.Hop(inference.HopKey{Node: n})
		h.Latency.AddValue(uint64(n))
	}
	want, _ := p.AppendBinary(nil)
	out, err := pub.Window(nil, &p, 1000e9, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codec := NewCodec(0, limits)
	asm, _ := NewAssembler(AssemblerConfig{Slices: 4, Window: window, Limits: limits})
	offset := int64(0)
	for i := range 4 {
		m, err := NewMerger(MergerConfig{GateConfig: GateConfig{Window: window, Slice: i}, Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		e, err := m.Add(&Record{0, out[i].Head, out[i].Value})
		if err != nil || e.Kind != Nothing {
			t.Fatal(e, err)
		}
		if _, ok := m.Due(999e9); ok {
			t.Fatal("too early")
		}
		h, ok := m.Due(1000e9)
		if !ok {
			t.Fatal("not due")
		}
		e, err = m.Add(&Record{1, h, nil})
		if err != nil || e.Kind != Closed || e.Closed == nil || len(e.Closed.Missing) > 0 {
			t.Fatal(e, err)
		}
		rs, err := EncodeSlice(nil, codec, "x", i, e.Closed, 1e6)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			e, err := asm.Add(&Record{offset, r.Head, r.Value})
			offset++
			if err != nil {
				t.Fatal(err)
			}
			if i == 3 {
				got, _ := e.Whole[0].Partial.AppendBinary(nil)
				if !bytes.Equal(got, want) {
					t.Fatal("other bytes")
				}
			}
		}
	}
}
