package collector

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/cross"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
)

// scripted is a source that hands over frames one by one.
type scripted struct{ frames []ingest.Frame }

func (s *scripted) Workers() int        { return 1 }
func (s *scripted) Waits() bool         { return true }
func (s *scripted) Stats() ingest.Stats { return ingest.Stats{} }

func (s *scripted) Run(_ context.Context, handle func(worker int, b *ingest.Batch)) error {
	for i := range s.frames {
		handle(0, &ingest.Batch{Frames: s.frames[i : i+1]})
	}
	return nil
}

// parts is a store that keeps the records which a collector of a fleet would send, as they are in Kafka.
type parts struct {
	pub *fleet.Publisher

	mu      sync.Mutex
	records []fleet.Out
}

func (p *parts) Name() string                                    { return "parts" }
func (p *parts) Close() error                                    { return nil }
func (p *parts) Write(context.Context, *sink.Batch) error        { return nil }
func (p *parts) WriteEncoded(context.Context, []byte) error      { return nil }
func (p *parts) Encode(b []byte, _ *sink.Batch) ([]byte, uint64) { return b, 0 }
func (p *parts) EncodeWindow(w *sink.Window) []sink.Encoded {
	p.mu.Lock()
	defer p.mu.Unlock()
	records, err := p.pub.Window(nil, w.Partial, w.Label, nil, 0)
	if err != nil {
		panic(err)
	}
	p.records = append(p.records, records...)
	return []sink.Encoded{{Payload: []byte("parts"), Series: []sink.SeriesCount{{Series: "part", Points: 1}}, Reports: w.Reports}}
}

// collected returns the records that a collector makes of frames.
func collected(t *testing.T, name string, boot uint64, frames []ingest.Frame) []fleet.Out {
	t.Helper()
	p := &parts{pub: fleet.NewPublisher(fleet.PublisherConfig{From: name, Boot: boot, Slicer: window.NewSlicer(5, 1), Window: int64(time.Second)})}
	c := newEngine(t, func(p *program) { p.Window = time.Second },
		Options{Policy: Replay, Seed: 5, Sources: []Source{{Name: "memory", Source: &scripted{frames}}}, Stores: publish(p, "")})
	if err := run(t, c); err != nil {
		t.Fatal(err)
	}
	return p.records
}

// merged merges records of collectors as a consumer does, window by window.
func merged(t *testing.T, records []fleet.Out) (windows []*inference.Window) {
	t.Helper()
	shared := cross.DefaultLimits()
	cfg := fleet.Options{
		Window: int64(time.Second), Name: "consumer", Cross: &shared,
		Limits: window.Limits{Hops: 1e5, Exporters: 1e5, Flows: 1e5, Paths: 1e5, Drops: 1e5, Faults: 1e5, Numbers: 1e5, Arrivals: 1e5},
	}
	m, err := fleet.NewMerger(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	offset := int64(0)
	add := func(h fleet.Head, value []byte) fleet.Event {
		e, err := m.Add(&fleet.Record{Offset: offset, Head: h, Value: value})
		if offset++; err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, r := range records {
		if e := add(r.Head, r.Value); e.Kind != fleet.Nothing {
			t.Fatalf("record %+v: %v", r.Head, e.Kind)
		}
		ends = append(ends, r.Head.End)
	}
	slices.Sort(ends)
	for _, end := range slices.Compact(ends) {
		e := add(fleet.Head{Kind: fleet.Close, End: end}, nil)
		if e.Closed == nil || len(e.Closed.Bad) > 0 {
			t.Fatalf("window to %d: %+v", end, e)
		}
		w := e.Closed.Partial.Window(window.Limits{Hops: 1e5, Exporters: 1e5, Flows: 1e5, Paths: 1e5, Drops: 1e5, Faults: 1e5})
		windows = append(windows, &w)
	}
	return windows
}

// The merged output of a fleet's collectors equals the output of one process for the same reports. An exporter that
// moves to another collector in the middle of a window leaves no gap. Datagrams that reach both count once as copies.
// Hops, flows and paths are equal, too.
func TestCollectorsAreOne(t *testing.T) {
	const exporters, windows = 5, 8
	gen, err := traffic.New(traffic.Config{Seed: 4, Flows: 60, Hops: 3, Exporters: exporters, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var whole []ingest.Frame
	var parts [2][]ingest.Frame
	lost, twice := uint64(0), uint64(0)
	const each = 400 // datagrams a window
	for i := range windows * each {
		f := ingest.Frame{Data: gen.Next(make([]byte, gen.Bytes())), Link: ingest.LinkUDP, Time: 1e18 + int64(i)*int64(time.Second)/each}
		f.Length = len(f.Data)
		moved := i >= windows*each/2+each/3 // in the middle of a window
		if i > each && i < (windows-3)*each && rng.IntN(50) == 0 {
			lost++
			continue
		}
		to := 0
		if moved {
			to = 1
		}
		whole, parts[to] = append(whole, f), append(parts[to], f)
		if moved && i%(7*exporters) < exporters && i < (windows-3)*each { // the load balancer of the network sends some both ways
			g := f // other bytes under the same number: one collector counts no copy, and several cannot know of one
			g.Data = slices.Clone(f.Data)
			g.Data[len(g.Data)-1] ^= 1
			parts[0] = append(parts[0], g)
			whole = append(whole, g)
			twice++
		}
	}
	one := merged(t, collected(t, "one", 1, whole))
	all := merged(t, append(collected(t, "a", 2, parts[0]), collected(t, "b", 3, parts[1])...))
	if len(one) != windows || len(all) != len(one) {
		t.Fatalf("%d windows of one, %d of two", len(one), len(all))
	}
	sums := func(ws []*inference.Window) map[inference.ExporterKey]string {
		out := map[inference.ExporterKey]string{}
		type sum struct {
			reports, duplicated, restarts uint64
			lost                          int64
		}
		by := map[inference.ExporterKey]sum{}
		total := sum{}
		for _, w := range ws {
			for _, e := range w.Exporters {
				s := by[e.ExporterKey]
				s.reports, s.duplicated, s.restarts, s.lost = s.reports+e.Reports, s.duplicated+e.Duplicated, s.restarts+e.Restarts, s.lost+e.Lost
				by[e.ExporterKey] = s
				total.lost, total.duplicated = total.lost+e.Lost, total.duplicated+e.Duplicated
			}
		}
		for k, s := range by {
			out[k] = fmt.Sprintf("%+v", s)
		}
		if uint64(total.lost) != lost || total.duplicated != twice {
			t.Errorf("%d lost and %d twice, want %d and %d", total.lost, total.duplicated, lost, twice)
		}
		return out
	}
	if a, b := sums(all), sums(one); !reflect.DeepEqual(a, b) {
		t.Errorf("exporters\n%v, want\n%v", a, b)
	}
	for i := range one {
		for k, e := range one[i].Exporters {
			if g := all[i].Exporters[k]; g.ExporterKey != e.ExporterKey || g.Reports != e.Reports || g.Malformed != e.Malformed || g.Last != e.Last {
				t.Errorf("window %d: exporter\n%+v, want\n%+v", i, g, e)
			}
		}
		a, b := *all[i], *one[i]
		a.Exporters, b.Exporters = nil, nil
		if a.FlowCount >= b.FlowCount {
			a.FlowCount = b.FlowCount // a flow that reached both collectors in the window counts twice, as documented
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("window %d:\n%+v, want\n%+v", i, a, b)
		}
	}
}
