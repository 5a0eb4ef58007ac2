package fleet

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// script feeds a gate what is written, line by line.
type script struct {
	t  *testing.T
	g  *Gate
	at int64
}

const tick = 10 * second

func newScript(t *testing.T, change func(*Options)) *script {
	cfg := Options{Name: "me", Slice: 3, Window: tick}
	if change != nil {
		change(&cfg)
	}
	g, err := NewGate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &script{t: t, g: g}
}

func part(from string, boot, seq uint64, window int64) Head {
	return Head{Kind: Part, From: from, Boot: boot, Seq: seq, Slice: 3, Start: (window - 1) * tick, End: window * tick, Parts: 1, Sum: seq}
}

func (s *script) add(h Head) (Verdict, error) {
	v, err := s.g.Add(&h, s.at, 10, 0)
	s.at++
	return v, err
}

// want adds a record and checks its outcome.
func (s *script) want(h Head, kind EventKind, reason error) Verdict {
	s.t.Helper()
	v, err := s.add(h)
	if v.Kind != kind || !errors.Is(err, reason) {
		s.t.Fatalf("%+v: %v, %v; want %v, %v", h, v.Kind, err, kind, reason)
	}
	var at *recordError
	if reason != nil && (!errors.As(err, &at) || at.Offset != s.at-1) {
		s.t.Fatalf("%v does not say where", err)
	}
	return v
}

// due closes the window that is due, which has to be one.
func (s *script) due(now int64, window int64, missing, dead []string) *Closing {
	s.t.Helper()
	h, ok := s.g.Due(now)
	if !ok || h.End != window*tick || !slices.Equal(h.Missing, missing) || !slices.Equal(h.Dead, dead) || h.From != "me" || h.Slice != 3 {
		s.t.Fatalf("at %d due: %v %+v; want window %d, %v missing, %v dead", now/tick, ok, h, window, missing, dead)
	}
	v := s.want(h, Closed, nil)
	if !slices.Equal(v.Closing.Missing, missing) || !slices.Equal(v.Closing.Dead, dead) {
		s.t.Fatalf("closed with %+v; want %v missing, %v dead", v.Closing, missing, dead)
	}
	return v.Closing
}

func (s *script) idle(now int64) {
	s.t.Helper()
	if h, ok := s.g.Due(now); ok {
		s.t.Fatalf("at %d due: %+v", now, h)
	}
}

// TestGateCloses: a window closes when it is over and all are there, and not before.
func TestGateCloses(t *testing.T) {
	s := newScript(t, nil)
	s.g.Expect([]Expected{{Name: "a", Boot: 1}, {Name: "b", Boot: 1}})
	s.idle(1000 * tick)
	s.want(part("a", 1, 1, 100), Nothing, nil)
	s.idle(100*tick + 5)
	s.want(part("b", 1, 1, 100), Nothing, nil)
	s.idle(100*tick - 1)
	c := s.due(100*tick, 100, nil, nil)
	if !reflect.DeepEqual(c.Sources, []Source{{"a", 1, 1}, {"b", 1, 1}}) || c.First != 0 || c.Start != 99*tick {
		t.Errorf("closed with %+v", c)
	}
	// Parts: the marker alone is not enough.
	h := part("a", 1, 3, 101)
	h.Part, h.Parts = 1, 2
	s.want(part("b", 1, 2, 101), Nothing, nil)
	s.want(h, Nothing, nil)
	s.idle(101 * tick)
	h.Part, h.Seq, h.Sum = 0, 2, 2
	s.want(h, Nothing, nil)
	s.due(101*tick, 101, nil, nil)
	// Due returns a record again when it does not come back.
	s.want(part("a", 1, 4, 102), Nothing, nil)
	s.want(part("b", 1, 3, 102), Nothing, nil)
	first, _ := s.g.Due(102 * tick)
	s.idle(102*tick + 1)
	if second, ok := s.g.Due(103 * tick); !ok || second.End != first.End {
		t.Errorf("due again: %v, %+v", ok, second)
	}
}

