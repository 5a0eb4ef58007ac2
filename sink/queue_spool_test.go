package sink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/sink/spool"
)

// An hour without a store costs disk, not data.
func TestQueueOutage(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(time.Hour)
		w := &scripted{answer: func(int, *Batch) error {
			if time.Now().Before(back) {
				return &RetryError{Err: errors.New("down")}
			}
			return nil
		}}
		conf := DefaultQueueConfig()
		conf.MaxBatches = 2
		h := newHarness(t, w, conf, Drop, dir, nil)
		for i := range 360 {
			h.put(i+1, i+1)
			synctest.Wait()
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Minute)
		h.balance(map[Stage]int64{Stored: sum(1, 360)})
		h.close(time.Minute)
		if !slices.Equal(w.stored, upTo(1, 360)) {
			t.Errorf("%d stored", len(w.stored))
		}
	})
}

// A spool that overflows loses the oldest batches, and the ledger knows how many reports.
func TestQueueSpoolOverflows(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		down := true
		w := &scripted{answer: func(int, *Batch) error {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return errors.New("down")
			}
			return nil
		}}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, func(c *spool.Config) { c.MaxBytes, c.SegmentBytes = 16384, 4096 })
		h.put(1, 2000)
		synctest.Wait()
		lost := h.q.Stats().Spool.EvictedReports
		if lost == 0 {
			t.Fatal("nothing was evicted")
		}
		h.balance(map[Stage]int64{OnDisk: sum(1, 2000) - int64(lost), DroppedDisk: int64(lost)})
		if !h.q.Stats().Evicting {
			t.Error("the spool does not say that it is full")
		}
		mu.Lock()
		down = false
		mu.Unlock()
		time.Sleep(time.Minute + time.Second)
		if h.q.Stats().Evicting {
			t.Error("the spool still says that it is full, a minute after the last eviction")
		}
		h.close(time.Minute)
		stored := int64(0) // with the first one, if it was being written when its segment went
		for _, n := range w.stored {
			stored += n
		}
		if most := sum(1, 2000) - int64(lost); stored != most && stored != most+w.stored[0] {
			t.Errorf("%d reports are in the store, and %d were evicted", stored, lost)
		}
		h.balance(map[Stage]int64{Stored: stored, DroppedDisk: sum(1, 2000) - stored})
		if last := w.stored[len(w.stored)-1]; last != 2000 || !slices.IsSorted(w.stored) {
			t.Errorf("stored %v", w.stored)
		}
	})
}

// What no segment holds is dropped alone.
func TestQueueTooLargeForSpool(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &scripted{}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, func(c *spool.Config) { c.MaxBytes, c.SegmentBytes = 65536, 4096 })
		b := &Batch{Reports: 9}
		for i := range 9 {
			p := numbered(i).Points[0]
			if i == 4 {
				p.Fields[0] = StringField("v", strings.Repeat("x", 5000))
			}
			b.Points = append(b.Points, p)
		}
		h.receive(9)
		if err := h.q.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		h.close(time.Minute)
		if want := []int64{0, 1, 2, 3, 5, 6, 7, 8}; !slices.Equal(w.stored, want) {
			t.Errorf("stored %v, want %v", w.stored, want)
		}
		h.balance(map[Stage]int64{DroppedDisk: 9}) // they are not stored as long as a point is not
		if st := h.q.Stats(); st.PointsDropped != 1 {
			t.Errorf("Stats = %+v", st)
		}
		if p := h.tally.Points(); p.Made != 9 || p.Stored != 8 || p.Dropped["dropped from disk"] != 1 || p.Unsettled != 0 {
			t.Errorf("Points = %+v", p)
		}
	})
}

// gatherer is a Stager that stores on Tick, on Flush, or every fifth batch.
type gatherer struct {
	scripted
	held   []int64
	batch  []int // points of each held batch
	count  uint64
	broken bool
	mended atomic.Bool // since then it is not
}

func (g *gatherer) Write(_ context.Context, b *Batch) error {
	for _, p := range b.Points {
		g.held = append(g.held, p.Time)
	}
	g.batch = append(g.batch, len(b.Points))
	if len(g.batch) == 5 {
		g.store()
	}
	return nil
}

func (g *gatherer) store() {
	g.stored = append(g.stored, g.held...)
	g.count += uint64(len(g.batch))
	g.held, g.batch = nil, nil
}

func (g *gatherer) Stored() uint64 { return g.count }

func (g *gatherer) Tick(_ context.Context, now time.Time) error {
	if g.broken && !g.mended.Load() {
		return errors.New("no space")
	}
	if now.Second() == 30 {
		g.store()
	}
	return nil
}

func (g *gatherer) Flush(context.Context) error {
	if g.broken && !g.mended.Load() {
		return errors.New("no space")
	}
	g.store()
	return nil
}

func TestQueueStager(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		g := &gatherer{}
		h := newHarness(t, g, DefaultQueueConfig(), Drop, dir, nil)
		where := InMemory
		if dir != "" {
			where = OnDisk
		}
		h.put(1, 7)
		synctest.Wait()
		h.balance(map[Stage]int64{Stored: sum(1, 5), where: 6 + 7})
		time.Sleep(time.Minute)
		h.balance(map[Stage]int64{Stored: sum(1, 7)})
		h.put(8, 9)
		h.close(time.Minute)
		h.balance(map[Stage]int64{Stored: sum(1, 9)})
		if !slices.Equal(g.stored, upTo(1, 9)) {
			t.Errorf("stored %v", g.stored)
		}
	})
}

