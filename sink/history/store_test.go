package history

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// noon is where the time of the tests begins.
var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC).UnixNano()

const second = int64(time.Second)

func open(t testing.TB, dir string, change func(*Config)) *Store {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	s, err := Open(cfg, Options{Dir: dir, Hops: 64})
	if err != nil {
		t.Fatal(err)
	}
	// Tests write the minutes of days; what a crash of the machine leaves is tried by cutting files.
	s.create = func(path string) (output, error) {
		o, err := openOutput(path)
		return unforced{o}, err
	}
	return s
}

// unforced is a file that is not forced to the disk.
type unforced struct{ output }

func (unforced) Sync() error { return nil }

func closed(t testing.TB, s *Store) {
	t.Helper()
	s.opened.Lock()
	s.endMinute()
	s.opened.Unlock()
	s.drain()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// drain writes the minutes that wait.
func (s *Store) drain() {
	for {
		select {
		case m := <-s.queue:
			s.write(m)
		default:
			return
		}
	}
}

// take gives a store a window of ten seconds, with the values of each hop.
func take(t testing.TB, s *Store, end int64, values map[inference.HopKey][]uint64, found ...inference.Finding) {
	t.Helper()
	var p window.Partial
	p.Span(end-10*second, end)
	for k, list := range values {
		h := p.Hop(k)
		for _, v := range list {
			h.Latency.AddValue(v)
			h.Queue.AddValue(v / 8)
		}
		h.Utilization, h.HasUtilization = float64(len(list)%10)/10, true
		p.Reports += uint64(len(list))
	}
	w := p.Window(window.NoLimits())
	if err := s.AddPartial(t.Context(), &sink.Window{Window: &w, Partial: &p, Findings: found}); err != nil {
		t.Fatal(err)
	}
	s.drain()
}

// near reports whether a quantile of the history is the exact one, within the error of the sketch.
func near(got float32, list []uint64, q float64) bool {
	slices.Sort(list)
	want := float64(list[max(int(math.Ceil(q*float64(len(list))))-1, 0)])
	return math.Abs(float64(got)-want) <= want*quantile.DenseRelativeError+1
}

// Quantiles of an hour and of a day are those of all values in them, within the error of one sketch, whatever was merged.
func TestQuantilesOfRollUps(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	rng := rand.New(rand.NewPCG(1, 2))
	a, b := inference.HopKey{Node: 7, EgressIf: 3}, inference.HopKey{Node: 0}
	exact := map[int64]map[inference.HopKey][]uint64{} // by hour
	start := noon - noon%steps[3].length
	const hours = 26
	for w := range int64(hours * 180) {
		end := start + (w+1)*20*second
		values := map[inference.HopKey][]uint64{}
		// A slow minute an hour: an average of medians would hide it, and a mean of tails would be far off.
		scale := 10_000.0
		if w%180 < 3 {
			scale = 5e6
		}
		for _, k := range []inference.HopKey{a, b} {
			for range 1 + rng.IntN(4) {
				values[k] = append(values[k], uint64(scale*math.Exp(rng.NormFloat64())))
			}
		}
		take(t, s, end, values)
		h := (end - 1) / steps[2].length
		if exact[h] == nil {
			exact[h] = map[inference.HopKey][]uint64{}
		}
		for k, l := range values {
			exact[h][k] = append(exact[h][k], l...)
		}
	}
	closed(t, s)
	st := s.Stats()
	if want := [len(steps)]int{hours * 60, hours * 6, hours, 1}; st.Records != want || st.LostMinutes != 0 || st.Damaged != 0 {
		t.Fatalf("records are %v, %d minutes lost, %d damaged; want %v", st.Records, st.LostMinutes, st.Damaged, want)
	}
	checks := 0
	check := func(k inference.HopKey, f *Figures, list []uint64) {
		t.Helper()
		checks++
		for _, q := range []struct {
			f Figure
			q float64
		}{{LatencyMin, 0}, {LatencyP50, .5}, {LatencyP90, .9}, {LatencyP99, .99}, {LatencyMax, 1}} {
			if !near(f[q.f], list, q.q) {
				t.Errorf("%v: quantile %v is %v, and exact %v", k, q.q, f[q.f], list[max(int(math.Ceil(q.q*float64(len(list))))-1, 0)])
			}
		}
		if f[Records] != float32(len(list)) {
			t.Errorf("%v: %v records, want %d", k, f[Records], len(list))
		}
	}
	day := map[inference.HopKey][]uint64{}
	for h := range int64(24) {
		from := start + h*steps[2].length
		w, c, err := s.Sum(t.Context(), from, from+steps[2].length)
		if err != nil || c.Merged() != 180 || c.Gaps() != 0 {
			t.Fatalf("hour %d: %v, %d windows, %d gaps", h, err, c.Merged(), c.Gaps())
		}
		for i := range w.Hops {
			f, list := FiguresOf(&w.Hops[i]), exact[from/steps[2].length][w.Hops[i].HopKey]
			check(w.Hops[i].HopKey, &f, list)
			day[w.Hops[i].HopKey] = append(day[w.Hops[i].HopKey], list...)
		}
	}
	w, c, err := s.Sum(t.Context(), start, start+steps[3].length)
	if err != nil || c.Merged() != 4320 {
		t.Fatalf("day: %v, %d windows", err, c.Merged())
	}
	for i := range w.Hops {
		f := FiguresOf(&w.Hops[i])
		check(w.Hops[i].HopKey, &f, day[w.Hops[i].HopKey])
	}
	// The columns of hours are stored; the last two hours of the day after are finer records.
	_, err = s.Series(t.Context(), start, start+31*24*steps[2].length, func(i int, k inference.HopKey, f *Figures) {
		check(k, f, exact[start/steps[2].length+int64(i)][k])
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := 24*2 + 2 + hours*2; checks != want {
		t.Errorf("%d hops were compared, want %d", checks, want)
	}
}

// minutesOf feeds n minutes of one window each.
func minutesOf(t testing.TB, s *Store, from int64, n int) {
	for i := range n {
		take(t, s, from+int64(i+1)*60*second, map[inference.HopKey][]uint64{{Node: uint32(i % 3), EgressIf: 1}: {uint64(1000 + i), 2000}})
	}
}

// seen is what a history shows of n minutes.
func seen(t testing.TB, s *Store, from int64, n int) (out []string, c Columns) {
	t.Helper()
	c, err := s.Series(t.Context(), from, from+int64(n)*60*second, func(i int, k inference.HopKey, f *Figures) {
		out = append(out, fmt.Sprint(i, k, *f))
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, c
}

// What was written is there after a restart, and the next run goes on in the same file.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	if _, err := Open(DefaultConfig(), Options{Dir: dir, Hops: 1}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second process opens it: %v", err)
	}
	minutesOf(t, s, noon, 3)
	want, _ := seen(t, s, noon, 3)
	closed(t, s)
	s = open(t, dir, nil)
	got, c := seen(t, s, noon, 3)
	if !slices.Equal(got, want) || len(got) != 3 || c.Merged() != 3 {
		t.Errorf("after a restart it shows %v, before %v", got, want)
	}
	minutesOf(t, s, noon+10*60*second, 1)
	got, c = seen(t, s, noon, 11)
	if len(got) != 4 || c.Gaps() != 7 || !slices.Equal(c.Windows, []uint32{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1}) {
		t.Errorf("it shows %v with windows %v", got, c.Windows)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "minute-*")); len(files) != 1 {
		t.Errorf("files are %q", files)
	}
	closed(t, s)
}

// Windows that come after their hour was made are in the hour.
func TestLateWindows(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	k := inference.HopKey{Node: 1}
	minutesOf(t, s, noon, 130)
	take(t, s, noon+5*60*second-20*second, map[inference.HopKey][]uint64{k: {77}}) // the clock was set back
	minutesOf(t, s, noon+130*60*second, 1)
	for range 2 {
		w, c, err := s.Sum(t.Context(), noon, noon+3600*second)
		if err != nil || c.Merged() != 61 || w.Reports != 121 {
			t.Fatalf("%v, %d windows, %d reports", err, c.Merged(), w.Reports)
		}
		i := slices.IndexFunc(s.kept[2].records, func(r record) bool { return r.bucket == noon })
		if got := s.kept[2].records[i].windows; got != 61 {
			t.Errorf("the hour has %d windows", got)
		}
		dir := s.opt.Dir
		closed(t, s)
		s = open(t, dir, nil)
	}
	closed(t, s)
}

// A run that ended before an hour was over left its minutes, of which the next run makes the hour.
func TestHourOfTwoRuns(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	minutesOf(t, s, noon, 55)
	closed(t, s)
	s = open(t, dir, nil)
	minutesOf(t, s, noon+58*60*second, 3)
	if n := s.Stats().Records[2]; n != 1 {
		t.Fatalf("%d hours", n)
	}
	if got := s.kept[2].records[0].windows; got != 57 {
		t.Errorf("the hour has %d windows", got)
	}
	closed(t, s)
}

// A byte that is not what was written costs one record at most, and is counted.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	const n = 4
	minutesOf(t, s, noon, n)
	want, _ := seen(t, s, noon, n)
	closed(t, s)
	files, _ := filepath.Glob(filepath.Join(dir, "minute-*"))
	whole, err := os.ReadFile(files[0])
	if err != nil || len(files) != 1 {
		t.Fatal(err, files)
	}
	for at := fileHead; at < len(whole); at += testkit.Stride() {
		b := slices.Clone(whole)
		b[at] ^= 0x41
		if err := os.WriteFile(files[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, nil)
		got, c := seen(t, s, noon, n)
		if _, _, err := s.Sum(t.Context(), noon, noon+n*60*second); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Happened(t.Context(), noon, noon+n*60*second); err != nil {
			t.Fatal(err)
		}
		st := s.Stats()
		if st.Damaged == 0 || st.Records[0] < n-1 || st.LastDamage == "" {
			t.Fatalf("byte %d: %d damaged, %d records, %q", at, st.Damaged, st.Records[0], st.LastDamage)
		}
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Fatalf("byte %d: %s was never written", at, line)
			}
		}
		if len(got) < n-1 || c.Merged() < n-1 {
			t.Fatalf("byte %d: %d records are left", at, len(got))
		}
		closed(t, s)
	}
	for cut := fileHead; cut < len(whole); cut += 7 {
		if err := os.WriteFile(files[0], whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, nil)
		before := s.Stats().Records[0]
		minutesOf(t, s, noon+20*60*second, 1)
		if _, c := seen(t, s, noon, 21); c.Merged() != uint64(before+1) {
			t.Fatalf("cut at %d: %d windows, want %d", cut, c.Merged(), before+1)
		}
		closed(t, s)
		s = open(t, dir, nil)
		if st := s.Stats(); st.Records[0] != before+1 || st.Damaged != 0 {
			t.Fatalf("cut at %d: %d records and %d damaged after a restart, want %d", cut, st.Records[0], st.Damaged, before+1)
		}
		closed(t, s)
		for _, extra := range mustGlob(t, filepath.Join(dir, "minute-*"))[1:] {
			_ = os.Remove(extra)
		}
	}
}

