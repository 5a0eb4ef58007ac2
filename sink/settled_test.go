package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/sink/spool"
)

// Records that need no encoding reach the store as they were put, each caller's in order, among batches that are cut
// into many. Their reports and points are accounted for, and refused ones are kept.
func TestPutEncodedBesidePut(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		var order sync.Mutex
		var times []int64
		s := &shop{has: map[int64]string{}, refuse: func(p *Point) bool { return p.Time == 2_000_005 }}
		w := &watched{shop: s, seen: func(b *Batch) {
			order.Lock()
			for i := range b.Points {
				times = append(times, b.Points[i].Time)
			}
			order.Unlock()
		}}
		q, tally, _ := openQueue(t, w, dir, nil)
		var all sync.WaitGroup
		const callers, each = 4, 30
		for c := range int64(callers) {
			all.Go(func() {
				for n := range int64(each) {
					b := windowOf(c*1_000_000+5*n, 5)
					tally.Receive(b.Reports)
					if c == 0 {
						b = windowOf(c*1_000_000+1000*n, 1000) // several records behind a spool
						tally.Receive(1000 - 5)
						if err := q.Put(t.Context(), b); err != nil {
							t.Error(err)
						}
						continue
					}
					e := encodedOf(b)
					if err := q.PutEncoded(t.Context(), e); err != nil {
						t.Error(err)
					}
					clear(e.Payload) // it may be reused
				}
			})
		}
		all.Wait()
		closeQueue(t, q)
		last := [callers]int64{-1, -1, -1, -1}
		for _, at := range times {
			if c := at / 1_000_000; at <= last[c] {
				t.Fatalf("caller %d: point %d came after %d", c, at, last[c])
			} else {
				last[c] = at
			}
		}
		stored := int64(each*1000 + (callers-1)*each*5)
		settled(t, tally, map[Stage]int64{Stored: stored - 5, Rejected: 5}, map[Stage]int64{Stored: stored - 1, Rejected: 1})
		for name, b := range tally.Points().Series {
			if b.Made != b.Stored+b.Refused || b.Made == 0 {
				t.Errorf("%s: %+v", name, b)
			}
		}
		if dir == "" {
			return
		}
		names, err := ListRefused(dir + "/refused")
		if err != nil || len(names) != 1 {
			t.Errorf("refused: %v, %v", names, err)
		}
	})
}

// watched is a shop that reports its writes.
type watched struct {
	*shop
	seen func(*Batch)
}

func (w *watched) Write(ctx context.Context, b *Batch) error {
	w.seen(b)
	return w.shop.Write(ctx, b)
}

// A record without points carries its reports all the same: refused ones are refused with it.
func TestPutEncodedWithoutPoints(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		w := &scripted{answer: func(n int, _ *Batch) error {
			if n == 2 {
				return &PermanentError{Err: errors.New("a record of that kind is not taken")}
			}
			return nil
		}}
		q, tally, _ := openQueue(t, w, dir, nil)
		for n := range uint64(3) {
			tally.Receive(n + 1)
			if err := q.PutEncoded(t.Context(), Encoded{Payload: AppendBatch(nil, &Batch{}), Reports: n + 1}); err != nil {
				t.Fatal(err)
			}
		}
		closeQueue(t, q)
		settled(t, tally, map[Stage]int64{Stored: 1 + 3, Rejected: 2}, nil)
	})
}

// What a process left on disk is stored by the next one.
func TestPutEncodedSurvives(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{has: map[int64]string{}, away: func() error { return errors.New("closed") }}
		q, tally, _ := openQueue(t, s, dir, nil)
		tally.Receive(7)
		if err := q.PutEncoded(t.Context(), encodedOf(windowOf(0, 7))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		closeQueue(t, q)
		settled(t, tally, map[Stage]int64{OnDisk: 7}, map[Stage]int64{OnDisk: 7})
		s.away = nil
		q, tally, _ = openQueue(t, s, dir, nil)
		closeQueue(t, q)
		settled(t, tally, map[Stage]int64{Stored: 7}, map[Stage]int64{Stored: 7})
		if p := tally.Points(); len(s.has) != 7 || p.Carried != 7 || p.Series["hop"].Stored != 3 {
			t.Errorf("%d points in the shop, %+v", len(s.has), p)
		}
	})
}

// A full queue drops records and counts them, and a closed one takes none.
func TestPutEncodedFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		s := &shop{has: map[int64]string{}, away: func() error { <-hold; return nil }}
		q, tally, _ := openQueue(t, s, "", func(c *QueueConfig, _ *spool.Config) { c.MaxBatches = 2 })
		for n := range int64(5) {
			tally.Receive(3)
			if err := q.PutEncoded(t.Context(), encodedOf(windowOf(10*n, 3))); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		close(hold)
		closeQueue(t, q)
		tally.Receive(3)
		if err := q.PutEncoded(t.Context(), encodedOf(windowOf(100, 3))); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		settled(t, tally, map[Stage]int64{Stored: 9, DroppedMemory: 9}, map[Stage]int64{Stored: 9, DroppedMemory: 9})
	})
}

