package events

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// deviate lists flows from some addresses, each with its own ingress node, with the same errors.
func deviate(w *inference.Window, hosts int, errors ...inference.MapError) {
	for i := range hosts {
		flow := decode.FlowKey{Src: decode.AddrFrom4([]byte{10, 1, 0, byte(i)}), Dst: decode.AddrFrom4([]byte{10, 9, 0, 1}), Proto: 17, IPVersion: 4}
		w.Deviations = append(w.Deviations, inference.Deviation{Flow: flow, Ingress: uint32(i), Digests: 100, Errors: errors})
		w.Digests = append(w.Digests, inference.DigestFault{Flow: flow, Fault: inference.Inconsistent, Count: 50})
	}
}

var other = inference.MapError{Kind: inference.Foreign, Node: 914, A: 17, B: 22}

// An error of the inventory starts when enough flows show it, is the only finding for their digests, and ends when the
// contradiction ends. A restart in between changes nothing.
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
	if reported := window(0, 2, other); len(reported) != 2 || reported[0].Kind != inference.StrangeDigests {
		t.Fatalf("two flows: %+v", reported)
	}
	d = New(cfg)
	reported := window(1, 3, other)
	if len(reported) != 1 || reported[0].Kind != inference.InventoryError || reported[0].Element != inference.ElementOfNode(914) ||
		!strings.HasPrefix(reported[0].Text, "node 914 speaks between 17 and 22 and is not in the topology: 3 flows from 3 addresses (300 digests)") {
		t.Fatalf("three flows: %+v", reported)
	}
	// Which node it stands for is found out later, of the same finding.
	second := window(2, 4, other, inference.MapError{Kind: inference.Renamed, Node: 914, A: 18})
	if len(second) != 1 || second[0].ID != reported[0].ID || second[0].Element != inference.ElementOfNode(18) || !strings.HasPrefix(d.Open()[0].Text, "node 18 calls itself 914") {
		t.Fatalf("reported %+v, open %+v", second, d.Open())
	}
	for n := range int64(cfg.EndAfter) {
		if reported = window(3+n, 0); len(reported) > 0 {
			break
		}
	}
	if len(reported) != 1 || reported[0].End == 0 || reported[0].Kind != inference.InventoryError || len(d.Open()) != 0 {
		t.Errorf("at the end: %+v, open %+v", reported, d.Open())
	}
}

// More flows than three can be asked for.
func TestInventoryFlows(t *testing.T) {
	cfg := DefaultConfig()
	cfg.InventoryFlows = 10
	d := New(cfg)
	for hosts, want := range map[int]bool{9: false, 10: true} {
		var w inference.Window
		deviate(&w, hosts, other)
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
