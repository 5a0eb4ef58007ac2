package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
)

// table is a roster whose brokers have a clock that is right.
type table struct {
	mu  sync.Mutex
	all map[string][]byte
}

func (*table) Topic() string                             { return "roster" }
func (*table) Refresh(context.Context) ([]string, error) { return nil, nil }
func (b *table) All() map[string][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return map[string][]byte{roster.ParamsKey: b.all[roster.ParamsKey]}
}

func (b *table) Put(_ context.Context, key string, value []byte) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[key] = value
	return time.Now(), nil
}

// TestConsumerClock: a consumer whose clock is off Kafka's by a window runs, whichever is ahead. One that is off by more refuses to start,
// and ends where its clock goes wrong later.
func TestConsumerClock(t *testing.T) {
	p := roster.Params{Name: "f", Slices: 1, Window: time.Second, Codes: 1, Version: 1}
	value, err := json.Marshal(&p)
	if err != nil {
		t.Fatal(err)
	}
	wrong := func(err error) bool { return errors.As(err, new(*fleet.ClockError)) }
	for _, sign := range []time.Duration{1, -1} {
		synctest.Test(t, func(t *testing.T) {
			var off atomic.Int64 // of the consumer's clock
			join := func() (*Membership, error) {
				m := NewMembership(MembershipOptions{
					ID: "c", Log: slog.New(slog.DiscardHandler), Roster: &table{all: map[string][]byte{roster.ParamsKey: value}}, Lasting: func(error) bool { return false },
					Now: func() time.Time { return time.Now().Add(time.Duration(off.Load())) },
				})
				_, err := m.Join(t.Context(), func(*roster.Params) roster.Params { return p })
				return m, err
			}
			off.Store(int64(sign * (p.Window + time.Millisecond)))
			if _, err := join(); !wrong(err) {
				t.Errorf("off by %v at the start: %v", time.Duration(off.Load()), err)
			}
			off.Store(int64(sign * p.Window))
			m, err := join()
			if err != nil {
				t.Fatalf("off by %v: %v", time.Duration(off.Load()), err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if err := m.Follow(ctx); err != nil || m.Beats() < 10 {
				t.Errorf("off by %v, after %d beats: %v", time.Duration(off.Load()), m.Beats(), err)
			}
			ended := make(chan error)
			go func() { ended <- m.Follow(t.Context()) }()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			off.Store(int64(sign * 2 * p.Window))
			if err := <-ended; !wrong(err) || m.Clock().Abs() != 2*p.Window {
				t.Errorf("off by %v later: %v, clock %v", time.Duration(off.Load()), err, m.Clock())
			}
		})
	}
}
