package suspicion

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/loss"
)

const (
	// Losses are summed over the present cycle, and over the last 1 to 2, 2 to 4, 4 to 8, ... 256 to 512 cycles. These
	// are blocks of 1, 2, 4, ... cycles, the present one and the one before it. Each of them is judged in every cycle
	// in which a round got lost.
	lossScales = 10
	lossBlocks = lossScales - 1
	// Chance of a false culprit in a fit: by all of a cycle together, whatever they share, less than once in a million
	// cycles.
	lossAlarm = 1e-6 / lossScales
	// A culprit that others explain nearly as well waits for more cycles, until a block of this scale ends.
	lossSure, lossPatience = .95, 6
	// A culprit is well again when so many rounds should have been lost and none was. While nothing is known of them,
	// it stays.
	lossCalm = 12
)

// losses finds the links that lose rounds of probes.
type losses struct {
	probes       []lostRounds // by probe
	cycles       uint64
	last         uint64  // lost in this cycle
	now          []Round // of this cycle, by probe
	samples      []loss.Sample
	sampleProbes []int32 // probes of the samples
	culprits     []culprit
	alarm        float64 // chance of a false culprit in a fit
}

// lostRounds are the rounds of a probe in the present block of 1, 2, 4, ... cycles, and in the one before it.
type lostRounds struct{ now, before [lossBlocks]rounds }

type rounds struct{ sent, lost uint64 }

// culprit is a class of links that loses rounds.
type culprit struct {
	class      int32
	ratio      float64
	confidence float64
	sent, lost uint64 // that it was found by
	calm       uint64 // rounds since the last one was lost
	found      uint64 // cycle in which a fit had it last
	dead       bool   // a fit had it with most rounds lost
	died       int64  // end of the cycle in which it was dead first, ns since 1970
	why        string // that it is blamed for in place of rounds; it is from an earlier life
}

// inherit takes over the culprits and rounds of other probes: link and probe give the number here of one there, or -1.
func (x *losses) inherit(in *Incidence, from *losses, old *Incidence, link func(int32) int32, probe func(int32) int32) {
	x.cycles = from.cycles
	for p := range from.probes {
		if q := probe(int32(p)); q >= 0 {
			x.probes[q] = from.probes[p]
		}
	}
	for _, c := range from.culprits {
		for _, l := range old.alike[c.class] {
			if l = link(l); l < 0 || in.class[l] < 0 {
				continue
			}
			y := c
			y.class, y.calm = in.class[l], 0
			if n := len(in.alike[y.class]); n < len(old.alike[c.class]) { // fewer share its confidence
				y.confidence *= float64(n) / float64(len(old.alike[c.class]))
			}
			if at, there := x.culprit(y.class); !there {
				x.culprits = slices.Insert(x.culprits, at, y)
			}
		}
	}
}

// culprit is where one of a class is, or would be.
func (x *losses) culprit(class int32) (at int, there bool) {
	return slices.BinarySearchFunc(x.culprits, class, func(a culprit, class int32) int { return cmp.Compare(a.class, class) })
}

func (x *losses) reset(in *Incidence) {
	*x = losses{probes: make([]lostRounds, len(in.probes)), now: make([]Round, len(in.probes)), alarm: lossAlarm}
}

func (x *losses) step(s *State, list []Round) {
	x.cycles++
	clear(x.now)
	x.last = 0
	for i := range list {
		r := &list[i]
		if r.Probe < 0 || int(r.Probe) >= len(x.probes) || r.Lost > r.Sent {
			continue
		}
		x.now[r.Probe] = *r
		x.last += r.Lost
		p := &x.probes[r.Probe]
		for k := range p.now {
			p.now[k].sent += r.Sent
			p.now[k].lost += r.Lost
		}
	}
	x.recover(s.incidence)
	if x.last > 0 {
		x.fit(s, false, func(p int) rounds { return rounds{x.now[p].Sent, x.now[p].Lost} })
	}
	for k := range lossBlocks {
		ends := x.cycles%(1<<k) == 0
		if x.last > 0 || ends { // what was not enough is none the more for rounds that arrived
			x.fit(s, ends && k+1 >= lossPatience, func(p int) rounds {
				a, b := x.probes[p].now[k], x.probes[p].before[k]
				return rounds{a.sent + b.sent, a.lost + b.lost}
			})
		}
		if !ends {
			continue
		}
		for p := range x.probes {
			b := &x.probes[p]
			b.before[k], b.now[k] = b.now[k], rounds{}
		}
	}
	s.named.forget(true, func(class int32) bool { _, there := x.culprit(class); return there })
	for i := range x.culprits {
		x.accuse(s, &x.culprits[i])
	}
}

