package events

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// deviate lists flows from some addresses, each with its own ingress node, that say the same.
func deviate(w *inference.Window, hosts int, errors ...inference.MapError) {
	for i := range hosts {
		flow := decode.FlowKey{Src: decode.AddrFrom4([]byte{10, 1, 0, byte(i)}), Dst: decode.AddrFrom4([]byte{10, 9, 0, 1}), Proto: 17, IPVersion: 4}
		w.Deviations = append(w.Deviations, inference.Deviation{Flow: flow, Ingress: uint32(i), Digests: 100, Errors: errors})
		w.Digests = append(w.Digests, inference.DigestFault{Flow: flow, Fault: inference.Inconsistent, Count: 50})
	}
}

var stranger = inference.MapError{Kind: inference.Foreign, Node: 914, A: 17, B: 22}

// An error of the inventory starts when enough flows show it, is the only finding for their digests, and ends when the contradiction
// ends. A restart in between changes nothing.
func TestInventoryError(t *testing.T) {
	cfg := DefaultConfig()
	d := New(cfg)
	window := func(n int64, hosts int, errors ...inference.MapError) []inference.Finding {
		w := inference.Window{Start: n * 1e9, End: (n + 1) * 1e9}
		deviate(&w, hosts, errors...)
		state := d.AppendState(nil)
		if d = New(cfg); d.ReadState(state) != nil {
			t.Fatal("the state is not read")
		}
		return d.Step(&w)
	}
	if told := window(0, 2, stranger); len(told) != 2 || told[0].Kind != inference.StrangeDigests {
		t.Fatalf("two flows: %+v", told)
	}
	d = New(cfg)
	told := window(1, 3, stranger)
	if len(told) != 1 || told[0].Kind != inference.InventoryError || told[0].Element != inference.ElementOfNode(914) ||
		!strings.HasPrefix(told[0].Text, "node 914 speaks between 17 and 22 and is not in the topology: 3 flows from 3 addresses (300 digests)") {
		t.Fatalf("three flows: %+v", told)
	}
	// Which node it stands for is found out later, of the same finding.
	again := window(2, 4, stranger, inference.MapError{Kind: inference.Renamed, Node: 914, A: 18})
	if len(again) != 1 || again[0].ID != told[0].ID || again[0].Element != inference.ElementOfNode(18) || !strings.HasPrefix(d.Open()[0].Text, "node 18 calls itself 914") {
		t.Fatalf("told %+v, open %+v", again, d.Open())
	}
	for n := range int64(cfg.EndAfter) {
		if told = window(3+n, 0); len(told) > 0 {
			break
		}
	}
	if len(told) != 1 || told[0].End == 0 || told[0].Kind != inference.InventoryError || len(d.Open()) != 0 {
		t.Errorf("at the end: %+v, open %+v", told, d.Open())
	}
}

// More flows than three can be asked for.
func TestInventoryFlows(t *testing.T) {
	cfg := DefaultConfig()
	cfg.InventoryFlows = 10
	d := New(cfg)
	for hosts, want := range map[int]bool{9: false, 10: true} {
		var w inference.Window
		deviate(&w, hosts, stranger)
		named := false
		for _, f := range d.Step(&w) {
			named = named || f.Kind == inference.InventoryError
		}
		if named != want {
			t.Errorf("%d flows: named %v", hosts, named)
		}
		d = New(cfg)
	}
}
