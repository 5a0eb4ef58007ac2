package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// errHangup ends what is not asked to read its settings again.
var errHangup = errors.New("hung up")

// signals holds the signals of the operating system. They are received from the start of main to its end, because their
// default action ends the process. A SIGHUP while the settings are first read is kept until it can be acted on. A
// SIGHUP while the collector drains changes nothing.
type signals struct {
	hangup chan struct{}   // SIGHUP came and was not acted upon
	hurry  context.Context // ended by the second SIGINT or SIGTERM: pending work is not waited for
	end    context.CancelCauseFunc

	orderly atomic.Bool // the command comes to an end by itself, in its own time
}

type signalsKey struct{}

// listen starts listening. The context ends with the first SIGINT or SIGTERM; the third kills.
func listen(ctx context.Context) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	hurry, hurryUp := context.WithCancel(context.WithoutCancel(ctx))
	s := &signals{hangup: make(chan struct{}, 1), hurry: hurry, end: end}
	caught := make(chan os.Signal, 8)
	if signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	} else {
		signal.Notify(caught, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	}
	go func() {
		orders := 0
		for sig := range caught {
			if sig == syscall.SIGHUP {
				select {
				case s.hangup <- struct{}{}:
				default: // one is enough
				}
				continue
			}
			switch orders++; orders {
			case 1:
				end(context.Canceled)
			case 2:
				hurryUp()
				signal.Reset(os.Interrupt, syscall.SIGTERM)
			}
		}
	}()
	return context.WithValue(ctx, signalsKey{}, s)
}

// signalsOf returns the signals of a context of [listen]; of another one, signals that never come.
func signalsOf(ctx context.Context) *signals {
	if s, ok := ctx.Value(signalsKey{}).(*signals); ok {
		return s
	}
	return &signals{hurry: context.Background(), end: func(error) {}}
}

// markOrderly marks that the command has begun its orderly end, however long that takes.
func (s *signals) markOrderly() { s.orderly.Store(true) }

// endOnHangup makes SIGHUP, the signal of a closing terminal, end a command that has nothing to reload.
func (s *signals) endOnHangup(ctx context.Context) {
	go func() {
		select {
		case <-s.hangup:
			s.end(errHangup)
		case <-ctx.Done():
		}
	}()
}

// outliveReaders keeps a command alive after its output is closed, so that it can end in order. Writing then returns an
// error.
func outliveReaders() { signal.Ignore(syscall.SIGPIPE) }
