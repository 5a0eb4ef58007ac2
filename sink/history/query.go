package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

const (
	// mostQueries is how many questions are read for at the same time; others wait.
	mostQueries = 1
	// mostColumns is the greatest number of columns of an answer.
	mostColumns = 750
)

// Columns are the steps of time of an answer.
type Columns struct {
	From, To int64         // what was asked for, widened to whole steps, ns since 1970
	Step     time.Duration // of a column
	Windows  []uint32      // merged in each column; 0 is a gap
	Reports  []uint64      // in each column
	Oldest   int64         // where the history begins, ns since 1970; 0 where it is empty
	Damaged  uint64        // records that could not be read for this answer
}

// End is the end of a column, ns since 1970.
func (c *Columns) End(i int) int64 { return c.From + int64(i+1)*int64(c.Step) }

// Merged is the number of windows in all columns.
func (c *Columns) Merged() (n uint64) {
	for _, w := range c.Windows {
		n += uint64(w)
	}
	return n
}

// Gaps is the number of columns without a window.
func (c *Columns) Gaps() (n int) {
	for _, w := range c.Windows {
		if w == 0 {
			n++
		}
	}
	return n
}

// ErrRange is the error of a range that no history can have.
var ErrRange = errors.New("from and to: the range is empty")

// columns chooses the finest step for which there are not too many columns, and whose records go back as far as any do.
func (s *Store) columns(from, to int64) (c Columns, t int, err error) {
	if from < 0 || to <= from || to > 1<<62 {
		return c, 0, ErrRange
	}
	oldest := s.Stats().Oldest
	s.mu.RLock()
	defer s.mu.RUnlock()
	for t = range steps {
		l := steps[t].length
		c.From, c.To, c.Step = from/l*l, (to+l-1)/l*l, time.Duration(l)
		fits := (c.To-c.From)/l <= mostColumns
		reaches := s.begins(t) <= max(c.From, oldest/l*l)
		if fits && reaches || t == len(steps)-1 {
			break
		}
	}
	n := (c.To - c.From) / int64(c.Step)
	if n > mostColumns {
		return c, t, fmt.Errorf("%w, or too long: it has %d days, more than %d", ErrRange, n, mostColumns)
	}
	c.Oldest, c.Windows, c.Reports = oldest, make([]uint32, n), make([]uint64, n)
	return c, t, nil
}

// begins is the start of the oldest record of a step or of a finer one, which it can be made of.
func (s *Store) begins(t int) int64 {
	first := int64(1<<63 - 1)
	for i := range t + 1 {
		if l := s.kept[i].records; len(l) > 0 {
			first = min(first, l[0].bucket)
		}
	}
	return first
}

// span lists the records of a step between two times, and finer ones where there is none.
func (s *Store) span(t int, from, to int64) (list []record) {
	k, length := &s.kept[t], steps[t].length
	for i := k.find(from); i < len(k.records) && k.records[i].bucket+length <= to; i++ {
		r := k.records[i]
		if t > 0 && from < r.bucket {
			list = append(list, s.span(t-1, from, r.bucket)...)
		}
		list = append(list, r)
		from = r.bucket + length
	}
	if t > 0 && from < to {
		list = append(list, s.span(t-1, from, to)...)
	}
	return list
}

// locked calls span.
func (s *Store) locked(t int, from, to int64) []record {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.span(t, from, to)
}

// ask waits for a turn and calls f with a reader.
func (s *Store) ask(ctx context.Context, f func(r *reader) error) error {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p, err := newPacker()
	if err != nil {
		return err
	}
	defer p.close()
	r := s.reader(&p)
	defer r.close()
	r.ctx = ctx
	return f(r)
}

// Series calls each with the figures of every hop in every column, in the order of the columns.
func (s *Store) Series(ctx context.Context, from, to int64, each func(column int, k inference.HopKey, f *Figures)) (c Columns, err error) {
	c, t, err := s.columns(from, to)
	if err != nil {
		return c, err
	}
	err = s.ask(ctx, func(r *reader) error {
		for i := range c.Windows {
			end := c.End(i)
			list, err := r.figures(t, end-int64(c.Step), end, func(k inference.HopKey, f *Figures) { each(i, k, f) })
			if err != nil {
				return err
			}
			for _, x := range list {
				c.Windows[i] += x.windows
				c.Reports[i] += x.reports
			}
		}
		c.Damaged = r.damaged
		return nil
	})
	return c, err
}

