package fleet

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/inference/window"
)

// series makes the log of merged slices of a simulated fleet. Each slice is in its order, mixed with the others.
// Windows that were made again come behind those that closed.
func series(t testing.TB, w *world, rng *rand.Rand) (log []Record) {
	codec := NewCodec(0, wide)
	most := 1 << 20
	if rng.IntN(3) == 0 {
		most = 400
	}
	queues := make([][]Out, len(w.logs))
	for p, partition := range w.logs {
		m := w.merger(p)
		emit := func(one *Merged) {
			var err error
			if queues[p], err = EncodeSlice(queues[p], codec, "owner", p, one, most); err != nil {
				t.Fatal(err)
			}
		}
		rebuild := func() {
			for _, end := range m.Pending() {
				r := m.Rebuild(end)
				for i := r.From(); i < r.To(); i++ {
					if err := r.Add(&partition[i]); err != nil {
						t.Fatal(err)
					}
				}
				one, err := r.Merged()
				if err != nil {
					t.Fatal(err)
				}
				emit(one)
			}
		}
		for i := range partition {
			e, err := m.Add(&partition[i])
			if err != nil {
				t.Fatal(err)
			}
			if e.Closed != nil {
				emit(e.Closed)
			}
			if rng.IntN(5) == 0 {
				rebuild()
			}
		}
		rebuild()
	}
	for {
		var left []int
		for p := range queues {
			if len(queues[p]) > 0 {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			return log
		}
		p := left[rng.IntN(len(left))]
		for n := 1 + rng.IntN(5); n > 0 && len(queues[p]) > 0; n-- {
			o := queues[p][0]
			queues[p] = queues[p][1:]
			for range 1 + rng.IntN(6)/5 { // two consumers that both believe to have the slice write the same
				log = append(log, Record{Offset: int64(len(log)), Head: o.Head, Value: o.Value})
			}
		}
		if rng.IntN(5) == 0 {
			log = append(log, Record{Offset: int64(len(log)), Head: Head{Kind: Rows}, Value: nil}, Record{Offset: int64(len(log) + 1), Head: Head{Kind: Whole}, Value: nil})
		}
	}
}

type wholeReported struct {
	End, First    int64
	Revision      uint64
	Partial       string
	Sources       []Source
	Missing, Dead []string
	Absent        []int
	Unheard       []inference.ExporterKey
}

func reportWhole(t testing.TB, a *Assembled) wholeReported {
	if len(a.Bad) > 0 {
		t.Fatalf("bad records: %v", a.Bad)
	}
	return wholeReported{a.End, a.First, a.Revision, string(encoded(t, a.Partial)), a.Sources, a.Missing, a.Dead, a.Absent, a.Unheard}
}

func (w *world) assembler() *Assembler {
	a, err := NewAssembler(Options{Slices: len(w.logs), Window: w.window, Limits: wide})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// TestAssembledFleet: windows are whole in the order of their labels, with all that their slices published. Once all is
// published they equal those of one process. A reader that goes on from a state, written behind whichever record, gives
// the same.
func TestAssembledFleet(t *testing.T) {
	wholes, remade := 0, 0
	for seed := range uint64(150) {
		w := simulate(t, seed+5000, 5, false)
		rng := rand.New(rand.NewPCG(seed, 9))
		log := series(t, w, rng)
		a := w.assembler()
		final := map[int64]*window.Partial{}
		var states [][]byte
		var floors []int64
		type at struct {
			kind  EventKind
			whole []wholeReported
		}
		var want []at
		last := int64(0)
		for i := range log {
			states, floors = append(states, a.AppendState(nil)), append(floors, a.Floor())
			e, err := a.Add(&log[i])
			if err != nil {
				t.Fatal(err)
			}
			one := at{kind: e.Kind}
			for _, x := range e.Whole {
				if x.End <= last {
					t.Fatalf("seed %d: window to %d behind that to %d", seed, x.End, last)
				}
				last = x.End
				wholes++
				final[x.End] = x.Partial
				one.whole = append(one.whole, reportWhole(t, x))
			}
			want = append(want, one)
		}
		if a.Open() > 0 { // slices that passed over their last windows are waited for
			for _, o := range a.open {
				if a.allSent(o.end) {
					t.Fatalf("seed %d: the window to %d is whole and was not reported", seed, o.end)
				}
			}
		}
		for _, end := range a.Pending() {
			r := a.Rebuild(end)
			for i := r.From(); i < r.To(); i++ {
				r.Add(&log[i])
			}
			x, err := r.Whole()
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			remade++
			if x.Revision == 0 {
				t.Fatalf("seed %d: the window to %d was made again and has no revision", seed, end)
			}
			final[end] = x.Partial
		}
		if left := a.Pending(); len(left) > 0 {
			t.Fatalf("seed %d: %v pending", seed, left)
		}
		for end, p := range w.truth {
			if end > a.Last() {
				continue
			}
			if got := final[end]; got == nil || !bytes.Equal(encoded(t, got), encoded(t, p)) {
				t.Fatalf("seed %d: the window to %d is not what one process sees", seed, end)
			}
		}
		for n := range 12 {
			cut := rng.IntN(len(log))
			if n == 0 {
				cut = len(log) - 1
			}
			r := w.assembler()
			if err := r.ReadState(states[cut]); err != nil {
				t.Fatalf("seed %d, cut %d: %v", seed, cut, err)
			}
			if !bytes.Equal(r.AppendState(nil), states[cut]) || r.Floor() != floors[cut] {
				t.Fatalf("seed %d, cut %d: the state is another one after it was read", seed, cut)
			}
			for i := floors[cut]; i < int64(len(log)); i++ {
				e, err := r.Add(&log[i])
				if err != nil {
					t.Fatal(err)
				}
				got := at{kind: e.Kind}
				for _, x := range e.Whole {
					got.whole = append(got.whole, reportWhole(t, x))
				}
				if i < int64(cut) {
					if !reflect.DeepEqual(got, at{}) {
						t.Fatalf("seed %d, cut %d: record %d is reported again", seed, cut, i)
					}
				} else if !reflect.DeepEqual(got, want[i]) {
					t.Fatalf("seed %d, cut %d, record %d:\n%+v\nwant\n%+v", seed, cut, i, got, want[i])
				}
			}
		}
	}
	if wholes < 500 || remade < 50 {
		t.Errorf("only %d windows were whole and %d made again", wholes, remade)
	}
}

// slice makes the record of a slice of a window, in which exporters were heard by collectors.
func sliceRecord(t testing.TB, offset int64, slice int, label int64, heard map[uint32]string, missing ...string) Record {
	t.Helper()
	m := &Merged{Start: (label - 1) * tick, End: label * tick, Partial: &window.Partial{Reports: 1}, Missing: missing}
	names := map[string]bool{}
	for _, from := range heard {
		names[from] = true
	}
	for _, from := range sortedNames(names) {
		m.Sources = append(m.Sources, Source{from, 1, 1})
	}
	for node := range heard {
		m.Partial.AddExporters([]inference.ExporterStats{{ExporterKey: inference.ExporterKey{Node: node}, Reports: 1}})
	}
	for _, k := range exporterKeys(m.Partial) {
		m.Owners = append(m.Owners, uint32(slices.IndexFunc(m.Sources, func(s Source) bool { return s.From == heard[k.Node] })))
	}
	out, err := EncodeSlice(nil, NewCodec(0, wide), "me", slice, m, 1<<20)
	if err != nil || len(out) != 1 {
		t.Fatal(len(out), err)
	}
	return Record{Offset: offset, Head: out[0].Head, Value: out[0].Value}
}

func newAssembler(t testing.TB, change func(*Options)) *Assembler {
	cfg := Options{Slices: 2, Window: tick, Limits: wide}
	if change != nil {
		change(&cfg)
	}
	a, err := NewAssembler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestUnheard: exporters of a collector that is missing are not silent, as long as no other collector hears them.
func TestUnheard(t *testing.T) {
	a := newAssembler(t, func(c *Options) { c.Slices = 1 })
	offset := int64(0)
	unheard := func(window int64, heard map[uint32]string, missing ...string) (nodes []uint32) {
		t.Helper()
		r := sliceRecord(t, offset, 0, window, heard, missing...)
		offset++
		e, err := a.Add(&r)
		if err != nil || len(e.Whole) != 1 {
			t.Fatal(e, err)
		}
		for _, k := range e.Whole[0].Unheard {
			nodes = append(nodes, k.Node)
		}
		return nodes
	}
	want := func(got []uint32, want ...uint32) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("nodes %v are unheard, want %v", got, want)
		}
	}
	want(unheard(100, map[uint32]string{1: "a", 2: "a", 3: "b"}))
	want(unheard(101, map[uint32]string{3: "b"}, "a"), 1, 2)
	state := a.AppendState(nil)
	a = newAssembler(t, func(c *Options) { c.Slices = 1 })
	if err := a.ReadState(state); err != nil {
		t.Fatal(err)
	}
	want(unheard(102, map[uint32]string{2: "b"}, "a"), 1) // node 2 was moved
	want(unheard(103, map[uint32]string{}, "a", "b"), 1, 2, 3)
	want(unheard(104, map[uint32]string{1: "a"}, "b"), 2, 3)
	want(unheard(105, nil))

	// There is room for so many: those that were heard least lately are forgotten.
	a = newAssembler(t, func(c *Options) { c.Slices, c.MaxExporters = 1, 3 })
	offset = 0
	want(unheard(100, map[uint32]string{1: "a"}))
	want(unheard(101, map[uint32]string{2: "a", 3: "a", 4: "a"}))
	want(unheard(102, map[uint32]string{}, "a"), 2, 3, 4)
}

// TestAssemblerRefuses: what cannot be is refused, with the reason; and slices that stay away do not hold up the others
// for ever.
func TestAssemblerRefuses(t *testing.T) {
	a := newAssembler(t, func(c *Options) { c.MaxOpen, c.Corrections, c.MaxBytes = 3, 20*tick, 500 })
	offset := int64(0)
	add := func(r Record) (Event, error) {
		r.Offset = offset
		offset++
		return a.Add(&r)
	}
	refused := func(want error, change func(r *Record)) {
		t.Helper()
		r := sliceRecord(t, 0, 0, 100, nil)
		change(&r)
		e, err := add(r)
		var at *recordError
		if e.Kind != Refused || !errors.Is(err, want) || !errors.As(err, &at) || at.Offset != offset-1 {
			t.Errorf("%+v: %v, %v; want %v", r.Head, e.Kind, err, want)
		}
	}
	refused(errLabel, func(r *Record) { r.Head.End++ })
	refused(errLabel, func(r *Record) { r.Head.End = -tick })
	refused(errSlice, func(r *Record) { r.Head.Slice = 2 })
	refused(errPart, func(r *Record) { r.Head.Parts = 0 })
	refused(errPart, func(r *Record) { r.Head.Part = 1 })
	refused(ErrSum, func(r *Record) { r.Head.Sum++ })
	refused(ErrFull, func(r *Record) { r.Value = make([]byte, 501); r.Head.Sum = Sum(r.Value) })
	if e, err := add(Record{Head: Head{Kind: Chunk + 1}}); e.Kind != Unknown || err != nil {
		t.Errorf("a kind of a later version: %v, %v", e.Kind, err)
	}
	a = newAssembler(t, func(c *Options) { c.MaxOpen, c.Corrections = 3, 20*tick })
	offset = 0
	for w := int64(100); w < 103; w++ {
		if e, err := add(sliceRecord(t, 0, 0, w, nil)); err != nil || len(e.Whole) > 0 {
			t.Fatalf("window %d: %+v, %v", w, e, err)
		}
	}
	e, err := add(sliceRecord(t, 0, 0, 103, nil))
	if err != nil || len(e.Whole) != 1 || e.Whole[0].End != 100*tick || !slices.Equal(e.Whole[0].Absent, []int{1}) || a.Stats().Forced != 1 {
		t.Fatalf("%+v, %v, %+v", e, err, a.Stats())
	}
	// The slice is late then, and all windows but the last are whole when it publishes a later one.
	if e, err := add(sliceRecord(t, 0, 1, 100, nil)); err != nil || e.Kind != Late || !slices.Equal(a.Pending(), []int64{100 * tick}) {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := add(sliceRecord(t, 0, 1, 102, nil)); err != nil || len(e.Whole) != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := add(sliceRecord(t, 0, 1, 82, nil)); !errors.Is(err, ErrOld) || e.Kind != Refused {
		t.Errorf("%+v, %v", e, err)
	}
	for _, cfg := range []Options{{}, {Slices: 1}, {Window: 1e9}, {Slices: MaxSlices + 1, Window: 1e9}, {Slices: 1, Window: 1}} {
		if _, err := NewAssembler(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// TestStatesRefused: a state that is cut, changed, of another version or of another configuration changes nothing.
func TestStatesRefused(t *testing.T) {
	w := simulate(t, 3, 6, false)
	m := w.owners[0][0]
	log := series(t, w, rand.New(rand.NewPCG(1, 1)))
	a := w.assembler()
	for i := range log[:len(log)/2] {
		if _, err := a.Add(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	type keeper interface {
		AppendState([]byte) []byte
		ReadState([]byte) error
	}
	other := w.cfg(0)
	other.Window *= 2
	wrong, err := NewMerger(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ from, to, wrong keeper }{
		"gate":      {m.Gate, w.merger(0).Gate, wrong.Gate},
		"merger":    {m, w.merger(0), wrong},
		"assembler": {a, w.assembler(), newAssembler(t, nil)},
	} {
		good := tt.from.AppendState(nil)
		fresh := tt.to.AppendState(nil)
		refuse := func(what string, b []byte, to keeper, want error) {
			before := to.AppendState(nil)
			err := to.ReadState(b)
			var at *state.Error
			if err == nil || want != nil && !errors.Is(err, want) || !errors.As(err, &at) || at.Offset > len(b) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
			if !bytes.Equal(to.AppendState(nil), before) {
				t.Fatalf("%s: %s: it changed", name, what)
			}
		}
		for n := range good {
			refuse("cut", good[:n], tt.to, nil)
		}
		if name != "merger" { // behind which comes what is remembered across collectors
			refuse("longer", append(bytes.Clone(good), 0), tt.to, state.ErrRange)
		}
		later := bytes.Clone(good)
		later[0] = 99
		refuse("a later version", later, tt.to, state.ErrVersion)
		refuse("other windows", good, tt.wrong, errOther)
		if cmp.Compare(len(good), len(fresh)) <= 0 {
			t.Errorf("%s: the state is empty", name)
		}
		if err := tt.to.ReadState(good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
