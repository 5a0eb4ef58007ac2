package sequence

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

func addr(n uint32) decode.Addr {
	return decode.AddrFrom4(binary.BigEndian.AppendUint32(nil, 10<<24|n))
}

// report20 is the first report of a datagram of version 2.0.
func report20(from, node uint32, seq uint32, at int64) *decode.Report {
	return &decode.Report{
		Time: at, Version: decode.V20, Exporter: addr(from), NodeID: node, HWID: 1, Seq: seq, SeqBits: 22, FirstOfGroup: true,
		Has: decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq,
	}
}

func testConfig() Config {
	c := DefaultConfig()
	c.MaxExporters, c.Window = 64, testWindow
	return c
}

func TestTrackerCut(t *testing.T) {
	tr := New(testConfig(), 1)
	for i, seq := range []uint32{1, 2, 5, 4} {
		tr.Observe(report20(2, 20, seq, int64(100+i)))
	}
	second := report20(2, 20, 5, 104) // shares the datagram of its number
	second.FirstOfGroup = false
	tr.Observe(second)
	tr.Observe(report20(1, 10, 0, 105))
	bad := report20(1, 10, 1, 106)
	bad.Fail(decode.TelemetryReport, "length", 4, decode.BadLength)
	tr.Observe(bad)
	unreadable := &decode.Report{Has: decode.HasExporter, Exporter: addr(3), Time: 107}
	unreadable.Fail(decode.TelemetryReport, "version", 0, decode.BadVersion)
	tr.Observe(unreadable)
	tr.Observe(&decode.Report{Kind: decode.KindStack, Format: decode.INTMD}) // seen in the network: not exported

	key := func(from, node uint32, hw uint8) inference.ExporterKey {
		return inference.ExporterKey{Addr: addr(from), Node: node, HWID: hw, Nameless: node == 0}
	}
	got := tr.Cut(nil, 1000)
	want := []inference.ExporterStats{
		{ExporterKey: key(1, 10, 1), Reports: 1, Malformed: 1, Last: 106, Sequenced: true},
		{ExporterKey: key(2, 20, 1), Reports: 5, Provisional: 1, Reordered: 1, Last: 104, Sequenced: true},
		{ExporterKey: key(3, 0, 0), Malformed: 1, Last: 107},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("first cut\n%+v\nwant\n%+v", got, want)
	}

	tr.Observe(report20(2, 20, 3, 1500)) // fills the gap of the window before
	got = tr.Cut(got[:0], 2000)
	want = []inference.ExporterStats{
		{ExporterKey: key(1, 10, 1), Last: 106, Sequenced: true},
		{ExporterKey: key(2, 20, 1), Reports: 1, Reordered: 1, Last: 1500, Sequenced: true},
		{ExporterKey: key(3, 0, 0), Last: 107},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("second cut\n%+v\nwant\n%+v", got, want)
	}
	if got = tr.Cut(got[:0], 1000+int64(time.Hour)); len(got) != 1 || got[0].Addr != addr(2) {
		t.Errorf("after an hour: %+v, want only the exporter that spoke in it", got)
	}
	tr.Observe(report20(2, 20, 6, 3000))
	if got = tr.Cut(got[:0], 4000); len(got) != 1 || got[0].Lost != 0 || got[0].Reports != 1 {
		t.Errorf("window of the kept exporter moved with it: %+v", got)
	}
	if s := tr.Stats(); s != (Stats{Exporters: 1, forgotten: 2}) {
		t.Errorf("stats %+v", s)
	}
}

