package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/sink/spool"
)

// scripted is a Writer with the behaviour of a test; it remembers what it stored.
type scripted struct {
	mu     sync.Mutex
	answer func(n int, b *Batch) error // n counts the writes from 1; nil means success
	writes []time.Time
	stored []int64 // the times of the points
	closed bool
}

func (s *scripted) Name() string { return "scripted" }
func (s *scripted) Close() error { s.closed = true; return nil }

func (s *scripted) Write(ctx context.Context, b *Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, time.Now())
	if s.answer != nil {
		if err := s.answer(len(s.writes), b); err != nil {
			return err
		}
	}
	for _, p := range b.Points {
		s.stored = append(s.stored, p.Time)
	}
	return nil
}

// numbered is a batch of one point with a time of n, that stands for n reports.
func numbered(n int) *Batch {
	return &Batch{Points: []Point{{Measurement: "m", Fields: []Field{IntField("v", int64(n))}, Time: int64(n)}}, Reports: uint64(n)}
}

func upTo(from, to int64) (out []int64) {
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

// harness is a queue with its account.
type harness struct {
	t     *testing.T
	q     *Queue
	tally *Tally
	given int64 // reports
	spool *spool.Spool
}

func newHarness(t *testing.T, w Writer, conf QueueConfig, policy Policy, spoolDir string, change func(*spool.Config)) *harness {
	t.Helper()
	h := &harness{t: t, tally: &Tally{}}
	opt := QueueOptions{Policy: policy, Account: h.tally, Rand: func() float64 { return 1 }}
	if spoolDir != "" {
		sc := spool.DefaultConfig()
		sc.Dir = spoolDir
		if change != nil {
			change(&sc)
		}
		s, err := spool.Open(sc)
		if err != nil {
			t.Fatal(err)
		}
		h.spool, opt.Spool = s, s
	}
	h.q = NewQueue(w, conf, opt)
	h.q.Start()
	return h
}

// put hands over batches numbered from..to, as the collector does.
func (h *harness) put(from, to int) {
	h.t.Helper()
	for i := from; i <= to; i++ {
		h.receive(uint64(i))
		if err := h.q.Put(h.t.Context(), numbered(i)); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *harness) close(timeout time.Duration) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := h.q.Close(ctx); err != nil {
		h.t.Error(err)
	}
}

func (h *harness) receive(n uint64) {
	h.given += int64(n)
	h.tally.Receive(n)
}

// balance checks the account against the reports expected in each stage.
func (h *harness) balance(want map[Stage]int64) {
	h.t.Helper()
	h.tally.mu.Lock()
	defer h.tally.mu.Unlock()
	rest := h.given + int64(h.tally.carried)
	for s, got := range h.tally.reports {
		rest -= got
		if got != want[Stage(s)] {
			h.t.Errorf("%d reports in stage %d (%v), want %d", got, s, Stage(s), want[Stage(s)])
		}
	}
	if rest != 0 {
		h.t.Errorf("the account is %d off: %v", rest, h.tally.reports)
	}
	points := int64(h.tally.points.made)
	for s, n := range h.tally.points.at {
		if points -= n; n < 0 {
			h.t.Errorf("%d points in stage %v", n, Stage(s))
		}
	}
	if points != 0 {
		h.t.Errorf("the account is %d points off: %v of %d", points, h.tally.points.at, h.tally.points.made)
	}
}

func sum(from, to int) (n int64) {
	for i := from; i <= to; i++ {
		n += int64(i)
	}
	return n
}

// withAndWithoutSpool runs a test in both forms.
func withAndWithoutSpool(t *testing.T, f func(t *testing.T, dir string)) {
	for _, with := range []bool{false, true} {
		t.Run(fmt.Sprintf("spool=%t", with), func(t *testing.T) {
			dir := ""
			if with {
				dir = t.TempDir()
			}
			synctest.Test(t, func(t *testing.T) { f(t, dir) })
		})
	}
}

func TestQueueStoresInOrder(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		w := &scripted{}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, nil)
		h.put(1, 100)
		h.close(time.Minute)
		if !slices.Equal(w.stored, upTo(1, 100)) || !w.closed {
			t.Errorf("stored %v, closed %t", w.stored, w.closed)
		}
		h.balance(map[Stage]int64{Stored: sum(1, 100)})
		if st := h.q.Stats(); st.Writes != 100 || st.PointsWritten != 100 || st.Retries != 0 || st.Failing || st.Batches != 0 || st.Bytes != 0 {
			t.Errorf("Stats = %+v", st)
		}
		if err := h.q.Put(t.Context(), numbered(1)); !errors.Is(err, ErrClosed) {
			t.Errorf("Put after Close = %v", err)
		}
		if err := h.q.Close(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("second Close = %v", err)
		}
	})
}

