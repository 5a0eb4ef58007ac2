package sequence

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// reported expands what was reported of one sequence.
func reported(t *testing.T, list []window.Numbers) (numbers []uint32) {
	t.Helper()
	for _, n := range list {
		mask := ^uint32(0) >> (32 - n.Width)
		for i, r := range n.Runs {
			if r.Count == 0 || r.Last < r.First || r.Count > r.Last-r.First+1 || i > 0 && r.First < n.Runs[i-1].Last+2 || i == 0 && r.First != 0 {
				t.Fatalf("runs %+v", n.Runs)
			}
			if r.Count == r.Last-r.First+1 {
				for o := r.First; o <= r.Last; o++ {
					numbers = append(numbers, (n.First+uint32(o))&mask)
				}
			}
		}
	}
	slices.Sort(numbers)
	return numbers
}

// TestReport compares the numbers that a tracker reports for a window with those that came in it for the first time.
// They have loss, duplicates, disorder also across the ends of windows, and wrap. With room for few runs, sums and ends
// are right.
func TestReport(t *testing.T) {
	windows, gaps, fills := 0, 0, 0
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 21))
		width := []uint8{22, 32}[rng.IntN(2)]
		mask := ^uint32(0) >> (32 - width)
		tr, few := New(DefaultConfig(), seed), New(DefaultConfig(), seed)
		tr.ReportNumbers(1 << 20)
		most := 2 + rng.IntN(10)
		few.ReportNumbers(most)
		base := rng.Uint32() & mask
		if rng.IntN(2) == 0 {
			base = (0 - rng.Uint32N(3000)) & mask
		}
		var queue []uint32
		n := 2000 + rng.Uint32N(20000)
		loss, burst := rng.Float64()*0.3, rng.Uint32N(3000)
		for i := uint32(0); i < n; i++ {
			switch {
			case i > 200 && rng.IntN(4000) == 0:
				i += burst
			case i > 0 && rng.Float64() < loss:
				continue
			}
			queue = append(queue, i)
			if rng.IntN(100) == 0 {
				queue = append(queue, i)
			}
		}
		late := rng.IntN(900) + 1
		for i := range queue { // some come late
			if i > late && rng.IntN(50) == 0 {
				k := i - rng.IntN(late)
				x := queue[k]
				copy(queue[k:], queue[k+1:i+1])
				queue[i] = x
			}
		}
		arrived := map[uint32]bool{}
		at := int64(1e18)
		var p, q window.Partial
		for len(queue) > 0 {
			k := min(len(queue), rng.IntN(4000))
			var want []uint32
			for _, x := range queue[:k] {
				x = (base + x) & mask
				at += 1e5
				r := report20(1, 1, x, at)
				r.SeqBits = width
				tr.Observe(r)
				few.Observe(r)
				if !arrived[x] {
					arrived[x] = true
					want = append(want, x)
				}
			}
			queue = queue[k:]
			tr.Cut(nil, at)
			few.Cut(nil, at)
			p.Reset()
			q.Reset()
			tr.Numbers(&p)
			few.Numbers(&q)
			slices.Sort(want)
			got := reported(t, p.Numbers())
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, width %d: %d numbers are reported %d, in %+v", seed, width, len(got), len(want), p.Numbers())
			}
			windows++
			if len(want) == 0 {
				continue
			}
			a, b := &p.Numbers()[0], &q.Numbers()[0]
			gaps += len(a.Runs) - 1
			count := uint64(0)
			for _, r := range b.Runs {
				count += r.Count
			}
			if len(a.Runs) > 0 && want[0] > a.First {
				fills++
			}
			if reported(t, q.Numbers()); count != uint64(len(want)) || a.First != b.First || len(b.Runs) > 3*most+1 ||
				a.Runs[len(a.Runs)-1].Last != b.Runs[len(b.Runs)-1].Last {
				t.Fatalf("seed %d: %d of %d runs stand for %d numbers of %d: %+v of %+v", seed, len(b.Runs), most, count, len(want), b, a)
			}
			if _, err := q.AppendBinary(nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if windows < 500 || gaps < 10000 {
		t.Errorf("%d windows with %d gaps are too few", windows, gaps)
	}
}