// TestGateMissing: a missing collector is waited for, then published, then dead, until it is heard again.
func TestGateMissing(t *testing.T) {
	s := newScript(t, nil)
	a, b := uint64(0), uint64(0)
	next := func(from string, n *uint64, window int64) {
		t.Helper()
		*n++
		s.want(part(from, 1, *n, window), Nothing, nil)
	}
	next("a", &a, 100)
	next("b", &b, 100)
	s.due(100*tick, 100, nil, nil)
	for w := int64(101); w <= 103; w++ {
		next("a", &a, w)
		s.idle((w+3)*tick - 1)
		dead := []string(nil)
		if w == 103 {
			dead = []string{"b"}
		}
		s.due((w+3)*tick, w, []string{"b"}, dead)
	}
	// The roster does not list it, and it was not heard for long: it is forgotten.
	next("a", &a, 104)
	s.due(104*tick, 104, nil, nil)
	// The roster does: it is published as dead, and not waited for.
	s.g.Expect([]Expected{{Name: "b", Boot: 1}})
	next("a", &a, 105)
	s.due(105*tick, 105, []string{"b"}, []string{"b"})
	// It is heard again, and waited for from then on.
	next("b", &b, 106)
	next("a", &a, 106)
	s.due(106*tick, 106, nil, nil)
	next("a", &a, 107)
	s.idle(107 * tick)
	s.due(110*tick, 107, []string{"b"}, nil)
	// A collector that leaves is not waited for any more, nor is one that is not yet there.
	s.g.Expect([]Expected{{Name: "b", Boot: 1, Until: 107 * tick}, {Name: "c", Since: 109 * tick}})
	next("a", &a, 108)
	s.due(108*tick, 108, nil, nil)
	next("a", &a, 109)
	s.idle(109 * tick)
	c := uint64(0)
	next("c", &c, 109)
	s.due(109*tick, 109, nil, nil)
}

// TestGateEmptyWindows: windows without a collector close as long as one is waited for; then there are none.
func TestGateEmptyWindows(t *testing.T) {
	s := newScript(t, nil)
	s.want(part("a", 1, 1, 100), Nothing, nil)
	s.due(100*tick, 100, nil, nil)
	s.due(104*tick, 101, []string{"a"}, nil)
	s.due(105*tick, 102, []string{"a"}, nil)
	s.due(106*tick, 103, []string{"a"}, []string{"a"})
	s.idle(1000 * tick)
	s.want(part("a", 1, 2, 5000), Nothing, nil)
	s.due(5000*tick, 5000, nil, nil)
}

// TestGateRestart: a run that ended within a window and the one after it both belong to the window.
func TestGateRestart(t *testing.T) {
	s := newScript(t, nil)
	s.g.Expect([]Expected{{Name: "a", Boot: 2, Since: 100 * tick}})
	s.want(part("a", 1, 1, 100), Nothing, nil)
	s.idle(100 * tick)
	s.want(part("a", 2, 1, 100), Nothing, nil)
	c := s.due(100*tick, 100, nil, nil)
	if !reflect.DeepEqual(c.Sources, []Source{{"a", 1, 1}, {"a", 2, 1}}) {
		t.Errorf("sources %v", c.Sources)
	}
}

