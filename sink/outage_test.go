package sink

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/sink/spool"
)

// A log that was away and is back for a moment, in which each place has something set aside, loses nothing for want of room.
// No other place waits for the room.
func TestPlacesAllSetAside(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		conf := DefaultQueueConfig()
		conf.MaxBytes = 4 << 20
		start, one := time.Now(), atomic.Int64{}
		l, h, _ := newPlaced(t, nil, conf, dir)
		l.away = func(place int64) bool {
			at := time.Since(start)
			return at < time.Hour && (at < 5*time.Minute || at > 25*time.Minute || place != 3 || one.Add(1) > 1)
		}
		const n = 720
		for i := range int64(n) {
			for place := range int64(places) {
				b := &Batch{Reports: 1, Points: []Point{{Measurement: measurement, Fields: []Field{IntField("v", i)}, Time: place}}}
				h.receive(1)
				if err := h.q.Put(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(5 * time.Second)
		}
		time.Sleep(5 * time.Minute)
		for place := range int64(places) {
			if got := l.of(place); !slices.Equal(got, upTo(0, n-1)) {
				t.Errorf("place %d has %d values of %d", place, len(got), n)
			}
		}
		if st := h.q.Stats(); st.PointsRejected != 0 || st.PointsDropped != 0 {
			t.Errorf("Stats = %+v", st)
		}
		h.close(time.Minute)
	})
}

// Time in which a record waited behind others of its place, or nothing passed, is no time in which it failed.
func TestPlacesBackForAMoment(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		start := time.Now()
		var one atomic.Int64 // values that place 0 takes
		l, h, put := newPlaced(t, nil, DefaultQueueConfig(), dir)
		l.away = func(place int64) bool {
			at := time.Since(start)
			switch {
			case place != 0:
				return at > time.Minute && at < time.Hour
			case at < time.Hour:
				return true
			case at < time.Hour+5*time.Minute:
				return one.Add(1) > 1
			}
			return false
		}
		const n = 400
		for i := range int64(n) {
			put(i)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(5 * time.Minute)
		for place := range int64(places) {
			if got := l.of(place); !slices.Equal(got, upTo(0, n-1)) {
				t.Errorf("place %d has %d values of %d", place, len(got), n)
			}
		}
		if st := h.q.Stats(); st.PointsRejected != 0 {
			t.Errorf("Stats = %+v", st)
		}
		h.close(time.Minute)
	})
}

// The reports of a batch are stored in the next run if a part of it stays in the spool for a place that is away.
func TestPlacesEndInABatch(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		_, h, _ := newPlaced(t, func(place int64) bool { return place == 0 }, DefaultQueueConfig(), dir)
		b := &Batch{Reports: 1}
		for i := range recordPoints + 1 {
			b.Points = append(b.Points, Point{Measurement: "m", Fields: []Field{IntField("v", int64(i))}, Time: 1})
		}
		b.Points[recordPoints].Time = 0
		h.receive(1)
		if err := h.q.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		b.Points, b.Reports = b.Points[:1], 2 // another place passes
		h.receive(2)
		if err := h.q.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		h.close(time.Minute)
		h.balance(map[Stage]int64{OnDisk: 3})
		_, h, _ = newPlaced(t, func(int64) bool { return false }, DefaultQueueConfig(), dir)
		time.Sleep(time.Minute)
		h.balance(map[Stage]int64{Stored: 3})
		h.close(time.Minute)
	})
}

// The memory of what was for a place that is away ends with it.
func TestPlacesForget(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		_, h, put := newPlaced(t, func(place int64) bool { return place == 0 }, DefaultQueueConfig(), dir)
		for n := range int64(360) {
			put(n)
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		reached := map[*piece]bool{}
		todo := slices.Clone(h.q.asides)
		for len(todo) > 0 {
			p := todo[0]
			if todo = todo[1:]; !reached[p] {
				reached[p] = true
				todo = append(todo, p.after...)
			}
		}
		if st := h.q.Stats(); len(reached) > st.Aside.Pieces+1 {
			t.Errorf("%d pieces are in memory, and %d are set aside", len(reached), st.Aside.Pieces)
		}
		h.close(time.Minute)
	})
}

