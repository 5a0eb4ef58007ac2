package sink

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// partitions is a log with places, some of which are away. The time of a point is its place.
type partitions struct {
	away func(place int64) bool

	mu   sync.Mutex
	took map[int64][]int64 // values by place
}

func (l *partitions) Name() string { return "partitions" }
func (l *partitions) Close() error { return nil }

func (l *partitions) Write(_ context.Context, b *Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left Batch
	for _, p := range b.Points {
		if l.away(p.Time) {
			left.Points = append(left.Points, p)
			continue
		}
		l.took[p.Time] = append(l.took[p.Time], p.Fields[0].Int)
	}
	switch n := len(left.Points); {
	case n == 0:
		return nil
	case n == len(b.Points):
		return &RetryError{Err: errors.New("no leader"), Doubt: true}
	}
	rest := refusalOf(&left)
	return &RetryError{Err: errors.New("no leader"), Doubt: true, Progress: true, Rest: &rest}
}

// of returns what a place has.
func (l *partitions) of(place int64) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.took[place])
}

// placed is a Placer of six places.
type placed struct{ *encoded }

func (placed) Places() int { return places }

const places = 6

// measurement is a name of some length, since payloads have a bound.
var measurement = strings.Repeat("a name ", 40)

// newPlaced is a queue before a log, and a function that puts a record of one report with a value for each place.
func newPlaced(t *testing.T, away func(place int64) bool, conf QueueConfig, dir string) (l *partitions, h *harness, put func(value int64)) {
	l = &partitions{away: away, took: map[int64][]int64{}}
	h = newHarness(t, placed{&encoded{Writer: l}}, conf, Drop, dir, nil)
	return l, h, func(value int64) {
		b := &Batch{Reports: 1}
		for place := range int64(places) {
			b.Points = append(b.Points, Point{Measurement: measurement, Fields: []Field{IntField("v", value)}, Time: place})
		}
		h.receive(1)
		if err := h.q.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// Places that are away for an hour hold up no other. What is for them waits in its order, for a quarter of an hour, and is counted.
func TestPlacesAway(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		back := time.Now().Add(time.Hour)
		l, h, put := newPlaced(t, func(place int64) bool { return third(place) && time.Now().Before(back) }, DefaultQueueConfig(), dir)
		n := int64(0)
		for time.Now().Before(back) {
			n++
			put(n)
			time.Sleep(10 * time.Second)
			for place := range int64(places) {
				if got := l.of(place); !third(place) && int64(len(got)) != n {
					t.Fatalf("place %d has %d values, want %d", place, len(got), n)
				}
			}
			if st := h.q.Stats(); st.Failing || int64(st.Aside.Points+st.PointsRejected) != n*places/3 || st.Aside.Error == "" {
				t.Fatalf("after %d records: %+v", n, st)
			}
		}
		time.Sleep(2 * time.Minute)
		st := h.q.Stats()
		if st.Aside.Pieces != 0 || st.PointsRejected == 0 || int64(st.PointsRejected+st.PointsWritten) != n*places {
			t.Errorf("Stats = %+v", st)
		}
		refused := int64(0)
		for place := range int64(places) {
			got := l.of(place)
			if len(got) == 0 || got[len(got)-1] != n || !slices.IsSorted(got) || len(got) != len(slices.Compact(slices.Clone(got))) {
				t.Errorf("place %d has %v", place, got)
			}
			if third(place) && len(got) < 80 { // a quarter of an hour has 90
				t.Errorf("place %d has %d values", place, len(got))
			}
			refused += n - int64(len(got))
		}
		if refused != int64(st.PointsRejected) {
			t.Errorf("%d values are nowhere, %d were refused", refused, st.PointsRejected)
		}
		h.close(time.Minute)
	})
}

// A place that is back is not held up by one that is away.
func TestPlacesComeBackAlone(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		start := time.Now()
		l, h, put := newPlaced(t, func(place int64) bool {
			return place == 0 && time.Since(start) < time.Minute || place == 3 && time.Since(start) < 10*time.Minute
		}, DefaultQueueConfig(), dir)
		for n := range int64(100) {
			put(n)
			time.Sleep(10 * time.Second)
			if got := l.of(0); time.Since(start) > 2*time.Minute && int64(len(got)) != n+1 {
				t.Fatalf("place 0 has %d values, want %d", len(got), n+1)
			}
		}
		time.Sleep(time.Minute)
		for place := range int64(places) {
			if got := l.of(place); !slices.Equal(got, upTo(0, 99)) {
				t.Errorf("place %d has %v", place, got)
			}
		}
		h.balance(map[Stage]int64{Stored: 100})
		h.close(time.Minute)
	})
}