// TestReportRestart: what came before and after a restart is reported in two parts.
func TestReportRestart(t *testing.T) {
	tr := New(testConfig(), 1)
	tr.ReportNumbers(64)
	at := int64(1e18)
	see := func(numbers ...uint32) {
		for _, n := range numbers {
			at += 1e6
			tr.Observe(report20(1, 1, n, at))
		}
	}
	cut := func() []window.Numbers {
		var p window.Partial
		tr.Cut(nil, at)
		tr.Numbers(&p)
		return p.Numbers()
	}
	see(span(0, 100)...)
	cut()
	see(span(101, 200)...)
	see(span(3_000_000, 3_000_200)...)
	got := cut()
	if len(got) != 2 || got[0].First != 101 || got[0].Runs[0].Count != 99 || got[0].Anew || got[1].Part != 1 || !got[1].Anew ||
		got[1].First != 3_000_000 || got[1].Runs[0].Count != 200 {
		t.Errorf("a restart far away is reported as %+v", got)
	}
	see(span(3_000_010, 3_000_100)...) // inside of the record
	if got = cut(); len(got) != 1 || !got[0].Anew || got[0].First != 3_000_010 || got[0].Runs[0].Count != 90 {
		t.Errorf("a restart nearby is reported as %+v", got)
	}
	if got = cut(); len(got) != 0 {
		t.Errorf("silence is reported as %+v", got)
	}
	tr2 := New(testConfig(), 1) // a later run goes on from the state
	tr2.ReportNumbers(64)
	if err := tr2.ReadState(tr.AppendState(nil), nil); err != nil {
		t.Fatal(err)
	}
	tr = tr2
	see(3_000_105, 3_000_106)
	if got = cut(); len(got) != 1 || got[0].Anew || got[0].First != 3_000_105 || got[0].Runs[0].Count != 2 {
		t.Errorf("after a state is reported %+v", got)
	}
	for range 12 { // more restarts than are reported
		see(span(1_000_000, 1_000_010)...)
		see(span(2_500_000, 2_500_010)...)
	}
	if n := len(tr.entries[0].log.parts); n > maxParts {
		t.Errorf("%d parts are kept, want %d at most", n, maxParts)
	}
	if got = cut(); len(got) != 1 || !got[0].Unknown || got[0].First != 2_500_009 {
		t.Errorf("many restarts are reported as %+v", got)
	}
}

// TestReportSame: what a tracker counts does not depend on whether it reports numbers; and reporting those of exporters
// that lose none allocates nothing.
func TestReportSame(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 22))
		a, b := New(testConfig(), seed), New(testConfig(), seed)
		a.ReportNumbers(8)
		at, next := int64(1e18), [3]uint32{}
		var p window.Partial
		for range 50 {
			for range rng.IntN(500) {
				at += 1e6
				i := rng.IntN(len(next))
				switch rng.IntN(40) {
				case 0:
					next[i] += rng.Uint32N(100)
				case 1:
					next[i] -= rng.Uint32N(100)
				case 2:
					if rng.IntN(20) == 0 {
						next[i] = rng.Uint32()
					}
				}
				next[i]++
				r := report20(uint32(i), 1, next[i]&(1<<22-1), at)
				a.Observe(r)
				b.Observe(r)
			}
			x, y := a.Cut(nil, at), b.Cut(nil, at)
			if !slices.Equal(x, y) {
				t.Fatalf("seed %d: %+v where numbers are reported, %+v where they are not", seed, x, y)
			}
			a.Numbers(&p)
			b.Numbers(&p)
		}
	}
	tr := New(testConfig(), 1)
	tr.ReportNumbers(64)
	r := report20(1, 1, 0, 1e18)
	var p window.Partial
	var dst []inference.ExporterStats
	window := func() {
		for range 3000 {
			r.Seq++
			r.Time += 1e6
			tr.Observe(r)
		}
		p.Reset()
		dst = tr.Cut(dst[:0], r.Time)
		tr.Numbers(&p)
	}
	window()
	window()
	if got := testing.AllocsPerRun(20, window); got != 0 {
		t.Errorf("%v allocations a window", got)
	}
}

