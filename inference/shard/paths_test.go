package shard

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/plain"
)

// pathWorld makes reports of flows that change their paths now and then: whole stacks, cut ones, postcards and drops.
type pathWorld struct {
	rng   *rand.Rand
	now   int64
	paths [40][]decode.Hop
}

func newPathWorld(seed uint64) *pathWorld {
	w := &pathWorld{rng: rand.New(rand.NewPCG(seed, 9)), now: 1e18}
	for i := range w.paths {
		w.turn(i)
	}
	return w
}

// turn gives a flow another path.
func (w *pathWorld) turn(i int) {
	w.paths[i] = nil
	for range 1 + w.rng.IntN(10) {
		w.paths[i] = append(w.paths[i], hop(w.rng.Uint32N(30), uint16(w.rng.IntN(3)), 0))
	}
}

func (w *pathWorld) window() (reports []*decode.Report) {
	for range 400 {
		i := w.rng.IntN(len(w.paths))
		w.now += w.rng.Int64N(1e7)
		if w.rng.IntN(100) == 0 {
			w.turn(i)
		}
		hops := append([]decode.Hop(nil), w.paths[i]...)
		for h := range hops {
			hops[h].Latency, hops[h].QueueOccupancy = w.rng.Uint32N(1e6), w.rng.Uint32N(1e4)
		}
		r := stack(uint32(i), w.now, hops...)
		switch i % 4 {
		case 1: // a part of the path, of which most are the same
			if w.rng.IntN(4) != 0 {
				r.Hops = r.Hops[:1+w.rng.IntN(len(r.Hops))]
			}
			r.Flags |= decode.HopLimit
		case 2:
			at := w.rng.IntN(len(hops))
			r.Kind, r.INT, r.Hops = decode.KindPostcard, 0, hops[at:at+1]
			r.TTL, r.Has = uint8(64-at), r.Has|decode.HasTTL
		case 3:
			if w.rng.IntN(9) == 0 {
				r.Kind, r.NodeID, r.Has = decode.KindDrop, 3, r.Has|decode.HasNodeID
			}
		}
		reports = append(reports, r)
	}
	return reports
}

