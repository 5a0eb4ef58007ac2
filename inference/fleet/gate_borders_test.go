package fleet

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// closes adds a record that another owner wrote, which closes a window.
func (s *script) closes(window int64, missing, dead []string, sources ...Source) Verdict {
	s.t.Helper()
	return s.want(Head{Kind: Close, Slice: 3, End: window * tick, Missing: missing, Dead: dead, Sources: sources}, Closed, nil)
}

// sized adds a record of a size that was appended at a time.
func (s *script) sized(h Head, size int, at int64, kind EventKind) Verdict {
	s.t.Helper()
	v, _ := s.g.Add(&h, s.at, size, at)
	if s.at++; v.Kind != kind {
		s.t.Fatalf("%+v: %v, want %v", h, v.Kind, kind)
	}
	return v
}

// same fails unless two values are the same.
func (s *script) same(what string, got, want any) {
	s.t.Helper()
	if !reflect.DeepEqual(got, want) {
		s.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func pseudoPart(partition int, window int64, n int) Head {
	return part(PseudoName(partition), 0, pseudoSeq(window*tick, tick, n), window)
}

// TestGateBorders: each case is at a border of one rule, on both of its sides. The result survives in a state.
func TestGateBorders(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Options)
		run    func(s *script)
	}{
		"a worker of reports is not expected by name": {nil, func(s *script) {
			h := pseudoPart(1, 100, 0)
			h.Parts = 2
			s.want(h, Nothing, nil)
			s.want(part("a", 1, 1, 100), Nothing, nil)
			h, ok := s.g.Due(100 * tick)
			s.same("due", ok, true)
			s.same("missing", h.Missing, []string(nil))
			s.same("missing in what closes", s.closes(100, nil, nil).Closing.Missing, []string{"reports-1"})
			_, known := s.g.names["reports-1"]
			s.same("a collector of that name", known, false)
		}},
		"the last window of who leaves": {nil, func(s *script) {
			s.g.Expect([]Expected{{Name: "b", Until: 100 * tick}})
			s.want(part("a", 1, 1, 100), Nothing, nil)
			s.idle(100 * tick)
			s.due(103*tick, 100, []string{"b"}, nil)
		}},
		"who is not yet there and sends half": {nil, func(s *script) {
			s.g.Expect([]Expected{{Name: "c", Since: 101 * tick}})
			h := part("c", 1, 1, 100)
			h.Parts = 2
			s.want(h, Nothing, nil)
			s.idle(100 * tick)
		}},
		"many": {nil, func(s *script) {
			for w := int64(100); w < 102; w++ {
				for i := range 60 {
					s.want(part(fmt.Sprint("c", i), 1, uint64(w), w), Nothing, nil)
				}
				s.due(w*tick, w, nil, nil)
			}
		}},
		"missing in any order": {nil, func(s *script) {
			s.g.Expect([]Expected{{Name: "c"}, {Name: "b"}, {Name: "a"}})
			s.want(part("d", 1, 1, 100), Nothing, nil)
			s.due(103*tick, 100, []string{"a", "b", "c"}, nil)
		}},
		"more are missing than a record lists": {nil, func(s *script) {
			list := make([]Expected, MaxMembers+1)
			for i := range list {
				list[i].Name = fmt.Sprintf("m%06d", i)
			}
			s.g.Expect(list)
			s.want(part("a", 1, 1, 100), Nothing, nil)
			h, _ := s.g.Due(103 * tick)
			s.same("missing", len(h.Missing), MaxMembers)
			s.same("first", h.Missing[0], "m000000")
			h.Missing = append(h.Missing, "z")
			v := s.want(h, Closed, nil)
			s.same("missing in what closes", len(v.Closing.Missing), MaxMembers)
		}},
		"due again in the same instant": {nil, func(s *script) {
			s.want(part("a", 1, 7, 100), Nothing, nil)
			h, _ := s.g.Due(100 * tick)
			s.same("what is due", h, Head{Kind: Close, From: "me", Slice: 3, Start: 99 * tick, End: 100 * tick, Sources: []Source{{"a", 1, 7}}})
			s.idle(100 * tick)
		}},
		"a close ahead of what is open": {nil, func(s *script) {
			s.want(part("a", 1, 1, 100), Nothing, nil)
			s.want(Head{Kind: Close, Slice: 3, End: 105 * tick}, Refused, errAhead)
			s.closes(104, nil, nil)
		}},
		"a close of nothing": {nil, func(s *script) {
			s.closes(100, nil, nil)
			s.want(part("b", 1, 1, 100), Late, nil)
			s.same("first record", s.g.past[0].first, int64(1))
			s.same("heard", s.g.names["b"].heard, 100*tick)
		}},
		"room after windows that were passed over": {func(c *Options) { c.MaxRecords = 2 }, func(s *script) {
			s.want(part("a", 1, 1, 100), Nothing, nil)
			s.want(part("a", 1, 2, 101), Nothing, nil)
			s.closes(102, nil, nil)
			s.same("late", s.g.Stats().Late, uint64(2))
			s.same("heard", s.g.names["a"].heard, 101*tick)
			s.want(part("a", 1, 3, 103), Nothing, nil)
			s.want(part("a", 1, 4, 103), Nothing, nil)
			s.want(part("a", 1, 5, 103), Refused, ErrFuture) // it does not make room for itself
		}},
		"workers of reports in a window that closed": {nil, func(s *script) {
			for w := int64(100); w < 102; w++ { // passed over, and closed
				s.want(pseudoPart(1, w, 0), Nothing, nil)
				s.want(pseudoPart(2, w, 0), Nothing, nil)
				s.want(pseudoPart(2, w, 0), Duplicate, nil)
			}
			v := s.closes(101, nil, nil)
			s.same("runs", v.Closing.runs, []runKey{{"reports-1", 0}, {"reports-2", 0}})
			for w := int64(100); w < 102; w++ {
				s.want(pseudoPart(2, w, 0), Duplicate, nil)
				s.want(pseudoPart(2, w, 1), Late, nil)
			}
		}},
		"missing by the word of who closes, who had read all": {nil, func(s *script) {
			s.want(part("a", 1, 1, 100), Nothing, nil)
			s.same("missing", s.closes(100, []string{"a"}, nil, Source{"a", 1, 1}).Closing.Missing, []string{"a"})
		}},
		"half is missing, whoever closes": {nil, func(s *script) {
			h := part("a", 1, 1, 100)
			h.Parts = 2
			s.want(h, Nothing, nil)
			s.same("missing", s.closes(100, nil, nil).Closing.Missing, []string{"a"})
		}},
		"names of a close are sorted and told once": {nil, func(s *script) {
			names := []string{"h", "c", "a", "g", "b", "f", "d", "e"}
			sorted := slices.Sorted(slices.Values(names))
			c := s.closes(100, names, append(slices.Clone(names), "a", "x")).Closing
			s.same("missing and dead", [2][]string{c.Missing, c.Dead}, [2][]string{sorted, sorted})
			s.same("kept", [2][]string{s.g.past[0].missing, s.g.past[0].dead}, [2][]string{sorted, sorted})
			s.closes(101, nil, nil)
			s.want(part("a", 1, 1, 102), Nothing, nil)
			s.closes(102, nil, nil)
			s.same("missed and dead", [2]any{s.g.names["a"].missed, s.g.names["a"].dead}, [2]any{0, false})
			s.same("missed", s.g.names["b"].missed, 1)
		}},
		"a window of which all was refused": {func(c *Options) { c.MaxBytes = 9 }, func(s *script) {
			s.want(part("a", 1, 1, 100), Refused, ErrFull)
			s.closes(101, nil, nil)
			s.same("pending", s.g.Pending(), []int64(nil))
			s.same("left out", s.g.past[0].refused, []int64{0})
		}},
		"windows and runs that are too old": {func(c *Options) { c.Corrections = 2 * tick }, func(s *script) {
			s.want(part("a", 1, 1, 100), Nothing, nil)
			for w := int64(100); w < 107; w++ {
				s.closes(w, nil, nil)
				s.same("past windows", len(s.g.past), min(int(w-99), 2))
				c := s.g.names["a"]
				if s.same("known", c != nil, w < 106); c != nil {
					s.same("runs", len(c.runs), 1)
				}
			}
		}},
		"stats": {nil, func(s *script) {
			one, other := part("a", 1, 1, 100), part("a", 1, 1, 100)
			other.Sum++
			s.want(one, Nothing, nil)
			s.want(one, Duplicate, nil)
			s.want(other, Conflict, nil)
			s.want(Head{Kind: Chunk + 1}, Unknown, nil)
			s.closes(100, nil, nil)
			s.want(part("a", 1, 2, 100), Late, nil)
			s.want(part("", 1, 2, 101), Refused, errName)
			want := gateStats{Records: 7, Closed: 1, Late: 1, Duplicates: 1, Conflicts: 1, Unknown: 1, Refused: 1}
			s.same("stats", s.g.Stats(), want)
			v, err := s.g.Add(&one, 3, 10, 0) // read twice
			s.same("verdict", [2]any{v, err}, [2]any{Verdict{End: one.End}, error(nil)})
			want.Records++
			s.same("stats", s.g.Stats(), want)
		}},
		"after a state was read": {nil, func(s *script) {
			one, two := part("a", 1, 1, 100), part("a", 1, 2, 100)
			s.want(one, Nothing, nil)
			s.want(two, Nothing, nil)
			s.want(one, Duplicate, nil)
			g := s.g.fresh()
			s.same("error", g.ReadState(s.g.AppendState(nil)), error(nil))
			far := part("a", 1, 2, 101)
			for offset, h := range []Head{one, two, one, two} {
				counts := offset < 2
				v, err := g.Add(&h, int64(offset), 10, 0)
				if offset == 3 {
					counts = false
					s.same("behind the state", v, Verdict{Kind: Duplicate, End: h.End})
					continue
				}
				s.same("repeated", [2]any{v, err}, [2]any{Verdict{End: h.End, Repeated: counts, Taken: counts}, error(nil)})
			}
			v, _ := g.Add(&far, 0, 10, 0)
			s.same("of a window that is not open", v, Verdict{End: far.End})
			s.same("stats", g.Stats(), gateStats{Records: 1, Duplicates: 1})
		}},
		"the longest name, the most parts": {nil, func(s *script) {
			h := part(strings.Repeat("n", MaxName), 1, 1, 100)
			h.Parts = maxParts
			s.want(h, Nothing, nil)
			s.want(part(strings.Repeat("n", MaxName+1), 1, 1, 100), Refused, errName)
		}},
		"the last label": {func(c *Options) { c.Window, c.Corrections = 3, 300 }, func(s *script) {
			s.want(Head{Kind: Part, From: "a", Boot: 1, Seq: 1, Slice: 3, End: math.MaxInt64 / 2, Parts: 1}, Nothing, nil)
			s.want(Head{Kind: Part, From: "a", Boot: 1, Seq: 1, Slice: 3, End: math.MaxInt64/2 + 3, Parts: 1}, Refused, errLabel)
		}},
		"as many bytes as fit": {func(c *Options) { c.MaxBytes, c.MaxOpen = 20, 1 }, func(s *script) {
			s.want(part("a", 1, 1, 101), Nothing, nil)
			s.want(part("a", 1, 2, 101), Nothing, nil)
			s.want(part("a", 1, 3, 101), Refused, ErrFull)
			s.same("dropped", s.sized(part("a", 1, 4, 100), 21, 0, Refused).Dropped, []int64{0, 1})
		}},
		"as many runs as fit": {nil, func(s *script) {
			s.want(part("a", 1, 1, 100), Nothing, nil)
			w := s.g.open[0]
			for i := range uint64(MaxMembers - 2) {
				w.runs[runKey{"b", i}] = &delivery{}
			}
			s.want(part("c", 1, 1, 100), Nothing, nil)
			s.want(part("d", 1, 1, 100), Refused, errMembers)
			s.want(part("a", 1, 2, 100), Nothing, nil)
			maps.DeleteFunc(w.runs, func(k runKey, _ *delivery) bool { return k.from == "b" })
		}},
		"windows ahead of the log": {func(c *Options) { c.MaxAhead = 1 }, func(s *script) {
			s.sized(part("a", 1, 1, 100), 10, 100*tick, Nothing)
			s.sized(part("a", 1, 2, 101), 10, 100*tick, Nothing)
			s.sized(part("a", 1, 3, 102), 10, 100*tick, Refused)
			for w := int64(110); w < 120; w++ { // when they were appended is not known
				if w != 115 {
					s.sized(part("a", 1, uint64(w), w), 10, 0, Nothing)
				}
			}
			s.same("dropped", s.sized(part("a", 1, 200, 115), 10, 100*tick, Refused).Dropped, []int64{11, 10, 9, 8})
		}},
		"so many are left out by name": {nil, func(s *script) {
			h := part("a", 1, 1, 100)
			s.want(h, Nothing, nil)
			h.Sum++
			for range maxRefused + 1 {
				s.want(h, Conflict, nil)
			}
			s.same("left out", len(s.g.open[0].refused), maxRefused)
			s.closes(100, nil, nil)
			s.closes(101, nil, nil)
			h = part("", 1, 1, 101)
			for range maxRefused + 1 {
				s.want(h, Refused, errName)
			}
			s.same("left out late", len(s.g.past[1].refused), maxRefused)
		}},
		"so many workers of reports come late": {nil, func(s *script) {
			s.closes(100, nil, nil)
			for i := range maxPseudo {
				s.want(pseudoPart(i, 100, 0), Late, nil)
			}
			s.want(pseudoPart(maxPseudo, 100, 0), Refused, errMembers)
			s.same("left out", s.g.past[0].refused, []int64{maxPseudo + 1})
			s.want(part("a", 1, 1, 100), Late, nil)
		}},
		"late in a window without a record": {nil, func(s *script) {
			s.closes(100, nil, nil)
			s.closes(103, nil, nil)
			s.want(part("a", 1, 1, 101), Late, nil)
			s.same("pending", s.g.Pending(), []int64{101 * tick})
			s.same("past", *s.g.past[1], pastWindow{end: 101 * tick, first: 2, closed: 2, revision: 1, pending: true})
			for w := int64(1); len(s.g.past) < maxPast; w++ {
				s.g.past = slices.Insert(s.g.past, int(w-1), &pastWindow{end: w})
			}
			s.want(part("a", 1, 2, 102), Refused, ErrOld)
			s.g.past = nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, tt.change)
			tt.run(s)
			written := s.g.AppendState(nil)
			g := s.g.fresh()
			if err := g.ReadState(written); err != nil || !bytes.Equal(g.AppendState(nil), written) || g.heads != s.g.heads {
				t.Errorf("a state does not hold what is known: %v", err)
			}
		})
	}
}

