package window

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
)

// An exporter whose reports name no node differs from that of the node with the id 0. It does so in texts, elements,
// their JSON, states and the bytes of partials. Former partials have the same bytes for the first and none for the
// second.
func TestNode0(t *testing.T) {
	addr := decode.AddrFrom4([]byte{10, 0, 0, 1})
	keys := []inference.ExporterKey{
		{Addr: addr, Nameless: true}, {Addr: addr, HWID: 2, Nameless: true}, {Addr: addr, Node: 7}, {Addr: addr, Node: 1<<32 - 1}, {Addr: addr}, {Addr: addr, HWID: 2},
	}
	texts := []string{
		"exporter 10.0.0.1", "exporter 10.0.0.1 hardware 2", "exporter 10.0.0.1 node 7 hardware 0", "exporter 10.0.0.1 node 4294967295 hardware 0",
		"exporter 10.0.0.1 node 0 hardware 0", "exporter 10.0.0.1 node 0 hardware 2",
	}
	var p Partial
	for i, k := range keys {
		if k.String() != texts[i] {
			t.Errorf("%+v is called %q, want %q", k, k, texts[i])
		}
		e := inference.ElementOfExporter(k)
		if got, err := inference.ParseElement(texts[i]); err != nil || got != e || e.String() != texts[i] {
			t.Errorf("%q is the element %+v, want %+v: %v", texts[i], got, e, err)
		}
		var got inference.Element
		if b, err := e.MarshalJSON(); err != nil || got.UnmarshalJSON(b) != nil || got != e {
			t.Errorf("%s is the element %+v, want %+v", b, got, e)
		}
		f := inference.Finding{Node: k.Node, Exporter: k.Addr, Nameless: k.Nameless}
		if f.HasNode() == k.Nameless {
			t.Errorf("%q has a node: %v", k, f.HasNode())
		}
		var second inference.ExporterKey
		b := state.Append(nil, func(c *state.Coder) { c.Addr("", &k.Addr); k.CodeNode(c) })
		if err := state.Read("", b, func(c *state.Coder) { c.Addr("", &second.Addr); second.CodeNode(c) }); err != nil || second.Node != k.Node || second.Nameless != k.Nameless {
			t.Errorf("%q is read from a state as %q: %v", k, second, err)
		}
		p.AddExporters([]inference.ExporterStats{{ExporterKey: k, Reports: uint64(1 + i)}})
		p.AddNumbers(&Numbers{ExporterKey: k, Width: 8, First: uint32(i), Runs: []Run{{0, 0, 1}}})
	}
	if inference.ElementOfAddress(addr) != inference.ElementOfExporter(keys[0]) {
		t.Error("an address is not the element of its exporter without a node and a subsystem")
	}
	b := encode(t, &p)
	got := read(t, b)
	exporters, numbers := got.Window(wide).Exporters, got.Numbers()
	for i, k := range keys {
		if exporters[i].ExporterKey != k || exporters[i].Reports != uint64(1+i) || numbers[i].ExporterKey != k || numbers[i].First != uint32(i) {
			t.Errorf("%q comes back as %+v and %+v", k, exporters[i], numbers[i])
		}
	}

	// Readers of before pass over the sections from 18 on, and what is left reads as it did.
	var before, q Partial
	for i, k := range keys[:4] {
		before.AddExporters([]inference.ExporterStats{{ExporterKey: k, Reports: uint64(1 + i)}})
		before.AddNumbers(&Numbers{ExporterKey: k, Width: 8, First: uint32(i), Runs: []Run{{0, 0, 1}}})
	}
	if short := encode(t, &before); !slices.Equal(b[:len(short)], short) {
		t.Error("an exporter of the node with the id 0 changes bytes that earlier versions read")
	}
	unknown := slices.Clone(b)
	for at, tag := len(encode(t, &before)), byte(98); at < len(unknown); tag++ {
		unknown[at] = tag
		at += 5 + int(binary.LittleEndian.Uint32(unknown[at+1:]))
	}
	if err := q.ReadBinary(unknown, wide); err != nil || len(q.Exporters()) != 4 {
		t.Errorf("%d exporters: %v", len(q.Exporters()), err)
	}
}
