package events

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/events/ways"
)

// probes finds paths between agents whose probes are lost, come damaged, or take longer than before. A path keeps its
// losses over the epochs of plans. Its delay is learnt anew in each, since its number may stand for another way then.
type probes struct {
	*subject.Table[probedKey, probed]
	cfg detect.Config // of delays in the present window
	at  detect.Moment
	way *ways.Probed

	unheard      map[inference.ProbeKey]*inference.ProbeStats // of the present window, see findPlanned
	over         map[decode.FlowKey][]inference.HopKey        // hops of the paths of plans that lost probes in it
	seen, judged int                                          // paths of the present window
	unknown      int                                          // of these, those whose losses are not judged, or not all
}

// probedKey is a path whatever its epoch is.
type probedKey struct {
	from, to decode.Addr
	path     uint32
}

func (k probedKey) compare(o probedKey) int {
	return cmp.Or(k.from.Compare(o.from), k.to.Compare(o.to), cmp.Compare(k.path, o.path))
}

// String returns the path as a part of a sentence.
func (k probedKey) String() string {
	return inference.ProbeKey{From: k.from, To: k.to, Path: k.path}.String()
}

func codeProbedKey(c *subject.Coder, k *probedKey) {
	c.Address(&k.from)
	c.Address(&k.to)
	subject.Number(c, &k.path)
}

// probed is the state of one path.
type probed struct {
	lost, corrupt lossHistory
	epoch         uint32 // that the delay is of
	delay         detect.Hop
	finding       *inference.Finding // of the delay
	forward, back int64              // lost on either way while the finding of losses is open

	judgement inference.Judgement // of the delay in the last window with the path
}

func codeProbed(c *subject.Coder, p *probed) {
	codeLossHistory(c, &p.lost)
	codeLossHistory(c, &p.corrupt)
	subject.Number(c, &p.epoch)
	codeHistory(c, &p.delay)
	c.Finding(&p.finding)
	subject.Number(c, &p.forward)
	subject.Number(c, &p.back)
}

func newProbes(j *subject.Journal, w *ways.Probed) *probes {
	return &probes{way: w, unheard: map[inference.ProbeKey]*inference.ProbeStats{}, over: map[decode.FlowKey][]inference.HopKey{}, Table: subject.NewTable(j, probedKey.compare, codeProbedKey, codeProbed)}
}

func (x *probes) Step(w *inference.Window) {
	x.cfg = hopConfig(x.Journal, w)
	x.cfg.Floor = float64(x.Cfg.ProbeFloor)
	x.cfg.Rising, x.cfg.Steady = true, true
	x.at = x.cfg.At(w.End)
	x.seen, x.judged, x.unknown = 0, 0, 0
	x.findPlanned(w)
	for i := 0; i < len(w.Probes); {
		s := x.settled(&w.Probes[i])
		k := probedKey{s.From, s.To, s.Path}
		for i++; i < len(w.Probes) && k == (probedKey{w.Probes[i].From, w.Probes[i].To, w.Probes[i].Path}); i++ { // a later epoch
			sum := x.settled(&w.Probes[i])
			sum.Received += s.Received
			sum.Missed += s.Missed
			sum.Late += s.Late
			sum.Corrupt += s.Corrupt
			sum.Forward += s.Forward
			sum.Back += s.Back
			s = sum
		}
		if s.Other() || s.Unheard() {
			continue // many paths, and not the same ones in every window; or what counts with the report of a sender
		}
		x.seen++
		p := x.Observe(k, x.Cfg.MaxProbes)
		if p == nil {
			x.Stats.PathsRefused++
			continue
		}
		x.judgeLoss(p, k, &s, w.Start)
		x.judgeDelay(p, k, &s)
		if p.judgement == inference.Judged || s.OfPlan() && s.From != s.To {
			x.judged++
		}
	}
	x.seen, x.judged, x.unknown = x.seen+len(x.unheard), x.judged+len(x.unheard), x.unknown+len(x.unheard)
	x.Stats.Paths = max(x.seen, x.Stats.Paths*min(len(w.Missing), 1))
	x.ForEachAbsent(func(k probedKey, p *probed, windows int) bool {
		if windows < x.Cfg.ForgetAfter {
			if p.delay.Add(&x.cfg, x.at, detect.Window{}) == detect.Ended {
				x.End(&p.finding, k.String()+": no probe came any more")
			}
			return false
		}
		for _, f := range []**inference.Finding{&p.lost.loss, &p.corrupt.loss, &p.finding} {
			x.End(f, k.String()+" is forgotten")
		}
		return true
	})
}

