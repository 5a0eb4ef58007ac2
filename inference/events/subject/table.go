package subject

import (
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// Table is the table of a detector's subjects, such as hops or flows, from the first window of each until it is
// forgotten. S is the state of one subject, its open findings included. All state of a detector is in tables, so that
// all of it can be saved.
type Table[K comparable, S any] struct {
	*Journal
	Index   map[K]*Entry[K, S]
	List    []*Entry[K, S]
	sorted  bool // the list is in the order of compare
	compare func(a, b K) int

	codeKey   func(*Coder, *K)
	codeState func(*Coder, *S)
}

// Entry is one subject of a table.
type Entry[K comparable, S any] struct {
	Key   K
	Last  uint64 // number of the last window that observed it
	State S
}

// NewTable makes a table of the journal. compare orders the keys; codeKey and codeState write and read keys and states.
func NewTable[K comparable, S any](j *Journal, compare func(a, b K) int, codeKey func(*Coder, *K), codeState func(*Coder, *S)) *Table[K, S] {
	l := &Table[K, S]{
		Journal: j, Index: map[K]*Entry[K, S]{}, sorted: true, compare: compare, codeKey: codeKey, codeState: codeState,
	}
	j.States = append(j.States, l)
	return l
}

// Observe marks a subject as present in this window and returns its state. The result is nil if the subject is new and
// the table holds most others.
func (l *Table[K, S]) Observe(key K, most int) *S {
	s := l.Index[key]
	if s == nil {
		if len(l.List) >= most {
			return nil
		}
		s = &Entry[K, S]{Key: key}
		l.Add(s)
	}
	s.Last = l.Windows
	return &s.State
}

// Add adds a subject that the table does not hold.
func (l *Table[K, S]) Add(s *Entry[K, S]) {
	if n := len(l.List); n > 0 && l.sorted {
		l.sorted = l.compare(l.List[n-1].Key, s.Key) < 0
	}
	l.Index[s.Key] = s
	l.List = append(l.List, s)
}

// Order brings the list into its order, which only new subjects disturb, so that nothing depends on the map.
func (l *Table[K, S]) Order() {
	if !l.sorted {
		slices.SortFunc(l.List, func(a, b *Entry[K, S]) int { return l.compare(a.Key, b.Key) })
		l.sorted = true
	}
}

// ForEachAbsent calls f, in order, for every subject that this window did not observe, with the number of windows since
// it was observed. It forgets those for which f returns true; f ends their findings first.
func (l *Table[K, S]) ForEachAbsent(f func(key K, state *S, windows int) (forget bool)) {
	l.Order()
	l.List = slices.DeleteFunc(l.List, func(s *Entry[K, S]) bool {
		if s.Last == l.Windows || !f(s.Key, &s.State, int(l.Windows-s.Last)) {
			return false
		}
		delete(l.Index, s.Key)
		return true
	})
}

// Tally is the state of a subject with one kind of finding that counts something: packets, digests, changes.
type Tally struct {
	Count   uint64 // since the finding started
	Finding *inference.Finding
}

// Tally is the state of a subject that has a finding.
func (c *Coder) Tally(t *Tally) {
	Number(c, &t.Count)
	c.Finding(&t.Finding)
	c.Check("finding of a subject", t.Finding != nil)
}

// All is the key of subjects that are followed as one.
type All struct{}
