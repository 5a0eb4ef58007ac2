package sink

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// unsteady is a log whose errors vary: some need a person, and a write may have an effect although it fails.
type unsteady struct {
	*partitions
	rand *rand.Rand
	down atomic.Bool // all of it
}

func (l *unsteady) Write(ctx context.Context, b *Batch) error {
	if l.down.Load() {
		return &RetryError{Err: errors.New("no connection"), Doubt: l.rand.IntN(4) > 0}
	}
	err := l.partitions.Write(ctx, b)
	if re, ok := errors.AsType[*RetryError](err); ok && l.rand.IntN(3) == 0 {
		re.Doubt, re.Config = false, true
	}
	return err
}

// Places keep the order of what is for them, whatever is away when, and however it fails.
func TestPlacesKeepOrder(t *testing.T) {
	for seed := range uint64(10) {
		withAndWithoutSpool(t, func(t *testing.T, dir string) {
			r := rand.New(rand.NewPCG(seed, 1))
			var away [places]atomic.Bool
			l := &partitions{away: func(place int64) bool { return away[place].Load() }, took: map[int64][]int64{}}
			u := &unsteady{partitions: l, rand: rand.New(rand.NewPCG(seed, 2))}
			h := newHarness(t, placed{&encoded{Writer: u}}, DefaultQueueConfig(), Drop, dir, nil)
			n := int64(0)
			for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); {
				u.down.Store(r.IntN(3) == 0)
				for i := range away {
					away[i].Store(r.IntN(4) == 0)
				}
				for range 1 + r.IntN(30) {
					b := &Batch{Reports: 1}
					for place := range int64(places) {
						b.Points = append(b.Points, Point{Measurement: measurement, Fields: []Field{IntField("v", n)}, Time: place})
					}
					n++
					h.receive(1)
					if err := h.q.Put(t.Context(), b); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
			}
			u.down.Store(false)
			for i := range away {
				away[i].Store(false)
			}
			time.Sleep(3 * time.Minute)
			for place := range int64(places) {
				if got := l.of(place); !slices.Equal(got, upTo(0, n-1)) {
					t.Fatalf("seed %d: place %d has %v of %d", seed, place, got, n)
				}
			}
			h.close(time.Minute)
		})
	}
}

// A store that is away again and again, and slow when it is there, refuses nothing.
func TestFlapping(t *testing.T) {
	for seed := range uint64(1) {
		withAndWithoutSpool(t, func(t *testing.T, dir string) {
			r := rand.New(rand.NewPCG(seed, 3))
			var away atomic.Bool
			l := &partitions{away: func(int64) bool { return away.Load() }, took: map[int64][]int64{}}
			slow := &slowly{partitions: l}
			conf := DefaultQueueConfig()
			conf.RetryMin, conf.RetryMax = 10*time.Millisecond, 200*time.Millisecond
			h := newHarness(t, &encoded{Writer: slow}, conf, Drop, dir, nil)
			const points, flaps = 150, 15
			n := int64(0)
			for range flaps {
				for _, span := range []time.Duration{2 * time.Second, 300 * time.Millisecond} {
					span += time.Duration(r.IntN(int(300 * time.Millisecond)))
					away.Store(!away.Load())
					for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
						b := &Batch{Reports: 1}
						for k := range int64(points) {
							b.Points = append(b.Points, Point{Measurement: "m", Fields: []Field{IntField("v", n)}, Time: n*points + k})
						}
						n++
						h.receive(1)
						if err := h.q.Put(t.Context(), b); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			away.Store(false)
			time.Sleep(10 * time.Minute)
			if st := h.q.Stats(); st.PointsRejected > 0 || int64(st.PointsWritten) != n*points {
				t.Errorf("seed %d: of %d records: %+v", seed, n, st)
			}
			h.close(time.Minute)
		})
	}
}

// slowly is a log that takes a moment for everything.
type slowly struct{ *partitions }

func (l *slowly) Write(ctx context.Context, b *Batch) error {
	time.Sleep(20 * time.Millisecond)
	return l.partitions.Write(ctx, b)
}