// findPlanned finds the paths of plans in a window of which the receiver does not know the sender, and the hops of those
// that lost probes.
func (x *probes) findPlanned(w *inference.Window) {
	clear(x.unheard)
	clear(x.over)
	for i := range w.Losses {
		if l := &w.Losses[i]; l.Lost > 0 && inference.IsProbe(&l.Flow) {
			x.over[l.Flow] = l.Path
		}
	}
	for i := range w.Probes {
		if s := &w.Probes[i]; s.Unheard() {
			x.unheard[inference.ProbeKey{To: s.To, Path: s.Path, Epoch: s.Epoch}] = s
		}
	}
}

// settled returns s with the losses that are to be judged. Of a path of a plan that its receiver does not know by the
// sender, these are added.
func (x *probes) settled(s *inference.ProbeStats) inference.ProbeStats {
	out := *s
	if !s.OfPlan() || s.Unheard() {
		return out
	}
	k := inference.ProbeKey{To: s.To, Path: s.Path, Epoch: s.Epoch}
	if o := x.unheard[k]; o != nil {
		out.Missed += o.Missed
		delete(x.unheard, k)
	}
	_, unknown := out.Settled()
	out.Missed -= unknown
	if n := min(out.Forward, 0) - out.Lost(); n > 0 { // late are what was unknown, but for rounds that came behind later ones
		out.Late -= min(out.Late, uint64(n))
	}
	if unknown > 0 || s.From != s.To && out.Received|out.Missed|out.Late == 0 { // one end reports, or none yet
		x.unknown++
	}
	out.Forward, out.Back = 0, 0 // nothing goes home
	return out
}

// judgeLoss weighs what was lost and what was damaged of the probes of a path.
func (x *probes) judgeLoss(p *probed, k probedKey, s *inference.ProbeStats, start int64) {
	about := func(kind inference.Kind) inference.Finding {
		return inference.Finding{Kind: kind, Severity: inference.Warning, Flow: s.Flow, Element: inference.ElementOfFlow(s.Flow)}
	}
	if p.lost.loss == nil {
		p.forward, p.back = 0, 0
	}
	p.forward += s.Forward
	p.back += s.Back
	t := ratioTest{
		limit: x.Cfg.ProbeLoss, severe: x.Cfg.ProbeSevere, start: start, finding: about(inference.ProbeLoss),
		subject: k, verb: "lost", of: "probes" + onWays(p.forward, p.back), all: "may lose all probes by the settings", idle: "no probe was sent",
	}
	if s.OfPlan() {
		t.note = fmt.Sprintf("; the path is one of the plan of epoch %d", s.Epoch) + overNodes(x.over[s.Flow])
	} else if x.way.Unknown(s.Flow) {
		t.note = "; the way of these probes is not known, so that no link is judged"
	}
	judgeRatio(x.Journal, &p.lost, &t, s.Lost(), s.Received, s.Received)
	switch hops := x.over[s.Flow]; {
	case p.lost.loss == nil:
	case len(hops) > 0:
		x.Moved[p.lost.loss.ID] = slices.Clone(subject.First(hops, subject.MostHops))
	default:
		x.Moved[p.lost.loss.ID] = x.way.Around(s.Flow)
	}
	t = ratioTest{
		limit: x.Cfg.ProbeCorrupt, severe: x.Cfg.ProbeSevere, start: start, finding: about(inference.ProbeCorruption),
		subject: k, verb: "damaged", of: "probes that came", all: "may damage all probes by the settings", idle: "no probe came",
	}
	judgeRatio(x.Journal, &p.corrupt, &t, int64(min(s.Corrupt, math.MaxInt64)), s.Received, s.Received)
}