// recover removes culprits that are well again. Their losses are forgotten, so that they are not found once more.
func (x *losses) recover(in *Incidence) {
	kept := x.culprits[:0]
	for _, c := range x.culprits {
		var sent, lost uint64
		for _, p := range in.cross[c.class] {
			sent += x.now[p].Sent
			lost += x.now[p].Lost
		}
		if c.calm += sent; lost > 0 {
			c.calm = 0
		}
		if float64(c.calm)*c.ratio >= lossCalm {
			for _, p := range in.cross[c.class] {
				x.probes[p] = lostRounds{}
			}
			continue
		}
		kept = append(kept, c)
	}
	x.culprits = kept
}

// fit explains what was lost in some time, and blames culprits that others explain nearly as well if it is to.
func (x *losses) fit(s *State, unsure bool, of func(p int) rounds) {
	x.samples, x.sampleProbes = x.samples[:0], x.sampleProbes[:0]
	lost := uint64(0)
	for p := range x.probes {
		if r := of(p); r.sent > 0 {
			x.samples = append(x.samples, loss.Sample{Links: s.incidence.probeClasses[p], Packets: r.sent, Lost: r.lost})
			x.sampleProbes = append(x.sampleProbes, int32(p))
			lost += r.lost
		}
	}
	if lost == 0 {
		return
	}
	list := loss.FitWithin(x.samples, len(s.incidence.cross), s.cfg.Loss, x.alarm)
	for i := range list {
		if c := &list[i]; c.Link < 0 { // a single probe: the links that it alone crosses
			c.Link = s.incidence.alone(x.sampleProbes[c.Flow])
		}
	}
	list = x.asLine(s.incidence, list)
	for _, c := range list {
		if c.Link < 0 || c.Confidence < lossSure && !unsure || x.explained(s.incidence, list, c.Link) {
			continue
		}
		if back := x.otherWay(s.incidence, c.Link); back >= 0 {
			c.Link = back
		}
		x.blame(culprit{class: c.Link, ratio: c.Ratio, confidence: c.Confidence, sent: c.Packets, lost: c.Lost, found: x.cycles,
			dead: c.Ratio >= deadRatio && c.Confidence >= lossSure, died: s.end})
	}
}

// asLine replaces culprits of a fit that lost most rounds by both directions of one line. These must explain the losses
// of two of them and have lost nearly all rounds themselves. A line that fails in both directions at once is likelier
// than two failures. If several lines qualify, nothing is replaced.
func (x *losses) asLine(in *Incidence, list []loss.Culprit) []loss.Culprit {
	if in.reverse == nil || len(list) < 2 {
		return list
	}
	var line [2]int32
	var by []bool // the culprits that it explains
	for l, back := range in.reverse {
		if int(back) <= l || in.class[l] < 0 || in.class[back] < 0 || in.class[l] == in.class[back] {
			continue
		}
		ends := [2]int32{in.class[l], in.class[back]}
		if slices.ContainsFunc(list, func(c loss.Culprit) bool { return slices.Contains(ends[:], c.Link) }) || !x.lostNearly(in, ends[0]) || !x.lostNearly(in, ends[1]) {
			continue
		}
		explains, n := make([]bool, len(list)), 0
		for i, c := range list {
			if c.Link < 0 || c.Ratio < deadRatio {
				continue
			}
			if all, shared := x.shared(in, c.Link, func(o int32) bool { return slices.Contains(ends[:], o) }); 10*shared >= 9*all {
				explains[i] = true
				n++
			}
		}
		switch {
		case n < 2:
			continue
		case by != nil:
			return list
		}
		line, by = ends, explains
	}
	if by == nil {
		return list
	}
	first := slices.Index(by, true)
	sure := list[first].Confidence
	out := make([]loss.Culprit, 0, len(list))
	for i, c := range list {
		if by[i] {
			sure = min(sure, c.Confidence)
			continue
		}
		out = append(out, c)
	}
	for _, class := range line {
		c := loss.Culprit{Link: class, Flow: -1, Confidence: sure}
		c.Packets, c.Lost = x.crossed(in, class)
		c.Ratio = float64(c.Lost) / float64(c.Packets)
		out = append(out, c)
	}
	return out
}

