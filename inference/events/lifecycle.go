package events

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// journal is what the detectors of one [Detector] share: the settings, the present window, and the findings that are
// open or published in it.
type journal struct {
	cfg   Config
	stats Stats

	unjudged, unlisted uint64 // see [Detector.Refused]

	now     int64  // end of the window
	windows uint64 // number of windows, the present one included
	id      uint64 // of the last finding that started

	// Flows whose digests an error of the inventory explains, in this window.
	explained map[decode.FlowKey]bool

	published []inference.Finding  // findings that started, became more severe or ended in this window
	open      []*inference.Finding // open findings by id, and until finish those that ended in this window
	states    []coded              // of all detectors

	flows *flows // whose statistics share the findings that are expected by chance

	accepted map[subjectOfKind]Acceptance

	moved map[uint64][]inference.HopKey // hops that the flows of a finding moved to or, of latencies, where they come from; set when they are published
}

// begin opens the next window.
func (j *journal) begin(end int64) {
	j.published, j.now = j.published[:0], end
	j.windows++
}

// finish closes the window.
func (j *journal) finish() {
	j.open = slices.DeleteFunc(j.open, func(f *inference.Finding) bool { return f.End != 0 })
}

// publish starts a finding or updates it: *open is the finding, nil before it starts. The first call publishes f as its start. Later calls
// replace flow, value, baseline and text, and publish it again only if it became more severe, has another element, or rests or is back.
// Severity does not fall before the end.
func (j *journal) publish(open **inference.Finding, f inference.Finding) {
	old := *open
	if old == nil {
		j.id++
		f.ID, f.Start, f.Updated = j.id, j.now, j.now
		if f.Element == (inference.Element{}) {
			f.Element = elementOf(&f)
		}
		started := f // f itself stays on the stack
		*open = &started
		j.open = append(j.open, &started)
		j.published = append(j.published, f)
		return
	}
	turned := f.Resting != old.Resting
	old.Flow, old.Updated, old.Value, old.Baseline, old.Text = f.Flow, j.now, f.Value, f.Baseline, f.Text
	old.Statistic, old.Learning, old.Resting, old.Path = f.Statistic, f.Learning, f.Resting, f.Path
	elsewhere := f.Element != (inference.Element{}) && f.Element != old.Element
	if elsewhere {
		old.Element = f.Element
	}
	if f.Severity > old.Severity || elsewhere || turned {
		old.Severity = max(f.Severity, old.Severity)
		j.published = append(j.published, *old)
	}
}

// end publishes the end of a finding. Nothing happens if none is open.
func (j *journal) end(open **inference.Finding, text string) {
	f := *open
	if f == nil {
		return
	}
	f.Updated, f.End, f.Text = j.now, j.now, text
	j.published = append(j.published, *f)
	*open = nil
}

// lifecycle is the table of a detector's subjects, such as hops or flows, from the first window of each until it is forgotten. S is the
// state of one subject, its open findings included. All state of a detector is in lifecycles, so that all of it can be saved.
type lifecycle[K comparable, S any] struct {
	*journal
	index   map[K]*subject[K, S]
	list    []*subject[K, S]
	sorted  bool // the list is in the order of compare
	compare func(a, b K) int

	codeKey   func(*coder, *K)
	codeState func(*coder, *S)
}

// subject is one entry of a lifecycle.
type subject[K comparable, S any] struct {
	key   K
	last  uint64 // number of the last window that observed it
	state S
}

// newLifecycle makes a lifecycle of the journal. compare orders the keys; codeKey and codeState write and read keys and states.
func newLifecycle[K comparable, S any](j *journal, compare func(a, b K) int, codeKey func(*coder, *K), codeState func(*coder, *S)) *lifecycle[K, S] {
	l := &lifecycle[K, S]{
		journal: j, index: map[K]*subject[K, S]{}, sorted: true, compare: compare, codeKey: codeKey, codeState: codeState,
	}
	j.states = append(j.states, l)
	return l
}

// observe marks a subject as present in this window and returns its state. The result is nil if the subject is new and the table holds most
// others.
func (l *lifecycle[K, S]) observe(key K, most int) *S {
	s := l.index[key]
	if s == nil {
		if len(l.list) >= most {
			return nil
		}
		s = &subject[K, S]{key: key}
		l.add(s)
	}
	s.last = l.windows
	return &s.state
}

func (l *lifecycle[K, S]) add(s *subject[K, S]) {
	if n := len(l.list); n > 0 && l.sorted {
		l.sorted = l.compare(l.list[n-1].key, s.key) < 0
	}
	l.index[s.key] = s
	l.list = append(l.list, s)
}

// order brings the list into its order, which only new subjects disturb, so that nothing depends on the map.
func (l *lifecycle[K, S]) order() {
	if !l.sorted {
		slices.SortFunc(l.list, func(a, b *subject[K, S]) int { return l.compare(a.key, b.key) })
		l.sorted = true
	}
}

// forEachAbsent calls f, in order, for every subject that this window did not observe, with the number of windows since it was observed.
// It forgets those for which f returns true; f ends their findings first.
func (l *lifecycle[K, S]) forEachAbsent(f func(key K, state *S, windows int) (forget bool)) {
	l.order()
	l.list = slices.DeleteFunc(l.list, func(s *subject[K, S]) bool {
		if s.last == l.windows || !f(s.key, &s.state, int(l.windows-s.last)) {
			return false
		}
		delete(l.index, s.key)
		return true
	})
}

// tally is the state of a subject with one kind of finding that counts something: packets, digests, changes.
type tally struct {
	count   uint64 // since the finding started
	finding *inference.Finding
}

func (c *coder) tally(t *tally) {
	number(c, &t.count)
	c.finding(&t.finding)
	c.Check("finding of a subject", t.finding != nil)
}