func mustGlob(t testing.TB, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A damaged hour is made up for by its minutes as long as these are there.
func TestDamagedHour(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	minutesOf(t, s, noon, 62)
	closed(t, s)
	file := mustGlob(t, filepath.Join(dir, "hour-*"))[0]
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-20] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, nil)
	w, c, err := s.Sum(t.Context(), noon, noon+3600*second)
	if err != nil || c.Merged() != 60 || w.Reports != 120 || s.Stats().Damaged != 1 {
		t.Errorf("%v, %d windows, %d reports, %d damaged", err, c.Merged(), w.Reports, s.Stats().Damaged)
	}
	minutesOf(t, s, noon+62*60*second, 1)
	if n := s.Stats().Records[2]; n != 1 {
		t.Errorf("the hour was not made again: %d", n)
	}
	closed(t, s)
}

// Old files go by age, and the oldest of a step by size. Minutes displace no hours.
func TestBounds(t *testing.T) {
	s := open(t, t.TempDir(), func(c *Config) { c.Minutes = 2 * time.Hour })
	minutesOf(t, s, noon, 6*60)
	st := s.Stats()
	if st.Records[0] < 2*60 || st.Records[0] > 3*60 || st.Deleted == 0 || st.Records[1] != 36 || st.Records[2] != 6 {
		t.Errorf("records are %v, and %d files were deleted", st.Records, st.Deleted)
	}
	if _, c := seen(t, s, noon, 6*60); c.Step != 10*time.Minute || c.Merged() != 360 || c.Gaps() != 0 {
		t.Errorf("a step of %v shows %d windows and %d gaps", c.Step, c.Merged(), c.Gaps())
	}
	closed(t, s)

	const most = 64 << 10
	dir := t.TempDir()
	s = open(t, dir, func(c *Config) { c.MaxBytes = most })
	minutesOf(t, s, noon, 12*60)
	st = s.Stats()
	if st.Bytes > most || st.Records[0] >= 12*60 || st.Records[0] < 30 || st.Records[2] != 12 || st.Deleted == 0 {
		t.Errorf("%d bytes, records %v, %d files deleted", st.Bytes, st.Records, st.Deleted)
	}
	var size int64
	for _, f := range mustGlob(t, filepath.Join(dir, "*"+suffix)) {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size != st.Bytes {
		t.Errorf("files have %d bytes, and %d are counted", size, st.Bytes)
	}
	closed(t, s)
}

// fullDisk takes so many bytes, and the beginning of what is too much.
type fullDisk struct {
	output
	room *int64
}

func (f fullDisk) WriteAt(b []byte, at int64) (int, error) {
	n := min(int64(len(b)), *f.room)
	*f.room -= n
	k, err := f.output.WriteAt(b[:n], at)
	if err == nil && n < int64(len(b)) {
		err = syscall.ENOSPC
	}
	return k, err
}

// A full disk costs the minutes that it does not take. What is there stays, and what comes later is written.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	room := int64(3000)
	s.create = func(path string) (output, error) {
		o, err := openOutput(path)
		return fullDisk{o, &room}, err
	}
	minutesOf(t, s, noon, 30)
	st := s.Stats()
	if st.LostMinutes == 0 || st.LostWindows != st.LostMinutes || st.Records[0]+int(st.LostMinutes) != 30 || !strings.Contains(s.Problem(), syscall.ENOSPC.Error()) {
		t.Fatalf("%d minutes lost, %v records: %q", st.LostMinutes, st.Records, s.Problem())
	}
	room = 1 << 30
	minutesOf(t, s, noon+30*60*second, 10)
	_, c := seen(t, s, noon, 40)
	if got := s.Stats(); got.LostMinutes != st.LostMinutes || c.Merged() != 40-st.LostMinutes || s.Problem() != "" {
		t.Errorf("%d minutes lost, %d windows: %q", got.LostMinutes, c.Merged(), s.Problem())
	}
	closed(t, s)
	s = open(t, dir, nil)
	if _, again := seen(t, s, noon, 40); again.Merged() != c.Merged() || s.Stats().Damaged != 0 {
		t.Errorf("after a restart there are %d windows, and before %d; %d damaged", again.Merged(), c.Merged(), s.Stats().Damaged)
	}
	closed(t, s)
}

