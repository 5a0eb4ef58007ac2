package plain

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
)

// Ring is a network of n nodes 100, 101, ... in a ring with chords.
func Ring(n int) (nodes []uint32, links [][2]int32) {
	for i := range n {
		nodes = append(nodes, uint32(100+i))
		links = append(links, [2]int32{int32(i), int32((i + 1) % n)}, [2]int32{int32(i), int32((i + 5) % n)})
	}
	return nodes, links
}

// DigestPlan is an execution plan that asks each packet for its path, the latencies of hops and the utilisation of the
// fullest link.
func DigestPlan(t testing.TB, epoch uint8) *pint.Plan {
	t.Helper()
	path, err := pint.New(pint.Config{Seed: uint32(epoch), Bits: 8, Instances: 1, Tau: .5, P: []float64{.2}})
	if err != nil {
		t.Fatal(err)
	}
	delay, err := pint.New(pint.Config{Seed: 2, Bits: 8, Instances: 1, Tau: 1})
	if err != nil {
		t.Fatal(err)
	}
	code, err := pint.NewCode(pint.CodeConfig{Bits: 8, Max: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	load, err := pint.NewCode(pint.CodeConfig{Bits: 8, Epsilon: .025})
	if err != nil {
		t.Fatal(err)
	}
	p := &pint.Plan{Epoch: epoch, Bits: 24,
		Queries: []pint.Query{
			{Name: "path", Value: pint.NodeValue, Aggregation: pint.Static, Bits: 8, Scheme: path},
			{Name: "latency", Value: pint.LatencyValue, Aggregation: pint.Dynamic, Bits: 8, Scheme: delay, Code: code},
			{Name: "load", Value: pint.UtilizationValue, Aggregation: pint.PerPacket, Bits: 8, Code: load},
		},
		Sets: []pint.Set{{Share: 1, Slots: []pint.Slot{{Query: 0}, {Query: 1, Shift: 8}, {Query: 2, Shift: 16}}}},
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

// RandomWalk is a random path of n nodes without a loop.
func RandomWalk(rng *rand.Rand, nodes []uint32, links [][2]int32, n int) []uint32 {
	for {
		at, seen := rng.IntN(len(nodes)), map[int]bool{}
		var path []uint32
		for len(path) < n && !seen[at] {
			seen[at] = true
			path = append(path, nodes[at])
			var next []int
			for _, l := range links {
				if int(l[0]) == at {
					next = append(next, int(l[1]))
				}
				if int(l[1]) == at {
					next = append(next, int(l[0]))
				}
			}
			at = next[rng.IntN(len(next))]
		}
		if len(path) == n {
			return path
		}
	}
}

// RandomDigest is the report of the last switch of a path about one packet. Node n takes about n microseconds.
func RandomDigest(rng *rand.Rand, p *pint.Plan, flow int, path []uint32, at int64) *decode.Report {
	r := &decode.Report{Time: at, Format: decode.TelemetryReport, Kind: decode.KindDigest, Has: decode.HasFlow | decode.HasDigest}
	r.Flow = decode.FlowKey{SrcPort: uint16(flow), Proto: 17, IPVersion: 4}
	r.Digest = decode.Digest{ID: rng.Uint32(), Hops: uint8(len(path)), Epoch: p.Epoch}
	rnd := rng.Uint32()
	for i, n := range path {
		v := pint.Values{Node: n, Latency: uint64(n)*1000 + rng.Uint64N(10), Utilization: pint.UtilizationUnit / uint64(i+2)}
		r.Digest.Value = p.Write(r.Digest.Value, r.Digest.ID, i+1, v, rnd)
	}
	return r
}