// windowBytes ends a window and returns all of it.
func windowBytes(t *testing.T, s *State, end int64) []byte {
	t.Helper()
	c := s.Cut(end)
	var p window.Partial
	p.Span(end-1e9, end)
	c.AddTo(&p)
	s.Recycle(c)
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A shard that takes over between two windows makes the same of the following ones as the one that goes on, path changes
// included.
func TestPathsTakenOver(t *testing.T) {
	const windows = 30
	changes := 0
	for seed := range uint64(3) {
		w := newPathWorld(seed)
		whole := New(testConfig(), 1)
		taken := New(testConfig(), 2)
		for n := range windows {
			reports := w.window()
			whole.Update(reports)
			taken.Update(reports)
			want, got := windowBytes(t, whole, w.now), windowBytes(t, taken, w.now)
			if !bytes.Equal(want, got) {
				t.Fatalf("seed %d: window %d differs after %d take-overs", seed, n, n)
			}
			for _, f := range whole.Flows(100) {
				changes += int(f.Changes)
				other, ok := taken.Flow(f.Key)
				if !ok || other.PathID != f.PathID || other.Changes != f.Changes || other.Packets != f.Packets || other.Last != f.Last || other.Partial != f.Partial {
					t.Fatalf("seed %d: window %d: flow %+v, want %+v", seed, n, other, f)
				}
			}
			next := New(testConfig(), uint64(n))
			if err := next.ReadPaths(taken.AppendPaths([]byte("x"), 1000)[1:]); err != nil {
				t.Fatal(err)
			}
			taken = next
		}
	}
	if changes == 0 {
		t.Error("no path changed")
	}
}

// A path that was inferred from digests passes to the next process, with its confidence and without a further digest.
// When it changes later, that is a path change and no first path.
func TestPathsOfDigestsTakenOver(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	s, p, nodes, links := newDigestState(t)
	const flows = 30
	paths := make([][]uint32, flows)
	now := int64(1e18)
	send := func(s *State, n int) {
		for range n {
			for f := range flows {
				now += 1000
				s.Update([]*decode.Report{plain.RandomDigest(rng, p, f, paths[f], now)})
			}
		}
	}
	for f := range paths {
		paths[f] = plain.RandomWalk(rng, nodes, links, 3+f%7)
	}
	send(s, 600)
	saved := s.AppendPaths(nil, flows)

	other, _, _, _ := newDigestState(t)
	if err := other.ReadPaths(saved); err != nil {
		t.Fatal(err)
	}
	for _, want := range s.Flows(flows) {
		got, ok := other.Flow(want.Key)
		if !ok || !slices.Equal(flowPath(&got), paths[want.Key.SrcPort]) || got.Confidence != want.Confidence || got.Digests != want.Digests || got.Partial {
			t.Fatalf("flow %d: %+v, want %+v", want.Key.SrcPort, got, want)
		}
	}
	if second := other.AppendPaths(nil, flows); !bytes.Equal(second, saved) {
		t.Error("the paths that were read are written as others")
	}
	send(other, 5)
	if st := other.Stats().Digests; st.Digests != 5*flows || st.Decoded+st.Unexplained+st.Rejected+st.Unread != 0 || st.Undecided != 0 {
		t.Errorf("digests of known paths: %+v", st)
	}
	w := windowOf(100, other.Cut(now))
	if len(w.Hops) == 0 || w.Hops[0].Latency.Count == 0 {
		t.Error("values of the digests are not counted for the hops of the known paths")
	}
	for f := range paths {
		for old := paths[f]; slices.Equal(paths[f], old); {
			paths[f] = plain.RandomWalk(rng, nodes, links, len(old))
		}
	}
	send(other, 600)
	changed := map[uint16]bool{}
	w = windowOf(100, other.Cut(now))
	for _, c := range w.Paths {
		changed[c.Flow.SrcPort] = true
	}
	if len(changed) != flows {
		t.Errorf("%d of %d flows changed their path", len(changed), flows)
	}

	// A process that follows no plans keeps the paths all the same.
	plain := New(testConfig(), 1)
	if err := plain.ReadPaths(saved); err != nil {
		t.Fatal(err)
	}
	if f := plain.Flows(1); len(f) != 1 || f[0].PathID == 0 {
		t.Errorf("without plans: %+v", f)
	}
}

// Of more flows than are asked for, those that were seen last are saved; of more than there is room for, those are kept.
func TestPathsBounded(t *testing.T) {
	s := New(testConfig(), 1)
	const flows = 3000
	for i := range uint32(flows) {
		s.Update([]*decode.Report{stack(i, int64(1e18)+int64(i*7919%flows), hop(i, 1, 5), hop(2, 1, 5))})
	}
	if b := s.AppendPaths(nil, 0); len(b) != 9 {
		t.Errorf("%d bytes of no flow", len(b))
	}
	saved := s.AppendPaths(nil, 500)
	t.Logf("%d bytes a flow of two hops", len(saved)/500)
	other := New(testConfig(), 1)
	if err := other.ReadPaths(saved); err != nil {
		t.Fatal(err)
	}
	got := other.Flows(flows)
	for _, f := range got {
		if f.Last < int64(1e18)+flows-500 {
			t.Fatalf("a flow of %d is saved", f.Last)
		}
	}
	if len(got) != 500 {
		t.Errorf("%d flows, want 500", len(got))
	}

	small := testConfig()
	small.MemoryBytes = minFlows * int64(small.flowBytes())
	little := New(small, 1)
	if err := little.ReadPaths(s.AppendPaths(nil, flows)); err != nil {
		t.Fatal(err)
	}
	room := little.flows.Len()
	if room < 100 || room == flows {
		t.Fatalf("%d flows in the small table", room)
	}
	for _, f := range little.Flows(flows) {
		if f.Last < int64(1e18)+int64(flows-room) {
			t.Fatalf("a flow of %d is kept, of %d that there is room for", f.Last, room)
		}
	}
	if st := little.Stats(); st.EvictedPressure != 0 {
		t.Errorf("%+v", st)
	}
	if err := other.ReadPaths(saved); err != nil || len(other.Flows(flows)) != 500 {
		t.Errorf("read twice: %v", err)
	}
}

func somePaths(t testing.TB) []byte {
	w, s := newPathWorld(1), New(testConfig(), 1)
	s.Update(w.window())
	return s.AppendPaths(nil, 12)
}

// Bytes that AppendPaths does not write are refused as a whole.
func TestPathsRefused(t *testing.T) {
	good := somePaths(t)
	s := New(testConfig(), 1)
	refused := 0
	for n := range good {
		err := s.ReadPaths(good[:n])
		var e *state.Error
		switch {
		case err == nil && n >= 9: // before a flow
		case !errors.As(err, &e) || e.Offset > n:
			t.Fatalf("the first %d bytes: %v", n, err)
		default:
			refused++
			if s.flows.Len() != 0 {
				t.Fatalf("the first %d bytes are refused and leave flows", n)
			}
		}
		if err == nil {
			s = New(testConfig(), 1)
		}
	}
	if refused < len(good)-20 {
		t.Errorf("%d of %d parts were refused", refused, len(good))
	}
	with := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	const first = 9 + 38 + 8 // age of the first flow, which is 0, and its flags
	fresh := New(testConfig(), 1)
	for what, b := range map[string][]byte{
		"another version": with(0, 9), "flows out of order": slices.Concat(good[:first], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, good[first+1:]), "a flag that is not known": with(first+1, 0xff),
	} {
		if err := fresh.ReadPaths(b); err == nil || fresh.flows.Len() != 0 {
			t.Errorf("%s: %v, and %d flows are known", what, err, fresh.flows.Len())
		}
	}
}

func FuzzReadPaths(f *testing.F) {
	f.Add(somePaths(f))
	f.Add(New(testConfig(), 1).AppendPaths(nil, 10))
	key := make([]byte, 38)
	f.Add(fmt.Append(nil, "\x01\x00\x00\x00\x00\x00\x00\x00\x00", string(key), "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x01\x05\x06",
		"\x01\x04\x07\x00\x00\x00\x01\x0c\x01\x02\x05\x03\x01\x64\x65\x09\x01\x00\x00\x00\x00"))
	cfg := testConfig()
	cfg.MemoryBytes = 1 << 20
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(cfg, 1)
		if err := s.ReadPaths(b); err != nil {
			var e *state.Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(b) || s.flows.Len() != 0 {
				t.Fatalf("ReadPaths(%x) = %v, with %d flows", b, err, s.flows.Len())
			}
			return
		}
		w := newPathWorld(2)
		s.Update(w.window())
		s.Recycle(s.Cut(w.now))
		s.Update(w.window())
		second := New(cfg, 2)
		if err := second.ReadPaths(s.AppendPaths(nil, 1000)); err != nil {
			t.Fatalf("what was written after ReadPaths(%x): %v", b, err)
		}
	})
}