// Findings are in every range in which they lasted, as they were at its end.
func TestFindings(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	at := func(minute int64) int64 { return noon + minute*60*second }
	f := inference.Finding{ID: 0xa7, Kind: inference.HighLatency, Severity: inference.Warning, Start: at(10), Updated: at(10), Node: 7, EgressIf: 3, Text: "slow",
		Element: inference.ElementOfHop(inference.HopKey{Node: 7, EgressIf: 3}), Value: math.Inf(1), Flow: decode.FlowKey{IPVersion: 4, SrcPort: 80}}
	hop := map[inference.HopKey][]uint64{{Node: 7, EgressIf: 3}: {1}}
	for m := int64(1); m <= 200; m++ {
		var found []inference.Finding
		switch m {
		case 10:
			found = append(found, f)
		case 100:
			f.Severity, f.Updated = inference.Critical, at(100)
			found = append(found, f)
		case 130:
			f.End, f.Updated, f.Text = at(130), at(130), "over"
			found = append(found, f)
		}
		take(t, s, at(m), hop, found...)
	}
	closed(t, s)
	s = open(t, dir, nil)
	defer closed(t, s)
	for _, c := range []struct {
		from, to int64
		severity inference.Severity
		end      int64
		none     bool
	}{
		{from: 0, to: 9, none: true},
		{from: 5, to: 20, severity: inference.Warning},
		{from: 20, to: 90, severity: inference.Warning}, // nothing of it happened then
		{from: 90, to: 110, severity: inference.Critical},
		{from: 90, to: 190, severity: inference.Critical, end: 130},
		{from: 131, to: 190, none: true},
	} {
		h, _, err := s.Happened(t.Context(), at(c.from), at(c.to))
		if err != nil || h.LeftOut != 0 {
			t.Fatal(err, h.LeftOut)
		}
		if c.none != (len(h.Findings) == 0) {
			t.Errorf("%d to %d: %d findings", c.from, c.to, len(h.Findings))
		}
		if c.none || len(h.Findings) == 0 {
			continue
		}
		want := f
		want.Severity, want.Value = c.severity, 0
		if want.End = 0; c.end != 0 {
			want.End = at(c.end)
		} else {
			want.Text = "slow"
		}
		want.Updated = h.Findings[0].Updated
		if !reflect.DeepEqual(h.Findings[0], want) {
			t.Errorf("%d to %d: %+v, want %+v", c.from, c.to, h.Findings[0], want)
		}
	}
}

