// Package retry repeats what may pass: the waits between attempts, their growth and spread, and the end of it. Callers say what
// they try, and which errors are final.
//
// It reads the clock of package time alone, so that testing/synctest drives it.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Backoff is the series of waits between attempts that fail in a row. The zero value does not wait. A copy is a series of its own.
type Backoff struct {
	Min     time.Duration  // wait after the first failure; it doubles with each further one
	Max     time.Duration  // where the doubling ends; 0 means that all waits are Min
	Spread  float64        // share of a wait that is random: 0 for none, 0.5 for half to all of it, 1 for none to all of it
	Rand    func() float64 // numbers of [0, 1); nil for those of math/rand/v2
	Attempt time.Duration  // limit of one attempt of [Backoff.Do]; 0 for none

	failures int // in a row
}

// Next counts a failure and returns the wait before the next attempt.
func (b *Backoff) Next() time.Duration {
	wait := max(b.Min, b.Max)
	if b.Min <= wait>>b.failures {
		wait = b.Min << b.failures
	}
	b.failures++
	if b.Spread == 0 {
		return wait
	}
	random := b.Rand
	if random == nil {
		random = rand.Float64
	}
	return time.Duration((1 - b.Spread + b.Spread*random()) * float64(wait))
}

// Reset makes the next failure the first one in a row.
func (b *Backoff) Reset() { b.failures = 0 }

// Sleep waits for Next. It reports false as soon as ctx has ended.
func (b *Backoff) Sleep(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Do calls try until it succeeds, its error is final, or ctx ends. It returns the last error of try, and joins the cause of the end
// of ctx to one that does not name it. Final is called once with each error, and so may count or log it. Nil says that every error
// may pass.
func (b Backoff) Do(ctx context.Context, final func(error) bool, try func(ctx context.Context) error) error {
	for {
		err := b.once(ctx, try)
		if err == nil || final != nil && final(err) {
			return err
		}
		if !b.Sleep(ctx) {
			if errors.Is(err, ctx.Err()) {
				return err
			}
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

func (b *Backoff) once(ctx context.Context, try func(ctx context.Context) error) error {
	if b.Attempt > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.Attempt)
		defer cancel()
	}
	return try(ctx)
}

// Keep calls session again and again until ctx ends, and ended with the error of each one before the wait that follows it. After a
// session that lasted longer than Max the waits begin at Min.
func (b Backoff) Keep(ctx context.Context, session func(ctx context.Context) error, ended func(error)) {
	for ctx.Err() == nil {
		began := time.Now()
		err := session(ctx)
		if ctx.Err() != nil {
			return
		}
		ended(err)
		if time.Since(began) > b.Max {
			b.Reset()
		}
		b.Sleep(ctx)
	}
}

// Sleep waits for d. It reports false as soon as ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
