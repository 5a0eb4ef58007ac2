package digest

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

// frequentPlan asks for paths, for quantiles of latency, and for frequent lengths of queues, in each packet.
func frequentPlan(t *testing.T) *pint.Plan {
	t.Helper()
	p := plain.DigestPlan(t, 7)
	q := p.Queries[1]
	var err error
	if q.Scheme, err = pint.New(pint.Config{Seed: 9, Bits: 8, Instances: 1, Tau: 1}); err != nil {
		t.Fatal(err)
	}
	q.Name, q.Value, q.Answer = "queue", pint.QueueValue, pint.Frequent
	p.Queries[2] = q
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Frequent values are those of a count of all digests, within the stated bounds. None that is frequent enough is
// missing. The same flow has quantiles by another query.
func TestFrequentValues(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	p := frequentPlan(t)
	nodes, links := plain.Ring(40)
	m, err := prior.NewModel(prior.Config{Scheme: p.Queries[0].Scheme, Nodes: nodes, Links: links})
	if err != nil {
		t.Fatal(err)
	}
	c := aggregation.DefaultConfig()
	c.Hops = 4096
	s := newTable(t, Config{Plans: []Plan{{Plan: p, Models: []*prior.Model{m, nil, nil}, Loads: make([]*aggregation.LoadTracker, 3)}}, Values: c})
	const flows, packets = 10, 4000
	queue := p.Queries[2]
	var paths [flows][]uint32
	var counts [flows][10]map[float64]uint64
	for f := range paths {
		paths[f] = plain.RandomWalk(rng, nodes, links, 2+f%8)
	}
	now := int64(1e18)
	for range packets {
		var batch []*decode.Report
		for f := range flows {
			now += 1000
			r := plain.RandomDigest(rng, p, f, paths[f], now)
			r.Digest.Value = 0
			for i, n := range paths[f] {
				v := pint.Values{Node: n, Latency: uint64(n) * 1000, Queue: 1500 * uint64(i+1)}
				if rng.IntN(3) == 0 { // a long tail beside
					v.Queue = rng.Uint64N(1 << 20)
				}
				r.Digest.Value = p.Write(r.Digest.Value, r.Digest.ID, i+1, v, 0)
			}
			x := queue.Scheme.Packet(r.Digest.ID, 0)
			hop := bits.Len64(queue.Scheme.Writers(&x, len(paths[f])))
			if counts[f][hop] == nil {
				counts[f][hop] = map[float64]uint64{}
			}
			counts[f][hop][queue.Code.Decode(uint32(r.Digest.Value>>16&0xff))]++
			batch = append(batch, r)
		}
		s.update(batch...)
	}
	for _, got := range s.stats() {
		f := got.Key.SrcPort
		if got.Frequent != pint.QueueValue || !slices.Equal(flowPath(&got), paths[f]) {
			t.Fatalf("seed %d: flow %d took %d, inferred %+v", seed, f, paths[f], got)
		}
		for h := range got.Hops {
			hop, total := &got.Hops[h], uint64(0)
			for _, n := range counts[f][h+1] {
				total += n
			}
			listed := map[float64]bool{}
			for i, v := range hop.Frequent {
				share := float64(counts[f][h+1][v.Value]) / float64(total)
				if listed[v.Value] = true; share < v.Least || share > v.Most || i > 0 && v.Most > hop.Frequent[i-1].Most {
					t.Errorf("seed %d: flow %d hop %d: %v has %.3f, stated in place %d: %.3f to %.3f", seed, f, h+1, v.Value, share, i, v.Least, v.Most)
				}
			}
			for v, n := range counts[f][h+1] {
				if float64(n) > float64(total)/15 && !listed[v] {
					t.Errorf("seed %d: flow %d hop %d: %v came %d of %d times, and is not in %+v", seed, f, h+1, v, n, total, hop.Frequent)
				}
			}
			if len(hop.Frequent) == 0 || hop.Frequent[0].Least < .4 {
				t.Errorf("seed %d: flow %d hop %d: %+v, want the length of two packets in three first", seed, f, h+1, hop.Frequent)
			}
			if l := hop.Latency; l.Count == 0 || float64(l.P50) < float64(hop.Node)*1000*.85 || float64(l.P50) > float64(hop.Node)*1000*1.15 {
				t.Errorf("seed %d: flow %d hop %d: median latency %d ns of %d digests at node %d", seed, f, h+1, l.P50, l.Count, hop.Node)
			}
		}
	}
}
