package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errChokes = &RetryError{Err: errors.New("500"), Doubt: true}

// slow is a writer whose writes take 100 ms.
type slow struct{ *scripted }

func (s slow) Write(ctx context.Context, b *Batch) error {
	time.Sleep(100 * time.Millisecond)
	return s.scripted.Write(ctx, b)
}

// chokes fails for points whose time bad picks.
func chokes(bad func(time int64) bool) func(int, *Batch) error {
	return func(_ int, b *Batch) error {
		for _, p := range b.Points {
			if bad(p.Time) {
				return errChokes
			}
		}
		return nil
	}
}

// under is a directory of its own in dir, which may be none.
func under(dir string, i int) string {
	if dir == "" {
		return ""
	}
	return fmt.Sprintf("%s/%d", dir, i)
}

func third(n int64) bool { return n%3 == 0 }

// A store that fails for one record of three takes all others within twice the time of a store that fails for none.
// Failed records are kept, and every report is in one place. First 90 records wait, then one comes every ten seconds,
// for an hour.
func TestAsideThird(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		const backlog, hour = 90, 361
		var took [2]time.Duration
		for i, bad := range []func(int64) bool{func(int64) bool { return false }, third} {
			w := &scripted{answer: chokes(bad)}
			h := newHarness(t, slow{w}, DefaultQueueConfig(), Drop, under(dir, i), nil)
			folder := OpenRefused(t.TempDir(), 1<<30)
			h.q.opt.Refused = folder
			others := func(upTo int64) (n int) {
				for at := int64(1); at <= upTo; at++ {
					if !third(at) {
						n++
					}
				}
				return n
			}
			arrived := func() (n int) {
				w.mu.Lock()
				defer w.mu.Unlock()
				for _, at := range w.stored {
					if !third(at) {
						n++
					}
				}
				return n
			}
			start := time.Now()
			h.put(1, backlog)
			for arrived() < others(backlog) && time.Since(start) < time.Hour {
				time.Sleep(100 * time.Millisecond)
			}
			took[i] = time.Since(start)
			late := time.Duration(0)
			for n := backlog + 1; n <= backlog+hour; n++ {
				h.put(n, n)
				began := time.Now()
				time.Sleep(10 * time.Second)
				if arrived() < others(int64(n)) && late == 0 {
					late = time.Since(began)
					t.Errorf("record %d is not there after %v", n, late)
				}
			}
			st := h.q.Stats()
			if st.Failing || i == 1 && (st.Aside.Pieces == 0 || st.Aside.Points == 0 || st.Aside.Since.IsZero() || st.Aside.Error != "500" || st.PointsRejected == 0) {
				t.Errorf("Stats = %+v", st)
			}
			h.close(time.Minute)
			bads := int64(0)
			for n := int64(1); n <= backlog+hour; n++ {
				if bad(n) {
					bads += n
				}
			}
			h.balance(map[Stage]int64{Stored: sum(1, backlog+hour) - bads, Rejected: bads})
			if kept := folder.Stats(); i == 1 && (kept.EvictedPoints+kept.LostPoints > 0 || h.q.Stats().Aside.Pieces != 0) {
				t.Errorf("kept %+v", kept)
			}
			list, err := ListRefused(folder.Dir())
			if want := (backlog + hour) / 3 * i; err != nil || len(list) != want {
				t.Errorf("%d entries are kept, want %d: %v", len(list), want, err)
			}
		}
		if took[1] > 2*took[0] {
			t.Errorf("the others of %d records took %v, and %v with a healthy store", backlog, took[1], took[0])
		}
	})
}

// A store that fails for all is away: nothing is set aside, and all is stored in order when it is back.
func TestAsideAway(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		var away atomic.Bool
		away.Store(true)
		w := &scripted{answer: func(int, *Batch) error {
			if away.Load() {
				return errChokes
			}
			return nil
		}}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, nil)
		for n := range 1000 {
			h.put(n+1, n+1)
			time.Sleep(time.Second)
		}
		if st := h.q.Stats(); !st.Failing || st.Aside.Total != 0 || st.LastError != "500" {
			t.Errorf("Stats = %+v", st)
		}
		w.mu.Lock()
		n := len(w.writes)
		w.mu.Unlock()
		if n > 1000/15*(1+maxProbes)+40 { // waits reach 30 s
			t.Errorf("%d writes while it was away", n)
		}
		away.Store(false)
		time.Sleep(time.Minute)
		if st := h.q.Stats(); st.Failing || st.Aside.Total != 0 {
			t.Errorf("Stats = %+v", st)
		}
		h.close(time.Minute)
		if !slices.Equal(w.stored, upTo(1, 1000)) {
			t.Errorf("%d stored, not in order", len(w.stored))
		}
		h.balance(map[Stage]int64{Stored: sum(1, 1000)})
	})
}