// A record that comes past the spool is written behind those that went there before, and before those that follow.
func TestPastSpoolInOrder(t *testing.T) {
	sc := spool.DefaultConfig()
	sc.Dir, sc.MaxBytes, sc.SegmentBytes = t.TempDir(), 65536, 4096
	synctest.Test(t, func(t *testing.T) {
		s, err := spool.Open(sc)
		if err != nil {
			t.Fatal(err)
		}
		q := NewQueue(&scripted{}, DefaultQueueConfig(), QueueOptions{Policy: Block, Spool: s})
		made := func(n int) item {
			it, _ := q.encode(q.nextBatch(), []Point{{Measurement: measurement, Fields: []Field{IntField("v", 1)}, Time: 1000 + int64(n)}}, true)
			return it
		}
		carry := func(n int) { // as toSpool does
			if !q.spoolOne(t.Context(), made(n)) {
				t.Errorf("%d went nowhere", n)
			}
		}
		next := func() int64 {
			it, ok := q.nextRecord(nil)
			var b Batch
			if !ok || DecodeBatch(it.payload, &b) != nil {
				t.Fatal("no record")
			}
			q.staged = append(q.staged, &staged{item: it})
			return b.Points[0].Time - 1000
		}
		n := 1
		for ; s.Room(len(made(n).record)); n++ {
			carry(n)
		}
		for i := 1; i < n-1; i++ { // all but one are read, and none is stored
			next()
		}
		go carry(n)
		for q.held == nil {
			q.await(t.Context(), nil, 0, false)
		}
		s.Commit(q.staged[len(q.staged)-1].end)
		for i := n + 1; i < n+9; i++ {
			carry(i)
		}
		var got []int64
		for range 10 {
			got = append(got, next())
		}
		if want := upTo(int64(n)-1, int64(n)+8); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Places keep their order over the ends of programs, also of those that are killed. Nothing is lost, and what comes again comes in
// its order.
func TestPlacesKeepOrderOverRestarts(t *testing.T) {
	for seed := range uint64(4) {
		dirs := [4]string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			var away [places]atomic.Bool
			l := &partitions{away: func(place int64) bool { return away[place].Load() }, took: map[int64][]int64{}}
			dir, n, want := dirs[0], int64(0), map[int64][]int64{}
			for run := range dirs {
				u := &unsteady{partitions: l, rand: rand.New(rand.NewPCG(seed, uint64(run)))}
				h := newHarness(t, placed{&encoded{Writer: u}}, DefaultQueueConfig(), Drop, dir, func(c *spool.Config) { c.SegmentBytes = 4096 })
				for range 1 + r.IntN(8) {
					u.down.Store(r.IntN(3) == 0)
					for i := range away {
						away[i].Store(r.IntN(4) == 0)
					}
					for range r.IntN(30) {
						b := &Batch{Reports: 1}
						for place := range int64(places) {
							if r.IntN(3) > 0 {
								b.Points = append(b.Points, Point{Measurement: measurement, Fields: []Field{IntField("v", n)}, Time: place})
							}
						}
						n++
						h.receive(1)
						if err := h.q.Put(t.Context(), b); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
						for _, p := range b.Points {
							want[p.Time] = append(want[p.Time], n-1)
						}
					}
				}
				synctest.Wait()
				if run == len(dirs)-1 {
					u.down.Store(false)
					for i := range away {
						away[i].Store(false)
					}
					time.Sleep(3 * time.Minute)
				} else if r.IntN(2) == 0 { // it is killed
					u.down.Store(true)
					if err := os.CopyFS(dirs[run+1], os.DirFS(dir)); err != nil {
						t.Fatal(err)
					}
					dir = dirs[run+1]
				}
				h.close(time.Minute)
				all := h.given + int64(h.tally.carried)
				h.balance(map[Stage]int64{Stored: h.tally.At(Stored), OnDisk: all - h.tally.At(Stored)})
				if run == len(dirs)-1 && h.tally.At(OnDisk) != 0 {
					t.Errorf("seed %d: %d reports are still on disk", seed, h.tally.At(OnDisk))
				}
			}
			for place := range int64(places) {
				seen := map[int64]bool{}
				got := slices.DeleteFunc(l.of(place), func(v int64) bool {
					again := seen[v]
					seen[v] = true
					return again
				})
				if !slices.Equal(got, want[place]) {
					t.Fatalf("seed %d: place %d has %v, want %v", seed, place, got, want[place])
				}
			}
		})
	}
}

// A record that this program cannot read is refused with all its points and reports.
func TestUnknownRecordIsCounted(t *testing.T) {
	dir := t.TempDir()
	sc := spool.DefaultConfig()
	sc.Dir = dir
	s, err := spool.Open(sc)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Append(5, 7, []byte(recordMark+"\x63 of later")), s.Close()); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, &scripted{}, DefaultQueueConfig(), Drop, dir, nil)
		h.put(1, 1)
		time.Sleep(time.Minute)
		h.close(time.Minute)
		h.balance(map[Stage]int64{Stored: 1, Rejected: 5})
		if n := h.tally.PointsAt(OnDisk); n != 0 || h.tally.PointsAt(Rejected) != 7 || h.q.Stats().PointsRejected != 7 {
			t.Errorf("%d points on disk, %d rejected, %+v", n, h.tally.PointsAt(Rejected), h.q.Stats())
		}
	})
}
