package solve

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/hopscope/hopscope/planner/querymix"
)

// Hybrid is the coding of static queries of section 4.2. It returns the probability τ of the Baseline layer, and that
// of a hop to write in each XOR layer, for paths of d hops. The latter is ln ln d / ln d, or 1 / ln d for d ≤ 15
// (footnote 8). A single hop needs no XOR.
func Hybrid(d int) (tau float64, xor []float64) {
	if d < 2 {
		return 1, nil
	}
	ln := math.Log(float64(d))
	if d <= 15 {
		return 0.75, []float64{min(1, 1/ln)}
	}
	return 0.75, []float64{math.Log(ln) / ln}
}

// PathModel models the tracing of a path by PINT's own decoder, without knowledge of the topology. A digest of one
// unknown writer rules out all candidate nodes of that hop with another hash. A digest of several writers waits until
// the others are known. A digest with a fragment of an id reveals this fragment of one unknown writer.
type PathModel struct {
	Hops, Nodes     int // of the path, and that a hop can be
	Bits, Instances int
	Fragments       int // of ids; 0 for hashes of them
	Tau             float64
	XOR             []float64
}

const (
	modelRuns  = 2000
	modelSteps = 30e6 // hops looked at, in all runs
)

// Packets is the mean number of packets until all hops are known, by simulation. Hashes are drawn, not computed, so
// that the time depends on hops and not on nodes. The standard error is about one in a hundred. It is an error if paths
// stay unknown.
func (m *PathModel) Packets(seed uint64) (float64, error) {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	t := tracing{PathModel: m, rng: rng, wrong: make([]int, m.Hops), parts: make([]part, max(m.Fragments, 1))}
	sum, runs := 0, 0
	for ; runs < modelRuns && (runs < 20 || t.steps < modelSteps); runs++ {
		n := t.run()
		if n == 0 {
			return 0, fmt.Errorf("paths of %d hops stay unknown with tau %v and XOR layers %v", m.Hops, m.Tau, m.XOR)
		}
		sum += n
	}
	return float64(sum) / float64(runs), nil
}

type tracing struct {
	*PathModel
	rng   *rand.Rand
	wrong []int  // nodes that a hop can still be, but is not
	parts []part // by fragment; one for hashes
	steps float64
}

// part is what is not known of one fragment of the ids.
type part struct {
	unknown uint64   // hops
	waiting []uint64 // digests of several unknown writers
}

// run returns the number of packets that one path takes, 0 if it is not known in time.
func (t *tracing) run() int {
	for i := range t.wrong {
		t.wrong[i] = t.Nodes - 1
	}
	open := len(t.parts) // those with unknown hops
	for i := range t.parts {
		t.parts[i] = part{waiting: t.parts[i].waiting[:0]}
		if t.Nodes > 1 {
			t.parts[i].unknown = 1<<t.Hops - 1
		}
	}
	if t.Nodes == 1 {
		return 1
	}
	for n, from := 1, t.steps; t.steps-from < modelSteps; n++ {
		for range t.Instances {
			x := &t.parts[0]
			if len(t.parts) > 1 {
				x = &t.parts[t.rng.IntN(len(t.parts))]
			}
			before := x.unknown
			if t.learn(x, t.writers()); before != 0 && x.unknown == 0 {
				open--
			}
		}
		if open == 0 {
			return n
		}
	}
	return 0
}

// writers draws the hops that write into a digest.
func (t *tracing) writers() (writers uint64) {
	t.steps++
	if t.rng.Float64() < t.Tau {
		return uint64(1) << t.rng.IntN(t.Hops)
	}
	p := t.XOR[t.rng.IntN(len(t.XOR))]
	for i := range t.Hops {
		if t.rng.Float64() < p {
			writers |= 1 << i
		}
	}
	t.steps += float64(t.Hops)
	return writers
}

// learn takes a digest of some writers, and those waiting that can be read with it.
func (t *tracing) learn(x *part, writers uint64) {
	writers &= x.unknown
	if writers&(writers-1) != 0 {
		x.waiting = append(x.waiting, writers)
		return
	}
	if !t.read(x, writers) {
		return
	}
	for w := t.next(x); w != 0; w = t.next(x) {
		t.read(x, w)
	}
}

// read takes a digest of one unknown writer, or none, and reports whether the hop is known now.
func (t *tracing) read(x *part, writer uint64) bool {
	if writer == 0 {
		return false
	}
	if t.Fragments == 0 {
		i := bits.TrailingZeros64(writer)
		if t.wrong[i] = t.survivors(t.wrong[i]); t.wrong[i] > 0 {
			return false
		}
	}
	x.unknown &^= writer
	return true
}

// survivors is how many of n nodes have the same hash as another one, by chance.
func (t *tracing) survivors(n int) int {
	p := math.Ldexp(1, -t.Bits)
	if mean := float64(n) * p; mean > 1000 {
		return min(max(int(math.Round(mean+t.rng.NormFloat64()*math.Sqrt(mean*(1-p)))), 0), n)
	}
	count := 0
	for at := t.gap(p); at < float64(n); at += 1 + t.gap(p) {
		count++
	}
	return count
}