// The ledger of a range is what was counted in it, over restarts.
func TestLedger(t *testing.T) {
	dir := t.TempDir()
	hop := map[inference.HopKey][]uint64{{Node: 1}: {1}}
	at := func(minute int64) int64 { return noon + minute*60*second }
	for run := range int64(2) {
		var b sink.Balance
		s, err := Open(DefaultConfig(), Options{Dir: dir, Hops: 4, Ledger: func() []sink.Balance { return []sink.Balance{b} }})
		if err != nil {
			t.Fatal(err)
		}
		b = sink.Balance{Sink: "influx", Carried: 5, Received: 5, Dropped: map[string]int64{}}
		for m := int64(1); m <= 3; m++ {
			b.Received, b.Stored = b.Received+10, b.Stored+9
			b.Dropped["queue"]++
			take(t, s, at(10*run+m), hop)
		}
		if run == 1 {
			for _, c := range []struct {
				from, to int64
				want     Account
			}{
				{0, 60, Account{60, 54, map[string]uint64{"queue": 6}}},
				{10, 12, Account{20, 18, map[string]uint64{"queue": 2}}},
				{5, 9, Account{}},
			} {
				h, _, err := s.Happened(t.Context(), at(c.from), at(c.to))
				if got := h.Ledger["influx"]; err != nil || !reflect.DeepEqual(got, c.want) {
					t.Errorf("%d to %d: %+v, want %+v (%v)", c.from, c.to, got, c.want, err)
				}
			}
		}
		closed(t, s)
	}
}

