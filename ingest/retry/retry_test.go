package retry

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestNext(t *testing.T) {
	ms := time.Millisecond
	half := func() float64 { return 0.5 }
	for _, tt := range []struct {
		name string
		b    Backoff
		want []time.Duration
	}{
		{"zero", Backoff{}, []time.Duration{0, 0}},
		{"constant", Backoff{Min: 100 * ms}, []time.Duration{100 * ms, 100 * ms, 100 * ms}},
		{"doubling", Backoff{Min: 100 * ms, Max: 500 * ms}, []time.Duration{100 * ms, 200 * ms, 400 * ms, 500 * ms, 500 * ms}},
		{"half random", Backoff{Min: 100 * ms, Max: 500 * ms, Spread: 0.5, Rand: half}, []time.Duration{75 * ms, 150 * ms, 300 * ms, 375 * ms}},
		{"all random", Backoff{Min: 100 * ms, Max: 500 * ms, Spread: 1, Rand: half}, []time.Duration{50 * ms, 100 * ms, 200 * ms, 250 * ms}},
		{"random least", Backoff{Min: 100 * ms, Spread: 1, Rand: func() float64 { return 0 }}, []time.Duration{0, 0}},
	} {
		var got []time.Duration
		b := tt.b
		for range tt.want {
			got = append(got, b.Next())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		b.Reset()
		if second := b.Next(); second != tt.want[0] {
			t.Errorf("%s: %v after Reset, want %v", tt.name, second, tt.want[0])
		}
	}
	b := Backoff{Min: time.Hour, Max: time.Duration(1<<63 - 1)}
	for range 100 {
		if d := b.Next(); d < time.Hour {
			t.Fatalf("a wait of %v", d)
		}
	}
	for range 1000 {
		b := Backoff{Min: 100 * ms, Spread: 0.5}
		if d := b.Next(); d < 50*ms || d >= 100*ms {
			t.Fatalf("a wait of %v, want one of [50ms, 100ms)", d)
		}
	}
}

var (
	errPassing = errors.New("it may pass")
	errFinal   = errors.New("it does not pass")
)

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Backoff{Min: time.Second, Max: 4 * time.Second, Attempt: time.Minute}
		for _, tt := range []struct {
			name   string
			errs   []error // of the attempts
			waited time.Duration
		}{
			{"at once", []error{nil}, 0},
			{"the fifth time", []error{errPassing, errPassing, errPassing, errPassing, nil}, 11 * time.Second},
			{"final", []error{errPassing, errFinal, nil}, time.Second},
		} {
			began, n := time.Now(), 0
			err := b.Do(t.Context(), func(err error) bool { return errors.Is(err, errFinal) }, func(ctx context.Context) error {
				if end, ok := ctx.Deadline(); !ok || time.Until(end) != time.Minute {
					t.Errorf("%s: an attempt ends in %v", tt.name, time.Until(end))
				}
				n++
				return tt.errs[n-1]
			})
			if err != tt.errs[n-1] || time.Since(began) != tt.waited || err == errPassing {
				t.Errorf("%s: %v after %v, want %v after %v", tt.name, err, time.Since(began), tt.errs[len(tt.errs)-1], tt.waited)
			}
		}

		gone := errors.New("nobody waits any more")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, gone)
		defer cancel()
		err := Backoff{Min: 3 * time.Second}.Do(ctx, nil, func(ctx context.Context) error {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("an attempt has another context")
			}
			return errPassing
		})
		if !errors.Is(err, errPassing) || !errors.Is(err, gone) || ctx.Err() == nil {
			t.Errorf("after the end: %v", err)
		}
		once := 0
		err = Backoff{}.Do(ctx, nil, func(ctx context.Context) error { once++; return ctx.Err() })
		if err != context.DeadlineExceeded || once != 1 {
			t.Errorf("with a context that has ended: %v, %d attempts", err, once)
		}
	})
}

func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lasts := []time.Duration{0, 0, 5 * time.Second, 4 * time.Second, 0}
		var began []time.Duration
		start, ends := time.Now(), 0
		Backoff{Min: time.Second, Max: 4 * time.Second}.Keep(ctx, func(ctx context.Context) error {
			began = append(began, time.Since(start))
			if len(began) > len(lasts) {
				cancel()
				return errFinal
			}
			Sleep(ctx, lasts[len(began)-1])
			return errPassing
		}, func(err error) {
			if ends++; err != errPassing {
				t.Errorf("a session ended with %v", err)
			}
		})
		// Waits of 1 s and 2 s, 1 s again after the long session, then 2 s and 4 s.
		want := []time.Duration{0, time.Second, 3 * time.Second, 9 * time.Second, 15 * time.Second, 19 * time.Second}
		if !slices.Equal(began, want) || ends != len(lasts) {
			t.Errorf("sessions began at %v, %d ended; want %v, %d", began, ends, want, len(lasts))
		}
		Backoff{}.Keep(ctx, func(context.Context) error { t.Error("a session after the end"); return nil }, func(error) {})
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if !Sleep(ctx, 2*time.Second) || time.Since(began) != 2*time.Second {
			t.Errorf("a wait of 2 s took %v", time.Since(began))
		}
		if Sleep(ctx, time.Hour) || time.Since(began) != 3*time.Second {
			t.Errorf("the end of the context was seen after %v", time.Since(began))
		}
		if Sleep(ctx, 0) {
			t.Error("a wait after the end")
		}
	})
}
