package pint

import "math"

// The presets are the schemes of PINT's section 4.2 and of its appendix, of one instance, with HashMix. d is the length of
// a typical path: how far the probabilities suit other lengths is a matter of packets, never of right or wrong.
//
// All logarithms are natural. Where the formulas of the paper leave 0 to 1, or are not defined, which is so for short
// paths, what follows is the nearest useful value; the functions say it.

// Baseline is reservoir sampling: hop i replaces the digest with probability 1/i, so that each hop of the path is left with
// the same probability.
func Baseline(bits int) Config { return Config{Bits: bits, Instances: 1, Tau: 1} }

// XOR has a single layer in which every hop folds its value in with probability p = 1/d.
func XOR(bits, d int) Config {
	return Config{Bits: bits, Instances: 1, P: []float64{1 / float64(max(d, 1))}}
}

// Hybrid is one XOR layer of p = ln ln d/ln d beside Baseline.
//
// The paper leaves τ open where it introduces the scheme. At 3/4 a path of k = d = 25 takes a peeling decoder 43 packets in
// the median and 67 in the 99th percentile, where the paper's figure 5 has 41 and 68; at 1/2 it takes 47 and 73. p is taken at
// its word, as the probability of a hop; for d ≤ 4, where it is below 1/d, it is 1/d.
func Hybrid(bits, d int) Config {
	n := float64(max(d, 1))
	p := 1 / n
	if d > 2 {
		p = max(p, math.Log(math.Log(n))/math.Log(n))
	}
	return Config{Bits: bits, Instances: 1, Tau: .75, P: []float64{p}}
}

// MultiLayer is Algorithm 1 of the paper: τ = ln ln* d/(1 + ln ln* d), ℒ XOR layers of equal shares, p_ℓ = (e↑↑(ℓ-1))/d.
//
// ln* d counts how often the logarithm is taken until 1 or less is left, and ln ln* d is the logarithm of that count; e↑↑0 is
// 1 and e↑↑1 is e. ℒ is 1 for d ≤ ⌊e^e⌋ = 15 and 2 up to e^e^e, which no path exceeds. For d = 1 it is Baseline.
func MultiLayer(bits, d int) Config {
	l := math.Log(float64(iteratedLog(d)))
	return layered(bits, d, l/(1+l))
}

// MultiLayerRevised is MultiLayer with τ′ = (1 + ln ln* d)/(2 + ln ln* d), the appendix's revision, by which more packets
// are Baseline.
func MultiLayerRevised(bits, d int) Config {
	l := math.Log(float64(iteratedLog(d)))
	return layered(bits, d, (1+l)/(2+l))
}

func layered(bits, d int, tau float64) Config {
	if d <= 1 {
		return Baseline(bits)
	}
	c := Config{Bits: bits, Instances: 1, Tau: tau, P: []float64{1 / float64(d)}}
	if d > 15 {
		c.P = append(c.P, math.E/float64(d))
	}
	return c
}

// iteratedLog is ln* d, at least 1.
func iteratedLog(d int) int {
	n := 0
	for x := float64(d); x > 1; x = math.Log(x) {
		n++
	}
	return max(n, 1)
}

// Published is the scheme of both published P4 programs, with other hashes: half of the packets are Baseline, and an XOR layer of p =
// 1/10 takes the others. Tofino-PINT has 1/8.
func Published(bits int) Config { return Config{Bits: bits, Instances: 1, Tau: .5, P: []float64{.1}} }

// Linear is random linear network coding, which the paper compares with: every hop folds its raw value of so many bits
// in with probability 1/2. [Eliminator] decodes it.
func Linear(bits, valueBits int) Config {
	return Config{Bits: bits, Instances: 1, P: []float64{.5}, ValueBits: valueBits}
}
