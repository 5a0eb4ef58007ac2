package suspicion

import (
	"cmp"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
)

// Suspect is a link that deserves a closer look.
type Suspect struct {
	Link       int32
	Weight     float64 // how much it deserves that: confidence by severity
	Confidence float64 // that it is this link
	Why        string  // the strongest evidence, in a sentence
	Since      int64   // end of the first cycle of the evidence, ns since 1970
}

// Config are the limits. DefaultConfig suits cycles of one second.
type Config struct {
	RaiseAfter int                // cycles of evidence in a row until a link is suspected
	DoubtAfter int                // the same for a confidence below a half, and for informational findings
	ClearAfter int                // cycles without evidence until it is not suspected any more
	Least      inference.Severity // of findings that are evidence

	Window       time.Duration // length of a cycle
	LatencyFloor float64       // ns; values far below it are all the same
	Floors       []float64     // by link, in place of LatencyFloor for what probes report of it, where above 0; may be short
	LineFloor    float64       // ns, of the time on a line, by two clocks
	PairFloor    float64       // ns, of the time on both directions of a link together, in which clocks cancel out
	pairLeast    float64       // ns, the same where these clocks have been seen to run alike; 0 is PairFloor
	QueueFloor   float64       // in the unit of queues
	single       bool          // a link has fewer than five values in a cycle: their medians are judged one by one
	Loss         float64       // share of the rounds of a probe that may get lost
}

// latencyFloor is that of a link, in ns.
func (c *Config) latencyFloor(link int) float64 {
	if link < len(c.Floors) && c.Floors[link] > 0 {
		return c.Floors[link]
	}
	return c.LatencyFloor
}

// DefaultConfig raises at once, as its detectors are wrong less than once in a million cycles, and clears after five
// cycles.
func DefaultConfig() Config {
	return Config{
		RaiseAfter: 1, DoubtAfter: 2, ClearAfter: 5, Least: inference.Info,
		Window: time.Second, LatencyFloor: 1000, LineFloor: 100_000, PairFloor: 20_000, pairLeast: 20_000, QueueFloor: 10_000, Loss: 2e-5,
	}
}

// Hop is the values of a link in a cycle, by probes. A Count of 0 is no value.
type Hop struct {
	Link    int32
	Latency detect.Window // time in the switch that packets leave by the link, ns
	Queue   detect.Window // queue before the link
	Line    detect.Window // time from that switch to the next, ns, by two clocks: only its P50 is used, and only changes count
}

// Round is the outcome of the rounds of a probe in a cycle, of those whose outcome is known.
type Round struct {
	Probe   int32
	Sent    uint64
	Lost    uint64
	Transit float64 // mean time under way, or in switches, of those that arrived, ns; 0 if it is not known
}

// Places maps elements to links.
type Places interface {
	// Links appends the links that the element of a finding touches. For an interface it is the one behind it, for a
	// link its two directions, for a node all of its links. For a flow or a route they are those on its way. It appends
	// none if they are not known.
	Links(to []int32, f *inference.Finding) []int32
}

// Cycle is the input of one cycle.
type Cycle struct {
	Now      int64               // end of the cycle, ns since 1970
	Findings []inference.Finding // that are open, by id
	Hops     []Hop               // each link at most once
	Rounds   []Round             // each probe at most once

	// NoNewWindow is set when no window of the probes ended in this cycle. Hops is then ignored: earlier evidence
	// holds, and is not counted again. NoNewRounds is the same for Rounds, which may end at other times. Window is the
	// length of the window of Hops; 0 is the previous length, at first that of Config.
	NoNewWindow, NoNewRounds bool
	Window                   time.Duration
}

// State remembers what is needed of earlier cycles. It has one owner.
type State struct {
	cfg       Config
	places    Places
	incidence *Incidence
	cycles    uint64
	end       int64 // of the present cycle, ns since 1970

	hops    hops
	losses  losses
	transit transits
	named   named
	links   []linkState // by link
	marked  []int32

	now           []evidence // evidence of this cycle
	hopEvidence   []evidence // of the last cycle with values of hops
	roundEvidence []evidence // of the last cycle with rounds
	touched       []int32
	explained     []int32
	alive         map[uint64]bool // causes with evidence that is open
	followed      map[uint64]bool // open findings that a dead line explains
	thinned       []bool          // by link: a probe that crosses it lost most of its rounds in the last cycle with rounds
	suspects      []Suspect
}

