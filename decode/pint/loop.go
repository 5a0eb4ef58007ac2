package pint

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Loops is Algorithm 2 of the paper, the detection of routing loops by the switches themselves. A packet carries the
// b-bit hash of a switch that it passed, chosen as in Baseline. Its counter says how often a switch on the way found
// its own hash there. The switch that finds it once more than T times reports a loop. Either the packet has come
// back, or hashes of different switches were equal T+1 times in a row.
//
// The first step is: if the digest is h(s, packet), the switch reports when the counter is T, and counts when it is
// below. The second step is: if hop i replaces by g(packet, i), the digest becomes h(s, packet). The counter becomes
// 0, also if hop i has just counted. The algorithm as it is printed replaces only while the counter is 0 (line 7: "if
// c > 0 then the digest is no longer changed"). It has twice the false alarms for T = 1, and finds a loop sooner:
// [Loops.PrintedFalseAlarm] and the figure "loops" of hopscope-bench pint have both. As printed, the first hop compares,
// too, with a digest that no switch wrote. Here it does not, since zeros would be the hash of some switch. Where the
// algorithm returns LOOP in place of a digest, a reported packet goes on as if the counter could not count further.
type Loops struct {
	Hash Hash
	Seed uint32
	Bits int // b, of the hash, 1 to 32
	T    int // matches that pass before one more is reported; 0 to 15
}

// maxLoopT is the largest T.
const maxLoopT = 15

// Width is the number of bits in a packet: the hash and, above it, a counter up to T.
func (l *Loops) Width() int { return l.Bits + bits.Len(uint(l.T)) }

// Validate returns the errors of the parameters.
func (l *Loops) Validate() error {
	var problems []error
	if l.Hash > HashCRC {
		problems = append(problems, fmt.Errorf("pint: loops: hash %d: unknown", l.Hash))
	}
	if l.Bits < 1 || l.Bits > 32 {
		problems = append(problems, fmt.Errorf("pint: loops: %d bits: want 1 to 32", l.Bits))
	}
	if l.T < 0 || l.T > maxLoopT {
		problems = append(problems, fmt.Errorf("pint: loops: T %d: want 0 to %d", l.T, maxLoopT))
	}
	return errors.Join(problems...)
}

// Step is the operation of the switch with that node id on the packet's digest at a hop, counted from 1. It returns
// the new digest, and true when the switch reports a loop.
func (l *Loops) Step(digest uint64, id uint32, hop int, node uint32) (uint64, bool) {
	own := uint64(l.Hash.hash(l.Hash.key(l.Hash.salt(l.Seed, ofValues), id), node)) >> (32 - l.Bits)
	stored, count := digest&mask64(l.Bits), digest>>l.Bits
	report := false
	if hop > 1 && stored == own {
		if report = count >= uint64(l.T); !report {
			count++
		}
	}
	if uint64(l.Hash.hash(l.Hash.key(l.Hash.salt(l.Seed, ofHops), id), uint32(hop))) < 1<<32/uint64(max(hop, 1)) {
		stored, count = own, 0
	}
	return count<<l.Bits | stored, report
}

// FalseAlarm is the probability that a packet is reported on a path of so many different switches. It is exact for
// independent hashes. The next switch has the hash in the packet with probability 2⁻ᵇ, whatever that is, so that the
// counter is a Markov chain.
//
// For T = 1, b = 15 and 32 hops it is 2.2·10⁻⁷. Some pairs of matching hops have a replacement between them, which
// the printed algorithm lacks.
func (l *Loops) FalseAlarm(hops int) float64 {
	q := 1 / float64(uint64(1)<<l.Bits)
	alarm := 0.0
	var count [maxLoopT + 1]float64 // probability of each counter, of packets not reported yet
	count[0] = 1
	for i := 2; i <= hops; i++ {
		alarm += count[l.T] * q
		kept := 1 - 1/float64(i)
		all := 0.0
		for c := l.T; c >= 0; c-- {
			p := count[c] * (1 - q)
			if c > 0 {
				p += count[c-1] * q
			}
			all += p
			count[c] = p * kept
		}
		count[0] += all / float64(i)
	}
	return alarm
}

// PrintedFalseAlarm is that of the algorithm as it is printed: T+1 of the hops behind the first match. For T = 1, b =
// 15 and 32 hops it is 4.3·10⁻⁷, and the paper's bound is 5·10⁻⁷. For T = 3 and b = 14 it is 4.4·10⁻¹³, and the bound
// is 5·10⁻¹³.
func (l *Loops) PrintedFalseAlarm(hops int) float64 {
	q := 1 / float64(uint64(1)<<l.Bits)
	alarm, ways := 0.0, 1.0 // to choose k of the hops behind the first
	for k := 0; k < hops; k++ {
		if k > l.T {
			alarm += ways * math.Pow(q, float64(k)) * math.Pow(1-q, float64(hops-1-k))
		}
		ways *= float64(hops-1-k) / float64(k+1)
	}
	return alarm
}

// Detection is the probability that a packet in a loop of length switches has been reported after so many hops. The
// first lead of these were before the loop. Hashes that are equal by chance are left out.
func (l *Loops) Detection(lead, length, hops int) float64 {
	reported := 0.0
	stored := make([]float64, hops+1) // probability that the hash of hop j is in the packet, and that it was not reported yet
	for i := 1; i <= hops; i++ {
		if j := i - (l.T+1)*length; j > lead {
			reported += stored[j]
			stored[j] = 0
		}
		for j := 1; j < i; j++ {
			stored[j] *= 1 - 1/float64(i)
		}
		stored[i] = (1 - reported) / float64(i)
	}
	return reported
}
