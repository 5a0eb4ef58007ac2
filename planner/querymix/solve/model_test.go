package solve

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/querymix"
)

// One sample of every hop is the coupon collector's problem: k·(1 + 1/2 + … + 1/k).
func TestSamplesOfCollector(t *testing.T) {
	for k := 1; k <= 64; k++ {
		want := 0.0
		for i := 1; i <= k; i++ {
			want += float64(k) / float64(i)
		}
		if got := samplesPackets(k, 1); math.Abs(got-want) > 1e-6*want {
			t.Errorf("samplesPackets(%d, 1) = %v, want %v", k, got, want)
		}
	}
}

// Two hops and m samples of each: the sum over all n of the probability that n packets are not enough.
func TestSamplesOfTwoHops(t *testing.T) {
	for _, m := range []int{1, 2, 3, 10, 100} {
		want := 0.0
		for n := range 40*m + 400 {
			// Not enough: one of the hops has fewer than m of n.
			p := 0.0
			for j := range n + 1 {
				if j < m || n-j < m {
					a, _ := math.Lgamma(float64(n + 1))
					b, _ := math.Lgamma(float64(j + 1))
					c, _ := math.Lgamma(float64(n - j + 1))
					p += math.Exp(a - b - c - float64(n)*math.Ln2)
				}
			}
			want += p
		}
		if got := samplesPackets(2, float64(m)); math.Abs(got-want) > 1e-6*want {
			t.Errorf("samplesPackets(2, %d) = %v, want %v", m, got, want)
		}
	}
}

func TestGammaP(t *testing.T) {
	for _, tt := range []struct{ a, x, want float64 }{ // for whole a, one less a sum of Poisson probabilities
		{1, 0.5, 1 - math.Exp(-0.5)},
		{1, 30, 1 - math.Exp(-30)},
		{2, 3, 1 - math.Exp(-3)*4},
		{3, 2, 1 - math.Exp(-2)*5},
		{5, 0, 0},
		{0.5, 1, math.Erf(1)},
		{0.5, 4, math.Erf(2)},
		{1e6, 1e6, 0.50013298},
	} {
		if got := gammaP(tt.a, tt.x); math.Abs(got-tt.want) > 1e-8 {
			t.Errorf("gammaP(%v, %v) = %v, want %v", tt.a, tt.x, got, tt.want)
		}
	}
}

// trace follows one path the slow way. Every node of every hop has a hash of its own, drawn for this packet. A digest
// is examined again and again until it yields nothing more.
func trace(m *PathModel, rng *rand.Rand) int {
	type digest struct {
		writers uint64
		same    [][]bool // by hop and node: the hash of the node is that of the right one
	}
	can := make([][]bool, m.Hops) // node 0 is the right one
	for h := range can {
		can[h] = make([]bool, m.Nodes)
		for v := range can[h] {
			can[h][v] = true
		}
	}
	known := func(h int) bool {
		n := 0
		for _, c := range can[h] {
			if c {
				n++
			}
		}
		return n == 1
	}
	var all []digest
	for n := 1; ; n++ {
		for range m.Instances {
			d := digest{same: make([][]bool, m.Hops)}
			for h := range d.same {
				d.same[h] = make([]bool, m.Nodes)
				for v := range d.same[h] {
					d.same[h][v] = v == 0 || rng.Uint64()>>(64-m.Bits) == 0
				}
			}
			if rng.Float64() < m.Tau {
				for h := range m.Hops { // reservoir
					if rng.IntN(h+1) == 0 {
						d.writers = 1 << h
					}
				}
			} else {
				p := m.XOR[rng.IntN(len(m.XOR))]
				for h := range m.Hops {
					if rng.Float64() < p {
						d.writers |= 1 << h
					}
				}
			}
			all = append(all, d)
		}
		for second := true; second; {
			second = false
			for _, d := range all {
				var open uint64
				for h := range m.Hops {
					if d.writers>>h&1 != 0 && !known(h) {
						open |= 1 << h
					}
				}
				if bits.OnesCount64(open) != 1 {
					continue
				}
				h := bits.TrailingZeros64(open)
				for v := range can[h] {
					if can[h][v] && !d.same[h][v] {
						can[h][v] = false
						second = true
					}
				}
			}
		}
		done := true
		for h := range can {
			done = done && known(h)
		}
		if done {
			return n
		}
	}
}