// evidence is the evidence against a link in a cycle.
type evidence struct {
	link       int32
	severity   inference.Severity
	learning   bool
	confidence float64
	why        string
	carried    bool   // it is from an earlier cycle
	finding    uint64 // that it is; 0 for what probes report
}

// linkState is the state of a link with evidence.
type linkState struct {
	suspected bool
	since     int64  // of the evidence
	run       uint16 // cycles with evidence in a row
	calm      uint16 // cycles without
	weight    float64
	sure      float64
	why       string
	finding   uint64 // that the evidence is; 0 for what probes report

	explained bool // by a cause, in this cycle
}

// New returns a state that has seen nothing. Places may be nil where there are no findings.
func New(cfg Config, in *Incidence, places Places) *State {
	s := &State{cfg: cfg, places: places, links: make([]linkState, in.links), alive: map[uint64]bool{}, followed: map[uint64]bool{}, thinned: make([]bool, in.links)}
	s.hops.all = make([]*hop, in.links)
	s.replan(in)
	return s
}

// replan replaces the probes. The state of links stays, that of probes is forgotten. The number of links has to be the
// same.
func (s *State) replan(in *Incidence) {
	s.incidence = in
	s.losses.reset(in)
	s.transit.reset(in)
	clear(s.named.kept) // of classes, which are others now
}

// Inherit copies the evidence of another state, for the links and probes that both have, into one that has seen nothing
// yet. The argument was holds, by the number of a link here, its number there, or -1. A probe is the same if it crosses
// the same links. Evidence against these links holds until probes that cross them contradict it. The other state must
// not be used any more.
func (s *State) Inherit(from *State, was []int32) {
	s.cycles, s.followed = from.cycles, from.followed
	now := slices.Repeat([]int32{-1}, len(from.links)) // by the number there
	for l, old := range was {
		if l < len(s.links) && old >= 0 && int(old) < len(from.links) {
			now[old] = int32(l)
		}
	}
	link := func(old int32) int32 { return now[old] }
	hops, rounds := byLink(from.hopEvidence), byLink(from.roundEvidence)
	for l, old := range was {
		if l >= len(s.links) || old < 0 || int(old) >= len(from.links) {
			continue
		}
		s.links[l], s.hops.all[l] = from.links[old], from.hops.all[old]
		s.links[l].explained = false // of a cycle that is over
		if _, marked := slices.BinarySearch(from.marked, old); marked {
			s.marked = append(s.marked, int32(l))
		}
		for _, e := range hops[old] {
			e.link = int32(l)
			s.hopEvidence = append(s.hopEvidence, e)
		}
		for _, e := range rounds[old] {
			e.link = int32(l)
			s.roundEvidence = append(s.roundEvidence, e)
		}
	}
	probe := s.incidence.sameProbes(from.incidence, link)
	s.losses.inherit(s.incidence, &from.losses, from.incidence, link, probe)
	s.transit.inherit(&from.transit, probe)
}

// Resume suspects a link that an earlier life suspected at a time. It does so until as many rounds of the probes that
// cross it have come as a line that is down would have lost. The evidence against it is not known any more, but for its
// text why. Links that no probe crosses are left alone.
func (s *State) Resume(link int32, since int64, why string) {
	if link < 0 || int(link) >= len(s.links) || s.incidence.class[link] < 0 {
		return
	}
	class := s.incidence.class[link]
	if at, there := s.losses.culprit(class); !there {
		s.losses.culprits = slices.Insert(s.losses.culprits, at, culprit{class: class, ratio: 1, confidence: 1, why: why})
	}
	e := evidence{link: link, severity: inference.Critical, confidence: 1 / float64(len(s.incidence.alike[class])), why: why, carried: true}
	s.roundEvidence = append(s.roundEvidence, e)
	s.addEvidence(&e, since)
	s.links[link].suspected = true
}

