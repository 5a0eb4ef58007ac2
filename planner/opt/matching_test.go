package opt

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// matchOracle is the greatest weight by dynamic programming over sets of nodes.
func matchOracle(n int, pairs []Pair) int64 {
	weight := make([][]int64, n)
	for i := range weight {
		weight[i] = make([]int64, n)
	}
	for _, p := range pairs {
		weight[p.U][p.V] = max(weight[p.U][p.V], p.Weight)
		weight[p.V][p.U] = weight[p.U][p.V]
	}
	best := make([]int64, 1<<n)
	for set := 1; set < 1<<n; set++ {
		v := bits.TrailingZeros(uint(set))
		rest := set &^ (1 << v)
		best[set] = best[rest]
		for s := rest; s != 0; s &= s - 1 {
			u := bits.TrailingZeros(uint(s))
			if w := weight[v][u]; w > 0 {
				best[set] = max(best[set], w+best[rest&^(1<<u)])
			}
		}
	}
	return best[1<<n-1]
}

// matchWeight is the weight of a matching, which it checks, and which the dual values must prove.
func matchWeight(t *testing.T, seed uint64, n int, pairs []Pair) int64 {
	t.Helper()
	mate, proof, _ := Match(n, pairs, func() bool { return false })
	weight := map[[2]int32]int64{}
	around := make([][]int, n)
	for b, d := range proof.Blossoms {
		for _, v := range d.Nodes {
			around[v] = append(around[v], b)
		}
		if d.Value < 0 || len(d.Nodes)%2 == 0 {
			t.Fatalf("seed %d: a blossom of %d nodes and value %d", seed, len(d.Nodes), d.Value)
		}
	}
	for _, p := range pairs {
		k := [2]int32{min(p.U, p.V), max(p.U, p.V)}
		weight[k] = max(weight[k], p.Weight)
		sum := proof.Node[p.U] + proof.Node[p.V]
		for _, b := range around[p.U] {
			for _, c := range around[p.V] {
				if b == c {
					sum += 2 * proof.Blossoms[b].Value
				}
			}
		}
		if sum < 2*p.Weight {
			t.Fatalf("seed %d: the dual values %d do not reach the weight of pair %v", seed, sum, p)
		}
	}
	total, bound := int64(0), int64(0)
	for v, u := range mate {
		bound += proof.Node[v]
		if proof.Node[v] < 0 {
			t.Fatalf("seed %d: the dual value of node %d is %d", seed, v, proof.Node[v])
		}
		if u < 0 {
			continue
		}
		w, ok := weight[[2]int32{min(int32(v), u), max(int32(v), u)}]
		if mate[u] != int32(v) || !ok {
			t.Fatalf("seed %d: node %d is matched with %d, which is matched with %d", seed, v, u, mate[u])
		}
		total += w
	}
	for _, d := range proof.Blossoms {
		bound += d.Value * int64(len(d.Nodes)-1)
	}
	if total != bound {
		t.Fatalf("seed %d: weight %d, dual values prove %d", seed, total/2, bound/2)
	}
	return total / 2
}

func randomPairs(r *rand.Rand, n, m int, weights int64) (pairs []Pair) {
	for range m {
		u, v := r.Int32N(int32(n)), r.Int32N(int32(n))
		if u != v {
			pairs = append(pairs, Pair{u, v, 1 + r.Int64N(weights)})
		}
	}
	return pairs
}

func TestMatchAgainstAllMatchings(t *testing.T) {
	for seed := range uint64(testkit.Rounds(4000, 20000)) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 2 + r.IntN(11)
		pairs := randomPairs(r, n, r.IntN(3*n), 1+r.Int64N(9))
		if got, want := matchWeight(t, seed, n, pairs), matchOracle(n, pairs); got != want {
			t.Fatalf("seed %d: weight %d, want %d", seed, got, want)
		}
	}
}

// Larger graphs are beyond the oracle; the dual values prove the weight.
func TestMatchProof(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 20 + r.IntN(180)
		matchWeight(t, seed, n, randomPairs(r, n, n+r.IntN(4*n), 1+r.Int64N(1+int64(seed%40))))
	}
}
