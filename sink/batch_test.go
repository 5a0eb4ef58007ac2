package sink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/sink/spool"
)

// shop is a store that knows points by their time, refuses some of them for good, and is away now and then.
type shop struct {
	mu     sync.Mutex
	has    map[int64]string // measurement by time
	refuse func(p *Point) bool
	away   func() error // nil while it is there
	writes int
}

func (s *shop) Name() string { return "shop" }
func (s *shop) Close() error { return nil }

func (s *shop) Write(_ context.Context, b *Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.away != nil {
		if err := s.away(); err != nil {
			return err
		}
	}
	bad := Refusal{Reason: "we do not sell this"}
	var points []Point
	for i := range b.Points {
		if p := &b.Points[i]; s.refuse != nil && s.refuse(p) {
			points = append(points, *p)
			bad.Series = AddSeries(bad.Series, p.Measurement, 1)
		} else {
			s.has[p.Time] = p.Measurement
		}
	}
	if len(points) == 0 {
		return nil
	}
	bad.Points, bad.Payload = uint64(len(points)), AppendBatch(nil, &Batch{Points: points})
	return &PermanentError{Err: errors.New(bad.Reason), Rejected: len(points), Refused: []Refusal{bad}}
}

// windowOf is a batch of points with times from..from+n, of three series, that stands for n reports.
func windowOf(from, n int64) *Batch {
	b := &Batch{Reports: uint64(n)}
	for i := from; i < from+n; i++ {
		b.Points = append(b.Points, Point{Measurement: []string{"hop", "flow", "exporter"}[i%3], Time: i,
			Fields: []Field{StringField("v", fmt.Sprint(i, strings.Repeat("x", 30)))}})
	}
	return b
}

// encodedOf is a batch as a record that needs no encoding.
func encodedOf(b *Batch) Encoded {
	return Encoded{Payload: AppendBatch(nil, &Batch{Points: b.Points}), Series: countSeries(b.Points), Reports: b.Reports}
}

func openQueue(t *testing.T, w Writer, dir string, change func(*QueueConfig, *spool.Config)) (*Queue, *Tally, string) {
	t.Helper()
	conf, sc := DefaultQueueConfig(), spool.DefaultConfig()
	sc.Dir, sc.SegmentBytes, sc.MaxBytes = dir, 4096, 1<<24 // so that a window of some hundred points is several records
	if change != nil {
		change(&conf, &sc)
	}
	tally := &Tally{}
	opt := QueueOptions{Account: tally, Target: "the corner"}
	if dir != "" {
		sp, err := spool.Open(sc)
		if err != nil {
			t.Fatal(err)
		}
		opt.Spool, opt.Refused = sp, OpenRefused(filepath.Join(dir, "refused"), 1<<20)
	}
	q := NewQueue(w, conf, opt)
	q.Start()
	return q, tally, filepath.Join(dir, "refused")
}

