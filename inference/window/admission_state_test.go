package window

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/internal/testkit"
)

var admissionLimits = AdmissionLimits{Hops: 12, Flows: 15, Exporters: 6}

// admissionWorld makes windows with more hops, flows, exporters and nodes than are admitted, in which what comes and goes
// is drawn. A window lasts ten minutes, so that days begin often, and a clock is set back now and then.
type admissionWorld struct {
	rng *rand.Rand
	end int64
}

func newAdmissionWorld(seed uint64) *admissionWorld {
	return &admissionWorld{rng: rand.New(rand.NewPCG(seed, 3)), end: 20000 * int64(24*time.Hour)}
}

type admissionInput struct {
	end       int64
	hops      []inference.HopKey
	flows     []decode.FlowKey
	exporters []inference.ExporterKey
	nodes     []uint32
}

func (w *admissionWorld) next() (in admissionInput) {
	w.end += int64(10 * time.Minute)
	if w.rng.IntN(50) == 0 {
		w.end -= int64(time.Duration(w.rng.IntN(600)) * time.Minute)
	}
	in.end = w.end
	for range w.rng.IntN(6) {
		in.hops = append(in.hops, inference.HopKey{Node: w.rng.Uint32N(20), EgressIf: w.rng.Uint32N(2)})
		f := decode.FlowKey{SrcPort: uint16(w.rng.IntN(40)), IPVersion: 4}
		f.Src[w.rng.IntN(16)] = byte(w.rng.IntN(2))
		in.flows = append(in.flows, f)
		k := inference.ExporterKey{Addr: decode.Addr{15: byte(w.rng.IntN(5))}, Node: w.rng.Uint32N(4), HWID: uint8(w.rng.IntN(2))}
		k.Nameless = k.Node == 0 && k.Addr != decode.Addr{}
		in.exporters = append(in.exporters, k)
		in.nodes = append(in.nodes, w.rng.Uint32N(30))
	}
	return in
}

// admitted describes what an admission makes of a window, and what it counted since it began.
func admitted(a *Admission, in admissionInput) string {
	var p Partial
	p.Span(in.end-1, in.end)
	for _, k := range in.hops {
		p.Hop(k).NoLatency++
	}
	for i, k := range in.flows {
		p.AddFlow(&FlowPart{Key: k, Packets: 1})
		p.AddPath(&inference.PathChange{Flow: k, Time: int64(i)})
	}
	var exporters []inference.ExporterStats
	for _, k := range in.exporters {
		exporters = append(exporters, inference.ExporterStats{ExporterKey: k})
	}
	p.AddExporters(exporters)
	a.Fold(&p, in.end)
	w := p.Window(Limits{Hops: 100, Flows: 100, Paths: 100})
	var findings []inference.Finding
	for _, n := range in.nodes {
		findings = append(findings, inference.Finding{Node: n})
	}
	a.Mark(&w, findings)
	out := fmt.Sprint(w.OtherHops)
	for _, h := range w.Hops {
		out += fmt.Sprint(" hop ", h.HopKey, h.Count)
	}
	for _, f := range w.Flows {
		out += fmt.Sprint(" flow ", f.Folded)
	}
	for _, c := range w.Paths {
		out += fmt.Sprint(" path ", c.Folded)
	}
	for _, e := range w.Exporters {
		out += fmt.Sprint(" exporter ", e.ExporterKey, e.Folded)
	}
	for _, f := range findings {
		out += fmt.Sprint(" finding ", f.Folded)
	}
	hops, flows, rest := a.Folded()
	return fmt.Sprint(out, " in all ", hops, flows, rest)
}

// An admission that goes on from the state of another one, at whatever window, admits the same. So does one that begins
// anew from its own state in every window.
func TestAdmissionState(t *testing.T) {
	const windows, beyond = 400, 60
	for seed := range uint64(testkit.Rounds(5, 20)) {
		w := newAdmissionWorld(seed)
		inputs := make([]admissionInput, windows+beyond)
		for i := range inputs {
			inputs[i] = w.next()
		}
		a, restarted := NewAdmission(admissionLimits), NewAdmission(admissionLimits)
		var states [][]byte
		var want []string
		for i, in := range inputs {
			states = append(states, a.AppendState([]byte("x"))[1:])
			want = append(want, admitted(a, in))
			fresh := NewAdmission(admissionLimits)
			if err := fresh.ReadState(restarted.AppendState(nil)); err != nil {
				t.Fatal(err)
			}
			restarted = fresh
			if got := admitted(restarted, in); got != want[i] {
				t.Fatalf("seed %d, restarted in each window, window %d:\n%s, want\n%s", seed, i, got, want[i])
			}
		}
		for cut := range windows {
			b := NewAdmission(admissionLimits)
			admitted(b, newAdmissionWorld(seed+100).next()) // what it knew must be gone
			if err := b.ReadState(states[cut]); err != nil {
				t.Fatal(err)
			}
			if second := b.AppendState(nil); !bytes.Equal(second, states[cut]) {
				t.Fatalf("seed %d, cut at window %d: the state that was read is written as another", seed, cut)
			}
			for i := cut; i < cut+beyond; i++ {
				if got := admitted(b, inputs[i]); got != want[i] {
					t.Fatalf("seed %d, cut at window %d, window %d:\n%s, want\n%s", seed, cut, i, got, want[i])
				}
			}
		}
	}
}

