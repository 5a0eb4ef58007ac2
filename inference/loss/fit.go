package loss

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Sample is the loss of a flow in some time.
type Sample struct {
	Links         []int32 // on its way, by number, each once; none if the way is not known
	Packets, Lost uint64
}

// Culprit is the explanation of losses: a link, or a single flow, of which the other one is -1.
type Culprit struct {
	Link, Flow    int32 // by number, and by place among the samples
	Ratio         float64
	Confidence    float64
	Packets, Lost uint64  // that crossed it
	Chance        float64 // that as many are lost at the rates that are explained already
	Rivals        []Rival // that explain the same losses, too, if less well; links in their order, then flows
}

// Rival is an explanation of losses in place of a culprit: a link, or a single flow, of which the other one is -1.
type Rival struct {
	Link, flow int32
	Weight     float64 // its likelihood by that of the culprit
}

// leastRival is the weight from which on a rival is listed.
const leastRival = .01

const (
	// falseAlarm is the chance of a false culprit in a fit. With three fits a window, it is one in a million windows.
	falseAlarm = 3e-7
	// least losses that are worth a culprit.
	leastLost = 4
	// A flow is a culprit of its own if it lost this share of its packets. It is published once it lost this many;
	// before, it explains what it lost all the same, and no link is blamed for that.
	blackShare, blackLost = .5, 8
)

// fit finds the culprits that explain the losses of flows, the strongest first. The argument floor is the ratio of
// losses, above 0, that is normal for a flow. The argument links is the number of links. The samples stay as they are.
func fit(samples []Sample, links int, floor float64) []Culprit {
	return FitWithin(samples, links, floor, falseAlarm)
}

// FitWithin is fit with another chance of a false culprit, above 0: for callers that fit more often.
func FitWithin(samples []Sample, links int, floor, alarm float64) []Culprit {
	return FitFew(samples, links, floor, alarm, leastLost)
}

// FitFew is FitWithin with another least number of losses, above 0, for which a link is blamed. It is for probes over
// many ways, where two lost ones can be enough if hardly any other is lost.
func FitFew(samples []Sample, links int, floor, alarm float64, least uint64) []Culprit {
	f := fitter{samples: samples, floor: floor, alarm: alarm, least: least, rate: make([]float64, len(samples)), cross: make([][]int32, links)}
	for i := range samples {
		for _, l := range samples[i].Links {
			f.cross[l] = append(f.cross[l], int32(i))
		}
	}
	var chosen []Culprit
	for range mostSteps {
		f.explain(chosen, -1)
		c, ok := f.next()
		if !ok {
			break
		}
		// A link between two that lose packets can look like the cause of both, until each of them is there.
		apart, near := f.split(chosen, c)
		chosen = append(apart, f.prune(f.refit(append(near, c)), -math.Log(f.alarm))...)
	}
	chosen = f.exchange(chosen)
	for i := range chosen {
		f.explain(chosen, i)
		f.rank(&chosen[i])
	}
	slices.SortStableFunc(chosen, func(a, b Culprit) int { return cmp.Compare(b.Lost, a.Lost) })
	return slices.DeleteFunc(chosen, func(c Culprit) bool { return c.Flow >= 0 && c.Lost < blackLost })
}

// mostSteps bounds the time of a fit.
const mostSteps = 64

// A fitter adds the ratios along a way up, to at most 1: of two links that lose all packets each explains the losses of
// both.
type fitter struct {
	samples []Sample
	floor   float64
	alarm   float64   // chance of a false culprit
	least   uint64    // losses that are worth a link
	rate    []float64 // that is explained, by sample
	cross   [][]int32 // samples that cross a link
	one     [1]int32
}

// samplesOf returns the samples that a culprit explains.
func (f *fitter) samplesOf(c *Culprit) []int32 {
	if c.Link >= 0 {
		return f.cross[c.Link]
	}
	f.one[0] = c.Flow
	return f.one[:]
}

// explain sets the rates to those of all culprits but one.
func (f *fitter) explain(chosen []Culprit, but int) {
	for i := range f.rate {
		f.rate[i] = f.floor
	}
	for k := range chosen {
		if k != but {
			for _, i := range f.samplesOf(&chosen[k]) {
				f.rate[i] = min(f.rate[i]+chosen[k].Ratio, 1)
			}
		}
	}
}

