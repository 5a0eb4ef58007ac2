package parquet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// maxParts bounds the parts that are open at once: points of a capture with wrong clocks could be of any hour.
const maxParts = 64

// writer gathers points and writes them as files. It is a [sink.Stager].
type writer struct {
	conf    Config
	folder  *folder
	sets    map[string]*dataset
	parts   map[partKey]*part
	batches uint64 // batches

	tries  uint64 // of files
	passed uint64 // the last one that was written
	failed map[string]failure

	mu    sync.Mutex // of what follows
	stats Stats
}

// failure is that of the files of a dataset.
type failure struct {
	before, last uint64 // tries; before is 0 with the first failure
	err          error
}

type partKey struct {
	set  string
	hour hour
}

// part is a file to be.
type part struct {
	*table
	hour  hour
	first uint64 // the batch that its first row came with
	began time.Time
}

// Stats are totals since the start, except where they say otherwise.
type Stats struct {
	Files        uint64
	Rows         uint64 // in Files
	Bytes        uint64 // of Files
	WaitingRows  int    // now in memory
	WaitingBytes int    // their memory, about
	Refused      uint64 // points of a measurement that has no dataset
	FieldsLost   uint64 // fields that the dataset does not know, or of another kind
	Leftovers    int    // unfinished files of an earlier process that were removed at the start
}

// New opens the directory and removes unfinished files.
func New(conf Config) (*writer, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	f, err := openFolder(conf.Dir, "lock")
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	w := &writer{conf: conf, folder: f, sets: map[string]*dataset{}, parts: map[partKey]*part{}, failed: map[string]failure{}}
	for i := range sink.AllSeries {
		d := datasetOf(&sink.AllSeries[i])
		w.sets[d.name] = d
		n, err := f.removeLeftovers(d.name)
		if err != nil {
			f.lock.Close()
			return nil, fmt.Errorf("parquet: %w", err)
		}
		w.stats.Leftovers += n
	}
	return w, nil
}

// Name is "parquet".
func (w *writer) Name() string { return "parquet" }

// Write takes the points of b over. It returns an error that may pass, and takes nothing, when memory is used up and the
// disk takes no files.
func (w *writer) Write(ctx context.Context, b *sink.Batch) error {
	now := time.Now()
	if err := w.rotate(ctx, now); err != nil {
		return retryError(err)
	}
	refused := 0
	var without []sink.Point // a dataset
	var late []sink.Point    // their dataset cannot be written, while others can
	held := w.asideFull()
	var fieldsLost uint64
	for i := range b.Points {
		p := &b.Points[i]
		d := w.sets[p.Measurement]
		if d == nil {
			refused++
			without = append(without, *p)
			continue
		}
		if held && w.aside(d.name) {
			refused++
			late = append(late, *p)
			continue
		}
		fieldsLost += w.part(d, p.Time, now).add(p)
	}
	if refused == 0 || refused < len(b.Points) {
		w.batches++
	}
	w.mu.Lock()
	w.stats.Refused += uint64(refused)
	w.stats.FieldsLost += fieldsLost
	w.mu.Unlock()
	w.countWaiting()
	if refused > 0 {
		return w.refusal(without, late)
	}
	return nil
}

// refusal is the error of a batch with points that are not taken.
func (w *writer) refusal(without, late []sink.Point) error {
	e := &sink.PermanentError{Rejected: len(without) + len(late)}
	add := func(points []sink.Point, reason string) {
		group := sink.Refusal{Points: uint64(len(points)), Reason: reason, Payload: sink.AppendBatch(nil, &sink.Batch{Points: points})}
		for i := range points {
			group.Series = sink.AddSeries(group.Series, points[i].Measurement, 1)
		}
		e.Refused = append(e.Refused, group)
	}
	if len(without) > 0 {
		e.Err = fmt.Errorf("parquet: %d points of measurements without a dataset", len(without))
		add(without, "there is no dataset for this measurement")
	}
	if len(late) > 0 {
		err := w.failed[late[0].Measurement].err
		e.Err = errors.Join(e.Err, fmt.Errorf("parquet: %d points of datasets that cannot be written while others can: %w", len(late), err))
		add(late, fmt.Sprintf("the dataset cannot be written while others can: %v", err))
	}
	return e
}

// outcome notes what became of a file.
func (w *writer) outcome(set string, err error) {
	w.tries++
	if err == nil {
		w.passed = w.tries
		delete(w.failed, set)
		return
	}
	w.failed[set] = failure{w.failed[set].last, w.tries, err}
}

// aside reports whether the files of a dataset fail while those of others are written.
func (w *writer) aside(set string) bool {
	f := w.failed[set]
	return f.before > 0 && w.passed > f.before
}