// TestBelieve: of an exporter that is believed to count, a single number is listed as well, wherever it begins.
func TestBelieve(t *testing.T) {
	for _, believe := range []bool{false, true} {
		for _, first := range []uint32{0, 1, 2, 41, 1<<22 - 1} {
			tr := New(testConfig(), 1)
			tr.ReportNumbers(16)
			if believe {
				tr.Believe()
			}
			tr.Observe(report20(1, 1, first, 1e9))
			var p window.Partial
			stats := tr.Cut(nil, 2e9)
			tr.Numbers(&p)
			listed := len(p.Numbers()) == 1 && p.Numbers()[0].First == first && slices.Equal(p.Numbers()[0].Runs, []window.Run{{Count: 1}})
			if listed != believe || len(p.Numbers()) > 1 || len(stats) != 1 || stats[0].Sequenced != believe || stats[0].Lost != 0 {
				t.Errorf("number %d, believed %v: %+v, %+v", first, believe, stats, p.Numbers())
			}
		}
	}
}

// TestReportMalformed: numbers may have gone round also by reports that could not be read to their end.
func TestReportMalformed(t *testing.T) {
	for more, unknown := range []bool{false, true} {
		tr := New(testConfig(), 1)
		tr.ReportNumbers(16)
		for n := range uint32(1<<14 - 2 + more) {
			r := report20(1, 1, n, 1e9)
			if r.SeqBits = 14; n%2 == 0 {
				r.Fail(decode.TelemetryReport, "length", 4, decode.BadLength)
			}
			tr.Observe(r)
		}
		tr.Cut(nil, 2e9)
		var p window.Partial
		if tr.Numbers(&p); len(p.Numbers()) != 1 || p.Numbers()[0].Unknown != unknown {
			t.Errorf("%d more than fit: %+v", more, p.Numbers())
		}
	}
}

// TestReportMuch: numbers that fill gaps, or that have no record, are listed up to the room for them, and not one more.
// None are listed if they reach round from the first to the last.
func TestReportMuch(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fills uint32
		jumps int
		lates uint32
		last  uint32 // number after these, 0 for none
		part  bool   // they are listed
	}{
		{"as many as fit", maxFills, 0, 0, 0, true},
		{"one more", maxFills + 1, 0, 0, 0, false},
		{"without a record", 0, 0, maxFills, 0, true},
		{"one more without a record", 0, 0, maxFills + 1, 0, false},
		{"three quarters of all", 1, 3, 0, 0, true},
		{"all that there are", 1, 3, 0, 10 + 1<<14 - 1, true},
		{"round to the first of them", 1, 3, 0, 10 + 1<<14, false},
		{"all but a few, and some before", 1, 4, 0, 0, false},
	} {
		m := testRoom(4096)
		s := follow(14, m)
		w := &twin{width: 14, longest: 4096, maxGap: testGap, least: m.least(), size: m.least(), arrived: map[uint32]bool{}, absent: map[uint32]absent{}}
		s.log, w.log = newNumberLog(5000, 0, 4096), &logTwin{most: 5000}
		at := int64(1e12)
		see := func(seq uint32, at int64) {
			s.observe(seq, at, m)
			w.observe(seq, at)
		}
		for _, n := range []uint32{0, 1, 2, 3, 4, 3900} {
			if tt.lates > 0 && n == 3900 { // the record stays short
				n = 6
			}
			see(n, at)
		}
		if tt.lates > 0 {
			for k := range int64(2) { // nothing is waited for
				s.cut(at+3e9*k, m)
				w.cut(at + 3e9*k)
			}
			for n := uint32(7); n <= 3900; n++ {
				see(n, at+3e9)
			}
		}
		var p window.Partial
		if wrong := compareLogs(s, w, &p, 6); wrong != "" {
			t.Fatalf("%s: %s", tt.name, wrong)
		}
		for n := range tt.fills {
			see(10+2*n%3000+n/1500, at)
		}
		for k := range tt.jumps {
			see(3900+4000*uint32(k+1), at)
		}
		if tt.last > 0 {
			see(tt.last, at)
		}
		if tt.lates > 0 {
			for n := range uint32(4000) {
				see(3901+n, at+3e9)
			}
			for n := range tt.lates {
				see(3950+n, at)
			}
		}
		if n := max(len(s.log.fills), len(s.log.lates)); n > maxFills {
			t.Errorf("%s: %d numbers are kept, want %d at most", tt.name, n, maxFills)
		}
		if wrong := compareLogs(s, w, &p, uint64(tt.fills+tt.lates)+1); wrong != "" {
			t.Fatalf("%s: %s", tt.name, wrong)
		}
		if listed := !p.Numbers()[0].Unknown; listed != tt.part {
			t.Errorf("%s: listed is %t, want %t: %v", tt.name, listed, tt.part, numbers(p.Numbers()))
		}
	}
}