// TestGateValues: values are kept within the budget, read again when a window closes, and forgotten with it.
func TestGateValues(t *testing.T) {
	value := func(n, size int) []byte { return bytes.Repeat([]byte{byte(n)}, size) }
	record := func(offset int64, window int64, size int) Record {
		v := value(int(offset), size)
		h := part("a", 1, uint64(offset+1), window)
		h.Sum = Sum(v)
		return Record{Offset: offset, Head: h, Value: v}
	}
	closes := func(offset, window int64) Record {
		return Record{Offset: offset, Head: Head{Kind: Close, Slice: 3, End: window * tick}}
	}
	for name, tt := range map[string]struct {
		budget int64
		log    []Record
		held   []int64   // bytes after each of the records
		reads  [][]int64 // offsets that are read again
	}{
		"all": {0, []Record{record(0, 100, 10), record(1, 101, 10), closes(2, 100)}, []int64{10, 20, 10}, nil},
		"as much as fits": {20, []Record{record(0, 101, 10), record(1, 101, 10), record(2, 101, 1), closes(3, 101)},
			[]int64{10, 20, 20, 0}, [][]int64{{2}}},
		"the farthest give way": {20, []Record{record(0, 102, 10), record(1, 101, 10), record(2, 100, 10), closes(3, 100), closes(4, 101), closes(5, 102)},
			[]int64{10, 20, 20, 10, 0, 0}, [][]int64{{0}}},
		"what is next is read with it": {20, []Record{record(0, 100, 21), record(1, 101, 10), record(2, 102, 10), closes(3, 100), closes(4, 101), closes(5, 102)},
			[]int64{0, 10, 20, 0, 10, 0}, [][]int64{{0}, {1, 2}}},
		"and as much of that as fits": {30, []Record{record(0, 100, 10), record(1, 100, 10), record(2, 100, 10), record(3, 101, 10), record(4, 102, 20), record(5, 103, 1), closes(6, 100), closes(7, 101)},
			[]int64{10, 20, 30, 30, 30, 30, 0, 20}, [][]int64{{3, 4}}},
		"nothing of a window without bytes": {5, []Record{record(0, 100, 0), record(1, 100, 9), closes(2, 100)}, []int64{0, 0, 0}, [][]int64{{1}}},
		"nothing for a close that was read": {5, []Record{record(0, 100, 9), closes(0, 100), closes(1, 101)}, []int64{0, 0, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var reads [][]int64
			s := newScript(t, func(c *Options) {
				c.MaxHeld = tt.budget
				c.Fetch = func(offsets []int64, receive func(*Record)) error {
					reads = append(reads, slices.Clone(offsets))
					for _, r := range tt.log {
						if r.Head.Kind == Part {
							receive(&r)
						}
					}
					return nil
				}
			})
			for i := range tt.log {
				v, err := s.g.AddRecord(&tt.log[i])
				if err != nil {
					t.Fatal(err)
				}
				s.same(fmt.Sprint("bytes after record ", i), s.g.Held(), tt.held[i])
				if v.Closing != nil {
					for k, at := range v.Closing.Offsets {
						s.same("value", len(v.Closing.Values[k]), len(tt.log[at].Value))
					}
				}
			}
			s.same("read again", reads, tt.reads)
			s.same("records that were read again", s.g.Reread(), uint64(len(slices.Concat(reads...))))
			s.same("values", len(s.g.values.held), len(s.g.offsetsHeld()))
		})
	}
	t.Run("dropped", func(t *testing.T) {
		s := newScript(t, func(c *Options) { c.MaxOpen = 1 })
		far, near := record(0, 101, 10), record(1, 100, 5)
		s.g.AddRecord(&far)
		s.g.AddRecord(&near)
		s.same("bytes", s.g.Held(), int64(5))
	})
	t.Run("another sum", func(t *testing.T) {
		for _, reports := range []bool{false, true} {
			s := newScript(t, func(c *Options) { c.Reports = reports })
			kind := map[bool]Kind{false: Part, true: Reports}[reports]
			good, bad := record(0, 100, 10), record(1, 100, 10)
			good.Head.Kind, bad.Head.Kind = kind, kind
			bad.Value = value(9, 10)
			s.g.AddRecord(&good)
			for range 2 { // the second time it is passed over
				v, err := s.g.AddRecord(&bad)
				s.same("verdict", v, Verdict{Kind: Refused, End: 100 * tick})
				s.same("error", err != nil, true)
			}
			s.same("stats", s.g.Stats(), gateStats{Records: 2, Refused: 1})
			s.same("next", s.g.Next(), int64(2))
			s.same("left out", s.g.open[0].refused, []int64{1})
			s.same("bytes", s.g.Held(), int64(10))
		}
	})
}

