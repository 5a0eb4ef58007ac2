package survey

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// says returns a flow from a host that enters at a node, with its errors.
func says(host, ingress int, errors ...inference.MapError) inference.Deviation {
	slices.SortFunc(errors, inference.MapError.Compare)
	return inference.Deviation{
		Flow:    decode.FlowKey{Src: decode.AddrFrom4([]byte{10, 1, 0, byte(host)}), SrcPort: uint16(ingress), Proto: 17, IPVersion: 4},
		Ingress: uint32(ingress), Digests: 10, Errors: errors,
	}
}

func stranger(node, a, b uint32) inference.MapError {
	return inference.MapError{Kind: inference.Foreign, Node: node, A: a, B: b}
}

func unlinked(a, b uint32) inference.MapError {
	return inference.MapError{Kind: inference.Unlinked, A: a, B: b}
}

func swapped(a, b uint32) inference.MapError {
	return inference.MapError{Kind: inference.Swapped, A: a, B: b}
}

func renamed(place, node uint32) inference.MapError {
	return inference.MapError{Kind: inference.Renamed, A: place, Node: node}
}

func TestDecide(t *testing.T) {
	ttl := inference.MapError{Kind: inference.LowTTL, Node: 254}
	for name, tt := range map[string]struct {
		flows []inference.Deviation
		want  []string
	}{
		"nothing":                           {nil, nil},
		"two flows are not enough":          {[]inference.Deviation{says(1, 1, stranger(9, 1, 2)), says(2, 2, stranger(9, 1, 2))}, nil},
		"nor is one host":                   {[]inference.Deviation{says(1, 1, stranger(9, 1, 2)), says(1, 2, stranger(9, 1, 2)), says(1, 3, stranger(9, 1, 2))}, nil},
		"nor one ingress":                   {[]inference.Deviation{says(1, 1, stranger(9, 1, 2)), says(2, 1, stranger(9, 1, 2)), says(3, 1, stranger(9, 1, 2))}, nil},
		"nor flows that say different":      {[]inference.Deviation{says(1, 1, stranger(9, 1, 2)), says(2, 2, stranger(8, 1, 2)), says(3, 3, stranger(7, 1, 2))}, nil},
		"a stranger in two places":          {[]inference.Deviation{says(1, 1, stranger(9, 1, 2)), says(2, 2, stranger(9, 1, 2)), says(3, 2, stranger(9, 3, 4))}, []string{"node 9 speaks between 1 and 2 and in 1 other place and is not in the topology: 3 flows from 3 addresses (30 digests) say so"}},
		"one place is left":                 {[]inference.Deviation{says(1, 1, stranger(9, 1, 2), renamed(5, 9), renamed(6, 9)), says(2, 2, stranger(9, 1, 2), renamed(5, 9), renamed(6, 9)), says(3, 2, stranger(9, 3, 4), renamed(5, 9))}, []string{"node 5 calls itself 9: 3 flows from 3 addresses (30 digests) say so"}},
		"a link":                            {[]inference.Deviation{says(1, 1, unlinked(4, 9), swapped(4, 5)), says(2, 2, unlinked(4, 9), swapped(9, 8)), says(3, 2, unlinked(4, 9))}, []string{"link 4–9 is used and not in the topology: 3 flows from 3 addresses (30 digests) say so"}},
		"a link, or something else":         {[]inference.Deviation{says(1, 1, unlinked(4, 9), swapped(4, 5)), says(2, 2, unlinked(4, 9), swapped(4, 5)), says(3, 2, unlinked(4, 9), swapped(4, 5))}, []string{"link 4–9 is used and not in the topology, or nodes 4 and 5 look swapped: 3 flows from 3 addresses (30 digests) say so"}},
		"two nodes swapped":                 {[]inference.Deviation{says(1, 1, unlinked(1, 17), unlinked(2, 17), swapped(17, 18)), says(2, 2, unlinked(3, 18), unlinked(4, 18), swapped(17, 18)), says(3, 2, unlinked(3, 18), unlinked(4, 18), swapped(17, 18))}, []string{"nodes 17 and 18 look swapped: 3 flows from 3 addresses (30 digests) say so"}},
		"one of them seen":                  {[]inference.Deviation{says(1, 1, unlinked(1, 17), unlinked(2, 17), swapped(17, 18), renamed(18, 17)), says(2, 2, unlinked(1, 17), unlinked(2, 17), swapped(17, 18), renamed(18, 17)), says(3, 2, unlinked(1, 17), unlinked(2, 17), swapped(17, 18), renamed(18, 17))}, []string{"node 18 calls itself 17: 3 flows from 3 addresses (30 digests) say so"}},
		"senders of one prefix, one door":   {[]inference.Deviation{says(1, 1, ttl), says(2, 1, ttl), says(3, 1, ttl)}, []string{"hosts of 10.1.0.0/24 start with TTL 254: 3 flows from 3 addresses (30 digests) say so"}},
		"a stranger explains the unnamed":   {[]inference.Deviation{says(1, 1, inference.MapError{Kind: inference.Unnamed, A: 1, B: 2}), says(2, 2, inference.MapError{Kind: inference.Unnamed, A: 1, B: 2}), says(3, 2, inference.MapError{Kind: inference.Unnamed, A: 1, B: 2}), says(4, 1, stranger(9, 1, 2)), says(5, 2, stranger(9, 1, 2)), says(6, 2, stranger(9, 1, 2))}, []string{"node 9 speaks between 1 and 2 and is not in the topology: 3 flows from 3 addresses (30 digests) say so"}},
		"somebody unknown":                  {[]inference.Deviation{says(1, 1, inference.MapError{Kind: inference.Unnamed, A: 1, B: 2}), says(2, 2, inference.MapError{Kind: inference.Unnamed, A: 1, B: 2}), says(3, 2, inference.MapError{Kind: inference.Unnamed, A: 1, B: 2})}, []string{"an unknown node speaks between 1 and 2: 3 flows from 3 addresses (30 digests) say so"}},
		"two errors, some flows tell both":  {[]inference.Deviation{says(1, 1, stranger(8, 1, 2), stranger(9, 3, 4)), says(2, 2, stranger(8, 1, 2), stranger(9, 3, 4)), says(3, 2, stranger(8, 1, 2), stranger(9, 3, 4))}, []string{"node 8 speaks between 1 and 2 and is not in the topology: 3 flows from 3 addresses (30 digests) say so", "node 9 speaks between 3 and 4 and is not in the topology: 3 flows from 3 addresses (30 digests) say so"}},
		"an edge switch has one neighbour":  {[]inference.Deviation{says(1, 1, stranger(9, 1, inference.NoNode)), says(2, 2, stranger(9, 1, inference.NoNode)), says(3, 2, stranger(9, 1, inference.NoNode))}, []string{"node 9 speaks next to 1 and is not in the topology: 3 flows from 3 addresses (30 digests) say so"}},
		"what is made up has no list limit": {[]inference.Deviation{says(1, 1), says(2, 2), says(3, 3)}, nil},
	} {
		errors, explained := Decide(tt.flows, 0)
		if got := names(errors); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if (len(explained) > 0) != (len(tt.want) > 0) {
			t.Errorf("%s: %d flows explained", name, len(explained))
		}
		slices.Reverse(tt.flows)
		if second, _ := Decide(tt.flows, 0); !slices.Equal(names(second), tt.want) {
			t.Errorf("%s: %q in another order of the flows", name, names(second))
		}
	}
}