// The model counts nodes that remain; the slow way knows which they are.
func TestPathModelAgainstTracing(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, m := range []PathModel{
		{Hops: 1, Nodes: 16, Bits: 1, Instances: 1, Tau: 1},
		{Hops: 4, Nodes: 12, Bits: 2, Instances: 1, Tau: 1},
		{Hops: 5, Nodes: 20, Bits: 3, Instances: 2, Tau: 0.75, XOR: []float64{0.3}},
		{Hops: 8, Nodes: 9, Bits: 8, Instances: 1, Tau: 0.4, XOR: []float64{0.1, 0.3}},
	} {
		const runs = 3000
		var sum, square float64
		for range runs {
			x := float64(trace(&m, rng))
			sum += x
			square += x * x
		}
		mean := sum / runs
		deviation := math.Sqrt(square/runs - mean*mean)
		got, err := m.Packets(seed)
		if err != nil {
			t.Fatal(err)
		}
		// Six standard deviations of the difference of two means: a false alarm in 5e8.
		if limit := 6 * deviation * math.Sqrt(1./runs+1./modelRuns); math.Abs(got-mean) > limit {
			t.Errorf("seed %d: %+v: %v packets, by tracing %v ± %v", seed, m, got, mean, limit)
		}
	}
}

func TestPathModel(t *testing.T) {
	if n, err := (&PathModel{Hops: 9, Nodes: 1, Bits: 8, Instances: 1, Tau: 1}).Packets(1); n != 1 || err != nil {
		t.Errorf("nothing to find out: %v, %v, want 1", n, err)
	}
	if _, err := (&PathModel{Hops: 3, Nodes: 5, Bits: 8, Instances: 1, XOR: []float64{1}}).Packets(1); err == nil || !strings.Contains(err.Error(), "stay unknown") {
		t.Errorf("all hops write always: %v", err)
	}
	// Many nodes take the branch with a normal approximation.
	few, _ := (&PathModel{Hops: 5, Nodes: 1 << 12, Bits: 4, Instances: 1, Tau: 1}).Packets(1)
	many, err := (&PathModel{Hops: 5, Nodes: 1 << 24, Bits: 4, Instances: 1, Tau: 1}).Packets(1)
	if err != nil || !(many > 1.5*few && many < 3*few) {
		t.Errorf("4096 nodes take %v packets, 16 million %v (%v)", few, many, err)
	}
}

func TestHybrid(t *testing.T) {
	for _, tt := range []struct {
		d   int
		tau float64
		xor []float64
	}{
		{0, 1, nil}, {1, 1, nil}, {2, 0.75, []float64{1}}, {3, 0.75, []float64{0.91024}}, {15, 0.75, []float64{0.36927}}, {25, 0.75, []float64{0.36318}}, {59, 0.75, []float64{0.34469}},
	} {
		tau, xor := Hybrid(tt.d)
		if tau != tt.tau || len(xor) != len(tt.xor) || len(xor) > 0 && math.Abs(xor[0]-tt.xor[0]) > 1e-5 {
			t.Errorf("Hybrid(%d) = %v, %v, want %v, %v", tt.d, tau, xor, tt.tau, tt.xor)
		}
	}
}