// Sum merges all windows of a range.
func (s *Store) Sum(ctx context.Context, from, to int64) (w inference.Window, c Columns, err error) {
	c, t, err := s.columns(from, to)
	if err != nil {
		return w, c, err
	}
	err = s.ask(ctx, func(r *reader) error {
		var sum window.Partial
		if _, err := r.merge(s.locked(len(steps)-1, c.From, c.To), &sum); err != nil {
			return err
		}
		w = sum.Window(s.limits)
		c.Damaged = r.damaged
		return nil
	})
	for i := range c.Windows {
		end := c.End(i)
		for _, x := range s.locked(t, end-int64(c.Step), end) {
			c.Windows[i] += x.windows
			c.Reports[i] += x.reports
		}
	}
	return w, c, err
}

// Happened is what happened in a range.
type Happened struct {
	Findings []inference.Finding // that lasted in it, as they were at its end, by id
	LeftOut  uint64              // findings that found no place, or that this program does not know
	Ledger   map[string]Account  // by sink, what was counted in the columns
}

// Happened returns the findings and the account of a range.
func (s *Store) Happened(ctx context.Context, from, to int64) (h Happened, c Columns, err error) {
	c, t, err := s.columns(from, to)
	if err != nil {
		return h, c, err
	}
	err = s.ask(ctx, func(r *reader) error {
		// A finding that began before the range may last in it.
		over := func(f finding) bool { return f.End != 0 && f.End < c.From }
		before, err := r.events(s.locked(len(steps)-1, 0, c.From), over)
		if err != nil {
			return err
		}
		during, err := r.events(s.locked(len(steps)-1, c.From, c.To), nil)
		if err != nil {
			return err
		}
		all := before
		all.LeftOut = during.LeftOut
		for _, f := range during.Findings {
			all.put(f)
		}
		h.Ledger, h.LeftOut = during.Ledger, all.LeftOut
		for i := range all.Findings {
			f, err := all.Findings[i].plain()
			if err != nil {
				h.LeftOut++
				continue
			}
			h.Findings = append(h.Findings, f)
		}
		c.Damaged = r.damaged
		return nil
	})
	for i := range c.Windows {
		end := c.End(i)
		for _, x := range s.locked(t, end-int64(c.Step), end) {
			c.Windows[i] += x.windows
			c.Reports[i] += x.reports
		}
	}
	return h, c, err
}

// After returns the ids of findings that began, changed or ended after a time, which is the end of a column.
func (s *Store) After(ctx context.Context, from int64) (ids []uint64, err error) {
	err = s.ask(ctx, func(r *reader) error {
		later, err := r.events(s.locked(len(steps)-1, from, s.until()), nil)
		for i := range later.Findings {
			ids = append(ids, later.Findings[i].ID)
		}
		return err
	})
	return ids, err
}

// reader reads records. It keeps the last file open, since records that follow each other are mostly in one.
type reader struct {
	ctx     context.Context
	store   *Store
	pack    *packer
	in      *os.File
	name    string
	raw     []byte
	plain   []byte
	damaged uint64
}

func (s *Store) reader(p *packer) *reader {
	return &reader{ctx: context.Background(), store: s, pack: p}
}

func (r *reader) close() {
	if r.in != nil {
		_ = r.in.Close() // it was read alone
	}
}

// errGone is the error of a record that cannot be read, and is no longer in the index.
var errGone = errors.New("gone")

