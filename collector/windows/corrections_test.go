package windows

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
)

// manyHops is a window of 640 hops with the busiest flows and exporters of a data centre.
func manyHops(p *window.Partial, end int64) {
	p.Reset()
	p.Span(end-int64(10*time.Second), end)
	x := uint64(end)
	next := func(n uint64) uint64 { x = x*6364136223846793005 + 1442695040888963407; return x >> 33 % n }
	for i := range 640 {
		h := p.Hop(inference.HopKey{Node: uint32(i / 16), EgressIf: uint32(i % 16)})
		for range 1000 {
			h.Latency.AddValue(800 + next(3000))
			h.Queue.AddValue(next(200))
		}
	}
	for i := range 100 {
		f := window.FlowPart{Packets: 1000 + uint64(i), Last: end}
		f.Key.SrcPort = uint16(i + 1)
		for k := range 5 {
			f.Path = append(f.Path, inference.HopKey{Node: uint32(k), EgressIf: uint32(i % 16)})
			h := f.Hop(f.Path[k])
			for range 200 {
				h.Latency.AddValue(800 + next(3000))
				h.Queue.AddValue(next(200))
			}
		}
		p.AddFlow(&f)
	}
	p.AddExporters([]inference.ExporterStats{{Reports: 640_000 / 5, Sequenced: true}})
	p.Reports = 640_000 / 5
}

func testCorrections(bytes int64) *corrections {
	return newCorrections(&Corrections{Bytes: bytes, Shards: runtime.GOMAXPROCS(0), Exporters: sequence.DefaultConfig().MaxExporters, Flows: shard.DefaultConfig()})
}

// Ten minutes of windows of 640 hops take the memory that docs/operating.md states.
func TestCorrectionsMemory(t *testing.T) {
	c := testCorrections(64 << 20)
	var p window.Partial
	for i := range int64(61) {
		manyHops(&p, (i+1)*int64(10*time.Second))
		if _, _, err := c.add(p.End, &p); err != nil {
			t.Fatal(err)
		}
		if floor := c.trim(0); floor != 0 {
			t.Fatalf("window %d made %d forgotten", i, floor)
		}
	}
	t.Logf("%d windows of 640 hops, 1000 records each: %d bytes, %d a window", len(c.kept), c.bytes, c.bytes/len(c.kept))
	if c.bytes > 30<<20 {
		t.Errorf("%d bytes; the guide says up to 30 MiB", c.bytes)
	}
}

// Memory is bounded whatever is kept. The oldest windows are evicted first, and the latest stays.
func TestCorrectionsBound(t *testing.T) {
	c := testCorrections(1 << 20)
	var p window.Partial
	for i := range int64(30) {
		manyHops(&p, (i+1)*int64(10*time.Second))
		if _, _, err := c.add(p.End, &p); err != nil {
			t.Fatal(err)
		}
		floor := c.trim(0)
		n := len(c.kept)
		if n == 0 || c.kept[n-1].label != p.End || n > 1 && c.bytes > 1<<20 || c.kept[0].label <= floor {
			t.Fatalf("%d windows with %d bytes, up to %d forgotten", n, c.bytes, floor)
		}
		sum := 0
		for _, k := range c.kept {
			sum += len(k.data)
		}
		if sum != c.bytes {
			t.Fatalf("%d bytes are counted as %d", sum, c.bytes)
		}
	}
}

// A repeated label gives the window of all its counts, however often it comes.
func TestCorrectionsMerge(t *testing.T) {
	c := testCorrections(64 << 20)
	var p, all window.Partial
	for n := range uint64(5) {
		manyHops(&p, int64(10*time.Second))
		all.Merge(&p)
		whole, revision, err := c.add(77, &p)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if whole != nil {
				t.Fatal("the first window is not new")
			}
			continue
		}
		want := all.Window(window.Limits{Flows: 1000})
		if revision != n || whole.Reports != want.Reports || len(whole.Hops) != len(want.Hops) || len(whole.Flows) < len(want.Flows) {
			t.Fatalf("revision %d: %d reports, %d hops, %d flows", revision, whole.Reports, len(whole.Hops), len(whole.Flows))
		}
		for i := range want.Hops {
			if whole.Hops[i] != want.Hops[i] {
				t.Fatalf("hop %+v, want %+v", whole.Hops[i], want.Hops[i])
			}
		}
	}
}

// Should kept bytes ever not be readable, that is reported, and nothing is taken for what they held.
func TestCorrectionsDamaged(t *testing.T) {
	c := testCorrections(64 << 20)
	var p window.Partial
	manyHops(&p, 77)
	if _, _, err := c.add(77, &p); err != nil {
		t.Fatal(err)
	}
	c.kept[0].data = c.kept[0].data[:9]
	if whole, _, err := c.add(77, &p); err == nil || whole != nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("%v, %v", whole, err)
	}
}

// What is published to other members of a fleet stays out of what is kept, and keeps nothing from being written whole.
func TestCorrectionsOfAFleet(t *testing.T) {
	c := testCorrections(64 << 20)
	var p window.Partial
	for i := range 3 {
		manyHops(&p, int64(10*time.Second))
		p.AddNumbers(&window.Numbers{Width: 22, Runs: []window.Run{{First: 0, Last: 9, Count: 10}}})
		p.AddArrival(&window.Arrival{PathID: uint64(i)})
		w, revision, err := c.add(p.End, &p)
		if err != nil || revision != uint64(i) || (w != nil) != (i > 0) || w != nil && w.Reports != uint64(i+1)*p.Reports {
			t.Fatalf("time %d: revision %d of %v, %v", i, revision, w != nil, err)
		}
		if len(p.Numbers()) != 1 || len(p.Arrivals()) != 1 {
			t.Fatal("the window that goes to the fleet lost what it reported")
		}
	}
}
