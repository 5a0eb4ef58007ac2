package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// Resent is the outcome for the refused points of one store.
type Resent struct {
	Sink    string `json:"sink"`
	Stored  uint64 `json:"stored"`
	Refused uint64 `json:"refused"` // again
	Left    uint64 `json:"left"`    // not tried, because something else failed
}

// Resend sends entries of a directory to the store of that name again. Stored entries are removed. Entries that are
// refused again stay, with the store's new reason.
func Resend(ctx context.Context, cfg any, name, dir string, entries []string) (r Resent, err error) {
	r.Sink = name
	lock, err := sink.LockRefused(dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	store, err := OpenOne(cfg, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, store.Writer.Close()) }()
	w := sink.AsEncoder(store.Writer)
	var errs []error
	for i, entry := range entries {
		e, err := sink.ReadRefused(dir, entry)
		if errors.Is(err, os.ErrNotExist) { // evicted in the meantime
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := resendOne(ctx, w, dir, e, &r); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", name, entry, err))
			for _, rest := range entries[i+1:] {
				if e, err := sink.ReadRefused(dir, rest); err == nil {
					r.Left += e.Points()
				}
			}
			break
		}
	}
	if r.Refused > 0 {
		errs = append(errs, fmt.Errorf("%s: %d points are still refused; hopscope spool list says why", name, r.Refused))
	}
	return r, errors.Join(errs...)
}

// resendOne sends an entry and keeps the points that are refused again. An entry stays as it is until its points are
// stored.
func resendOne(ctx context.Context, w sink.Encoder, dir string, e *sink.RefusedEntry, r *Resent) error {
	rest := *e
	rest.Groups, rest.Time = nil, time.Now()
	points, unstored := e.Points(), uint64(0)
	for i := range e.Groups {
		g := &e.Groups[i]
		err := writeWhole(ctx, w, g.Payload)
		pe, permanent := errors.AsType[*sink.PermanentError](err)
		if err != nil && !permanent {
			r.Left += points
			return err // of what is stored already nothing is forgotten: it is sent again, which changes nothing
		}
		if !permanent {
			continue
		}
		if len(pe.Refused) == 0 {
			g.Reason = err.Error()
			rest.Groups = append(rest.Groups, *g)
			unstored += g.Points
		}
		for _, n := range pe.Refused {
			rest.Groups = append(rest.Groups, n)
			unstored += n.Points
		}
	}
	if s, ok := w.(sink.Stager); ok {
		if err := s.Flush(ctx); err != nil {
			r.Left += points
			return err
		}
	}
	r.Refused += unstored
	r.Stored += points - min(unstored, points)
	if len(rest.Groups) > 0 {
		return sink.ReplaceRefused(dir, &rest)
	}
	return sink.RemoveRefused(dir, e.Name())
}

// writeWhole writes a payload that may need several tries without anything being wrong.
func writeWhole(ctx context.Context, w sink.Encoder, payload []byte) error {
	for {
		err := w.WriteEncoded(ctx, payload)
		if re, ok := errors.AsType[*sink.RetryError](err); !ok || !re.Progress || ctx.Err() != nil {
			return err
		}
	}
}