// A batch of many points is cut into records; its reports go with the last, and none is counted twice.
func TestQueueCutsBatches(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		w := &scripted{}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, func(c *spool.Config) { c.SegmentBytes = 4096 })
		b := &Batch{Reports: 5}
		for i := range int64(10_000) {
			b.Points = append(b.Points, Point{Measurement: "m", Fields: []Field{StringField("v", fmt.Sprint("value ", i))}, Time: i})
		}
		h.receive(12)
		if err := h.q.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := h.q.Put(t.Context(), &Batch{Reports: 7}); err != nil { // a window without points
			t.Fatal(err)
		}
		h.close(time.Minute)
		if !slices.Equal(w.stored, upTo(0, 9999)) {
			t.Errorf("%d points stored", len(w.stored))
		}
		h.balance(map[Stage]int64{Stored: 12})
	})
}

func TestQueueRetries(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		down := errors.New("connection refused")
		w := &scripted{answer: func(n int, _ *Batch) error {
			switch {
			case n <= 8:
				return down
			case n == 9:
				return &RetryError{Err: errors.New("busy"), After: 2 * time.Minute, Config: true}
			}
			return nil
		}}
		conf := DefaultQueueConfig()
		h := newHarness(t, w, conf, Drop, dir, nil)
		start := time.Now()
		h.put(1, 2)
		time.Sleep(time.Second)
		if st := h.q.Stats(); !st.Failing || st.Config || st.LastError != "connection refused" || st.LastErrorTime.IsZero() {
			t.Errorf("Stats while failing = %+v", st)
		}
		time.Sleep(3 * time.Minute)
		if st := h.q.Stats(); !st.Failing || !st.Config || st.Retries != 9 {
			t.Errorf("Stats while misconfigured = %+v", st)
		}
		time.Sleep(time.Hour)
		// With Rand at its upper end the waits are the bounds: doubling from RetryMin to RetryMax, then what the
		// store asked for.
		var at time.Duration
		want := []time.Duration{0}
		for _, d := range []time.Duration{500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 120000} {
			at += d * time.Millisecond
			want = append(want, at)
		}
		want = append(want, at) // the second batch
		h.close(time.Minute)
		var got []time.Duration
		for _, w := range w.writes {
			got = append(got, w.Sub(start))
		}
		if !slices.Equal(got, want) {
			t.Errorf("writes at %v, want %v", got, want)
		}
		if st := h.q.Stats(); st.Failing || st.Config || st.Retries != 9 {
			t.Errorf("Stats = %+v", st)
		}
		h.balance(map[Stage]int64{Stored: 3})
	})
}

func TestQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := make(chan struct{})
		w := &scripted{answer: func(n int, _ *Batch) error {
			if n == 1 {
				<-up
			}
			return nil
		}}
		conf := DefaultQueueConfig()
		conf.MaxBatches = 10
		h := newHarness(t, w, conf, Drop, "", nil)
		h.put(1, 1)
		synctest.Wait() // it is being written
		h.put(2, 100)
		h.balance(map[Stage]int64{InMemory: 1 + sum(91, 100), DroppedMemory: sum(2, 90)})
		close(up)
		h.close(time.Minute)
		if want := append([]int64{1}, upTo(91, 100)...); !slices.Equal(w.stored, want) {
			t.Errorf("stored %v, want %v", w.stored, want)
		}
		h.balance(map[Stage]int64{Stored: 1 + sum(91, 100), DroppedMemory: sum(2, 90)})
		if st := h.q.Stats(); st.BatchesDropped != 89 || st.PointsDropped != 89 {
			t.Errorf("Stats = %+v", st)
		}
	})
}

func TestQueueBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := make(chan struct{})
		w := &scripted{answer: func(int, *Batch) error { <-up; return nil }}
		conf := DefaultQueueConfig()
		conf.MaxBytes = 64 << 10
		h := newHarness(t, w, conf, Drop, "", nil)
		big := numbered(1)
		big.Points[0].Fields[0] = StringField("v", strings.Repeat("x", 10_000))
		for range 50 {
			h.receive(1)
			if err := h.q.Put(t.Context(), big); err != nil {
				t.Fatal(err)
			}
			if n := h.q.Stats().Bytes; n > conf.MaxBytes {
				t.Fatalf("%d bytes are waiting", n)
			}
			synctest.Wait()
		}
		close(up)
		h.close(time.Minute)
		if n := len(w.stored); n != 7 { // one was being written, six fit
			t.Errorf("%d batches stored", n)
		}
		h.balance(map[Stage]int64{Stored: 7, DroppedMemory: 43})
	})
}