// crossed counts the rounds of the present fit that probes sent and lost which cross a class.
func (x *losses) crossed(in *Incidence, class int32) (sent, lost uint64) {
	for k, p := range x.sampleProbes {
		if _, crosses := slices.BinarySearch(in.probeClasses[p], class); crosses {
			sent += x.samples[k].Packets
			lost += x.samples[k].Lost
		}
	}
	return sent, lost
}

// lostNearly reports whether nearly all rounds of the present fit got lost whose probes cross a class.
func (x *losses) lostNearly(in *Incidence, class int32) bool {
	sent, lost := x.crossed(in, class)
	return sent > 0 && 10*lost >= 9*sent
}

// explained reports whether the losses that a fit explains by a class that is no culprit yet are explained already.
// Either an old culprit that the fit does not have explains most of them. Or nearly all of them are of probes that
// cross a dead one, which lose their rounds whatever else they cross. The other direction of a dead one is never
// explained.
func (x *losses) explained(in *Incidence, list []loss.Culprit, class int32) bool {
	if slices.ContainsFunc(x.culprits, func(c culprit) bool { return c.class == class }) {
		return false
	}
	for i := range x.culprits {
		old := x.culprits[i].class
		if slices.ContainsFunc(list, func(c loss.Culprit) bool { return c.Link == old }) {
			continue
		}
		if all, shared := x.shared(in, class, func(o int32) bool { return o == old }); 2*shared >= all {
			return true
		}
	}
	if !x.anyDead() || x.backOfDead(in, class) {
		return false
	}
	all, shared := x.shared(in, class, x.dead)
	return 10*shared >= 9*all
}

// shared counts the lost rounds of the present fit whose probes cross a class. The second count is of those whose
// probes cross one of others as well.
func (x *losses) shared(in *Incidence, class int32, other func(int32) bool) (all, shared uint64) {
	for k, p := range x.sampleProbes {
		if _, crosses := slices.BinarySearch(in.probeClasses[p], class); crosses {
			all += x.samples[k].Lost
			if slices.ContainsFunc(in.probeClasses[p], other) {
				shared += x.samples[k].Lost
			}
		}
	}
	return all, shared
}

// otherWay returns the other direction of a dead class, or -1. Nearly all losses that a fit explains by a class that is
// no culprit must be of probes that cross it. A line that fails in both directions at once is likelier than two
// failures.
func (x *losses) otherWay(in *Incidence, class int32) int32 {
	if _, there := x.culprit(class); there || in.reverse == nil || x.backOfDead(in, class) {
		return -1
	}
	for i := range x.culprits {
		if !x.dead(x.culprits[i].class) {
			continue
		}
		for _, l := range in.alike[x.culprits[i].class] {
			if l = in.reverse[l]; l < 0 || in.class[l] < 0 || in.class[l] == class {
				continue
			}
			if all, shared := x.shared(in, class, func(o int32) bool { return o == in.class[l] }); 10*shared >= 9*all {
				return in.class[l]
			}
		}
	}
	return -1
}

// alone returns the class of the links that one probe alone crosses, or -1.
func (in *Incidence) alone(probe int32) int32 {
	for _, c := range in.probeClasses[probe] {
		if len(in.cross[c]) == 1 {
			return c
		}
	}
	return -1
}

// blame adds a culprit, or updates it by the shortest time of a cycle in which a fit has it. If nothing was lost in the
// cycle, it stays as it is. Rounds that arrive count as calm, and do not reduce the share that it lost before.
func (x *losses) blame(c culprit) {
	at, there := x.culprit(c.class)
	if !there {
		x.culprits = slices.Insert(x.culprits, at, c)
		return
	}
	if old := &x.culprits[at]; old.found < c.found && old.calm == 0 {
		c.calm = old.calm
		if old.dead {
			c.dead, c.died = true, old.died
		}
		*old = c
	}
}

func (x *losses) accuse(s *State, c *culprit) {
	links := s.named.among(c.class, s.incidence.alike[c.class], true)
	e := evidence{severity: inference.Warning, confidence: c.confidence / float64(len(links))}
	if c.ratio >= .01 {
		e.severity = inference.Critical
	}
	if e.why = c.why; e.why == "" {
		e.why = fmt.Sprintf("%d of %d rounds of the probes that cross it got lost", c.lost, c.sent)
	}
	if n := len(links) - 1; n > 0 {
		e.why += fmt.Sprintf("; the same probes cross %d more, which cannot be distinguished", n)
	}
	for _, e.link = range links {
		s.accuse(e)
	}
}
