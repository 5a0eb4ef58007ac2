package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/inference/window"
)

// one is a slicer of a fleet with one slice.
var one = window.NewSlicer(1, 1)

func publisher(from string, boot uint64) *Publisher {
	return NewPublisher(PublisherConfig{From: from, Boot: boot, Slicer: one, Window: tick})
}

func newMerger(t testing.TB, change func(*Options)) *Merger {
	cfg := Options{Name: "me", Window: tick, Limits: wide}
	if change != nil {
		change(&cfg)
	}
	m, err := NewMerger(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func windowRecord(t testing.TB, p *Publisher, part *window.Partial, end int64) Record {
	t.Helper()
	out, err := p.Window(nil, part, end, nil, 0)
	if err != nil || len(out) != 1 {
		t.Fatal(len(out), err)
	}
	return Record{Offset: 0, Head: out[0].Head, Value: out[0].Value}
}

// TestMergerRefusesValues: a value that was damaged, is no partial, or is of a later version takes nothing else with it.
func TestMergerRefusesValues(t *testing.T) {
	p := &window.Partial{}
	p.Reports = 5
	codec := NewCodec(0, wide)
	reseal := func(r Record, value []byte) Record {
		r.Value, r.Head.Sum = value, Sum(value)
		return r
	}
	plain := encoded(t, p)
	later := bytes.Clone(plain)
	later[3] = 200
	for name, tt := range map[string]struct {
		change func(r Record) Record
		want   error
		bad    int
	}{
		"one that is right":   {func(r Record) Record { return r }, nil, 0},
		"a flipped bit":       {func(r Record) Record { r.Value = bytes.Clone(r.Value); r.Value[5] ^= 1; return r }, ErrSum, 0},
		"no frame":            {func(r Record) Record { return reseal(r, []byte("poison")) }, errZstd, 1},
		"nothing":             {func(r Record) Record { return reseal(r, nil) }, errZstd, 1},
		"no partial":          {func(r Record) Record { return reseal(r, codec.Compress(nil, []byte("poison"))) }, window.ErrVersion, 1},
		"a later version":     {func(r Record) Record { return reseal(r, codec.Compress(nil, later)) }, window.ErrVersion, 1},
		"a bomb":              {func(r Record) Record { return reseal(r, codec.Compress(nil, make([]byte, 2<<20))) }, errTooLong, 1},
		"a frame that is cut": {func(r Record) Record { return reseal(r, r.Value[:len(r.Value)-3]) }, errZstd, 1},
	} {
		m := newMerger(t, func(c *Options) { c.MaxValue = 1 << 20 })
		good := windowRecord(t, publisher("a", 1), p, 100*tick)
		if _, err := m.Add(&good); err != nil {
			t.Fatal(err)
		}
		other := tt.change(windowRecord(t, publisher("b", 1), p, 100*tick))
		other.Offset = 1
		_, err := m.Add(&other)
		want, missing := 2, 0
		if tt.want != nil {
			want = 1
			if tt.bad == 0 && !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", name, err, tt.want)
			}
			missing = tt.bad
		}
		e, err := m.Add(&Record{Offset: 2, Head: Head{Kind: Close, End: 100 * tick}, Value: nil})
		if err != nil || e.Closed == nil {
			t.Fatalf("%s: %+v, %v", name, e, err)
		}
		if e.Closed.Partial.Reports != uint64(want)*5 || len(e.Closed.Bad) != tt.bad || len(e.Closed.Missing) != missing {
			t.Errorf("%s: %d reports, %v bad, %v missing", name, e.Closed.Partial.Reports, e.Closed.Bad, e.Closed.Missing)
		}
		if tt.bad > 0 && (!errors.Is(e.Closed.Bad[0], tt.want) || e.Closed.Bad[0].Offset != 1) {
			t.Errorf("%s: %v, want %v at offset 1", name, e.Closed.Bad[0], tt.want)
		}
	}
}

// TestBrokenHalfWay: of values that turn out to be broken behind many hops and flows nothing is in the window, wherever
// they are among the others.
func TestBrokenHalfWay(t *testing.T) {
	codec := NewCodec(0, wide)
	for broken := range 1 << 4 {
		m := newMerger(t, nil)
		var want window.Partial
		bad := []int64{}
		for i := range int64(4) {
			p := busy(6400, uint64(i))
			r := windowRecord(t, publisher(string(rune('a'+i)), 1), p, 100*tick)
			r.Offset = i
			if broken>>i&1 != 0 {
				b := encoded(t, p)
				r.Value = codec.Compress(nil, b[:len(b)-1])
				r.Head.Sum = Sum(r.Value)
				bad = append(bad, i)
			} else {
				want.Merge(p)
			}
			if _, err := m.Add(&r); err != nil {
				t.Fatal(err)
			}
		}
		e, err := m.Add(&Record{Offset: 4, Head: Head{Kind: Close, End: 100 * tick}})
		if err != nil || e.Closed == nil {
			t.Fatalf("%04b: %+v, %v", broken, e, err)
		}
		got := []int64{}
		for _, b := range e.Closed.Bad {
			if got = append(got, b.Offset); !errors.Is(b, window.ErrTruncated) {
				t.Errorf("%04b: %v, want one that is cut", broken, b)
			}
		}
		if !slices.Equal(got, bad) {
			t.Errorf("%04b: %v are bad, want %v", broken, got, bad)
		}
		if !bytes.Equal(encoded(t, e.Closed.Partial), encoded(t, &want)) {
			t.Errorf("%04b: the window is not the sum of the others", broken)
		}
	}
}

// TestFlowBound: the bounds of unlisted flows add up over collectors, but not over the runs and parts of one. The sum
// of forged counts stops at the greatest value.
func TestFlowBound(t *testing.T) {
	m := newMerger(t, nil)
	at := int64(0)
	add := func(from string, boot, bound uint64) {
		r := windowRecord(t, publisher(from, boot), &window.Partial{FlowBound: bound}, 100*tick)
		r.Offset = at
		at++
		if _, err := m.Add(&r); err != nil {
			t.Fatal(err)
		}
	}
	closed := func(end int64) *Merged {
		e, err := m.Add(&Record{Offset: at, Head: Head{Kind: Close, End: end}, Value: nil})
		at++
		if err != nil || e.Closed == nil {
			t.Fatal(e, err)
		}
		return e.Closed
	}
	add("a", 1, 5)
	add("a", 2, 7)
	add("b", 1, 3)
	add("c", 1, 0)
	if got := closed(100 * tick).Partial.FlowBound; got != 10 {
		t.Errorf("a bound of %d, want 7 + 3", got)
	}
	r := windowRecord(t, publisher("d", 1), &window.Partial{FlowBound: math.MaxUint64}, 101*tick)
	q := windowRecord(t, publisher("e", 1), &window.Partial{FlowBound: 2}, 101*tick)
	r.Offset, q.Offset = at, at+1
	at += 2
	m.Add(&r)
	m.Add(&q)
	if got := closed(101 * tick).Partial.FlowBound; got != math.MaxUint64 {
		t.Errorf("a bound of %d, want the largest", got)
	}
}

// TestOwners: an exporter belongs to the collector that heard it last, wherever it is cut.
func TestOwners(t *testing.T) {
	exporter := func(n uint32, last int64) inference.ExporterStats {
		return inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: n}, Reports: 1, Last: last}
	}
	m := newMerger(t, nil)
	for i, from := range []string{"b", "a"} {
		p := &window.Partial{}
		p.AddExporters([]inference.ExporterStats{exporter(uint32(i+1), 5), exporter(7, int64(10-i))})
		r := windowRecord(t, publisher(from, 1), p, 100*tick)
		r.Offset = int64(i)
		if _, err := m.Add(&r); err != nil {
			t.Fatal(err)
		}
	}
	e, err := m.Add(&Record{Offset: 2, Head: Head{Kind: Close, End: 100 * tick}, Value: nil})
	if err != nil {
		t.Fatal(err)
	}
	// In the order of their keys: node 1 of b, node 2 of a, node 7 of b.
	if !slices.Equal(e.Closed.Owners, []uint32{1, 0, 1}) || !reflect.DeepEqual(e.Closed.Sources, []Source{{"a", 1, 1}, {"b", 1, 1}}) {
		t.Errorf("owners %v of %v", e.Closed.Owners, e.Closed.Sources)
	}
	codec := NewCodec(0, wide)
	whole, err := EncodeSlice(nil, codec, "me", 0, e.Closed, 1<<20)
	if err != nil || len(whole) != 1 {
		t.Fatalf("%d records, %v", len(whole), err)
	}
	out, err := EncodeSlice(nil, codec, "me", 0, e.Closed, len(whole[0].Value)-1)
	if err != nil || len(out) < 2 {
		t.Fatalf("%d records, %v", len(out), err)
	}
	a, err := NewAssembler(Options{Slices: 1, Window: tick, Limits: wide})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if _, err := a.Add(&Record{Offset: int64(i), Head: o.Head, Value: o.Value}); err != nil {
			t.Fatal(err)
		}
	}
	for node, from := range map[uint32]string{1: "b", 2: "a", 7: "b"} {
		if got := a.heard[inference.ExporterKey{Node: node}].from; got != from {
			t.Errorf("node %d belongs to %q, want %q", node, got, from)
		}
	}
}