// What shares a key with something that is set aside stays behind it, alone of its record, and follows when that passes.
func TestAsideKeepsOrder(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		mended := time.Now().Add(5 * time.Minute)
		w := &scripted{answer: func(_ int, b *Batch) error {
			if b.Points[0].Fields[0].Int == 3 && time.Now().Before(mended) {
				return errChokes
			}
			return nil
		}}
		var values []int64
		check := w.answer
		w.answer = func(n int, b *Batch) error {
			err := check(n, b)
			if err == nil {
				for _, p := range b.Points {
					values = append(values, p.Fields[0].Int)
				}
			}
			return err
		}
		stored := func() []int64 {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(values)
		}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, nil)
		point := func(time, value int64) Point {
			return Point{Measurement: "m", Fields: []Field{IntField("v", value)}, Time: time}
		}
		for _, b := range []*Batch{
			{Points: []Point{point(1, 1)}}, {Points: []Point{point(3, 3)}}, {Points: []Point{point(2, 2)}},
			{Points: []Point{point(3, 30), point(4, 4)}}, {Points: []Point{point(3, 300)}},
		} {
			b.Reports = 1
			h.receive(1)
			if err := h.q.Put(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if want := []int64{1, 2, 4}; !slices.Equal(stored(), want) {
			t.Errorf("stored %v, want %v", stored(), want)
		}
		if st := h.q.Stats(); st.Aside.Points != 3 || st.Aside.Pieces != 3 {
			t.Errorf("Stats = %+v", st)
		}
		time.Sleep(10 * time.Minute)
		if want := []int64{1, 2, 4, 3, 30, 300}; !slices.Equal(stored(), want) {
			t.Errorf("stored %v, want %v", stored(), want)
		}
		h.balance(map[Stage]int64{Stored: 5})
		h.close(time.Minute)
		if st := h.q.Stats(); st.Aside != (Aside{Total: 3, Error: "500"}) || st.PointsRejected != 0 {
			t.Errorf("Stats = %+v", st)
		}
	})
}

// A record on disk that is set aside holds back what came after it only until it is refused: then all leave the spool.
func TestAsideLeavesSpool(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &scripted{answer: chokes(func(n int64) bool { return n == 2 })}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, nil)
		h.put(1, 10)
		for n := 11; n < 2000; n++ {
			h.put(n, n)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		if st := h.q.Stats(); st.Spool.Reports != 0 || st.PointsRejected != 1 || st.Aside.Pieces != 0 {
			t.Errorf("Stats = %+v, spool %+v", st, st.Spool)
		}
		h.balance(map[Stage]int64{Stored: sum(1, 1999) - 2, Rejected: 2})
		h.close(time.Minute)
	})
}

// A queue that ends without time counts the records that were set aside, and those stored after them.
func TestAsideEnds(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		w := &scripted{answer: chokes(third)}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, nil)
		h.put(1, 10)
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := h.q.Close(ctx); err != nil {
			t.Error(err)
		}
		h.balance(map[Stage]int64{Stored: sum(1, 10) - 3 - 6 - 9, Rejected: 3 + 6 + 9})
	})
}

// A store fails for a third of the points of every record, or for one of each. It has all others in the time of a
// window. The failed points are kept one by one, although more fail than may be set aside.
func TestAsideHalves(t *testing.T) {
	const points, windows = 90, 60
	for name, bad := range map[string]func(int64) bool{"third": third, "one": func(n int64) bool { return n%points == 7 }} {
		t.Run(name, func(t *testing.T) {
			withAndWithoutSpool(t, func(t *testing.T, dir string) {
				w := &scripted{answer: chokes(bad)}
				h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, nil)
				h.q.opt.Refused = OpenRefused(t.TempDir(), 1<<30)
				var good, fails int
				for n := range windows {
					b := &Batch{Reports: 1}
					for i := range points {
						at := n*points + i
						b.Points = append(b.Points, numbered(at).Points[0])
						if bad(int64(at)) {
							fails++
						} else {
							good++
						}
					}
					h.receive(1)
					if err := h.q.Put(t.Context(), b); err != nil {
						t.Fatal(err)
					}
					time.Sleep(10 * time.Second)
					w.mu.Lock()
					arrived := len(w.stored)
					w.mu.Unlock()
					if arrived != good {
						t.Fatalf("window %d: %d points arrived, want %d", n, arrived, good)
					}
				}
				if st := h.q.Stats(); st.Failing || st.Aside.Points == 0 || int(st.Aside.Points+st.PointsRejected) != fails {
					t.Errorf("Stats = %+v, of %d that fail", st, fails)
				}
				h.close(time.Minute)
				if st := h.q.Stats(); int(st.PointsRejected) != fails || int(st.PointsWritten) != good {
					t.Errorf("Stats = %+v", st)
				}
				h.balance(map[Stage]int64{Rejected: windows})
			})
		})
	}
}

// A store that is away fails for parts, too: they are few, and all of a record is stored when it is back.
func TestAsideHalvesAway(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		back := time.Now().Add(time.Hour)
		w := &scripted{answer: func(int, *Batch) error {
			if time.Now().Before(back) {
				return errChokes
			}
			return nil
		}}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, nil)
		b := &Batch{Reports: 1}
		for n := range 4000 {
			b.Points = append(b.Points, numbered(n).Points[0])
		}
		for range 10 {
			h.receive(1)
			if err := h.q.Put(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Hour)
		if st := h.q.Stats(); st.Failing || st.Aside.Total != 0 || st.PointsWritten != 40_000 || len(w.stored) != 40_000 || st.Writes > 10+3*maxParts {
			t.Errorf("Stats = %+v, %d stored", st, len(w.stored))
		}
		h.close(time.Minute)
		h.balance(map[Stage]int64{Stored: 10})
	})
}