// TestGateFirstCloseCounts: what one owner closed, another one cannot close otherwise; and a collector that came while
// the close was being written is not missing.
func TestGateFirstCloseCounts(t *testing.T) {
	s := newScript(t, nil)
	s.g.Expect([]Expected{{Name: "a"}, {Name: "b"}})
	s.want(part("a", 1, 1, 100), Nothing, nil)
	h, _ := s.g.Due(103 * tick)
	if !slices.Equal(h.Missing, []string{"b"}) {
		t.Fatalf("due %+v", h)
	}
	s.want(part("b", 1, 1, 100), Nothing, nil)
	other, _ := s.g.Due(104 * tick)
	v := s.want(h, Closed, nil)
	if len(v.Closing.Missing) != 0 || len(v.Closing.Sources) != 2 {
		t.Errorf("closed with %+v", v.Closing)
	}
	s.want(other, Nothing, nil)
	if s.g.Stats().Closed != 1 {
		t.Errorf("%d windows closed", s.g.Stats().Closed)
	}
	// An owner that had not read a window closes the one behind it.
	s.want(part("a", 1, 2, 101), Nothing, nil)
	s.want(part("a", 1, 3, 102), Nothing, nil)
	v = s.want(Head{Kind: Close, Slice: 3, End: 102 * tick}, Closed, nil)
	if !slices.Equal(v.Dropped, []int64{s.at - 3}) || !slices.Equal(s.g.Pending(), []int64{101 * tick}) {
		t.Errorf("%+v, pending %v", v, s.g.Pending())
	}
}

// TestGateDuplicates: a record counts once, also when it comes late; a number that was given twice is reported.
func TestGateDuplicates(t *testing.T) {
	s := newScript(t, nil)
	one := part("a", 1, 1, 100)
	s.want(one, Nothing, nil)
	s.want(one, Duplicate, nil)
	other := one
	other.Sum++
	s.want(other, Conflict, nil)
	other = one
	other.End += tick
	s.want(other, Conflict, nil)
	s.due(100*tick, 100, nil, nil)
	s.want(one, Duplicate, nil)
	late := part("a", 1, 2, 100)
	s.want(late, Late, nil)
	s.want(late, Duplicate, nil)
	if got := s.g.Pending(); !slices.Equal(got, []int64{100 * tick}) || s.g.past[0].revision != 1 {
		t.Errorf("pending %v, revision %d", got, s.g.past[0].revision)
	}
	if got := s.g.past[0].refused; !slices.Equal(got, []int64{2}) {
		t.Errorf("left out: %v", got)
	}
	// A machine that was restored from an old snapshot goes on with numbers that were given long ago.
	for seq := uint64(3); seq < 100; seq++ {
		s.want(part("a", 1, seq, 101), Nothing, nil)
	}
	s.due(101*tick, 101, nil, nil)
	s.want(part("a", 1, 5, 101), Duplicate, nil)
	s.want(part("a", 1, 5, 102), Conflict, nil)
	s.want(part("a", 1, 99, 102), Conflict, nil)
	s.want(part("a", 7, 1, 102), Nothing, nil) // under a new number it is welcome
	// Numbers that come out of order are new ones all the same.
	s.want(part("b", 1, 5, 102), Nothing, nil)
	s.want(part("b", 1, 4, 102), Nothing, nil)
	s.want(part("b", 1, 4, 102), Duplicate, nil)
	// Those without a run are numbered by the window.
	p := part(PseudoName(2), 0, pseudoSeq(102*tick, tick, 0), 102)
	s.want(p, Nothing, nil)
	s.want(p, Duplicate, nil)
	p.Sum++
	s.want(p, Conflict, nil)
	p = part(PseudoName(2), 0, pseudoSeq(101*tick, tick, 1), 101)
	s.want(p, Late, nil)
	s.want(p, Duplicate, nil)
	p.Sum++
	s.want(p, Conflict, nil)
}

// TestGateWaitsForReports: a slice waits for the workers of reports whose partitions have some of the window.
func TestGateWaitsForReports(t *testing.T) {
	s := newScript(t, nil)
	h := part("a", 1, 1, 100)
	h.Raw = []uint64{0, 5, 0}
	s.want(h, Nothing, nil)
	s.idle(105*tick - 1)
	s.want(part(PseudoName(1), 0, pseudoSeq(100*tick, tick, 0), 100), Nothing, nil)
	s.due(100*tick, 100, nil, nil)
	h = part("a", 1, 2, 101)
	h.Raw = []uint64{5}
	s.want(h, Nothing, nil)
	s.idle(107*tick - 1)
	s.due(107*tick, 101, []string{"reports-0"}, nil)
	h = part("a", 1, 3, 102)
	s.want(h, Nothing, nil)
	s.due(102*tick, 102, nil, nil)
}