// overNodes returns a text about the nodes on the way of the last probes that came, "" where it is not known.
func overNodes(hops []inference.HopKey) string {
	if len(hops) == 0 {
		return ""
	}
	text := ", over node"
	if len(hops) > 1 {
		text += "s"
	}
	for i, h := range hops {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d", h.Node)
	}
	return text
}

// onWays returns a text about the way on which probes were lost, as far as it is known; "" where it is not.
func onWays(forward, back int64) string {
	if forward <= 0 && back <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%d on the way out, %d home)", max(forward, 0), max(back, 0))
}

// judgeDelay compares the delays of a path with its own usual ones.
func (x *probes) judgeDelay(p *probed, k probedKey, s *inference.ProbeStats) {
	if s.Epoch != p.epoch {
		x.End(&p.finding, fmt.Sprintf("%s is another one in epoch %d, and its delay is learnt anew", k, s.Epoch))
		p.epoch, p.delay = s.Epoch, detect.Hop{}
	}
	w := summary(&s.Delay)
	p.judgement = inference.Judged
	switch {
	case w.Count < x.Cfg.MinRecords:
		p.judgement = inference.TooFew
	case p.delay.Warming(&x.cfg):
		p.judgement = inference.TooYoung
	}
	if width := max(w.P50, w.P99) / 16; width > p.delay.Floor() && width > x.cfg.Floor { // of a code, see decode.DelayCode
		p.delay.SetFloor(&x.cfg, math.Exp2(math.Ceil(math.Log2(width))))
	}
	before, _ := p.delay.Open()
	event := p.delay.Add(&x.cfg, x.at, w)
	f, open := p.delay.Open()
	switch {
	case event == detect.Ended:
		x.endDelay(p, k, &before, &w)
	case open && f.Cause == detect.Rise && w.Count >= x.Cfg.MinRecords:
		x.publishDelay(p, k, s, &f, &w)
	}
}

// publishDelay publishes a finding that began or goes on.
func (x *probes) publishDelay(p *probed, k probedKey, s *inference.ProbeStats, f *detect.Finding, w *detect.Window) {
	name, v := valueOf(&x.cfg, f, w)
	out := inference.Finding{
		Kind: inference.ProbeDelay, Severity: inference.Warning, Flow: s.Flow, Element: inference.ElementOfFlow(s.Flow), Statistic: name + " delay",
		Value: v, Baseline: f.Usual(&x.cfg), Learning: p.delay.Learning(), Resting: p.delay.AsUsual(&x.cfg),
	}
	if f.Grave(&x.cfg) {
		out.Severity = inference.Critical
	}
	out.Text = fmt.Sprintf("delay of %s: %s %s over %d probes, usually %s", k, name, inference.Nanoseconds(v), w.Count, inference.Nanoseconds(out.Baseline))
	if out.Resting || v <= out.Baseline { // the present window is not its evidence
		out.Value = f.Worst(&x.cfg)
		out.Text = fmt.Sprintf("delay of %s: %s reached %s, usually %s; it is %s over %d probes now", k, name, inference.Nanoseconds(out.Value),
			inference.Nanoseconds(out.Baseline), inference.Nanoseconds(v), w.Count)
	}
	out.Text += recurrences(&p.delay)
	if out.Learning {
		out.Text += "; the path is still being learnt"
	}
	x.Publish(&p.finding, out)
}

// endDelay ends the finding of a delay.
func (x *probes) endDelay(p *probed, k probedKey, f *detect.Finding, w *detect.Window) {
	if p.finding == nil {
		return
	}
	name, v := valueOf(&x.cfg, f, w)
	p.finding.Value, p.finding.Baseline = f.Worst(&x.cfg), f.Usual(&x.cfg)
	text := fmt.Sprintf("delay of %s reached %s %s and is %s now, usually %s", k, name, inference.Nanoseconds(p.finding.Value),
		inference.Nanoseconds(v), inference.Nanoseconds(p.finding.Baseline))
	if w.Count < x.Cfg.MinRecords {
		text = fmt.Sprintf("delay of %s: too few probes came for a judgement", k)
	}
	x.End(&p.finding, text)
}