func TestCodeError(t *testing.T) {
	for _, tt := range []struct {
		bits        int
		least, most uint64
		want        float64
	}{
		{8, 0, 65536, math.Pow(65536, 1/508.) - 1}, {2, 1, 16, 1}, {16, 5, 5, 0}, {1, 1, 1, 0}, {1, 1, 7, 6},
	} {
		if got := codeError(tt.bits, tt.least, tt.most); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("codeError(%d, %d, %d) = %v, want %v", tt.bits, tt.least, tt.most, got, tt.want)
		}
	}
}

func TestEstimate(t *testing.T) {
	w := querymix.Width{Bits: 8, Instances: 1}
	for _, tt := range []struct {
		q      querymix.Query
		w      querymix.Width
		want   float64
		reason string
	}{
		{querymix.Query{Aggregation: querymix.Loop}, w, 1, ""},
		{querymix.Query{Aggregation: querymix.PerPacket, MaxValue: 9}, w, 1, ""},
		{querymix.Query{Aggregation: querymix.PerPacket, MaxValue: 9, Samples: 12}, w, 12, ""},
		{querymix.Query{Aggregation: querymix.Dynamic, MaxValue: 9, Hops: 2, Samples: 1}, w, 3, ""},
		{querymix.Query{Aggregation: querymix.Dynamic, MaxValue: 9, Hops: 2, Samples: 1}, querymix.Width{Bits: 8, Instances: 2}, 1.5, ""},
		{querymix.Query{Aggregation: querymix.Dynamic, MaxValue: 9, Hops: 1, RankError: 0.1}, w, 265, ""},
		{querymix.Query{Aggregation: querymix.Dynamic, MaxValue: 9, Hops: 2, Samples: 1}, querymix.Width{Bits: 8, Instances: 1, Packets: 77}, 77, ""},
		{querymix.Query{Aggregation: querymix.Dynamic, MaxValue: 1e6, MaxError: 0.01, Hops: 2, Samples: 1}, w, 0, "values would be off by up to 2.76 %"},
	} {
		got, reason, err := estimate(&tt.q, tt.w, 1)
		if err != nil || reason != tt.reason || math.Abs(got-tt.want) > 1e-6*tt.want {
			t.Errorf("estimate(%+v, %s) = %v, %q, %v, want %v, %q", tt.q, tt.w, got, reason, err, tt.want, tt.reason)
		}
	}
}

// Fragments of ids by Baseline alone are the coupons of a collector: k·F of them, each as often as any other. By hashes
// of as many bits as there are in an id, some hops need a second digest.
func TestPathModelOfFragments(t *testing.T) {
	for _, tt := range []struct{ hops, fragments int }{{1, 1}, {5, 1}, {5, 2}, {12, 4}, {64, 2}} {
		coupons, want := tt.hops*tt.fragments, 0.0
		for i := range coupons {
			want += float64(coupons) / float64(i+1)
		}
		m := PathModel{Hops: tt.hops, Nodes: 1 << 16, Bits: 4, Instances: 1, Fragments: tt.fragments, Tau: 1}
		got, err := m.Packets(7)
		if err != nil || math.Abs(got/want-1) > 0.05 {
			t.Errorf("%d hops, %d fragments: %v packets, %v, want %v", tt.hops, tt.fragments, got, err, want)
		}
	}
	hashes := PathModel{Hops: 5, Nodes: 80, Bits: 7, Instances: 1, Tau: 0.75, XOR: []float64{0.6}}
	ids, inTwo := hashes, hashes
	ids.Fragments, inTwo.Fragments, inTwo.Bits = 1, 2, 4
	narrow := hashes
	narrow.Bits = 4
	h, err := hashes.Packets(1)
	i, err2 := ids.Packets(1)
	f, err3 := inTwo.Packets(1)
	n, err4 := narrow.Packets(1)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if i > 0.85*h || f < 1.1*n {
		t.Errorf("7 bits: %.3g packets of hashes, %.3g of ids; 4 bits: %.3g of hashes, %.3g in two fragments", h, i, n, f)
	}
}