func putAll(t *testing.T, q *Queue, tally *Tally, batches ...*Batch) {
	t.Helper()
	for _, b := range batches {
		tally.Receive(b.Reports)
		if err := q.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

func closeQueue(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := q.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// settled checks that nothing is on its way and that the accounts add up.
func settled(t *testing.T, tally *Tally, want map[Stage]int64, wantPoints map[Stage]int64) {
	t.Helper()
	for s := range NumStages {
		if got := tally.At(s); got != want[s] {
			t.Errorf("%d reports %v, want %d", got, s, want[s])
		}
		if got := tally.PointsAt(s); got != wantPoints[s] {
			t.Errorf("%d points %v, want %d", got, s, wantPoints[s])
		}
	}
	if p := tally.Points(); p.Unsettled != 0 {
		t.Errorf("points: %+v", p)
	}
}

// A window is cut into records and its reports go with the last. A point that is refused in the first record makes
// them rejected, also when the process ends between the two.
func TestReportsOfRefusedPoints(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart=", restart), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := &shop{has: map[int64]string{}, refuse: func(p *Point) bool { return p.Time == 7 }}
				if restart {
					s.away = func() error {
						if s.writes > 2 {
							return errors.New("closed")
						}
						return nil
					}
				}
				q, tally, dead := openQueue(t, s, dir, nil)
				putAll(t, q, tally, windowOf(0, 300))
				time.Sleep(10 * time.Second)
				if restart {
					closeQueue(t, q)
					if n, p := tally.At(OnDisk), tally.PointsAt(OnDisk); n != 300 || p != 300 {
						t.Errorf("%d reports and %d points are left on disk", n, p)
					}
					s.away = nil
					q, tally, _ = openQueue(t, s, dir, nil)
				}
				putAll(t, q, tally, windowOf(1000, 300))
				time.Sleep(time.Second)
				if st := q.Stats(); !st.Rejecting || st.LastRefusal.Points != 1 || st.LastRefusal.Reason != "we do not sell this" {
					t.Errorf("Stats = %+v", st)
				}
				putAll(t, q, tally, windowOf(2000, 3), windowOf(3000, 3))
				time.Sleep(time.Second)
				if q.Stats().Rejecting {
					t.Error("still rejecting after three good batches")
				}
				closeQueue(t, q)
				settled(t, tally, map[Stage]int64{Stored: 306, Rejected: 300}, map[Stage]int64{Stored: 605, Rejected: 1})
				p := tally.Points()
				if hop := p.Series["hop"]; hop.Made != hop.Stored+hop.Refused || p.Series["flow"].Refused != 1 || len(s.has) != 605 {
					t.Errorf("series %+v, %d points are in the shop", p.Series, len(s.has))
				}
				names, err := ListRefused(dead)
				if err != nil || len(names) != 1 {
					t.Fatalf("refused: %v, %v", names, err)
				}
				e, err := ReadRefused(dead, names[0])
				var kept Batch
				if err == nil {
					err = DecodeBatch(e.Groups[0].Payload, &kept)
				}
				if err != nil || e.Sink != "shop" || e.Target != "the corner" || e.Part != 0 || len(e.Groups) != 1 || e.Groups[0].Reason != "we do not sell this" ||
					len(kept.Points) != 1 || kept.Points[0].Time != 7 {
					t.Errorf("%+v, %+v, %v", e, kept, err)
				}
			})
		})
	}
}

// The same when an earlier record of the window was dropped from memory, with a spool behind and without.
func TestReportsOfDroppedRecords(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		hold := make(chan struct{})
		s := &shop{has: map[int64]string{}, away: func() error { <-hold; return nil }}
		q, tally, _ := openQueue(t, s, dir, func(c *QueueConfig, _ *spool.Config) { c.MaxBatches = 2 })
		big := windowOf(0, 3*recordPoints) // three records without a spool, many with one
		s.refuse = func(*Point) bool { return false }
		putAll(t, q, tally, windowOf(100_000, 3))
		synctest.Wait() // it is being written
		putAll(t, q, tally, big)
		close(hold)
		closeQueue(t, q)
		stored, all := int64(len(s.has)), int64(3*recordPoints+3)
		reports := int64(3)
		if stored == all { // the disk was quick
			reports = all
		}
		if dir == "" && (stored == 3 || stored == all) {
			t.Errorf("%d of %d points stored", stored, all)
		}
		settled(t, tally, map[Stage]int64{Stored: reports, DroppedMemory: all - reports}, map[Stage]int64{Stored: stored, DroppedMemory: all - stored})
	})
}

// And when one was damaged on disk unnoticed.
func TestReportsOfDamagedRecords(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { damagedRecords(t, dir) })
}