// A queue without a spool reports when the store has all that was put up to then, or refused it for good, and not before.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan error)
		s := &shop{has: map[int64]string{}, refuse: func(p *Point) bool { return p.Time == 15 }, away: func() error { return <-open }}
		q, _, _ := openQueue(t, s, "", nil)
		var reported []string
		mark := func(name string) {
			if err := q.Settled(func(ok bool) { reported = append(reported, fmt.Sprint(name, ok)) }); err != nil {
				t.Fatal(err)
			}
		}
		check := func(want ...string) {
			t.Helper()
			if synctest.Wait(); !slices.Equal(reported, want) {
				t.Fatalf("reported %v, want %v", reported, want)
			}
		}
		mark("a") // nothing came yet
		check("atrue")
		ctx := t.Context()
		_ = q.Put(ctx, windowOf(0, 3))
		mark("b")
		_ = q.PutEncoded(ctx, encodedOf(windowOf(10, 9)))
		mark("c")
		mark("d")
		_ = q.Put(ctx, windowOf(20, 2*recordPoints)) // two records
		mark("e")
		check("atrue")
		open <- errors.New("not now")
		check("atrue")
		time.Sleep(time.Minute)
		open <- nil
		check("atrue", "btrue")
		open <- nil // point 15 is refused
		check("atrue", "btrue", "ctrue", "dtrue")
		open <- nil
		check("atrue", "btrue", "ctrue", "dtrue")
		open <- nil
		check("atrue", "btrue", "ctrue", "dtrue", "etrue")
		close(open)
		closeQueue(t, q)
	})
}

// Nothing is reported as stored that was dropped, nor anything after it.
func TestSettledAfterDrop(t *testing.T) {
	for _, how := range []string{"full", "closed"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold := make(chan error)
				s := &shop{has: map[int64]string{}, away: func() error { return <-hold }}
				q, _, _ := openQueue(t, s, "", func(c *QueueConfig, _ *spool.Config) { c.MaxBatches = 2 })
				var reported []string
				for n := range int64(5) {
					if how == "closed" && n == 2 {
						break
					}
					_ = q.Put(t.Context(), windowOf(10*n, 3))
					synctest.Wait()
					_ = q.Settled(func(ok bool) { reported = append(reported, fmt.Sprintf("%d%t", n, ok)) })
				}
				want := []string{"0true", "1false", "2false", "3false", "4false"}
				if how == "full" {
					close(hold)
					closeQueue(t, q)
					want[0] = "0false" // a later one was dropped by then
				} else {
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					done := make(chan struct{})
					go func() { _ = q.Close(ctx); close(done) }()
					time.Sleep(2 * time.Second)
					hold <- errors.New("closed")
					<-done
					want = []string{"0false", "1false"}
				}
				if !slices.Equal(reported, want) {
					t.Errorf("reported %v, want %v", reported, want)
				}
				if err := q.Flush(t.Context()); !errors.Is(err, ErrDropped) {
					t.Errorf("Flush = %v", err)
				}
			})
		})
	}
}

// A Stager has stored what is in its files, and Flush makes it write them. One that cannot is asked again.
func TestSettledByStager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gatherer{}
		h := newHarness(t, g, DefaultQueueConfig(), Block, "", nil)
		reported := 0
		h.put(1, 7)
		_ = h.q.Settled(func(ok bool) {
			if ok {
				reported++
			}
		})
		synctest.Wait()
		if reported != 0 {
			t.Error("reported before the file was written")
		}
		if err := h.q.Flush(t.Context()); err != nil || reported != 1 || len(g.stored) != 7 {
			t.Errorf("%v, reported %d times, stored %v", err, reported, g.stored)
		}
		g.broken = true
		h.put(8, 9)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := h.q.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush of a broken store = %v", err)
		}
		cancel()
		synctest.Wait()
		g.broken = false
		if err := h.q.Flush(t.Context()); err != nil || len(g.stored) != 9 {
			t.Errorf("%v, stored %v", err, g.stored)
		}
		h.close(time.Minute)
	})
}

// A spool keeps what it took, and no caller waits for the store behind it.
func TestSettledWithSpool(t *testing.T) {
	q, _, _ := openQueue(t, &scripted{}, t.TempDir(), nil)
	if err := q.Settled(func(bool) {}); !errors.Is(err, ErrSpooled) {
		t.Error(err)
	}
	if err := q.Flush(t.Context()); !errors.Is(err, ErrSpooled) {
		t.Error(err)
	}
	closeQueue(t, q)
}