// part reads a part of a record. What it returns is good until the next call.
func (r *reader) part(x *record, part int) ([]byte, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if r.name != x.file.name {
		r.close()
		r.in, r.name = nil, ""
		in, err := os.Open(filepath.Join(r.store.opt.Dir, x.file.name))
		if errors.Is(err, fs.ErrNotExist) {
			r.damaged++
			r.store.forget(x, part, fmt.Errorf("%w: %w", ErrTruncated, err))
			return nil, errGone
		} else if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		r.in, r.name = in, x.file.name
	}
	n := int(x.length[part])
	r.raw = slices.Grow(r.raw[:0], n)[:n]
	if n == 0 {
		return nil, nil
	}
	k, err := r.in.ReadAt(r.raw, x.at+x.offset(part))
	switch {
	case k < n && errors.Is(err, io.EOF):
		err = ErrTruncated
	case err != nil && k < n:
		return nil, fmt.Errorf("history: %w", err)
	case checksum(r.raw) != x.sum[part]:
		err = ErrCorrupt
	default:
		r.plain, err = r.pack.unpack(r.plain[:0], r.raw)
	}
	if err != nil {
		return nil, r.bad(x, part, err)
	}
	return r.plain, nil
}

// bad counts a record that cannot be read.
func (r *reader) bad(x *record, part int, err error) error {
	r.damaged++
	r.store.forget(x, part, err)
	return errGone
}

// figures calls each with the hops between two times, and returns the records that they are of.
func (r *reader) figures(t int, from, to int64, each func(inference.HopKey, *Figures)) ([]record, error) {
	for {
		list := r.store.locked(t, from, to)
		switch len(list) {
		case 0:
			return nil, nil
		case 1:
			b, err := r.part(&list[0], figuresPart)
			if err == nil {
				if err = rows(b, func(inference.HopKey, *Figures) {}); err == nil {
					return list, rows(b, each)
				}
				err = r.bad(&list[0], figuresPart, err)
			}
			if errors.Is(err, errGone) {
				continue // finer records may take its place
			}
			return nil, err
		}
		var sum window.Partial
		list, err := r.merge(list, &sum)
		if err != nil {
			return nil, err
		}
		for x := range sum.AllHops() {
			stats := x.Stats()
			f := FiguresOf(&stats)
			each(x.HopKey, &f)
		}
		return list, nil
	}
}

// merge adds the sketches of records, or of finer ones where a record cannot be read. It returns those that it added.
func (r *reader) merge(list []record, into *window.Partial) (added []record, err error) {
	var one window.Partial
	limits := window.NoLimits()
	limits.Hops, limits.Exporters, limits.Drops = r.store.limits.Hops+1, r.store.limits.Exporters+1, r.store.limits.Drops+1 // with those called other
	for i := 0; i < len(list); i++ {
		x := &list[i]
		b, err := r.part(x, sketchesPart)
		if err == nil {
			if err = one.ReadBinary(b, limits); err == nil {
				into.MergeWithin(&one, r.store.limits)
				into.Span(x.start, x.end)
				added = append(added, *x)
				continue
			}
			err = r.bad(x, sketchesPart, err)
		}
		if !errors.Is(err, errGone) {
			return nil, err
		}
		if x.step > 0 {
			list = append(list, r.store.locked(x.step-1, x.bucket, x.bucket+steps[x.step].length)...)
		}
	}
	return added, nil
}

// events adds up what happened in records, or in finer ones where a record cannot be read. It forgets findings that are over, which may be
// nil, as soon as they are.
func (r *reader) events(list []record, over func(finding) bool) (all events, err error) {
	for i := 0; i < len(list); i++ {
		x := &list[i]
		b, err := r.part(x, eventsPart)
		if err == nil {
			if len(b) == 0 {
				continue
			}
			e, jerr := readEvents(b)
			if jerr == nil {
				all.add(&e)
				if over != nil {
					all.Findings = slices.DeleteFunc(all.Findings, over)
				}
				continue
			}
			err = r.bad(x, eventsPart, jerr)
		}
		if !errors.Is(err, errGone) {
			return events{}, err
		}
		if x.step > 0 {
			list = append(list, r.store.locked(x.step-1, x.bucket, x.bucket+steps[x.step].length)...)
		}
	}
	return all, nil
}

// jsonOf returns what happened as JSON, and nothing where nothing did.
func jsonOf(e *events) ([]byte, error) {
	if len(e.Findings) == 0 && len(e.Ledger) == 0 && e.LeftOut == 0 {
		return nil, nil
	}
	b, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return b, nil
}