func damagedRecords(t *testing.T, dir string) {
	down := &shop{has: map[int64]string{}, away: func() error { return errors.New("closed") }}
	q, tally, _ := openQueue(t, down, dir, nil)
	putAll(t, q, tally, windowOf(0, 300), windowOf(1000, 300))
	synctest.Wait() // all of it is on disk
	closeQueue(t, q)
	records := tally.PointsAt(OnDisk)
	if records != 600 {
		t.Fatalf("%d points on disk", records)
	}
	segments, _ := filepath.Glob(filepath.Join(dir, "*.s*g*"))
	if len(segments) < 4 {
		t.Fatalf("segments: %v", segments)
	}
	slices.Sort(segments)
	b, err := os.ReadFile(segments[1])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(segments[1], b, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &shop{has: map[int64]string{}}
	q, tally, _ = openQueue(t, s, dir, nil)
	closeQueue(t, q)
	lost := int64(600 - len(s.has))
	if lost == 0 || lost == 600 {
		t.Fatalf("%d of 600 points lost", lost)
	}
	settled(t, tally, map[Stage]int64{Stored: 300, DroppedDisk: 300}, map[Stage]int64{Stored: 600 - lost, DroppedDisk: lost})
}

// A point that has no form for the store takes its window along, and is counted.
func TestReportsOfPointsWithoutForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &picky{shop{has: map[int64]string{}}}
		q, tally, _ := openQueue(t, s, "", nil)
		b := windowOf(0, 9)
		b.Points[4].Measurement = ""
		putAll(t, q, tally, b, windowOf(100, 9))
		closeQueue(t, q)
		settled(t, tally, map[Stage]int64{Stored: 9, DroppedEncoding: 9}, map[Stage]int64{Stored: 17, DroppedEncoding: 1})
		if p := tally.Points(); p.Series["flow"].Stored != p.Series["flow"].Made || p.Series[""].Stored != 0 || p.Series[""].Made != 1 {
			t.Errorf("%+v", p.Series)
		}
	})
}

// picky has no form for points without a measurement.
type picky struct{ shop }

func (p *picky) Encode(dst []byte, b *Batch) ([]byte, uint64) {
	some := Batch{}
	for i := range b.Points {
		if b.Points[i].Measurement != "" {
			some.Points = append(some.Points, b.Points[i])
		}
	}
	return AppendBatch(dst, &some), uint64(len(b.Points) - len(some.Points))
}

func (p *picky) WriteEncoded(ctx context.Context, payload []byte) error {
	var b Batch
	if err := DecodeBatch(payload, &b); err != nil {
		return err
	}
	return p.Write(ctx, &b)
}