// A disk that is too slow costs minutes, and no window waits for it.
func TestSlowDisk(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	var p window.Partial
	p.Hop(inference.HopKey{Node: 1}).Latency.AddValue(1)
	for m := range int64(queued + 3) {
		w := inference.Window{Start: noon + m*60*second, End: noon + (m+1)*60*second, Reports: 1}
		if err := s.AddPartial(t.Context(), &sink.Window{Window: &w, Partial: &p}); err != nil {
			t.Fatal(err)
		}
	}
	if st := s.Stats(); st.LostMinutes != 3 || !strings.Contains(s.Problem(), "too slow") {
		t.Errorf("%d minutes lost: %q", st.LostMinutes, s.Problem())
	}
	closed(t, s)
	if n := s.Stats().Records[0]; n != queued {
		t.Errorf("%d records", n)
	}
}

func TestRanges(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	defer closed(t, s)
	minutesOf(t, s, noon, 3)
	for _, c := range []struct {
		length time.Duration
		step   time.Duration
	}{
		{time.Minute, time.Minute}, {6 * time.Hour, time.Minute}, {24 * time.Hour, 10 * time.Minute}, {7 * 24 * time.Hour, time.Hour},
		{30 * 24 * time.Hour, time.Hour}, {90 * 24 * time.Hour, 24 * time.Hour},
	} {
		got, _, err := s.columns(noon+1, noon+1+int64(c.length))
		if err != nil || got.Step != c.step || got.From > noon+1 || got.To < noon+1+int64(c.length) {
			t.Errorf("%v: a step of %v from %d to %d (%v)", c.length, got.Step, got.From, got.To, err)
		}
	}
	minutesOf(t, s, noon+20*3600*second, 1) // a day begins, whose record is from its first minute on
	minutesOf(t, s, noon+40*3600*second, 1)
	if got, _, err := s.columns(noon-5*86400*second, noon+2*86400*second); err != nil || got.Step != time.Hour || got.Oldest != noon+50*second {
		t.Errorf("a week that begins before the history: a step of %v, oldest %d (%v)", got.Step, got.Oldest, err)
	}
	for _, c := range [][2]int64{{5, 5}, {6, 5}, {-1, 5}, {0, math.MaxInt64}} {
		if _, _, err := s.columns(c[0], c[1]); !errors.Is(err, ErrRange) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if _, _, err := s.columns(0, noon); err == nil || !strings.Contains(err.Error(), "days, more than") {
		t.Errorf("50 years: %v", err)
	}
}

// TestSize states the size of a record, which the operating guide has, and holds its bound.
func TestSize(t *testing.T) {
	s, err := Open(DefaultConfig(), Options{Dir: t.TempDir(), Hops: 500})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var p window.Partial
	p.Span(noon, noon+60*second)
	for i := range uint32(500) {
		h := p.Hop(inference.HopKey{Node: i / 8, EgressIf: 1 + i%8})
		for range 300 {
			h.Latency.AddValue(uint64(float64(5000+50*i) * math.Exp(.7*rng.NormFloat64())))
			h.Queue.AddValue(uint64(2000 * math.Exp(rng.NormFloat64())))
		}
	}
	w := p.Window(window.NoLimits())
	if err := s.AddPartial(t.Context(), &sink.Window{Window: &w, Partial: &p}); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	each := float64(s.Stats().WrittenBytes) / 500
	t.Logf("%.0f bytes a hop", each)
	if each < 100 || each > 250 {
		t.Errorf("a record takes %.0f bytes a hop", each)
	}
}
