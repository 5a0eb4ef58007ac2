package notify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// Steps is how far a batch has come at a receiver that takes its alerts one by one, so that none is sent again because a later one
// of its batch was not taken. The zero value has begun none.
type Steps struct {
	batch    [sha256.Size]byte
	done     int // points
	rejected int
	refused  []sink.Refusal
}

// Write sends what is left of a batch. send gives the errors of a [sink.Writer] for one alert: behind one that is refused
// for good it goes on, at any other error it stops, and goes on there when it is called with the same batch again.
func (s *Steps) Write(ctx context.Context, b *sink.Batch, send func(context.Context, *Alert) error) error {
	if sum := batchSum(b); sum != s.batch {
		*s = Steps{batch: sum}
	}
	from := s.done
	for ; s.done < len(b.Points); s.done++ {
		err := sendOne(ctx, b.Points[s.done:s.done+1], send)
		switch {
		case err == nil:
		case sink.Permanent(err):
			s.rejected++
			s.refused = append(s.refused, Refusal(b.Points[s.done:s.done+1], err))
		default:
			if re, ok := errors.AsType[*sink.RetryError](err); ok && s.done > from {
				re.Progress = true
			}
			return err
		}
	}
	defer func() { *s = Steps{} }()
	return Refused(s.rejected, s.refused)
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
	return nil
}

// SentAt is when an alert was sent on its way. One that does not say it is as old as what it tells.
func SentAt(a *Alert) time.Time {
	if a.Time.IsZero() {
		return a.Updated
	}
	return a.Time
}

// Refusal is that of some points, in the form that the queue keeps them in.
func Refusal(points []sink.Point, err error) sink.Refusal {
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

// batchSum knows a batch again that comes from the spool a second time.
func batchSum(b *sink.Batch) (sum [sha256.Size]byte) {
	h := sha256.New()
	var n [8]byte
	for i := range b.Points {
		p := &b.Points[i]
		binary.BigEndian.PutUint64(n[:], uint64(p.Time))
		h.Write(n[:])
		for j := range p.Fields {
			binary.BigEndian.PutUint64(n[:], uint64(len(p.Fields[j].Str)))
			h.Write(n[:])
			h.Write([]byte(p.Fields[j].Str))
		}
	}
	h.Sum(sum[:0])
	return sum
}