// split parts culprits by whether one more has to do with them: it, or another one that has, crosses samples of theirs.
// Rates of the others stay as they are when it comes or goes.
func (f *fitter) split(chosen []Culprit, one Culprit) (apart, near []Culprit) {
	apart = slices.Clone(chosen)
	met := make([]bool, len(f.samples))
	meet := func(c *Culprit) {
		for _, i := range f.samplesOf(c) {
			met[i] = true
		}
	}
	meet(&one)
	for k := 0; k < len(apart); k++ {
		if slices.ContainsFunc(f.samplesOf(&apart[k]), func(i int32) bool { return met[i] }) {
			meet(&apart[k])
			near, apart, k = append(near, apart[k]), slices.Delete(apart, k, k+1), -1
		}
	}
	return apart, near
}

// refit estimates the ratios of all culprits together, by expectation and maximisation.
func (f *fitter) refit(chosen []Culprit) []Culprit {
	for range 200 {
		f.explain(chosen, -1)
		moved := 0.0
		for k := range chosen {
			packets, lost := 0.0, 0.0
			for _, i := range f.samplesOf(&chosen[k]) {
				s := &f.samples[i]
				packets += float64(s.Packets)
				lost += float64(s.Lost) * chosen[k].Ratio / f.rate[i]
			}
			next := min(lost/packets, 1)
			moved = max(moved, math.Abs(next-chosen[k].Ratio)/(chosen[k].Ratio+f.floor))
			chosen[k].Ratio = next
		}
		if moved < 1e-6 {
			break
		}
	}
	return chosen
}

// prune takes out culprits that the others make needless: without them the logarithm of the likelihood is less by no
// more than that of one.
func (f *fitter) prune(chosen []Culprit, one float64) []Culprit {
	for k := 0; k < len(chosen) && len(chosen) > 1; {
		f.explain(chosen, -1)
		all := f.likelihood()
		rest := f.refit(append(slices.Clone(chosen[:k]), chosen[k+1:]...))
		f.explain(rest, -1)
		if all-f.likelihood() < one {
			chosen, k = rest, 0
		} else {
			k++
		}
	}
	return chosen
}

// likelihood is its logarithm, but for what does not depend on the rates.
func (f *fitter) likelihood() (sum float64) {
	for i := range f.samples {
		s := &f.samples[i]
		sum -= float64(s.Packets) * f.rate[i]
		if s.Lost > 0 {
			sum += float64(s.Lost) * math.Log(f.rate[i])
		}
	}
	return sum
}

// exchange replaces a culprit by others if the likelihood of the whole set rises by more than their price. Each one
// costs the choice between all candidates, and the gain that makes one of them sure. So two of the three ports of a
// switch replace the switch. Links that lose packets replace one link that most of these packets cross. Beside a single
// flow nothing is exchanged: flows that differ so much follow no rates of links.
func (f *fitter) exchange(chosen []Culprit) []Culprit {
	if slices.ContainsFunc(chosen, func(c Culprit) bool { return c.Link < 0 }) {
		return chosen
	}
	price := math.Log(float64(len(f.cross)+len(f.samples))) + sure
	worth := func(set []Culprit) float64 {
		f.explain(set, -1)
		return f.likelihood() - price*float64(len(set))
	}
	for k := 0; k < len(chosen); k++ {
		old := chosen[k]
		others := append(slices.Clone(chosen[:k]), chosen[k+1:]...)
		for range mostOthers {
			f.explain(others, -1)
			c, gain := f.besides(&old)
			if gain <= price {
				break
			}
			apart, near := f.split(others, c)
			others = append(apart, f.refit(append(near, c))...)
		}
		if len(others) < len(chosen) {
			continue // nothing takes its place, and it is worth its own
		}
		apart, near := f.split(others, old)
		if others = append(apart, f.prune(near, price)...); worth(others) > worth(chosen)+1e-6 {
			chosen, k = others, -1
		}
	}
	return chosen
}