// gap is the number of failures before a success of probability p.
func (t *tracing) gap(p float64) float64 {
	return math.Floor(math.Log(1-t.rng.Float64()) / math.Log1p(-p))
}

// next takes a digest with one unknown writer from those that wait.
func (t *tracing) next(x *part) uint64 {
	t.steps += float64(len(x.waiting))
	for k := 0; k < len(x.waiting); {
		w := x.waiting[k] & x.unknown
		x.waiting[k] = w
		if w&(w-1) != 0 {
			k++
			continue
		}
		last := len(x.waiting) - 1
		x.waiting[k] = x.waiting[last]
		x.waiting = x.waiting[:last]
		if w != 0 {
			return w
		}
	}
	return 0
}

// samplesPackets is the mean number of packets until each of k hops has m of them. Every packet is that of a uniformly
// random hop. If packets arrived as a Poisson process, those of each hop would be independent Poisson processes. The
// mean is k times that of the largest of k gamma variables of shape m.
func samplesPackets(k int, m float64) float64 {
	// The integral of 1 - P(m,t)^k, which is 1 far below m and 0 far above.
	width := 12*math.Sqrt(m) + 40
	from, to := max(0, m-width), m+width
	const steps = 4000 // even
	h := (to - from) / steps
	sum := 0.0
	for i := range steps + 1 {
		weight := 2.0
		switch {
		case i == 0 || i == steps:
			weight = 1
		case i&1 == 1:
			weight = 4
		}
		sum += weight * -math.Expm1(float64(k)*math.Log(gammaP(m, from+float64(i)*h)))
	}
	return float64(k) * (from + sum*h/3)
}

// gammaP is the regularised lower incomplete gamma function: by its series below a+1, by Lentz's continued fraction above.
func gammaP(a, x float64) float64 {
	if x <= 0 {
		return 0
	}
	lg, _ := math.Lgamma(a)
	scale := math.Exp(a*math.Log(x) - x - lg)
	const enough = 1e-15
	if x < a+1 {
		term := 1 / a
		sum := term
		for n := a + 1; term > sum*enough; n++ {
			term *= x / n
			sum += term
		}
		return min(sum*scale, 1)
	}
	b := x + 1 - a
	c, d := 1e300, 1/b
	f := d
	for i := 1.0; i < 1e6; i++ {
		an := i * (a - i)
		b += 2
		d = 1 / (an*d + b)
		c = b + an/c
		f *= c * d
		if math.Abs(c*d-1) < enough {
			break
		}
	}
	return max(1-scale*f, 0)
}

// quantileSamples is the number of samples whose quantiles have a rank error of at most e, all at once. Its
// confidence is 99 % (Dvoretzky, Kiefer, Wolfowitz 1956, with the constant of Massart 1990).
func quantileSamples(e float64) float64 { return math.Ceil(math.Log(2/0.01) / (2 * e * e)) }

// codeError is ε of a multiplicative code: the factor by which a value is off its nearest level is at most 1+ε.
func codeError(width int, least, most uint64) float64 {
	least = max(least, 1)
	steps := float64(uint64(1)<<width - 2)
	if steps == 0 {
		steps = 0.5 // one level: values below may be anything from 0 to it
	}
	return math.Pow(float64(most)/float64(least), 1/(2*steps)) - 1
}

// estimate returns the packets that a query takes in a width, all of which carry it, or the reason why it is
// impossible.
func estimate(q *querymix.Query, w querymix.Width, seed uint64) (packets float64, reason string, err error) {
	if q.MaxError > 0 {
		if e := codeError(w.Bits, q.MinValue, q.MaxValue); e > q.MaxError {
			return w.Packets, fmt.Sprintf("values would be off by up to %.3g %%", 100*e), nil
		}
	}
	if w.Packets > 0 {
		return w.Packets, "", nil
	}
	switch q.Aggregation {
	case querymix.Static:
		m := PathModel{Hops: q.Hops, Nodes: q.Nodes, Bits: w.Bits, Instances: w.Instances, Fragments: w.Fragments, Tau: q.Tau, XOR: q.XOR}
		if m.Tau == 0 && m.XOR == nil {
			m.Tau, m.XOR = Hybrid(q.Hops)
		}
		packets, err = m.Packets(seed)
		return packets, "", err
	case querymix.Dynamic:
		samples := q.Samples
		if q.RankError > 0 {
			samples = quantileSamples(q.RankError)
			if q.Answer == querymix.Frequent { // a share is the difference of two ranks
				samples = quantileSamples(q.RankError / 2)
			}
		}
		return max(samplesPackets(q.Hops, samples)/float64(w.Instances), 1), "", nil
	case querymix.PerPacket:
		return max(q.Samples, 1), "", nil
	}
	return 1, "", nil // a packet in a loop is caught itself
}