// offsetsHeld are the records of open windows whose values are in memory.
func (g *Gate) offsetsHeld() (held []int64) {
	for _, w := range g.open {
		for _, at := range w.offsets() {
			if _, ok := g.values.held[at]; ok {
				held = append(held, at)
			}
		}
	}
	return held
}

// TestGateNames: the names of partitions of reports are those of [PseudoName], and no others.
func TestGateNames(t *testing.T) {
	for name, want := range map[string]bool{
		PseudoName(0): true, PseudoName(7): true, PseudoName(MaxSlices - 1): true, PseudoName(MaxSlices): false, PseudoName(-1): false,
		pseudoPrefix: false, pseudoPrefix + "07": false, pseudoPrefix + "+7": false, pseudoPrefix + "7x": false, "7": false, "edge-7": false,
	} {
		if isPseudo(name) != want {
			t.Errorf("%q is the name of a partition: %v", name, !want)
		}
	}
}

// TestGateStatesWhole has a gate with everything that a window can be, and reads its state: all of it is there again.
func TestGateStatesWhole(t *testing.T) {
	whole := func() *Gate {
		g := newScript(t, nil).g
		g.closed, g.next = 100*tick, 50
		g.names["a"] = &collector{name: "a", heard: 100 * tick, missedAt: 99 * tick, missed: 2, dead: true}
		w := &openWindow{end: 101 * tick, refused: []int64{7, 9}, runs: map[runKey]*delivery{}}
		for _, e := range []entry{
			{offset: 10, runKey: runKey{"a", 1}, seq: 3, sum: 4, kind: Part, part: 1, parts: 2, reports: 5, size: 6, raw: []uint64{0, 8}},
			{offset: 11, runKey: runKey{"a", 1}, seq: 5, sum: 4, kind: Mark, reports: 9, size: 7},
			{offset: 12, runKey: runKey{PseudoName(2), 0}, seq: 1, sum: 2, kind: Reports, reports: 3, size: 8},
			{offset: 49, runKey: runKey{PseudoName(2), 0}, seq: 2, sum: 3, kind: Part, parts: 1, reports: 1, size: 9, statedRun: runKey{"b", 4}},
		} {
			w.add(e)
		}
		g.open, g.heads = []*openWindow{w}, 4
		g.past = []*pastWindow{
			{end: 99 * tick, first: 1, closed: 2, revision: 3, pending: true, refused: []int64{4}, pseudo: []pseudo{{"c", 5, 6}}, missing: []string{"d", "e"}, dead: []string{"e"}},
			{end: 100 * tick, first: 4, closed: 5},
		}
		return g
	}
	from, to := whole(), newScript(t, nil).g
	if err := to.ReadState(from.AppendState(nil)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(to.open, from.open) || !reflect.DeepEqual(to.past, from.past) || !reflect.DeepEqual(to.names, from.names) {
		t.Errorf("%+v\n%+v, want\n%+v\n%+v", *to.open[0], *to.past[0], *from.open[0], *from.past[0])
	}
	if to.closed != from.closed || to.next != from.next || to.resume != from.next || to.heads != from.heads {
		t.Errorf("closed %d, at %d from %d, %d heads", to.closed, to.next, to.resume, to.heads)
	}
	for name, spoil := range map[string]func(*Gate){
		"a record that is not read yet":        func(g *Gate) { g.open[0].entries[3].offset = 50 },
		"a part beyond all":                    func(g *Gate) { g.open[0].entries[0].part = 2 },
		"a record of no kind":                  func(g *Gate) { g.open[0].entries[2].kind = Close },
		"a statement for a run without number": func(g *Gate) { g.open[0].entries[3].statedRun.boot = 0 },
		"a statement for a run without name":   func(g *Gate) { g.open[0].entries[3].statedRun.from = "" },
		"a past window that is not closed":     func(g *Gate) { g.past[1].end = 101 * tick },
		"past windows out of order":            func(g *Gate) { g.past[1].end = 98 * tick },
		"open windows out of order":            func(g *Gate) { g.open = append(g.open, g.open[0]) },
	} {
		g := whole()
		spoil(g)
		if err := newScript(t, nil).g.ReadState(g.AppendState(nil)); err == nil {
			t.Errorf("a state with %s is read", name)
		}
	}
}