// mostOthers bounds the culprits that take the place of one, and sure is how many nats make one of them sure: 19 of 20.
const (
	mostOthers = 8
	sure       = 3
)

// besides returns the link that explains most of the unexplained losses, other than one with which it shares samples.
func (f *fitter) besides(old *Culprit) (best Culprit, most float64) {
	for _, l := range f.linksOf(old) {
		if c, ok := f.weigh(Culprit{Link: l, Flow: -1}); ok && l != old.Link && c.gain > most {
			best, most = c.Culprit, c.gain
		}
	}
	return best, most
}

// linksOf returns the links that share samples with a culprit, in their order.
func (f *fitter) linksOf(c *Culprit) (links []int32) {
	for _, i := range f.samplesOf(c) {
		links = append(links, f.samples[i].Links...)
	}
	slices.Sort(links)
	return slices.Compact(links)
}

// candidate is a possible explanation of losses, with its gain of the logarithm of the likelihood.
type candidate struct {
	Culprit
	gain float64
}

// weigh makes a candidate of a culprit, and reports whether it explains anything that is not explained yet.
func (f *fitter) weigh(c Culprit) (candidate, bool) {
	mean := f.sum(&c)
	if c.Lost < f.least || float64(c.Lost) <= mean {
		return candidate{}, false
	}
	var gain float64
	c.Ratio, gain = f.best(f.samplesOf(&c))
	return candidate{c, gain}, gain > 0
}

// candidates lists what explains anything that is not explained yet, among links and samples.
func (f *fitter) candidates(links, samples iter.Seq[int32]) (all []candidate) {
	for l := range links {
		if x, ok := f.weigh(Culprit{Link: l, Flow: -1}); ok {
			all = append(all, x)
		}
	}
	for i := range samples {
		if s := &f.samples[i]; s.Lost >= leastLost && float64(s.Lost) >= blackShare*float64(s.Packets) {
			if x, ok := f.weigh(Culprit{Link: -1, Flow: i}); ok {
				all = append(all, x)
			}
		}
	}
	return all
}

// upTo yields the numbers from 0 up to n.
func upTo(n int) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i := int32(0); i < int32(n) && yield(i); i++ {
		}
	}
}

// sum counts the packets that crossed a culprit, and returns the losses that are explained already.
func (f *fitter) sum(c *Culprit) (explained float64) {
	c.Packets, c.Lost = 0, 0
	for _, i := range f.samplesOf(c) {
		s := &f.samples[i]
		c.Packets += s.Packets
		c.Lost += s.Lost
		explained += float64(s.Packets) * f.rate[i]
	}
	return explained
}

// chance is the probability that flows of a culprit lose as many without it. Flows that lose more by others are little
// evidence of it, and are left out.
func (f *fitter) chance(c *Culprit) float64 {
	packets, lost, explained := uint64(0), uint64(0), 0.0
	for _, i := range f.samplesOf(c) {
		if s := &f.samples[i]; f.rate[i] <= max(c.Ratio, f.floor) {
			packets += s.Packets
			lost += s.Lost
			explained += float64(s.Packets) * f.rate[i]
		}
	}
	if lost < f.least {
		return 1
	}
	return Tail(lost, packets, explained/float64(packets))
}

// next returns the culprit that explains most of the unexplained losses.
func (f *fitter) next() (Culprit, bool) {
	all := f.candidates(upTo(len(f.cross)), upTo(len(f.samples)))
	if len(all) == 0 {
		return Culprit{}, false
	}
	// Of candidates that explain the same, a flow comes before links that it alone crosses, and then the first one.
	best := slices.MaxFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.gain, b.gain), cmp.Compare(min(b.Link, 0), min(a.Link, 0)), cmp.Compare(b.Link, a.Link), cmp.Compare(b.Flow, a.Flow))
	})
	return best.Culprit, f.chance(&best.Culprit)*float64(len(f.cross)+len(f.samples)) <= f.alarm && best.gain > -math.Log(f.alarm)
}

