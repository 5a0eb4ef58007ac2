package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// ErrUnwanted is returned when an alert is not for this receiver.
var ErrUnwanted = errors.New("notify: the receiver takes no such alerts")

// maxInRow is how many alerts of a batch may fail one after the other before the rest of it waits.
const maxInRow = 3

// Each sends the alerts of a batch one by one, so that an alert that its receiver fails on stops no other. Function
// send returns the errors of a [sink.Writer] for one alert. After a failed alert, alerts with the same key wait.
func Each(ctx context.Context, b *sink.Batch, send func(context.Context, *Alert) error) error {
	var o Outcome
	for i := range b.Points {
		p := b.Points[i : i+1]
		if o.Stopped() || o.Held(p) {
			o.Leave(p)
			continue
		}
		switch err := sendOne(ctx, p, send); {
		case err == ErrUnwanted:
		case err == nil:
			o.Pass()
		default:
			o.Fail(p, err)
		}
	}
	return o.Err()
}

// Outcome is the result for the alerts of a batch that its receiver takes in parts. The zero value is that of no alert.
type Outcome struct {
	passed, inRow   int
	refused         []sink.Refusal
	failed, untried []sink.Point
	waiting         map[string]bool // keys of what failed
	err             error
	stopped         bool
}

// Stopped reports whether the receiver is away, as it seems, so that nothing more is to be sent.
func (o *Outcome) Stopped() bool { return o.stopped }

// Held reports whether one of some alerts has to wait for one that failed.
func (o *Outcome) Held(points []sink.Point) bool {
	return len(o.waiting) > 0 && slices.ContainsFunc(points, func(p sink.Point) bool { return o.waiting[PointKey(&p)] })
}

// Pass notes that a request was taken.
func (o *Outcome) Pass() { o.passed, o.inRow = o.passed+1, 0 }

// Fail notes the error of a request with one alert.
func (o *Outcome) Fail(point []sink.Point, err error) {
	if sink.Permanent(err) {
		o.refused = append(o.refused, refusal(point, err))
		o.Pass()
		return
	}
	if o.waiting == nil {
		o.waiting = map[string]bool{}
	}
	o.failed, o.waiting[PointKey(&point[0])] = append(o.failed, point...), true
	if o.inRow++; !Doubtful(err) || o.inRow >= maxInRow {
		o.Stop(err)
	}
	if o.err == nil {
		o.err = err
	}
}

// Doubtful reports whether the cause of an error may be the alert rather than its receiver.
func Doubtful(err error) bool {
	re, ok := errors.AsType[*sink.RetryError](err)
	return ok && re.Doubt && re.After == 0
}

// Stop notes an error that other alerts would get, too.
func (o *Outcome) Stop(err error) { o.err, o.stopped = err, true }

// Leave notes alerts that are not sent now.
func (o *Outcome) Leave(points []sink.Point) {
	for i := range points {
		if o.waiting[PointKey(&points[i])] {
			o.failed = append(o.failed, points[i])
		} else {
			o.untried = append(o.untried, points[i])
		}
	}
}

// Err is the error of the batch. Its Rest holds the remaining alerts: first those that were not tried.
func (o *Outcome) Err() error {
	rest := append(o.untried, o.failed...)
	switch {
	case len(rest) > 0:
		re := sink.RetryError{Err: o.err, Progress: o.passed > 0}
		if cause, ok := errors.AsType[*sink.RetryError](o.err); ok {
			re.After, re.Config, re.Doubt = cause.After, cause.Config, cause.Doubt
		}
		what := refusal(rest, o.err)
		re.Rest, re.Refused = &what, o.refused
		return &re
	case o.passed == 0:
		return sink.ErrNothing
	}
	return Refused(len(o.refused), o.refused)
}

func sendOne(ctx context.Context, points []sink.Point, send func(context.Context, *Alert) error) error {
	alerts, err := Alerts(&sink.Batch{Points: points})
	if err != nil {
		return &sink.PermanentError{Err: err}
	}
	for i := range alerts {
		if err := send(ctx, &alerts[i]); err != nil {
			return err
		}
	}
	if len(alerts) == 0 {
		return ErrUnwanted
	}
	return nil
}

// SentAt returns the time at which an alert was sent. One without that time is as old as its finding.
func SentAt(a *Alert) time.Time {
	if a.Time.IsZero() {
		return a.Updated
	}
	return a.Time
}

// refusal is that of some points, in the form that the queue keeps them in.
func refusal(points []sink.Point, err error) sink.Refusal {
	r := sink.Refusal{Payload: sink.AppendBatch(nil, &sink.Batch{Points: points}), Points: uint64(len(points)), Reason: err.Error()}
	for i := range points {
		r.Series = sink.AddSeries(r.Series, points[i].Measurement, 1)
	}
	return r
}

// Refused is the error of a batch of which some points were refused; nil without any.
func Refused(rejected int, refused []sink.Refusal) error {
	if rejected == 0 {
		return nil
	}
	return &sink.PermanentError{Err: fmt.Errorf("%d alerts refused, first: %s", rejected, refused[0].Reason), Rejected: rejected, Refused: refused}
}