// Telemetry report 0.5 names its node only in reports with a drop or local header, and counts them together.
func TestTrackerOptionalNode(t *testing.T) {
	report := func(from, node, seq uint32) *decode.Report {
		r := &decode.Report{Version: decode.V05, Exporter: addr(from), Seq: seq, SeqBits: 32, FirstOfGroup: true,
			Has: decode.HasExporter | decode.HasHWID | decode.HasSeq}
		if node != 0 {
			r.NodeID, r.Has = node, r.Has|decode.HasNodeID
		}
		return r
	}
	for _, nodes := range [][]uint32{{0, 7, 0, 7, 7, 0, 0}, {7, 0, 0, 7, 0}} {
		tr := New(testConfig(), 1)
		for i, node := range nodes {
			tr.Observe(report(1, node, uint32(i)))
		}
		got := tr.Cut(nil, 1)
		if len(got) != 1 || got[0].Node != 7 || got[0].Lost != 0 || got[0].Reordered != 0 || got[0].Reports != uint64(len(nodes)) {
			t.Errorf("nodes %v: %+v, want one space of node 7 without loss", nodes, got)
		}
		// A second node behind the same address has numbers of its own, and forgetting others keeps the names.
		tr.Observe(report20(9, 9, 0, 0))
		tr.Cut(nil, 2)
		for i := range uint32(20) {
			tr.Observe(report(1, 7, uint32(len(nodes))+i))
			tr.Observe(report(1, 8, 1000+i))
		}
		for _, e := range tr.Cut(nil, 3) {
			if e.Lost != 0 || e.Duplicated != 0 {
				t.Errorf("nodes %v, then two nodes: %+v", nodes, e)
			}
		}
	}
}

func TestTrackerCrowded(t *testing.T) {
	cfg := testConfig()
	tr := New(cfg, 1)
	for seq := range uint32(10) {
		tr.Observe(report20(1, 1, seq, 1))
	}
	for i := range uint32(200) { // invented senders, one report each
		tr.Observe(report20(2, 100+i, 0, 1))
	}
	if s := tr.Stats(); s.Exporters != cfg.MaxExporters || s.Refused != 200+1-uint64(cfg.MaxExporters) {
		t.Fatalf("stats %+v", s)
	}
	tr.Cut(nil, 2)
	tr.Cut(nil, 3) // they were silent for a window
	if s := tr.Stats(); s.Exporters != 1 || s.forgotten != uint64(cfg.MaxExporters)-1 {
		t.Errorf("stats %+v, want the one exporter that came more than once", s)
	}
	tr.Observe(report20(1, 1, 10, 4))
	if got := tr.Cut(nil, 5); len(got) != 1 || got[0].Reports != 1 || got[0].Lost != 0 {
		t.Errorf("cut %+v", got)
	}
}

// TestTrackerMany interleaves many exporters, which must not disturb each other.
func TestTrackerMany(t *testing.T) {
	const exporters = 1000
	cfg := DefaultConfig()
	rng := rand.New(rand.NewPCG(3, 3))
	tr := New(cfg, rng.Uint64())
	next := make([]uint32, exporters)
	lost := make([]int64, exporters)
	for i := range next {
		next[i] = rng.Uint32N(1 << 22)
	}
	reports := make([]uint64, exporters)
	for range 200000 {
		i := rng.IntN(exporters)
		if reports[i] > 0 {
			skip := rng.Uint32N(3)
			next[i] += skip
			lost[i] += int64(skip)
		}
		tr.Observe(report20(uint32(i/4), uint32(i), next[i]&(1<<22-1), 1))
		next[i]++
		reports[i]++
	}
	tr.Settle()
	got := tr.Cut(nil, 2)
	if len(got) != exporters {
		t.Fatalf("%d exporters, want %d", len(got), exporters)
	}
	for _, e := range got {
		if i := e.Node; e.Lost != lost[i] || e.Reports != reports[i] || e.Duplicated+e.Reordered+e.Restarts != 0 {
			t.Errorf("exporter %d: %+v, want %d reports, %d lost", i, e, reports[i], lost[i])
		}
	}
}