func TestQueueStagerBreaks(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		g := &gatherer{broken: true}
		h := newHarness(t, g, DefaultQueueConfig(), Drop, dir, nil)
		h.put(1, 3)
		time.Sleep(time.Minute)
		if st := h.q.Stats(); !st.Failing || st.LastError != "no space" {
			t.Errorf("Stats = %+v", st)
		}
		h.close(time.Minute)
		if dir == "" {
			h.balance(map[Stage]int64{DroppedMemory: 6})
			if st := h.q.Stats(); st.PointsDropped != 3 || st.PointsWritten != 0 {
				t.Errorf("Stats = %+v", st)
			}
			return
		}
		h.balance(map[Stage]int64{OnDisk: 6})
		g = &gatherer{}
		h = newHarness(t, g, DefaultQueueConfig(), Drop, dir, nil)
		h.close(time.Minute)
		h.balance(map[Stage]int64{Stored: 6})
	})
}

func TestQueueObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &scripted{answer: func(n int, _ *Batch) error {
			time.Sleep(time.Duration(n) * time.Second)
			if n == 1 {
				return errors.New("once")
			}
			return nil
		}}
		var got []string
		q := NewQueue(w, DefaultQueueConfig(), QueueOptions{Observe: func(d time.Duration, err error) { got = append(got, fmt.Sprint(d, err)) }})
		q.Start()
		q.Put(t.Context(), numbered(1))
		time.Sleep(time.Minute)
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if want := []string{"1s once", "2s <nil>"}; !slices.Equal(got, want) {
			t.Errorf("observed %v, want %v", got, want)
		}
	})
}

func TestQueueNeverStarted(t *testing.T) {
	w := &scripted{}
	l := &Tally{}
	q := NewQueue(w, DefaultQueueConfig(), QueueOptions{Account: l})
	l.Receive(1)
	q.Put(t.Context(), numbered(1))
	if err := q.Close(t.Context()); err != nil || !w.closed {
		t.Errorf("Close = %v", err)
	}
	if l.At(InMemory) != 0 || l.At(DroppedMemory) != 1 {
		t.Errorf("%d reports in memory and %d dropped, want 0 and 1", l.At(InMemory), l.At(DroppedMemory))
	}
}

// The spool of an earlier run has lost its first segment and a bit of a later one. What it held is carried, what is
// lost is dropped, and the rest is stored.
func TestQueueSpoolDamaged(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		small := func(c *spool.Config) { c.MaxBytes, c.SegmentBytes = 1<<20, 4096 }
		h := newHarness(t, &scripted{answer: func(int, *Batch) error { return errors.New("down") }}, DefaultQueueConfig(), Drop, dir, small)
		h.put(1, 200)
		synctest.Wait()
		h.close(time.Minute)
		h.balance(map[Stage]int64{OnDisk: sum(1, 200)})
		segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
		if err != nil || len(segments) < 4 {
			t.Fatalf("segments %v, %v", segments, err)
		}
		if err := os.Remove(segments[0]); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(segments[2])
		if err != nil {
			t.Fatal(err)
		}
		b[1000] ^= 1
		if err := os.WriteFile(segments[2], b, 0o600); err != nil {
			t.Fatal(err)
		}
		w := &scripted{}
		h = newHarness(t, w, DefaultQueueConfig(), Drop, dir, small)
		synctest.Wait()
		h.close(time.Minute)
		var stored int64
		for _, n := range w.stored {
			stored += n
		}
		if stored == 0 || len(w.stored) < 100 {
			t.Fatalf("stored %v", w.stored)
		}
		h.balance(map[Stage]int64{Stored: stored, DroppedDisk: sum(1, 200) - stored})
		if st := h.q.Stats().Spool; st.DamagedPoints != uint64(200-len(w.stored)) || st.DamagedReports != uint64(sum(1, 200)-stored) || st.MissingSegments != 1 {
			t.Errorf("Stats = %+v", st)
		}
	})
}

// A replay waits at its end for a store that fails, also with a spool; a live collector leaves it to the next run.
func TestQueueCloseWaits(t *testing.T) {
	for _, x := range []struct {
		name   string
		policy Policy
		away   time.Duration // from the start
		stored bool
	}{
		{"replay", Block, 10 * time.Second, true},
		{"replay, away for longer than its patience", Block, time.Hour, false},
		{"live", Drop, 10 * time.Second, false},
	} {
		dir := t.TempDir()
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				back := time.Now().Add(x.away)
				h := newHarness(t, &scripted{answer: func(int, *Batch) error {
					if time.Now().Before(back) {
						return &RetryError{Err: errors.New("down")}
					}
					return nil
				}}, DefaultQueueConfig(), x.policy, dir, nil)
				h.put(1, 9)
				h.close(time.Minute)
				want := OnDisk
				if x.stored {
					want = Stored
				}
				h.balance(map[Stage]int64{want: sum(1, 9)})
			})
		})
	}
}

// It waits also for records that the store fails for while it takes others.
func TestQueueCloseWaitsForAsides(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		back := time.Now().Add(20 * time.Second)
		h := newHarness(t, &scripted{answer: chokes(func(at int64) bool { return third(at) && time.Now().Before(back) })}, DefaultQueueConfig(), Block, dir, nil)
		h.put(1, 9)
		h.close(5 * time.Minute)
		h.balance(map[Stage]int64{Stored: sum(1, 9)})
	})
}

// It waits also for the files of a Stager.
func TestQueueCloseWaitsForStager(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		g := &gatherer{broken: true}
		h := newHarness(t, g, DefaultQueueConfig(), Block, dir, nil)
		h.put(1, 3)
		time.AfterFunc(20*time.Second, func() { g.mended.Store(true) })
		h.close(5 * time.Minute)
		h.balance(map[Stage]int64{Stored: 6})
	})
}
