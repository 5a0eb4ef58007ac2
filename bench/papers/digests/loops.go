package digests

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/decode/pint"
)

// loopBatch is the number of packets in a run of the loops table: alarms are too rare to count them by the packet.
const loopBatch = 4000

// loops measures Algorithm 2. It counts false alarms on paths without a loop, whose switches all differ. It also
// counts the rounds of a packet in a loop until a switch reports it.
func (b *bench) loops() error {
	alarms := table{
		Title:   "Loop detection: false alarms of packets on paths without a loop",
		Columns: []string{"T", "bits of the hash", "switches", "packets", "alarms", "rate", "expected", "as printed, expected", "paper"},
		Notes: []string{
			"In brackets: 95 % confidence (Poisson). Expected: for T = 0 and 1, the sum over all choices of switches of the chance that",
			"the first of them is the one in the packet and the others have its hash. As printed, a packet that has counted is not replaced.",
		},
	}
	for _, c := range []struct {
		l     pint.Loops
		hops  int
		paper string
	}{
		{pint.Loops{Bits: 8, T: 0}, 32, ""},
		{pint.Loops{Bits: 16, T: 0}, 32, "about 5e-4"},
		{pint.Loops{Bits: 7, T: 1}, 32, ""},
		{pint.Loops{Bits: 15, T: 1}, 32, "5e-7"},
		{pint.Loops{Bits: 14, T: 3}, 32, "5e-13"},
	} {
		c.l.Seed = uint32(b.o.Seed)
		counts, err := sample(b, fmt.Sprintf("T = %d, b = %d, %d hops", c.l.T, c.l.Bits, c.hops), "alarms", b.runs(10_000), counting(func(r *rand.Rand) int {
			return falseAlarms(&c.l, c.hops, r)
		}))
		if err != nil {
			return err
		}
		n := 0
		for _, k := range counts {
			n += k
		}
		packets := float64(len(counts) * loopBatch)
		alarms.Rows = append(alarms.Rows, []any{c.l.T, c.l.Bits, c.hops, int(packets), n, poisson(n, packets), expectedAlarms(&c.l, c.hops), c.l.PrintedFalseAlarm(c.hops), c.paper})
	}
	found := table{
		Title:   "Loop detection: a packet passes 4 switches and then goes round for good",
		Columns: []string{"T", "bits of the hash", "switches in the loop", "runs", "hops in it until the report: median", "p99", "not in 250", "as printed: median", "p99", "not in 250"},
		Notes: []string{
			"In brackets: 95 % confidence. The packet carries a switch from before the loop with probability 4 in the number of hops: then",
			"nothing is found, and the next packet has its own chance.",
		},
	}
	for _, t := range []int{0, 1, 3} {
		for _, size := range []int{2, 4, 8} {
			l := pint.Loops{Seed: uint32(b.o.Seed), Bits: 15, T: t}
			hops, err := sample(b, fmt.Sprintf("T = %d, loop of %d", t, size), "loops", b.runs(10_000), counting(func(r *rand.Rand) int {
				return roundsToAlarm(l.Step, size, r)
			}))
			if err != nil {
				return err
			}
			printed, err := sample(b, fmt.Sprintf("T = %d, loop of %d, as printed", t, size), "loops", b.runs(10_000), counting(func(r *rand.Rand) int {
				return roundsToAlarm(printedStep(&l), size, r)
			}))
			if err != nil {
				return err
			}
			s, p := summarize(hops), summarize(printed)
			found.Rows = append(found.Rows, []any{
				t, l.Bits, size, s.runs, s.median, s.tail, harness.Number(100*(1-s.share(250))) + " %", p.median, p.tail, harness.Number(100*(1-p.share(250))) + " %",
			})
		}
	}
	b.out.Tables = append(b.out.Tables, alarms, found)
	return nil
}

// falseAlarms sends a batch of packets along paths of different switches and counts those that raise an alarm.
func falseAlarms(l *pint.Loops, hops int, r *rand.Rand) (alarms int) {
	for range loopBatch {
		id, node := r.Uint32(), r.Uint32()
		var digest uint64
		for hop := 1; hop <= hops; hop++ {
			var alarm bool
			if digest, alarm = l.Step(digest, id, hop, node+uint32(hop)); alarm {
				alarms++
				break
			}
		}
	}
	return alarms
}

// expectedAlarms sums over the switch j that raises the alarm, the T matching switches before it, and the switch i
// whose hash the packet had. If j is the last that compares and none between replaces, i wrote last before the first
// match with probability 1/(j-1). It bounds the rate from above and is close if alarms are rare.
func expectedAlarms(l *pint.Loops, hops int) float64 {
	sum := 0.0
	for j := 2; j <= hops; j++ {
		for i := 1; i < j; i++ {
			ways := 1.0 // to choose T of the switches between i and j
			for t := range l.T {
				ways *= float64(j-i-1-t) / float64(t+1)
			}
			sum += max(ways, 0) / float64(j-1)
		}
	}
	return sum * math.Pow(2, -float64(l.Bits*(l.T+1)))
}

// printedStep is Algorithm 2 as it is printed: the digest of a packet that has counted is no longer changed. For
// other packets a hop does the same as [pint.Loops.Step].
func printedStep(l *pint.Loops) func(digest uint64, id uint32, hop int, node uint32) (uint64, bool) {
	fresh := pint.Loops{Hash: l.Hash, Seed: l.Seed, Bits: l.Bits, T: 1} // counts at most once, and returns whether it matched
	return func(digest uint64, id uint32, hop int, node uint32) (uint64, bool) {
		count, stored := digest>>l.Bits, digest&(1<<l.Bits-1)
		_, matched := (&pint.Loops{Hash: l.Hash, Seed: l.Seed, Bits: l.Bits}).Step(stored, id, hop, node)
		switch {
		case matched && count == uint64(l.T):
			return digest, true
		case matched:
			count++
		case count == 0:
			next, _ := fresh.Step(stored, id, hop, node)
			return next & (1<<l.Bits - 1), false
		}
		return count<<l.Bits | stored, false
	}
}

// roundsToAlarm counts hops in a loop of that many switches, after four before it.
func roundsToAlarm(step func(digest uint64, id uint32, hop int, node uint32) (uint64, bool), size int, r *rand.Rand) int {
	const before = 4
	id, node := r.Uint32(), r.Uint32()
	var digest uint64
	for hop := 1; ; hop++ {
		at := hop
		if hop > before {
			at = before + 1 + (hop-before-1)%size
		}
		var alarm bool
		if digest, alarm = step(digest, id, hop, node+uint32(at)); alarm {
			return hop - before
		}
	}
}

// poisson is the rate of n events in that many trials (E. B. Wilson and M. M. Hilferty's approximation of its interval).
func poisson(n int, trials float64) interval {
	k := float64(n)
	low := 0.0
	if n > 0 {
		low = k * math.Pow(1-1/(9*k)-1.96/(3*math.Sqrt(k)), 3)
	}
	high := (k + 1) * math.Pow(1-1/(9*(k+1))+1.96/(3*math.Sqrt(k+1)), 3)
	return interval{Value: k / trials, Low: low / trials, High: high / trials}
}