// The points of the account equal those of the store by its own count, and reports are stored when all points of their
// window are. This holds in any order of refusals, outages, a small queue, a full spool and restarts.
func TestAccountsHold(t *testing.T) {
	for seed := range uint64(12) {
		dir := t.TempDir()
		if seed%4 == 0 {
			dir = ""
		}
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 9))
			s := &shop{has: map[int64]string{}}
			s.refuse = func(p *Point) bool { return p.Time%997 == 5 }
			outage, chance := 0, rand.New(rand.NewPCG(seed, 10)) // asked by another goroutine
			s.away = func() error {
				if outage > 0 {
					outage--
					return errors.New("closed")
				}
				if chance.IntN(20) == 0 {
					outage = chance.IntN(12)
				}
				return nil
			}
			var windows []*Batch
			var made, carried PointBalance
			total := map[Stage]int64{}
			points := map[Stage]int64{}
			at := int64(0)
			runs := 1 + r.IntN(4)
			for run := range runs {
				q, tally, _ := openQueue(t, s, dir, func(c *QueueConfig, sc *spool.Config) {
					c.MaxBatches = 1 + r.IntN(20)
					if sc.MaxBytes = 65536; runs > 1 { // what is evicted after it was read counts as lost where the process ends first
						sc.MaxBytes = 1 << 28
					}
				})
				if run > 0 && (tally.At(OnDisk) != total[OnDisk] || tally.PointsAt(OnDisk) != points[OnDisk]) {
					t.Errorf("seed %d: %d reports and %d points were left, %d and %d are carried", seed, total[OnDisk], points[OnDisk], tally.At(OnDisk), tally.PointsAt(OnDisk))
				}
				total[OnDisk], points[OnDisk] = 0, 0
				for range r.IntN(25) {
					n := int64(r.IntN(500))
					if r.IntN(10) == 0 {
						n = int64(r.IntN(2000))
					}
					b := windowOf(at, n)
					b.Reports = uint64(1 + n)
					at += n
					windows = append(windows, b)
					var beside sync.WaitGroup
					for range r.IntN(3) { // others put records of their own at the same time
						n := int64(1 + r.IntN(60))
						e := windowOf(at, n)
						e.Reports = uint64(1 + n)
						at += n
						windows = append(windows, e)
						tally.Receive(e.Reports)
						beside.Go(func() {
							if err := q.PutEncoded(t.Context(), encodedOf(e)); err != nil {
								t.Error(err)
							}
						})
					}
					putAll(t, q, tally, b)
					beside.Wait()
					time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
				}
				if run == runs-1 {
					s.mu.Lock()
					s.away = nil
					s.mu.Unlock()
					time.Sleep(10 * time.Minute)
				}
				closeQueue(t, q)
				for st := range NumStages {
					total[st] += tally.At(st)
					points[st] += tally.PointsAt(st)
				}
				p := tally.Points()
				if p.Unsettled != 0 {
					t.Errorf("seed %d: %+v", seed, p)
				}
				made.Made += p.Made
				carried.Made += p.Carried
			}
			wantReports := int64(0)
			for _, b := range windows {
				all := true
				for i := range b.Points {
					_, ok := s.has[b.Points[i].Time]
					all = all && ok
				}
				if all {
					wantReports += int64(b.Reports)
				}
			}
			if int64(len(s.has)) != points[Stored] || total[Stored] != wantReports {
				t.Errorf("seed %d: the shop has %d points, and all of windows with %d reports; the account says %d and %d: %v", seed, len(s.has), wantReports, points[Stored], total[Stored], maps.Collect(maps.All(points)))
			}
			if rest := int64(made.Made-carried.Made) - at; rest != 0 {
				t.Errorf("seed %d: %d points more were made than there are", seed, rest)
			}
			if points[OnDisk]+points[InMemory]+total[OnDisk]+total[InMemory] != 0 {
				t.Errorf("seed %d: left %v %v", seed, points, total)
			}
		})
	}
}

func TestRecordHead(t *testing.T) {
	for code, spoiled := range spoiledCodes {
		h := recordHead{batch: 1 << 62, part: 300, last: code%2 == 0, spoiled: spoiled, series: []SeriesCount{{"hop", 5000}, {"", 1}}, points: 5001}
		record := append(appendRecordHead(nil, &h), "payload"...)
		got, payload, ok := parseRecord(record)
		if !ok || !reflect.DeepEqual(got, h) || string(payload) != "payload" {
			t.Errorf("%+v became %+v, %q, %t", h, got, payload, ok)
		}
		for n := range len(record) - len("payload") {
			if _, _, ok := parseRecord(record[:n]); ok && n != 1 {
				t.Errorf("cut at %d is accepted", n)
			}
		}
	}
	for n := range uint64(300) { // of earlier versions
		h, payload, ok := parseRecord(append(binary.AppendUvarint(nil, n), "m v=1\n"...))
		if !ok || h.points != n || h.batch != 0 || !h.last || h.spoiled != Stored || string(payload) != "m v=1\n" {
			t.Errorf("%d: %+v, %q, %t", n, h, payload, ok)
		}
	}
}

func FuzzRecordHead(f *testing.F) {
	h := recordHead{batch: 9, last: true, spoiled: DroppedDisk, series: []SeriesCount{{"hop", 5000}}}
	f.Add(appendRecordHead(nil, &h))
	f.Add([]byte("\x80\x00\x01\x0f\x00\x00\x00\x00\x00\x00\x00\x01\x00\xff\xff\xff\xff\x0f"))
	f.Add([]byte("\x05m v=1"))
	f.Fuzz(func(t *testing.T, record []byte) {
		h, payload, ok := parseRecord(record)
		if !ok || h.batch == 0 {
			return
		}
		second, rest, ok := parseRecord(append(appendRecordHead(nil, &h), payload...))
		if !ok || second.points != h.points || second.batch != h.batch || string(rest) != string(payload) {
			t.Fatalf("%+v became %+v", h, second)
		}
	})
}