func TestQueueBlocks(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		w := &scripted{answer: func(int, *Batch) error { time.Sleep(time.Second); return nil }}
		conf := DefaultQueueConfig()
		conf.MaxBatches = 3
		h := newHarness(t, w, conf, Block, dir, func(c *spool.Config) { c.MaxBytes, c.SegmentBytes = 16384, 4096 })
		h.put(1, 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		full := false
		for i := range 1000 { // a spool that has been filled takes no more either
			h.receive(1)
			if err := h.q.Put(ctx, numbered(1)); err != nil {
				full = errors.Is(err, context.DeadlineExceeded)
				h.balance(map[Stage]int64{
					Stored: h.tally.At(Stored), InMemory: h.tally.At(InMemory), OnDisk: h.tally.At(OnDisk), DroppedMemory: 1,
				})
				h.close(time.Hour)
				h.balance(map[Stage]int64{Stored: sum(1, 1000) + int64(i), DroppedMemory: 1})
				break
			}
		}
		if !full {
			t.Error("Put never found the queue full")
		}
	})
}

func TestQueueRefusals(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		w := &scripted{answer: func(n int, _ *Batch) error {
			switch n {
			case 1:
				return &PermanentError{Err: errors.New("1 of 3 refused"), Rejected: 1}
			case 2:
				return fmt.Errorf("wrapped: %w", &PermanentError{Err: errors.New("all refused")})
			}
			return nil
		}}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, nil)
		for _, n := range []int{3, 4, 5} {
			b := &Batch{Reports: uint64(n)}
			for range n {
				b.Points = append(b.Points, numbered(n).Points...)
			}
			h.receive(uint64(n))
			if err := h.q.Put(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		h.close(time.Minute)
		h.balance(map[Stage]int64{Stored: 5, Rejected: 3 + 4})
		if p := h.tally.Points(); p.Made != 12 || p.Stored != 7 || p.Refused != 5 || p.Unsettled != 0 {
			t.Errorf("Points = %+v", p)
		}
		if st := h.q.Stats(); st.PointsRejected != 1+4 || st.PointsWritten != 2+5 || st.Retries != 0 || st.Writes != 1 || st.Failing {
			t.Errorf("Stats = %+v", st)
		}
	})
}

// A store is away when the process ends. Without a spool, waiting records are lost and counted. With one, the next
// process stores them.
func TestQueueCloseWhileDown(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		w := &scripted{answer: func(int, *Batch) error { return errors.New("down") }}
		h := newHarness(t, w, DefaultQueueConfig(), Drop, dir, nil)
		h.put(1, 20)
		time.Sleep(10 * time.Minute)
		start := time.Now()
		h.close(20 * time.Second)
		took := time.Since(start)
		if dir == "" {
			if took != 20*time.Second {
				t.Errorf("Close took %v, want all of its time", took)
			}
			h.balance(map[Stage]int64{DroppedMemory: sum(1, 20)})
			return
		}
		if took > time.Second {
			t.Errorf("Close took %v, though everything is on disk", took)
		}
		h.balance(map[Stage]int64{OnDisk: sum(1, 20)})

		w = &scripted{}
		h = newHarness(t, w, DefaultQueueConfig(), Drop, dir, nil)
		h.put(21, 30)
		h.close(time.Minute)
		if !slices.Equal(w.stored, upTo(1, 30)) {
			t.Errorf("stored %v", w.stored)
		}
		h.balance(map[Stage]int64{Stored: sum(1, 30)})
		if n := h.tally.carried; n != uint64(sum(1, 20)) {
			t.Errorf("carried %d", n)
		}
	})
}

// A store that is back when the process ends is not missed for a long wait between retries.
func TestQueueCloseHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(time.Hour + 3*time.Second)
		w := &scripted{answer: func(int, *Batch) error {
			if time.Now().Before(end) {
				return errors.New("down")
			}
			return nil
		}}
		conf := DefaultQueueConfig()
		conf.RetryMax = time.Hour
		h := newHarness(t, w, conf, Drop, "", nil)
		h.put(1, 3)
		time.Sleep(time.Hour)
		h.close(20 * time.Second)
		h.balance(map[Stage]int64{Stored: 6})
	})
}