// TestGateOfReports: a partition of reports waits for the number of reports in the marks.
func TestGateOfReports(t *testing.T) {
	s := newScript(t, func(c *Options) { c.Reports = true })
	s.want(part("a", 1, 1, 100), Nothing, nil) // of another topic
	s.idle(200 * tick)
	r := Head{Kind: Reports, From: "a", Boot: 1, Seq: 1, Slice: 3, End: 100 * tick, Reports: 1000}
	s.want(r, Nothing, nil)
	s.idle(100 * tick)
	s.want(Head{Kind: Mark, From: "a", Boot: 1, Seq: 3, Slice: 3, End: 100 * tick, Reports: 1500}, Nothing, nil)
	s.idle(100 * tick)
	r.Seq, r.Reports = 2, 500
	s.want(r, Nothing, nil)
	c := s.due(100*tick, 100, nil, nil)
	if !slices.Equal(c.Offsets, []int64{1, 3, 2}) {
		t.Errorf("offsets %v", c.Offsets)
	}
}

// TestGateRefuses: what cannot be is refused, with the reason, and counted; and one fast clock takes nothing from others.
func TestGateRefuses(t *testing.T) {
	s := newScript(t, func(c *Options) { c.MaxOpen, c.maxMembers, c.MaxBytes, c.Corrections = 4, 3, 35, 20*tick })
	with := func(change func(h *Head)) Head {
		h := part("a", 1, 1, 100)
		change(&h)
		return h
	}
	s.want(with(func(h *Head) { h.End++ }), Refused, errLabel)
	s.want(with(func(h *Head) { h.End = 0 }), Refused, errLabel)
	s.want(with(func(h *Head) { h.End = -tick }), Refused, errLabel)
	s.want(with(func(h *Head) { h.End = math.MaxInt64 / tick * tick }), Refused, errLabel)
	s.want(with(func(h *Head) { h.Slice = 4 }), Refused, errSlice)
	s.want(with(func(h *Head) { h.Parts = 0 }), Refused, errPart)
	s.want(with(func(h *Head) { h.Part = 1 }), Refused, errPart)
	s.want(with(func(h *Head) { h.Parts = maxParts + 1 }), Refused, errPart)
	s.want(with(func(h *Head) { h.Seq = 0 }), Refused, errPart)
	s.want(with(func(h *Head) { h.From = "" }), Refused, errName)
	s.want(with(func(h *Head) { h.Boot = 0 }), Refused, errName)
	s.want(with(func(h *Head) { h.From = PseudoName(1) }), Refused, errName)
	s.want(Head{Kind: Chunk + 1, End: 7}, Unknown, nil)
	s.want(Head{Kind: Chunk}, Nothing, nil)

	// A clock that is an hour ahead: its windows wait, and give way to nearer ones.
	for n := range int64(4) {
		s.want(part("fast", 1, uint64(n+1), 460+n), Nothing, nil)
	}
	s.want(part("fast", 1, 5, 464), Refused, ErrFuture)
	v := s.want(part("a", 1, 1, 100), Nothing, nil)
	if len(v.Dropped) != 1 || s.g.Stats().Evicted != 1 || s.g.Open() != 4 {
		t.Errorf("%+v, %+v", v, s.g.Stats())
	}
	s.due(100*tick, 100, nil, nil)
	s.idle(100 * tick)
	s.want(part("a", 1, 2, 101), Nothing, nil)
	s.due(101*tick, 101, nil, nil)
	// One that is an hour behind: too old for corrections.
	s.want(part("slow", 1, 1, 81), Refused, ErrOld)
	s.want(part("slow", 1, 1, 82), Late, nil)
	s.want(part("more", 1, 1, 102), Refused, errMembers)
	for n := range uint64(3) {
		s.want(part("a", 1, 10+n, 102), Nothing, nil)
	}
	s.want(part("a", 1, 13, 102), Refused, ErrFull)
	// Closes that cannot be.
	s.want(Head{Kind: Close, Slice: 3, End: 106 * tick}, Refused, errAhead)
	s.want(Head{Kind: Close, Slice: 3, End: 102*tick + 1}, Refused, errLabel)
	s.want(Head{Kind: Close, Slice: 2, End: 102 * tick}, Refused, errSlice)
	if n := s.g.Stats().Refused; n != 19 {
		t.Errorf("%d records refused", n)
	}
	for _, cfg := range []Options{{}, {Window: 1, Corrections: 1 << 20}, {Window: 1e9, Slice: -1}, {Window: 1e9, Slice: MaxSlices}, {Window: 1e9, maxMembers: 1 << 20}, {Window: 1e9, Patience: 1e6}} {
		if _, err := NewGate(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// TestGateForgets: what is known stays within bounds, whatever is written and for however long.
func TestGateForgets(t *testing.T) {
	s := newScript(t, func(c *Options) { c.maxMembers, c.Corrections = 50, 30*tick })
	rng := rand.New(rand.NewPCG(1, 1))
	most := 0
	for w := int64(100); w < 3000; w++ {
		for range 3 { // a new name or run each time
			h := part(fmt.Sprintf("c%d", rng.IntN(1000)), rng.Uint64()|1, 1, w-rng.Int64N(60))
			s.add(h)
		}
		s.add(part("steady", 1, uint64(w), w))
		s.add(Head{Kind: Close, Slice: 3, End: w * tick, Missing: []string{fmt.Sprintf("m%d", w)}, Dead: []string{fmt.Sprintf("m%d", w)}})
		if n := len(s.g.AppendState(nil)); w > 200 {
			most = max(most, n)
		}
		if len(s.g.names) > 50 || len(s.g.past) > 31 || s.g.Open() > 32 {
			t.Fatalf("%d names, %d past and %d open windows", len(s.g.names), len(s.g.past), s.g.Open())
		}
	}
	if s.g.Last() != 2999*tick {
		t.Errorf("the last window is %d", s.g.Last()/tick)
	}
	if most > 100<<10 {
		t.Errorf("a state has %d bytes", most)
	}
}

// A collector has one run more than are known at a time. The run that was heard least lately is forgotten, whatever the
// order of the runs. A record of it counts as new once its window is closed, and records of all others are known.
func TestGateForgetsTheOldestRun(t *testing.T) {
	for _, oldest := range []int{0, 7, maxRuns - 1} {
		s := newScript(t, nil)
		heads := []Head{}
		for run := range maxRuns {
			window := int64(110 + run)
			if run == oldest {
				window = 100
			}
			heads = append(heads, part("a", uint64(run+1), 1, window))
			s.want(heads[run], Nothing, nil)
		}
		s.want(part("a", maxRuns+1, 1, 130), Nothing, nil)
		for run, h := range heads {
			if run != oldest {
				s.want(h, Duplicate, nil)
			}
		}
		if n := len(s.g.names["a"].runs); n != maxRuns {
			t.Errorf("%d runs are known, want %d", n, maxRuns)
		}
		if slices.ContainsFunc(s.g.names["a"].runs, func(r *run) bool { return r.boot == uint64(oldest+1) }) {
			t.Errorf("run %d is still known, which was heard least lately", oldest)
		}
		s.due(100*tick, 100, nil, nil)
		s.want(heads[oldest], Late, nil)
	}
}
