package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/hopscope/hopscope/sink"
)

// writer writes lines to one file or to standard output. Encode may be called beside the writing methods, which belong
// to one goroutine.
type writer struct {
	out   output
	buf   []byte // of Write
	stats counters
}

var (
	_ sink.Encoder = (*writer)(nil)
	_ sink.Remover = (*writer)(nil)
)

// output is the destination of lines. Write stores whole lines or returns an error; it may then be called with the
// same lines again.
type output interface {
	write(ctx context.Context, lines []byte) error
	close() error
}

type counters struct {
	lines, bytes, rotations, removed, removedLines, unremoved, fieldsDropped, pointsDropped atomic.Uint64
}

// Stats are totals since the start.
type Stats struct {
	Lines         uint64 // stored
	Bytes         uint64 // in those
	Rotations     uint64 // files put aside
	Removed       uint64 // files removed because there were more than Config.KeepFiles
	RemovedLines  uint64 // of those
	Unremoved     uint64 // failed attempts at that
	FieldsDropped uint64 // not finite
	PointsDropped uint64 // nothing left to write after that
}

// New opens the file, which it locks, or standard output. Directories on the way to the file are made.
func New(conf Config) (*writer, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	w := &writer{}
	var err error
	if conf.Path == "-" {
		w.out, err = newStream(os.Stdout, stdoutName)
	} else {
		w.out, err = newFile(conf, &w.stats)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Name is "jsonl".
func (w *writer) Name() string { return "jsonl" }

// Close closes and unlocks the file.
func (w *writer) Close() error { return w.out.close() }

// Stats may be called at any time.
func (w *writer) Stats() Stats {
	s := &w.stats
	return Stats{
		Lines: s.lines.Load(), Bytes: s.bytes.Load(), Rotations: s.rotations.Load(), Removed: s.removed.Load(),
		RemovedLines: s.removedLines.Load(), Unremoved: s.unremoved.Load(), FieldsDropped: s.fieldsDropped.Load(), PointsDropped: s.pointsDropped.Load(),
	}
}

// Removed implements [sink.Remover].
func (w *writer) Removed() (files, points uint64) {
	return w.stats.removed.Load(), w.stats.removedLines.Load()
}

// Encode appends b as lines.
func (w *writer) Encode(dst []byte, b *sink.Batch) ([]byte, uint64) {
	dst, fields, points := sink.AppendPoints(dst, b.Points, AppendPoint)
	if fields|points != 0 {
		w.stats.fieldsDropped.Add(fields)
		w.stats.pointsDropped.Add(points)
	}
	return dst, points
}

// Write stores b.
func (w *writer) Write(ctx context.Context, b *sink.Batch) error {
	w.buf, _ = w.Encode(w.buf[:0], b)
	return w.WriteEncoded(ctx, w.buf)
}

// WriteEncoded stores lines. All of its errors may pass.
func (w *writer) WriteEncoded(ctx context.Context, payload []byte) error {
	if len(payload) == 0 {
		return nil // no point had anything to write
	}
	if err := w.out.write(ctx, payload); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			return err
		}
		// Less may have room where more has none.
		return &sink.RetryError{Err: fmt.Errorf("jsonl: %w", err), Config: forPeople(err), Doubt: !forPeople(err)}
	}
	w.stats.lines.Add(uint64(bytes.Count(payload, []byte{'\n'})))
	w.stats.bytes.Add(uint64(len(payload)))
	return nil
}

// Part implements [sink.Parter]. Lines are independent.
func (w *writer) Part(payload []byte, held func(key string) bool) (behind, rest sink.Refusal, err error) {
	whole := func(line []byte) string { return string(line) }
	behind, rest = sink.PartLines(payload, nextLine, whole, measurementOf, held)
	return behind, rest, nil
}

func nextLine(payload []byte) (line, rest []byte) {
	at := bytes.IndexByte(payload, '\n') + 1
	if at == 0 {
		at = len(payload)
	}
	return payload[:at], payload[at:]
}

// measurementOf returns the measurement of a line that Encode made.
func measurementOf(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`{"measurement":"`))
	name, _, _ := bytes.Cut(rest, []byte{'"'})
	return string(name)
}

// forPeople reports whether only an operator can mend the cause of err. A disk that is full is not such a thing.
func forPeople(err error) bool {
	return errors.Is(err, errInUse) || errors.Is(err, errNotRegular) || errors.Is(err, errReaderGone) || sink.NeedsPerson(err)
}