// Under lower limits than those of the state, the items seen last keep their places.
func TestAdmissionStateOfHigherLimits(t *testing.T) {
	a := NewAdmission(AdmissionLimits{Hops: 10})
	for i := range int64(10) {
		admitted(a, admissionInput{end: 1000 - i, hops: []inference.HopKey{{Node: uint32(i)}}})
	}
	b := NewAdmission(AdmissionLimits{Hops: 3})
	if err := b.ReadState(a.AppendState(nil)); err != nil {
		t.Fatal(err)
	}
	for i := range uint32(10) {
		var p Partial
		p.Hop(inference.HopKey{Node: i}).NoLatency = 1
		b.Fold(&p, 2000)
		w := p.Window(Limits{Hops: 1})
		if got, want := w.Hops[0].Other, i >= 3; got != want {
			t.Errorf("hop %d: folded is %v", i, got)
		}
	}
}

// Bytes that AppendState does not write are refused where they are wrong, and then nothing is changed.
func TestAdmissionStateRefused(t *testing.T) {
	a, w := NewAdmission(admissionLimits), newAdmissionWorld(1)
	for range 100 {
		admitted(a, w.next())
	}
	good := a.AppendState(nil)
	before := bytes.Clone(good)
	refused := func(what string, b []byte, reason error, offset int) {
		t.Helper()
		err := a.ReadState(b)
		var e *state.Error
		if !errors.As(err, &e) || !errors.Is(err, reason) || e.Offset < 0 || e.Offset > len(b) || offset >= 0 && e.Offset != offset {
			t.Fatalf("%s: %v, want %v", what, err, reason)
		}
		if !bytes.Equal(a.AppendState(nil), before) {
			t.Fatalf("%s: refused, and changed all the same", what)
		}
	}
	for n := range good {
		refused(fmt.Sprintf("cut at byte %d", n), good[:n], state.ErrShort, -1)
	}
	refused("a byte more", append(bytes.Clone(good), 0), state.ErrRange, len(good))
	other := bytes.Clone(good)
	other[0]++
	refused("another version", other, state.ErrVersion, 0)
	refused("a day that no clock shows", binary.AppendUvarint([]byte{admissionVersion}, 1<<40), state.ErrRange, 1)
	refused("more hops than bytes", append([]byte{admissionVersion, 0, 0, 0, 0}, 0xff, 0xff, 0xff, 0xff, 0x7f), state.ErrShort, 5)
	refused("hops out of order", []byte{admissionVersion, 0, 0, 0, 0, 2, 2, 0, 0, 1, 0, 0, 0, 0, 0}, state.ErrRange, 9)
	refused("the hop other", []byte{admissionVersion, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0}, state.ErrRange, 7)
}

func FuzzAdmissionState(f *testing.F) {
	a, w := NewAdmission(admissionLimits), newAdmissionWorld(1)
	f.Add(a.AppendState(nil))
	for range 30 {
		admitted(a, w.next())
	}
	f.Add(a.AppendState(nil))
	f.Add([]byte{admissionVersion, 0, 0, 0, 0, 1, 5, 2, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		a := NewAdmission(AdmissionLimits{Hops: 1 << 20, Flows: 1 << 20, Exporters: 1 << 20})
		if err := a.ReadState(b); err != nil {
			var e *state.Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(b) {
				t.Fatalf("ReadState(%x) = %v", b, err)
			}
			return
		}
		if got := a.AppendState(nil); !bytes.Equal(got, b) {
			t.Fatalf("ReadState(%x) and AppendState give %x", b, got)
		}
		admitted(a, newAdmissionWorld(2).next())
	})
}
