package events

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// journal is what the detectors of one [Detector] share: the settings, the present window, and the findings that are
// open or told in it.
type journal struct {
	cfg   Config
	stats Stats

	now     int64  // end of the window
	windows uint64 // how many came, the present one included
	id      uint64 // of the last finding that started

	// Flows whose digests an error of the inventory explains, in this window.
	explained map[decode.FlowKey]bool

	told   []inference.Finding  // in this window
	open   []*inference.Finding // in the order of their ids; those that ended in this window are still there
	states []coded              // of all detectors

	flows *flows // whose statistics share the findings that are accepted

	moved map[uint64][]inference.HopKey // hops that the flows of a finding moved to or, of latencies, where they come from, as told in this window
}

// begin opens the next window.
func (j *journal) begin(end int64) {
	j.told, j.now = j.told[:0], end
	j.windows++
}

// finish closes the window.
func (j *journal) finish() {
	j.open = slices.DeleteFunc(j.open, func(f *inference.Finding) bool { return f.End != 0 })
}

// tell says how a cause stands that lasts: *open is its finding, nil as long as none has started. The first time f
// starts as the finding. After that its flow, value, baseline and text are brought up to date, and the finding is told
// once more only if it became more severe or has another element; severity does not fall before the end.
func (j *journal) tell(open **inference.Finding, f inference.Finding) {
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
		j.told = append(j.told, f)
		return
	}
	old.Flow, old.Updated, old.Value, old.Baseline, old.Text = f.Flow, j.now, f.Value, f.Baseline, f.Text
	old.Statistic, old.Learning = f.Statistic, f.Learning
	elsewhere := f.Element != (inference.Element{}) && f.Element != old.Element
	if elsewhere {
		old.Element = f.Element
	}
	if f.Severity > old.Severity || elsewhere {
		old.Severity = max(f.Severity, old.Severity)
		j.told = append(j.told, *old)
	}
}

// end tells that the cause of a finding is gone. Nothing happens if none is open.
func (j *journal) end(open **inference.Finding, text string) {
	f := *open
	if f == nil {
		return
	}
	f.Updated, f.End, f.Text = j.now, j.now, text
	j.told = append(j.told, *f)
	*open = nil
}

// lifecycle is what a detector follows, such as hops or flows, from the window in which each of them was first seen
// until it is forgotten, with what the detector remembers of it: S, where its open findings are too. All that a detector
// knows is in lifecycles, so that the whole of it can be saved.
type lifecycle[K comparable, S any] struct {
	*journal
	index   map[K]*subject[K, S]
	list    []*subject[K, S]
	sorted  bool // the list is in the order of compare
	compare func(a, b K) int

	codeKey   func(*coder, *K)
	codeState func(*coder, *S)
}

// subject is one of those that a detector follows.
type subject[K comparable, S any] struct {
	key   K
	last  uint64 // window in which it was seen last
	state S
}

// follow makes a lifecycle of the journal. compare orders what is followed, and codeKey and codeState write and read
// it.
func follow[K comparable, S any](j *journal, compare func(a, b K) int, codeKey func(*coder, *K), codeState func(*coder, *S)) *lifecycle[K, S] {
	l := &lifecycle[K, S]{
		journal: j, index: map[K]*subject[K, S]{}, sorted: true, compare: compare, codeKey: codeKey, codeState: codeState,
	}
	j.states = append(j.states, l)
	return l
}

// see notes that a subject is there in this window and gives what is remembered of it. It gives nil if the subject is
// new and most others are followed already.
func (l *lifecycle[K, S]) see(key K, most int) *S {
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

// absent calls f, in order, for every subject that is not there in this window, with the number of windows since it
// was, and forgets those for which f returns true. Their findings have to end first.
func (l *lifecycle[K, S]) absent(f func(key K, state *S, windows int) (forget bool)) {
	l.order()
	l.list = slices.DeleteFunc(l.list, func(s *subject[K, S]) bool {
		if s.last == l.windows || !f(s.key, &s.state, int(l.windows-s.last)) {
			return false
		}
		delete(l.index, s.key)
		return true
	})
}

// tally is what is remembered of a subject with one kind of finding that counts something: packets, digests, changes.
type tally struct {
	count   uint64 // since the finding started
	finding *inference.Finding
}

func (c *coder) tally(t *tally) {
	number(c, &t.count)
	c.finding(&t.finding)
	c.Check("finding of a subject", t.finding != nil)
}
