package pint

import "math"

// The presets are the schemes of PINT's section 4.2 and of its appendix, of one instance, with HashMix. The length of
// a typical path is d. Other lengths only take more packets, and are decoded correctly, too.
//
// All logarithms are natural. Where a formula of the paper leaves 0 to 1, as for short paths, the nearest probability is
// taken; the functions say it.

// Baseline is reservoir sampling: hop i replaces the digest with probability 1/i, so that each hop of the path is
// left with the same probability.
func Baseline(bits int) Config { return Config{Bits: bits, Instances: 1, Tau: 1} }

// XOR has a single layer in which every hop folds its value in with probability p = 1/d.
func XOR(bits, d int) Config {
	return Config{Bits: bits, Instances: 1, P: []float64{1 / float64(max(d, 1))}}
}

// Hybrid is one XOR layer of p = ln ln d/ln d beside Baseline with τ = 3/4 (section 4.2). For d ≤ 15 it has p = 1/ln
// d (footnote 8). For d ≤ 2, where 1/ln d is above 1, p is 1.
func Hybrid(bits, d int) Config {
	p, ln := 1., math.Log(float64(d))
	switch {
	case d > 15:
		p = math.Log(ln) / ln
	case d > 2:
		p = 1 / ln
	}
	return Config{Bits: bits, Instances: 1, Tau: .75, P: []float64{p}}
}

// MultiLayer is Algorithm 1 of the paper (appendix A.2.2). Let 𝔡 = d/ln* d be the number of hops that are left to the
// XOR layers. Then τ = ln ln* 𝔡/(1 + ln ln* 𝔡), and ℒ = ln* 𝔡 XOR layers have equal shares. Layer ℓ has p_ℓ =
// (e↑↑(ℓ-1))/𝔡, at most 1.
//
// ln* x counts how often the logarithm is taken until 1 or less is left; e↑↑0 is 1 and e↑↑1 is e. Section 4.2 has ℒ =
// 1 for d ≤ ⌊e^e⌋ = 15, where the algorithm has two layers from d = 6 on. The algorithm is taken, which needs fewer
// packets: 15 in the median at k = d = 10 against 18 with one layer. For d = 1 it is Baseline.
func MultiLayer(bits, d int) Config {
	left := float64(d) / iteratedLog(float64(d))
	l := math.Log(iteratedLog(left))
	return layered(bits, d, l/(1+l))
}

// MultiLayerRevised is MultiLayer with τ′ = (1 + ln ln* d)/(2 + ln ln* d) of d itself (appendix A.3). More packets
// are then Baseline.
func MultiLayerRevised(bits, d int) Config {
	l := math.Log(iteratedLog(float64(d)))
	return layered(bits, d, (1+l)/(2+l))
}

// layered has the XOR layers of Algorithm 1. A third one would begin at 𝔡 = e^e^e, which no path reaches.
func layered(bits, d int, tau float64) Config {
	if d <= 1 {
		return Baseline(bits)
	}
	left := float64(d) / iteratedLog(float64(d))
	c := Config{Bits: bits, Instances: 1, Tau: tau, P: []float64{min(1, 1/left)}}
	if iteratedLog(left) > 1 {
		c.P = append(c.P, min(1, math.E/left))
	}
	return c
}

// iteratedLog is ln* x, at least 1.
func iteratedLog(x float64) float64 {
	n := 0.
	for ; x > 1; x = math.Log(x) {
		n++
	}
	return max(n, 1)
}

// Published is the scheme of both published P4 programs, with other hashes. Half of the packets are Baseline, and an
// XOR layer of p = 1/10 takes the others. Tofino-PINT has 1/8.
func Published(bits int) Config { return Config{Bits: bits, Instances: 1, Tau: .5, P: []float64{.1}} }

// Linear is random linear network coding, which the paper compares with. Every hop XORs its raw value of valueBits
// bits in with probability 1/2. Digests are decoded by an [Eliminator].
func Linear(bits, valueBits int) Config {
	return Config{Bits: bits, Instances: 1, P: []float64{.5}, ValueBits: valueBits}
}
