package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestState stops detectors at any window, and lets others go on from their state. They must publish the same.
func TestState(t *testing.T) {
	for i, cfg := range worldConfigs() {
		for seed := range uint64(testkit.Rounds(3, 6)) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			w, a := newWorld(seed), New(cfg)
			for range rng.IntN(400) * int(min(seed, 1)) { // the first detector has seen nothing
				a.Step(w.next())
			}
			b := New(cfg)
			for other := newWorld(seed + 100); rng.IntN(50) != 0; { // what it knew must be gone
				b.Step(other.next())
			}
			prefix := []byte("before")
			state := a.AppendState(prefix)
			if !bytes.HasPrefix(state, prefix) {
				t.Fatalf("settings %d seed %d: the state is not appended", i, seed)
			}
			if err := b.ReadState(state[len(prefix):]); err != nil {
				t.Fatalf("settings %d seed %d: %v", i, seed, err)
			}
			clear(state) // nothing of it is kept
			same := func(what string, a, b any) {
				t.Helper()
				if !reflect.DeepEqual(a, b) {
					t.Fatalf("settings %d seed %d window %d: %s are\n%+v\nwant\n%+v", i, seed, w.window, what, b, a)
				}
			}
			same("open findings", a.Open(), b.Open())
			same("statistics", a.Stats(), b.Stats())
			for k := range 300 {
				if k == 150 {
					a.Configure(worldConfigs()[(i+1)%3])
					b.Configure(worldConfigs()[(i+1)%3])
				}
				next := w.next()
				same("findings", fmt.Sprint(a.Step(next)), fmt.Sprint(b.Step(next)))
				same("open findings", a.Open(), b.Open())
				same("statistics", a.Stats(), b.Stats())
			}
			same("states", a.AppendState(nil), b.AppendState(nil))
		}
	}
}

// worldState is the state after some windows.
func worldState(cfg subject.Config, windows int) []byte {
	w, d := newWorld(3), New(cfg)
	for range windows {
		d.Step(w.next())
	}
	return d.AppendState(nil)
}

// smallState returns the state after one window with something for each detector. All of it is whole numbers, so that
// it is the same on every processor.
func smallState() []byte {
	d := New(DefaultConfig())
	d.Step(&inference.Window{End: 1, Drops: []inference.DropStats{{Node: 1, Reason: 80, Count: 3, Flow: flow(1)}},
		Hops:      []inference.HopStats{{HopKey: inference.HopKey{Node: 1}, Count: 1, Queue: inference.Summary{Count: 100, P99: 10}}},
		Exporters: []inference.ExporterStats{{Reports: 1}},
		Digests:   []inference.DigestFault{{Flow: flow(1), Fault: inference.Looping, Count: 1}},
		Losses:    []inference.FlowLoss{{Flow: flow(3), Packets: 9, Path: []inference.HopKey{{Node: 1}, {Node: 2}}}, {Flow: flow(5), Packets: 9, Path: []inference.HopKey{{Node: 9, Other: true}, {Node: 5}, {}, {Node: 6}}}},
		Flows: []inference.FlowStats{{Key: flow(4), Packets: 200, Hops: []inference.FlowHop{
			{HopKey: inference.HopKey{Node: 3}, Latency: inference.Summary{Count: 200}}, {HopKey: inference.HopKey{Node: 5}}}}},
		Links:      []inference.LinkStats{{LinkKey: inference.LinkKey{Node: 1, Peer: 2}, Count: 1, Least: -5, At: 7}, {LinkKey: inference.LinkKey{Node: 2, Peer: 1}, Count: 1, Least: 9, At: 8}},
		Interfaces: []inference.InterfaceStats{{Node: 1, Samples: 1, Counters: decode.Counters{Has: decode.CountInErrors, Interface: 2, InErrors: 9}}},
		Paths:      []inference.PathChange{{Flow: flow(2)}}, OtherPaths: 1})
	for _, f := range d.journal.Open {
		f.Text = "sentence" // its words may change without a new layout
	}
	return d.AppendState(nil)
}

// TestStateVersion fails when the layout of the state changes: then stateVersion has to go up, and this sum with it.
func TestStateVersion(t *testing.T) {
	got := fmt.Sprintf("version %d: %x", stateVersion, sha256.Sum256(smallState()))
	if want := "version 16: 9b6a001efe7e19495ab8e899eb0c3b0e5433845e3e6d02b5a091fcedabe0acbd"; got != want {
		t.Errorf("the state has\n%s, want\n%s", got, want)
	}
}