// asideFull reports whether datasets that fail while others are written hold half of what may be held.
func (w *writer) asideFull() bool {
	parts, bytes := 0, 0
	for key, p := range w.parts {
		if w.aside(key.set) {
			parts, bytes = parts+1, bytes+p.bytes
		}
	}
	return parts >= maxParts/2 || bytes >= w.conf.MemoryBytes/2
}

func (w *writer) part(d *dataset, ns int64, now time.Time) *part {
	key := partKey{d.name, hourOf(ns)}
	p := w.parts[key]
	if p == nil {
		p = &part{table: newTable(d), hour: key.hour, first: w.batches, began: now}
		w.parts[key] = p
	}
	return p
}

// add appends a row and returns the number of fields that have no column.
func (p *part) add(pt *sink.Point) (lost uint64) {
	p.setInt(0, pt.Time)
	for _, t := range pt.Tags {
		if i, ok := p.set.index[t.Key]; ok && p.set.columns[i].kind == text {
			p.setText(i, t.Value)
		} else {
			lost++
		}
	}
	for i := range pt.Fields {
		f := &pt.Fields[i]
		col, ok := p.set.index[f.Key]
		if !ok || p.set.columns[col].kind != kindOf(f.Kind) {
			lost++
			continue
		}
		switch f.Kind {
		case sink.Int:
			p.setInt(col, f.Int)
		case sink.Float:
			p.setFloat(col, f.Float)
		default:
			p.setText(col, f.Str)
		}
	}
	p.endRow()
	return lost
}

func (w *writer) waiting() (rows, bytes int) {
	for _, p := range w.parts {
		rows += p.rows
		bytes += p.bytes
	}
	return rows, bytes
}

func (w *writer) countWaiting() {
	rows, bytes := w.waiting()
	w.mu.Lock()
	w.stats.WaitingRows, w.stats.WaitingBytes = rows, bytes
	w.mu.Unlock()
}

// rotate writes the parts whose time has come, or all of them when there is too much in memory. It returns an error
// only when there still is.
func (w *writer) rotate(ctx context.Context, now time.Time) error {
	full := func() bool {
		parts, bytes, limit, most := 0, 0, w.conf.MemoryBytes, maxParts
		for key, p := range w.parts {
			if w.aside(key.set) {
				limit, most = limit-p.bytes, most-1
			} else {
				parts, bytes = parts+1, bytes+p.bytes
			}
		}
		return parts > 0 && (bytes >= limit || parts >= most)
	}
	all := full()
	err := w.writeParts(ctx, func(p *part) bool { return all || now.Sub(p.began) >= w.conf.RotateInterval })
	if full() {
		return err
	}
	return nil
}

// writeParts writes the parts that due picks. One that cannot be written stays.
func (w *writer) writeParts(ctx context.Context, due func(*part) bool) error {
	var errs []error
	for key, p := range w.parts {
		if !due(p) {
			continue
		}
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		bytes, err := w.folder.write(p.table, p.hour, w.conf.RowGroupRows)
		w.outcome(key.set, err)
		if err != nil {
			errs = append(errs, fmt.Errorf("parquet: write %s %v: %w", key.set, key.hour, err))
			continue
		}
		delete(w.parts, key)
		w.mu.Lock()
		w.stats.Files++
		w.stats.Rows += uint64(p.rows)
		w.stats.Bytes += uint64(bytes)
		w.mu.Unlock()
	}
	w.countWaiting()
	return errors.Join(errs...)
}

// Stored is the number of batches all of whose rows are in files.
func (w *writer) Stored() uint64 {
	n := w.batches
	for _, p := range w.parts {
		n = min(n, p.first)
	}
	return n
}

// Tick writes the parts whose time has come.
func (w *writer) Tick(ctx context.Context, now time.Time) error {
	return retryError(w.writeParts(ctx, func(p *part) bool { return now.Sub(p.began) >= w.conf.RotateInterval }))
}

// retryError marks an error as one that may pass, and whether an operator has to act on it.
func retryError(err error) error {
	if err == nil {
		return nil
	}
	return &sink.RetryError{Err: err, Config: sink.NeedsPerson(err)}
}

// Flush writes all parts.
func (w *writer) Flush(ctx context.Context) error {
	return w.writeParts(ctx, func(*part) bool { return true })
}

// Stats may be called at any time.
func (w *writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Close writes the remaining rows and unlocks the directory.
func (w *writer) Close() error {
	if w.folder.lock == nil {
		return os.ErrClosed
	}
	err := errors.Join(w.Flush(context.Background()), w.folder.lock.Close())
	w.folder.lock = nil
	return err
}
