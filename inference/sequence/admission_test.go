package sequence

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// honest is an exporter that numbers its reports, some of which are lost on the way.
type honest struct {
	id       uint32
	next     uint32
	received uint64
	lost     int64
	got      inference.ExporterStats
	admitted int // windows until it was followed
}

func (h *honest) send(tr *Tracker, rng *rand.Rand, at int64) {
	if h.received > 0 && rng.IntN(50) == 0 {
		h.next++
		h.lost++
	}
	tr.Observe(report20(h.id, h.id, h.next, at))
	h.next++
	h.received++
}

// others floods a tracker for a number of windows of one second. Each of the honest exporters sends 20 reports a
// window. next invents the next stranger.
func others(tr *Tracker, rng *rand.Rand, all []*honest, windows, flood int, now *int64, next func() uint32) {
	byKey := map[inference.ExporterKey]*honest{}
	for _, h := range all {
		byKey[inference.ExporterKey{Addr: addr(h.id), Node: h.id, HWID: 1}] = h
	}
	var stats []inference.ExporterStats
	for w := range windows {
		for step := range 20 {
			at := *now + int64(step)*50e6
			for i, h := range all {
				h.send(tr, rng, at+int64(i))
			}
			for i := range flood / 20 {
				id := next()
				tr.Observe(report20(id, id, rng.Uint32N(1<<22), at+int64(i)))
			}
		}
		*now += 1e9
		if w == windows-1 {
			tr.Settle()
		}
		stats = tr.Cut(stats[:0], *now)
		for i := range stats {
			if h := byKey[stats[i].ExporterKey]; h != nil {
				if h.got.Reports == 0 {
					h.admitted = w
				}
				h.got = sum([]inference.ExporterStats{h.got, stats[i]})
			}
		}
		if n := tr.Stats().Exporters; n > tr.cfg.MaxExporters {
			panic("more exporters than places")
		}
	}
}

// Strangers take nothing from exporters that have proven themselves: their reports and losses are counted to the last
// one. A new exporter gets in beside them.
func TestStrangers(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxExporters = 256
	for name, invent := range map[string]func(rng *rand.Rand) func() uint32{
		"invented anew every time": func(rng *rand.Rand) func() uint32 {
			return func() uint32 { return 1<<23 | rng.Uint32N(1<<23) }
		},
		"200000 in turn": func(*rand.Rand) func() uint32 {
			n := uint32(0)
			return func() uint32 { n = (n + 1) % 200_000; return 1<<23 | n }
		},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 1))
			tr := New(cfg, rng.Uint64())
			now := int64(1e18)
			var old []*honest
			for i := range uint32(100) {
				old = append(old, &honest{id: i + 1})
			}
			others(tr, rng, old, 5, 0, &now, nil)
			next := invent(rng)
			flood := 20_000
			others(tr, rng, old, 20, flood, &now, next)
			newcomer := &honest{id: 1000}
			all := append(old, newcomer)
			others(tr, rng, all, 20, flood, &now, next)
			for _, h := range old {
				if h.got.Reports != h.received || h.got.Lost != h.lost || h.got.Restarts != 0 {
					t.Errorf("exporter %d: %d reports and %d lost are counted of %d and %d", h.id, h.got.Reports, h.got.Lost, h.received, h.lost)
				}
			}
			if newcomer.got.Reports == 0 || newcomer.admitted > 5 {
				t.Errorf("the newcomer is followed after %d windows, with %d reports", newcomer.admitted, newcomer.got.Reports)
			}
			t.Logf("newcomer after %d windows with %d of %d reports; %+v, %d proven", newcomer.admitted, newcomer.got.Reports, newcomer.received, tr.Stats(), tr.proven)
			// All names still lead to their entries.
			for i := range tr.entries {
				if s := tr.slot(tr.entries[i].space); s.entry != uint32(i)+1 {
					t.Fatalf("entry %d is found as %d", i, s.entry)
				}
			}
			names := 0
			for _, s := range tr.index {
				if s.entry != 0 {
					names++
				}
			}
			if names != len(tr.entries) {
				t.Errorf("%d names of %d exporters", names, len(tr.entries))
			}
		})
	}
}

// Where every place is held by exporters that have proven themselves, one that has been silent for long makes room.
func TestSilentMakesRoom(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxExporters = 64
	rng := rand.New(rand.NewPCG(2, 2))
	tr := New(cfg, 1)
	now := int64(1e18)
	var all []*honest
	for i := range uint32(200) {
		all = append(all, &honest{id: i + 1})
	}
	others(tr, rng, all, 10, 0, &now, nil)
	if tr.proven != 60 || tr.Stats().Exporters != 64 {
		t.Fatalf("%d proven of %d exporters, want 60 of 64", tr.proven, tr.Stats().Exporters)
	}
	fresh := []*honest{{id: 1001}, {id: 1002}, {id: 1003}, {id: 1004}, {id: 1005}, {id: 1006}, {id: 1007}, {id: 1008}}
	others(tr, rng, fresh, 200, 0, &now, nil)
	for _, h := range fresh {
		if h.admitted > 130 || h.got.Reports < h.received/4 {
			t.Errorf("exporter %d is followed after %d windows, with %d of %d reports", h.id, h.admitted, h.got.Reports, h.received)
		}
	}
}

// Exporters without a place are counted by their number in each window, at least so many where there are more than are
// distinguished.
func TestUnwatched(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxExporters = 10
	tr := New(cfg, 1)
	now := int64(1e18)
	window := func(exporters uint32) (int, bool) {
		for seq := range uint32(5) {
			for id := range exporters {
				tr.Observe(report20(id, id, seq, now))
			}
		}
		now += 1e9
		tr.Cut(nil, now)
		s := tr.Stats()
		return s.Unwatched, s.More
	}
	for _, tt := range []struct {
		exporters uint32
		want      int
		more      bool
	}{
		{10, 0, false},
		{100, 90, false},
		{10, 90, false}, // of the last window in which there were any
		{13, 3, false},
		{2 * mostOutside, mostOutside, true},
	} {
		if n, more := window(tt.exporters); n != tt.want || more != tt.more {
			t.Errorf("%d exporters: %d are not watched, more: %t; want %d, %t", tt.exporters, n, more, tt.want, tt.more)
		}
	}
}