func TestStateRefused(t *testing.T) {
	testkit.Long(t)
	cfg := worldConfigs()[1]
	cfg.Warmup = 15
	good := worldState(cfg, 40)
	d := New(cfg)
	w := newWorld(4)
	for range 50 {
		d.Step(w.next())
	}
	before := d.AppendState(nil)
	refused := func(what string, b []byte, sentinel error) *state.Error {
		t.Helper()
		err := d.ReadState(b)
		var e *state.Error
		if !errors.As(err, &e) || sentinel != nil && !errors.Is(err, sentinel) || e.Offset < 0 || e.Offset > len(b) {
			t.Fatalf("%s: %v, want a state.Error within the %d bytes", what, err, len(b))
		}
		if !bytes.Equal(d.AppendState(nil), before) {
			t.Fatalf("%s: the detector changed although the state was refused", what)
		}
		return e
	}
	for n := 0; n < len(good); n += 1 + n/100 {
		refused(fmt.Sprintf("cut at byte %d", n), good[:n], state.ErrShort)
	}
	if e := refused("one byte more", append(bytes.Clone(good), 0), state.ErrRange); e.Offset != len(good) {
		t.Errorf("one byte more is found at byte %d, want %d", e.Offset, len(good))
	}

	other := bytes.Clone(good)
	other[0] = stateVersion + 1
	if e := refused("a later version", other, state.ErrVersion); e.Error() != "state of detectors: version at byte 0: is of a version that this program does not know" {
		t.Errorf("a later version gives %q", e)
	}

	// The head is a byte and ten numbers; after it come the hops that many flows left, by number.
	number := func(at int, v uint64) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint64(b[at:], v)
		return b
	}
	if e := refused("a negative count", number(1+10*8, math.MaxUint64), state.ErrRange); e.Offset != 1+10*8 {
		t.Errorf("a negative count is found at byte %d, want %d", e.Offset, 1+10*8)
	}
	refused("a count that nothing follows", number(1+10*8, math.MaxInt64), nil)
	for i, what := range []string{"hops", "statistics", "links", "paths"} {
		for _, n := range []uint64{1 << 62, math.MaxUint64} {
			if at := 1 + (2+i)*8; refused(what, number(at, n), state.ErrRange).Offset != at {
				t.Errorf("%d %s are not refused where they stand", int64(n), what)
			}
		}
	}
	refused("no window came yet", number(1, 0), state.ErrRange)
	refused("no finding started yet", number(1+8, 0), state.ErrRange)

	// Whatever else is broken is refused or harmless.
	rng := rand.New(rand.NewPCG(1, 5))
	for range 600 {
		b := bytes.Clone(good)
		for range 1 + rng.IntN(3) {
			b[1+rng.IntN(len(b)-1)] = byte(rng.Uint32() >> rng.IntN(32))
		}
		harmless(t, cfg, b)
	}
}

// harmless reads bytes that may be anything: an error is a state.Error, and without one the detector has just that state
// and goes on.
func harmless(t *testing.T, cfg subject.Config, b []byte) {
	t.Helper()
	d := New(cfg)
	if err := d.ReadState(b); err != nil {
		var e *state.Error
		if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(b) {
			t.Fatalf("ReadState(%x) = %v, want a state.Error within it", b, err)
		}
		return
	}
	if got := d.AppendState(nil); b[0] == stateVersion && !bytes.Equal(got, b) {
		t.Fatalf("ReadState(%x) and AppendState give %x", b, got)
	}
	w := newWorld(8)
	for range 3 {
		d.Step(w.next())
		for range 3 {
			d.Step(&inference.Window{End: w.window * 1e9})
		}
	}
}

func FuzzReadState(f *testing.F) {
	cfg := worldConfigs()[1]
	cfg.Warmup = 15
	f.Add([]byte{})
	f.Add([]byte{stateVersion + 1})
	f.Add(New(cfg).AppendState(nil))
	f.Add(smallState())
	if old, err := os.ReadFile("testdata/state-version-2.bin"); err == nil {
		f.Add(old)
	}
	f.Fuzz(func(t *testing.T, b []byte) { harmless(t, cfg, b) })
}