func TestMerge(t *testing.T) {
	k := inference.ExporterKey{Addr: addr(1), Node: 1}
	got := Merge([]inference.ExporterStats{
		{ExporterKey: inference.ExporterKey{Addr: addr(2)}, Reports: 9},
		{ExporterKey: k, Reports: 1, Lost: -2, Last: 5, Events: 1, Provisional: 2, Late: 3, Down: 4},
		{ExporterKey: k, Reports: 2, Lost: 5, Last: 4, Sequenced: true, Malformed: 1, Duplicated: 1, Reordered: 1, Restarts: 1, Events: 10, Provisional: 20, Late: 30, Down: 40},
		{ExporterKey: k, Last: 7},
	})
	want := []inference.ExporterStats{
		{ExporterKey: k, Reports: 3, Lost: 3, Last: 7, Sequenced: true, Malformed: 1, Duplicated: 1, Reordered: 1, Restarts: 1, Events: 11, Provisional: 22, Late: 33, Down: 44},
		{ExporterKey: inference.ExporterKey{Addr: addr(2)}, Reports: 9},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTrackerAllocations(t *testing.T) {
	tr := New(testConfig(), 1)
	reports := make([]*decode.Report, 100)
	for i := range reports {
		reports[i] = report20(uint32(i%70), uint32(i%70), uint32(i), int64(i))
	}
	var dst []inference.ExporterStats
	run := func() {
		for _, r := range reports {
			r.Seq += 3
			tr.Observe(r)
		}
		dst = tr.Cut(dst[:0], 1)
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations per window, want 0", n)
	}
}

func TestConfig(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Errorf("default: %v", err)
	}
	cfg.Window, cfg.MaxGap = 1000, 100
	if err := cfg.Validate(); err == nil || err.Error() != "window: 1000 is no power of two of at least 64" {
		t.Errorf("got %v", err)
	}
	for window, right := range map[int]bool{0: false, 32: false, 64: true, 96: false, 128: true} {
		if cfg.Window = window; (cfg.Validate() == nil) != right {
			t.Errorf("window %d: %v", window, cfg.Validate())
		}
	}
	cfg.Window = 1 << 16
	if err := cfg.Validate(); err != nil || cfg.longest() != 64 {
		t.Errorf("a small max_gap: %v, and records of up to %d", err, cfg.longest())
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, n := range []uint32{1, 32, 1024} {
		b.Run("exporters="+string([]byte{'0' + byte(n/1000), '0' + byte(n/100%10), '0' + byte(n/10%10), '0' + byte(n%10)}), func(b *testing.B) {
			tr := New(DefaultConfig(), 1)
			reports := make([]*decode.Report, n)
			for i := range reports {
				reports[i] = report20(uint32(i), uint32(i), 0, 1)
			}
			b.ReportAllocs()
			i, seq := uint32(0), uint32(0)
			for b.Loop() {
				r := reports[i]
				r.Seq = seq & (1<<22 - 1)
				tr.Observe(r)
				if i++; i == n {
					i, seq = 0, seq+1
				}
			}
		})
	}
}

// Reports that name no node are not those of the node with the id 0, also after a restart. A state of before, which did
// not distinguish them, is that of the first.
func TestNode0(t *testing.T) {
	unnamed := func(seq uint32) *decode.Report {
		r := report20(1, 0, seq, int64(seq))
		r.Has &^= decode.HasNodeID
		return r
	}
	a := New(testConfig(), 1)
	for seq := range uint32(10) {
		a.Observe(unnamed(seq))
		a.Observe(report20(1, 0, 1000+seq, int64(seq)))
	}
	b := New(testConfig(), 2)
	if err := b.ReadState(a.AppendState(nil), nil); err != nil {
		t.Fatal(err)
	}
	b.Observe(unnamed(12))              // 10 and 11 were missed
	b.Observe(report20(1, 0, 1010, 12)) // nothing was
	for name, stats := range map[string][]inference.ExporterStats{"first": a.Cut(nil, 1000), "after a restart": b.Cut(nil, 1000)} {
		reports, down := uint64(10), [2]uint64{}
		if name != "first" {
			reports, down[0] = 1, 2
		}
		if len(stats) != 2 {
			t.Fatalf("%s: %+v", name, stats)
		}
		for i, s := range stats {
			if want := (inference.ExporterKey{Addr: addr(1), HWID: s.HWID, Nameless: i == 0}); s.ExporterKey != want || s.Reports != reports || s.Down != down[i] || s.Restarts != 0 {
				t.Errorf("%s: %+v, want %v", name, s, want)
			}
		}
	}
}

// TestAddresses: all bytes of an address come out.
func TestAddresses(t *testing.T) {
	tr := New(testConfig(), 1)
	r := report20(1, 1, 1, 1)
	for i := range r.Exporter {
		r.Exporter[i] = byte(i + 1)
	}
	tr.Observe(r)
	if got := tr.Cut(nil, 2); len(got) != 1 || got[0].Addr != r.Exporter {
		t.Errorf("%+v, want the address %v", got, r.Exporter)
	}
}

// TestPlacesWords: an exporter that is trusted gets the last of the memory for longer records, and another one leaves
// three quarters of it.
func TestPlacesWords(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		p := NewPlaces(testConfig(), 1)
		n := p.allWords
		if !trusted {
			n /= 4
		}
		if p.claimWords(n+1, trusted) || p.words.Load() != p.allWords {
			t.Errorf("trusted %t: took one more than %d words of %d", trusted, n, p.allWords)
		}
		if !p.claimWords(n, trusted) || p.words.Load() != p.allWords-n || p.claimWords(1, trusted) {
			t.Errorf("trusted %t: did not take %d words of %d", trusted, n, p.allWords)
		}
	}
}

// TestTimesOfExporters holds when an exporter is forgotten, has proven itself and is a guest again to the nanosecond.
func TestTimesOfExporters(t *testing.T) {
	cfg := testConfig()
	for past, exporters := range []int{1, 0} { // ns past ForgetAfter
		tr := New(cfg, 1)
		tr.Observe(report20(1, 1, 1, 1e9))
		tr.Cut(nil, 2e9)
		if tr.Cut(nil, 1e9+int64(cfg.ForgetAfter)+int64(past)); tr.Stats().Exporters != exporters {
			t.Errorf("%d ns past: %d exporters", past, tr.Stats().Exporters)
		}
	}
	for early, proven := range []int64{1, 0} {
		tr := New(cfg, 1)
		tr.Observe(report20(1, 1, 1, 1e9))
		tr.Cut(nil, 15e8)
		tr.Observe(report20(1, 1, 2, 1e9+provenAfter-int64(early)))
		if tr.Cut(nil, 3e9); tr.proven != proven {
			t.Errorf("%d ns early: %d have proven themselves", early, tr.proven)
		}
	}
	for past, proven := range []int64{1, 0} {
		tr := New(cfg, 1)
		tr.Observe(report20(1, 1, 1, 1e9))
		tr.Cut(nil, 2e9)
		tr.Observe(report20(1, 1, 2, 3e9))
		tr.Cut(nil, 4e9)
		tr.places.left.Store(0)
		if tr.Cut(nil, 3e9+int64(cfg.ForgetAfter)/32+int64(past)); tr.proven != proven {
			t.Errorf("%d ns past a 32nd of the silence after which it is forgotten: %d are proven", past, tr.proven)
		}
	}
}

// TestOwnPlaces: an exporter in a place that only its tracker has proves itself once it gets a common one, and leaves
// that to newcomers.
func TestOwnPlaces(t *testing.T) {
	for left, want := range []int64{0, 1} {
		tr := NewShared(testConfig(), 1, NewPlaces(testConfig(), 2))
		tr.places.left.Store(0)
		tr.Observe(report20(1, 1, 1, 1e9))
		tr.Cut(nil, 2e9)
		tr.places.left.Store(int64(left))
		tr.Observe(report20(1, 1, 2, 3e9))
		tr.Cut(nil, 4e9)
		if tr.proven != want || tr.own != 1-want || tr.places.left.Load() != 0 {
			t.Errorf("with %d common places: %d have proven themselves, %d own places are taken, %d common ones are left", left, tr.proven, tr.own, tr.places.left.Load())
		}
	}
}

// TestKnocks: a counter at the door ends at its largest value.
func TestKnocks(t *testing.T) {
	var d door
	for n := range uint32(300) {
		if got := d.knock(7, 1); got != min(n+1, 255) {
			t.Fatalf("%d knocks are %d", n+1, got)
		}
	}
}

// TestBelieveNumbers: no exporter is believed to count whose reports have no number.
func TestBelieveNumbers(t *testing.T) {
	tr := New(testConfig(), 1)
	tr.Believe()
	r := report20(1, 1, 0, 1e9)
	r.Has &^= decode.HasSeq
	tr.Observe(r)
	if got := tr.Cut(nil, 2e9); got[0].Sequenced {
		t.Errorf("%+v", got)
	}
}