// rank computes the confidence of a culprit, given the others.
func (f *fitter) rank(c *Culprit) {
	f.sum(c)
	c.Chance = f.chance(c)
	_, gain := f.best(f.samplesOf(c))
	sum := 1.0
	for _, o := range f.candidates(slices.Values(f.linksOf(c)), slices.Values(slices.Clone(f.samplesOf(c)))) {
		if o.Link == c.Link && o.Flow == c.Flow {
			continue
		}
		if c.Flow >= 0 && o.Link >= 0 && len(f.cross[o.Link]) == 1 && f.cross[o.Link][0] == c.Flow {
			continue // is not distinguishable
		}
		weight := math.Exp(o.gain - gain)
		if sum += weight; weight >= leastRival {
			c.Rivals = append(c.Rivals, Rival{o.Link, o.Flow, weight})
		}
	}
	c.Confidence = 1 / sum
}

// best returns the rate that explains most of the unexplained losses of samples, and its gain of the logarithm of the
// likelihood.
func (f *fitter) best(samples []int32) (rate, gain float64) {
	var packets, lost float64
	for _, i := range samples {
		packets += float64(f.samples[i].Packets)
		lost += float64(f.samples[i].Lost)
	}
	if packets == 0 {
		return 0, 0
	}
	rate = lost / packets
	for range 60 { // expectation and maximisation: the share of each loss that is the candidate's
		sum := 0.0
		for _, i := range samples {
			if s := &f.samples[i]; s.Lost > 0 {
				sum += float64(s.Lost) * rate / min(rate+f.rate[i], 1)
			}
		}
		next := min(sum/packets, 1)
		if math.Abs(next-rate) < 1e-9*rate {
			break
		}
		rate = next
	}
	for _, i := range samples {
		s := &f.samples[i]
		all := min(rate+f.rate[i], 1)
		gain += float64(s.Lost)*math.Log(all/f.rate[i]) - float64(s.Packets)*(all-f.rate[i])
	}
	return rate, gain
}

// Needed returns how many of some packets have to be lost on a link for fit to find it, if nothing else explains them.
// At the floor, as many are lost by chance less than once in so many fits. That holds even on the most unlucky one of
// all candidates, which are the links and the flows. If several links explain them it can take more.
func Needed(packets uint64, floor float64, candidates int) uint64 {
	for x := uint64(leastLost); x < packets; x++ {
		ratio := float64(x) / float64(packets)
		gain := float64(x)*math.Log(ratio/floor) - float64(packets)*(ratio-floor)
		if ratio > floor && gain > -math.Log(falseAlarm) && Tail(x, packets, floor)*float64(candidates) <= falseAlarm {
			return x
		}
	}
	return max(packets, leastLost)
}

// Tail is the probability that x or more of n are lost if each is with probability p: the exact tail of the binomial
// distribution.
func Tail(x, n uint64, p float64) float64 {
	switch {
	case x == 0 || p >= 1:
		return 1
	case x > n || p <= 0:
		return 0
	case float64(x) < float64(n)*p: // the body of the distribution; its exact value has no use
		return 1
	}
	lg := func(v float64) float64 { r, _ := math.Lgamma(v); return r }
	fn, fx := float64(n), float64(x)
	term := math.Exp(lg(fn+1) - lg(fx+1) - lg(fn-fx+1) + fx*math.Log(p) + (fn-fx)*math.Log1p(-p))
	sum := 0.0
	for k := fx; k <= fn && term > sum*1e-17; k++ {
		sum += term
		term *= (fn - k) / (k + 1) * p / (1 - p)
	}
	return min(sum, 1)
}

// AtLeast returns the lower bound of a ratio, of which lost of all were seen. A smaller ratio gives as many with a
// probability of at most e^-limit (Chernoff's bound of the binomial distribution).
func AtLeast(lost int64, all uint64, limit float64) float64 {
	if lost <= 0 {
		return 0
	}
	x, n := float64(lost)/float64(all), float64(all)
	low, high := 0.0, x
	for range 60 {
		p := (low + high) / 2
		d := x * math.Log(x/p)
		if x < 1 {
			d += (1 - x) * (math.Log1p(-x) - math.Log1p(-p))
		}
		if n*d > limit {
			low = p
		} else {
			high = p
		}
	}
	return low
}