func byLink(list []evidence) map[int32][]evidence {
	m := map[int32][]evidence{}
	for _, e := range list {
		m[e.link] = append(m[e.link], e)
	}
	return m
}

// Step takes a cycle and returns the suspects, by link, valid until the next call.
func (s *State) Step(c *Cycle) []Suspect {
	s.cycles++
	s.end = c.Now
	s.now = s.now[:0]
	s.explainAll(c.Findings)
	s.named.collect(s, c.Findings)
	if c.Window > 0 {
		s.cfg.Window = c.Window
	}
	if !c.NoNewRounds {
		s.thin(c.Rounds)
	}
	s.hopEvidence = s.carry(s.hopEvidence, c.NoNewWindow, func() { s.hops.step(s, c) })
	s.roundEvidence = s.carry(s.roundEvidence, c.NoNewRounds, func() {
		s.losses.step(s, c.Rounds)
		s.transit.step(s, c.Rounds)
	})
	s.found(c.Findings)
	slices.SortStableFunc(s.now, func(a, b evidence) int { return cmp.Compare(a.link, b.link) })
	s.settle(c.Now)
	return s.suspects
}

// carry adds the last evidence again if there is no newer one, or else that of a step. It returns the evidence to carry
// from now on.
func (s *State) carry(last []evidence, noNews bool, step func()) []evidence {
	if noNews {
		s.now = append(s.now, last...)
		return last
	}
	before := len(s.now)
	step()
	last = append(last[:0], s.now[before:]...)
	for i := range last {
		last[i].carried = true
	}
	return last
}

// Alike is [Incidence.Alike] of the probes now.
func (s *State) Alike(link int32) []int32 { return s.incidence.Alike(link) }

// Suspects returns the suspects of the last cycle, valid until the next one.
func (s *State) Suspects() []Suspect { return s.suspects }

// accuse adds evidence.
func (s *State) accuse(e evidence) { s.now = append(s.now, e) }

// weight of evidence: 1, 2 or 4 by severity, half of that while a hop is being learnt, by confidence.
func (e *evidence) weight() float64 {
	w := float64(int(1) << min(e.severity, inference.Critical))
	if e.learning {
		w /= 2
	}
	return w * e.confidence
}

// settle raises and clears.
func (s *State) settle(now int64) {
	for i := 0; i < len(s.now); {
		best, end := i, i+1
		for ; end < len(s.now) && s.now[end].link == s.now[i].link; end++ {
			if s.now[end].weight() > s.now[best].weight() {
				best = end
			}
		}
		s.addEvidence(&s.now[best], now)
		i = end
	}
	kept, at := s.marked[:0], 0
	s.suspects = s.suspects[:0]
	for _, l := range s.marked {
		h := &s.links[l]
		for at < len(s.now) && s.now[at].link < l {
			at++
		}
		if at == len(s.now) || s.now[at].link != l {
			h.run = 0
			if h.calm++; !h.suspected || int(h.calm) >= s.cfg.ClearAfter {
				*h = linkState{explained: h.explained}
				continue
			}
		}
		kept = append(kept, l)
		if h.suspected {
			s.suspects = append(s.suspects, Suspect{Link: l, Weight: h.weight, Confidence: h.sure, Why: h.why, Since: h.since})
		}
	}
	s.marked = kept
}

// addEvidence adds the strongest evidence of a cycle against a link.
func (s *State) addEvidence(e *evidence, now int64) {
	h := &s.links[e.link]
	if at, there := slices.BinarySearch(s.marked, e.link); !there {
		s.marked = slices.Insert(s.marked, at, e.link)
		h.since = now
	}
	if h.calm = 0; !e.carried || h.run == 0 {
		h.run = min(h.run+1, 1<<15)
	}
	h.weight, h.sure, h.why, h.finding = e.weight(), e.confidence, e.why, e.finding
	need := s.cfg.RaiseAfter
	if e.confidence < .5 || e.severity == inference.Info {
		need = max(need, s.cfg.DoubtAfter)
	}
	h.suspected = h.suspected || int(h.run) >= need
}