// A watch holds a bounded number of flows, of which one source has few.
func TestWatchIsBounded(t *testing.T) {
	n := fatTree(4)
	m := NewMap(testScheme(t, 5), n.nodes, n.links)
	w := NewWatch(0)
	begun := 0
	for host := range 100 {
		for port := range 10 {
			k := key(host, 0, 1, 0, port)
			if ref := w.Begin(m, &k, 0); ref != 0 {
				begun++
			} else if port < perSource && begun < MaxFlows {
				t.Fatalf("no room for flow %d of host %d", port, host)
			}
		}
	}
	if begun != MaxFlows || w.Flows() != MaxFlows {
		t.Errorf("%d flows are watched", begun)
	}
	if k := key(7, 7, 7, 7, 7); w.Begin(nil, &k, 0) != 0 {
		t.Error("a flow without a map is watched")
	}
	ended := 0
	for range quietFor + 1 {
		w.Survey(func(*inference.Deviation) { t.Error("a flow without digests deviates") }, func(uint32) { ended++ })
	}
	if ended != MaxFlows || w.Flows() != 0 {
		t.Errorf("%d of %d flows without digests were let go", ended, MaxFlows)
	}
}

// An error in few flows of a prefix is not stated of the prefix if most of its flows refute it. It is stated of the
// part of it whose flows all show it.
func TestRefuted(t *testing.T) {
	ttl := inference.MapError{Kind: inference.LowTTL, Node: 254}
	other := func(host, net int) Fine {
		return Fine{Src: netip.AddrFrom4([4]byte{10, 1, byte(net), byte(host)}), Path: []uint32{1, 7}}
	}
	fine := func(net, n int) (list []Fine) {
		for i := range n {
			list = append(list, other(100+i, net))
		}
		return list
	}
	three := []inference.Deviation{says(1, 1, ttl), says(2, 1, ttl), says(3, 1, ttl)}
	spread := slices.Clone(three)
	for i := range 3 {
		f := says(i, 1, ttl)
		f.Flow.Src = decode.AddrFrom4([]byte{10, 1, 9, byte(i)})
		spread = append(spread, f)
	}
	const said, both = "hosts of 10.1.0.0/24 start with TTL 254", "hosts of 10.1.0.0/16 start with TTL 254"
	for _, tt := range []struct {
		name  string
		flows []inference.Deviation
		fine  []Fine
		want  []string
	}{
		{"nobody refutes it", three, nil, []string{said}},
		{"37 of 50 refute it", three, fine(0, 37), nil},
		{"three of six", three, fine(0, 3), []string{said}},
		{"four of seven", three, fine(0, 4), nil},
		{"those of another prefix", three, fine(1, 37), []string{said}},
		{"a /16 of two /24", spread, nil, []string{both}},
		{"one /24 of the /16", spread, fine(9, 37), []string{said}},
		{"flows with other errors", append(slices.Clone(three), says(4, 1, unlinked(1, 2)), says(5, 1, unlinked(1, 3)), says(6, 1, unlinked(1, 4)), says(7, 1, unlinked(1, 5))), nil, nil},
		{"a node in its place", []inference.Deviation{says(1, 1, stranger(9, 1, 2), renamed(7, 9)), says(2, 2, stranger(9, 1, 2), renamed(7, 9)), says(3, 2, stranger(9, 1, 2), renamed(7, 9))},
			fine(0, 37), []string{"node 9 speaks between 1 and 2"}},
	} {
		errors, explained := DecideBeside(tt.flows, tt.fine, 0)
		ok := len(errors) == len(tt.want) && (len(explained) == 0) == (len(tt.want) == 0)
		for i := range errors {
			ok = ok && strings.HasPrefix(errors[i].String(), tt.want[i])
		}
		if !ok {
			t.Errorf("%s: %v, want %v", tt.name, errors, tt.want)
		}
	}
}