// While a new leader is elected, more comes than there is room for: all of it is there in the end. A place that stays away holds up others
// for a minute or two, once, and then gives up what has no room.
func TestPlacesCrowded(t *testing.T) {
	for name, gone := range map[string]time.Duration{"election": 50 * time.Second, "away": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			withAndWithoutSpool(t, func(t *testing.T, dir string) {
				start := time.Now()
				conf := DefaultQueueConfig()
				conf.MaxBytes = 96 << 10
				l, h, put := newPlaced(t, func(place int64) bool { return third(place) && time.Since(start) < gone }, conf, dir)
				slow, n := time.Duration(0), int64(0)
				for ; time.Since(start) < gone+gone/4; n++ {
					put(n)
					time.Sleep(500 * time.Millisecond)
					if got := l.of(1); int64(len(got)) < n {
						slow += 500 * time.Millisecond
						if time.Since(start) > 6*time.Minute {
							t.Fatalf("place 1 has %d values after %v, want %d", len(got), time.Since(start), n)
						}
					}
				}
				time.Sleep(2 * time.Minute)
				st := h.q.Stats()
				if (st.PointsRejected > 0) != (name == "away") || int64(st.PointsRejected+st.PointsWritten) != places*n {
					t.Errorf("%d records, %+v", n, st)
				}
				missing := uint64(0)
				for place := range int64(places) {
					got := l.of(place)
					missing += uint64(n) - uint64(len(got))
					if !slices.IsSorted(got) || !third(place) && int64(len(got)) != n {
						t.Errorf("place %d has %d values of %d", place, len(got), n)
					}
				}
				if missing != st.PointsRejected {
					t.Errorf("%d values are missing, %d were refused", missing, st.PointsRejected)
				}
				if slow > 5*time.Minute {
					t.Errorf("others waited for %v", slow)
				}
				t.Logf("others waited for %v, %d of %d refused", slow, st.PointsRejected, places*n)
				h.close(time.Minute)
			})
		})
	}
}

// A log that was away as a whole gets all in order when it is back, however much waits.
func TestPlacesAllAway(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		back := time.Now().Add(time.Hour)
		conf := DefaultQueueConfig()
		conf.MaxBytes = 1 << 20
		l, h, put := newPlaced(t, func(int64) bool { return time.Now().Before(back) }, conf, dir)
		for n := range int64(360) {
			put(n)
			time.Sleep(10 * time.Second)
			if st := h.q.Stats(); n > 1 && !st.Failing {
				t.Fatalf("Stats = %+v", st)
			}
		}
		time.Sleep(time.Minute)
		for place := range int64(places) {
			if got := l.of(place); !slices.Equal(got, upTo(0, 359)) {
				t.Errorf("place %d has %d values", place, len(got))
			}
		}
		h.balance(map[Stage]int64{Stored: 360})
		h.close(time.Minute)
	})
}

// What is for places that are away stays in the spool over the end of the program. Without a spool it is refused, and counted.
func TestPlacesEnd(t *testing.T) {
	withAndWithoutSpool(t, func(t *testing.T, dir string) {
		_, h, put := newPlaced(t, third, DefaultQueueConfig(), dir)
		for n := range int64(10) {
			put(n)
			time.Sleep(time.Second)
		}
		h.close(time.Minute)
		if dir == "" {
			h.balance(map[Stage]int64{Rejected: 10})
			return
		}
		h.balance(map[Stage]int64{OnDisk: 10})
		l, h, _ := newPlaced(t, func(int64) bool { return false }, DefaultQueueConfig(), dir)
		time.Sleep(time.Minute)
		for place := range int64(places) {
			if got := l.of(place); !slices.Equal(got, upTo(0, 9)) {
				t.Errorf("place %d has %v", place, got)
			}
		}
		h.balance(map[Stage]int64{Stored: 10})
		h.close(time.Minute)
	})
}