// crosses notes what it is given.
type crosses struct{ reported []string }

func (c *crosses) AddStatement(from string, q *window.Partial) { c.Add(from, q) }
func (c *crosses) Begin(end int64)                             { c.reported = append(c.reported, fmt.Sprint("begin ", end/tick)) }
func (c *crosses) Add(from string, q *window.Partial) {
	c.reported = append(c.reported, fmt.Sprint(from, " ", q.Reports))
}
func (c *crosses) Finish(p *window.Partial) {
	c.reported = append(c.reported, fmt.Sprint("finish ", p.Reports))
	p.Reports++
}
func (c *crosses) Taken() []int64              { return nil }
func (c *crosses) AppendState(b []byte) []byte { return append(b, "state"...) }
func (c *crosses) ReadState(b []byte) error {
	if c.reported = append(c.reported, string(b)); string(b) != "state" {
		return state.ErrRange
	}
	return nil
}

// TestCrosser: what corrects windows gets them in order, each run of a collector by its name, and has a part in the
// state.
func TestCrosser(t *testing.T) {
	var c, second crosses
	m := newMerger(t, nil)
	m.cross, m.recross = &c, func() crosser { return &second }
	var log []Record
	add := func(r Record) Event {
		r.Offset = int64(len(log))
		log = append(log, r)
		e, err := m.Add(&r)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	a, b := publisher("a", 1), publisher("b", 1)
	add(windowRecord(t, b, &window.Partial{Reports: 1}, 101*tick))
	add(windowRecord(t, b, &window.Partial{Reports: 2}, 100*tick))
	add(windowRecord(t, a, &window.Partial{Reports: 4}, 100*tick))
	if e := add(Record{Head: Head{Kind: Close, End: 100 * tick}}); e.Closed.Partial.Reports != 7 {
		t.Errorf("%d reports", e.Closed.Partial.Reports)
	}
	add(Record{Head: Head{Kind: Close, End: 101 * tick}})
	want := []string{"begin 100", "a/1 4", "b/1 2", "finish 6", "begin 101", "b/1 1", "finish 1"}
	if !slices.Equal(c.reported, want) {
		t.Errorf("reported %q, want %q", c.reported, want)
	}
	add(windowRecord(t, a, &window.Partial{Reports: 8}, 100*tick))
	r := m.Rebuild(100 * tick)
	for i := range log {
		if err := r.Add(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.Merged()
	if err != nil || got.Partial.Reports != 15 || got.Revision != 1 || !slices.Equal(second.reported, []string{"begin 100", "a/1 4", "a/1 8", "b/1 2", "finish 14"}) {
		t.Errorf("made again: %+v, %v, reported %q", got, err, second.reported)
	}
	saved := m.AppendState(nil)
	c.reported = nil
	if err := m.ReadState(saved); err != nil || !slices.Equal(c.reported, []string{"state"}) {
		t.Errorf("%v, reported %q", err, c.reported)
	}
	if err := m.ReadState(append(saved, 'x')); !errors.Is(err, state.ErrRange) {
		t.Errorf("another state: %v", err)
	}
	if m.Rebuild(99*tick) != nil {
		t.Error("a window that did not close is made again")
	}
	// Records that the log does not have any more cannot be made again.
	r = m.Rebuild(100 * tick)
	for i := range log[2:] {
		if err := r.Add(&log[2+i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Merged(); !errors.Is(err, ErrGone) {
		t.Errorf("made again of half a log: %v", err)
	}
}

// TestPublisher: values stay below the size that a record may have, and merge to the original. Numbers ascend without a
// gap in each partition.
func TestPublisher(t *testing.T) {
	parts := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		slicer := window.NewSlicer(seed, 1+rng.IntN(4))
		pub := NewPublisher(PublisherConfig{From: "c", Boot: 9, Slicer: slicer, Window: tick, MaxSize: 250 + rng.IntN(500)})
		codec := NewCodec(0, wide)
		next := make([]uint64, slicer.Slices())
		for w := int64(100); w < 103; w++ {
			p := &window.Partial{FlowBound: 3, OtherPaths: 2}
			see(rng, (w-1)*tick, w*tick, p, []*window.Partial{{}})
			before := encoded(t, p)
			raw := []uint64{1, 2}
			out, err := pub.Window(nil, p, w*tick, raw, 0)
			if err != nil {
				t.Fatal(err)
			}
			var all, one window.Partial
			for i, o := range out {
				h := &o.Head
				last := i == len(out)-1 || out[i+1].Partition != o.Partition
				next[o.Partition]++
				if int(h.Slice) != o.Partition || h.Seq != next[o.Partition] || last != (h.Part == h.Parts-1) || last != (h.Raw != nil) ||
					h.Boot != 9 || h.From != "c" || h.End != w*tick || h.Start != (w-1)*tick || h.Sum != Sum(o.Value) || h.Kind != Part {
					t.Fatalf("seed %d: head %+v", seed, h)
				}
				parts = max(parts, int(h.Parts))
				if len(o.Value) > pub.cfg.MaxSize {
					t.Fatalf("seed %d: a value of %d bytes", seed, len(o.Value))
				}
				if err := codec.Decode(&one, o.Value); err != nil {
					t.Fatal(err)
				}
				all.Merge(&one)
			}
			if !bytes.Equal(encoded(t, &all), before) {
				t.Fatalf("seed %d: the parts do not merge to the partial", seed)
			}
		}
		m, r := pub.Mark(0, 100*tick, 7), pub.Reports(0, 100*tick, 3, []byte("x"))
		if m.Head.Seq != 1 || r.Head.Seq != 2 || m.Head.Reports != 7 || r.Head.Reports != 3 || m.Head.Kind != Mark || r.Head.Kind != Reports {
			t.Errorf("%+v, %+v", m.Head, r.Head)
		}
		pub.Redraw(11)
		if m := pub.Mark(0, 100*tick, 7); m.Head.Seq != 1 || m.Head.Boot != 11 {
			t.Errorf("after another number was drawn: %+v", m.Head)
		}
	}
	if parts < 2 {
		t.Error("nothing was cut")
	}
	tiny := NewPublisher(PublisherConfig{From: "c", Boot: 9, Slicer: one, Window: tick, MaxSize: 10})
	if _, err := tiny.Window(nil, busy(1000, 1), 100*tick, nil, 0); err == nil {
		t.Error("a value is cut to ten bytes")
	}
	for at, want := range map[int64]int64{0: tick, 1: tick, tick - 1: tick, tick: 2 * tick, -1: 0, -tick: 0, -tick - 1: -tick} {
		if got := Label(at, tick); got != want {
			t.Errorf("the label of %d is %d, want %d", at, got, want)
		}
	}
}

// TestClocksApart: a collector whose clock is an hour ahead, and one whose clock is an hour behind, take nothing from the
// windows of the others.
func TestClocksApart(t *testing.T) {
	m := newMerger(t, func(c *Options) { c.MaxOpen = 8 })
	const hour = 3600 * second / tick
	var log []Record
	read := 0
	closed := map[int64]*Merged{}
	skews := map[string]int64{"a": 0, "b": 0, "fast": hour, "slow": -hour}
	pubs := map[string]*Publisher{}
	for name := range skews {
		pubs[name] = publisher(name, 1)
	}
	refused := 0
	for w := int64(1000); w < 1100; w++ {
		for _, name := range []string{"a", "b", "fast", "slow"} {
			r := windowRecord(t, pubs[name], &window.Partial{Reports: 1}, (w+skews[name])*tick)
			r.Offset = int64(len(log))
			log = append(log, r)
		}
		for now := w * tick; now < (w+1)*tick; now += tick / 4 {
			for ; read < len(log); read++ {
				e, err := m.Add(&log[read])
				if errors.Is(err, ErrFuture) && e.From == "fast" {
					refused++
				} else if err != nil {
					t.Fatal(err)
				}
				if e.Closed != nil {
					closed[e.End/tick] = e.Closed
				}
			}
			if h, ok := m.Due(now); ok {
				log = append(log, Record{Offset: int64(len(log)), Head: h, Value: nil})
			}
		}
	}
	for w := int64(1000); w < 1099; w++ {
		c := closed[w]
		if c == nil || c.Partial.Reports < 2 || slices.Contains(c.Missing, "a") || slices.Contains(c.Missing, "b") {
			t.Fatalf("window %d: %+v", w, c)
		}
	}
	if len(closed) < 99 || len(closed) > 110 || refused == 0 || m.Open() > 8 {
		t.Errorf("%d windows closed, %d records refused, %d windows open", len(closed), refused, m.Open())
	}
	if n := len(m.Pending()); n < 90 {
		t.Errorf("%d windows of the slow one are to be made again", n)
	}
}
