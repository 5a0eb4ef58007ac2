package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
)

// sliceTask merges a slice: a partition of topic windows.
type sliceTask struct {
	w             *worker
	merger        *fleet.Merger
	codec         *fleet.Codec
	admission     *window.Admission
	limits        window.Limits
	lastPublished int64 // label of the last window
	after         int64 // windows up to here are not published: they were begun before the records that are read
	rebuilt       time.Time

	closed, late, conflicts, badRecords, missing uint64

	books  books
	booked int64 // records before this offset are in the books, also where they are read again
}

func (c *Consumer) newSlice(w *worker) (*sliceTask, error) {
	t := &sliceTask{w: w, codec: fleet.NewCodec(0, c.limits), limits: c.opt.Limits, books: newBooks()}
	flows, hops := 0, c.opt.Admission.Hops
	// A slice has a part of all hops, and a hash does not make all parts equal.
	hops = min(hops, 2*hops/c.opt.Params.Slices+64)
	t.admission = window.NewAdmission(window.AdmissionLimits{Hops: hops, Flows: flows})
	var err error
	t.merger, err = fleet.NewMerger(c.gate(w, false))
	return t, err
}

func (t *sliceTask) rewrite(from int64, last *checkpoint) error {
	t.after = from
	if last == nil {
		return nil
	}
	t.w.rewriteTo = last.label
	before, err := t.w.c.newSlice(t.w)
	if err == nil {
		err = before.readState(last.state)
	}
	if err == nil {
		t.books, t.booked = before.books, before.merger.Next()
	}
	return err
}

func (t *sliceTask) add(ctx context.Context, r *fleet.Record) error {
	known := t.merger.Next()
	e, err := t.merger.Add(r)
	if cannotFetch(err) {
		return err
	}
	if err != nil {
		t.w.noteError(err)
	}
	if r.Offset >= max(known, t.booked) {
		t.books.count(r, e.Kind, err)
		t.books.evict(e.Evicted)
		t.w.c.countFull(r, e.Kind, err, e.Evicted)
	}
	switch e.Kind {
	case fleet.Late:
		t.late++
	case fleet.Conflict:
		t.conflicts++
		t.w.c.redraw(e.From, e.Boot)
	}
	if e.Closed == nil {
		return nil
	}
	t.closed++
	t.w.c.slices.Add(1)
	return t.publish(ctx, e.Closed)
}

// publish writes the points of a merged slice and sends it to the owner.
func (t *sliceTask) publish(ctx context.Context, m *fleet.Merged) error {
	defer t.merger.Release(m)
	for _, bad := range m.Bad {
		t.badRecords++
		t.w.noteError(bad)
	}
	if m.Revision == 0 {
		t.lastPublished = m.End
		t.missing += uint64(len(m.Missing))
	}
	for _, bad := range m.Bad {
		t.books.lose(m.End, bad.Reports, bad)
	}
	t.books.deliver(m.End)
	old := t.merger.Last() - int64(t.w.c.cfg.Corrections)
	t.books.expire(old)
	t.books.missed(m, old)
	if m.End <= t.after {
		return nil
	}
	t.admission.Fold(m.Partial, m.End)
	w := m.Partial.Window(t.limits)
	reports := m.Partial.Reports
	records, err := fleet.EncodeSlice(nil, t.codec, t.w.c.opt.ID, t.w.partition, m, t.w.c.cfg.RecordBytes)
	if err != nil {
		return fmt.Errorf("slice %d of window %s: %w", t.w.partition, windowName(m.End), err)
	}
	if rows := t.w.c.opt.Rows; rows != nil {
		value, err := rows(m.Partial, m.Start, m.End, m.Revision)
		if err != nil {
			return fmt.Errorf("slice %d of window %s: %w", t.w.partition, windowName(m.End), err)
		}
		if len(value) <= t.w.c.cfg.RecordBytes { // not needed here
			records = append(records, fleet.Out{Value: value, Head: fleet.Head{
				Kind: fleet.Rows, From: t.w.c.opt.ID, Slice: uint32(t.w.partition), Start: m.Start, End: m.End, Parts: 1, Reports: reports,
				Revision: m.Revision, Sum: fleet.Sum(value),
			}})
		}
	}
	slice := sliceWindow(&w)
	out := sink.NewWindow(t.w.c.opt.Params.Name, slice, nil)
	out.Revision = m.Revision
	if m.Revision > 0 {
		reports = 0 // most of them were counted; the ledger of the fleet has the rest as late
	}
	t.w.c.merged(reports)
	if err := t.w.c.put(ctx, &sink.Batch{Points: out.Points(), Reports: reports}); err != nil {
		return err
	}
	return t.w.c.publish(ctx, t.w.c.opt.Topics.Series, 0, records)
}

// sliceWindow returns what a slice writes of its window: its hops, those without a node id, exporters, interfaces and
// paths of probes. The owner writes the entries "other".
func sliceWindow(w *inference.Window) *inference.Window {
	s := &inference.Window{Start: w.Start, End: w.End, Reports: w.Reports, Interfaces: w.Interfaces}
	for i := range w.Hops {
		if !w.Hops[i].Other {
			s.Hops = append(s.Hops, w.Hops[i])
		}
	}
	for i := range w.Nameless {
		if w.Nameless[i].Position != 0 {
			s.Nameless = append(s.Nameless, w.Nameless[i])
		}
	}
	for i := range w.Probes {
		if !w.Probes[i].Other() {
			s.Probes = append(s.Probes, w.Probes[i])
		}
	}
	for i := range w.Exporters {
		if w.Exporters[i].ExporterKey != (inference.ExporterKey{}) {
			s.Exporters = append(s.Exporters, w.Exporters[i])
		}
	}
	return s
}

// ownerWindow is the rest of it.
func ownerWindow(w *inference.Window) *inference.Window {
	s := *w
	s.Hops, s.Nameless, s.Exporters, s.Interfaces, s.Probes = nil, nil, nil, nil, nil
	for i := range w.Probes {
		if w.Probes[i].Other() {
			s.Probes = append(s.Probes, w.Probes[i])
		}
	}
	for i := range w.Hops {
		if w.Hops[i].Other {
			s.Hops = append(s.Hops, w.Hops[i])
		}
	}
	for i := range w.Nameless {
		if w.Nameless[i].Position == 0 {
			s.Nameless = append(s.Nameless, w.Nameless[i])
		}
	}
	for i := range w.Exporters {
		if e := w.Exporters[i]; e.ExporterKey == (inference.ExporterKey{}) {
			e.Folded = true
			s.Exporters = append(s.Exporters, e)
		}
	}
	return &s
}

func (t *sliceTask) due(ctx context.Context, now time.Time) error {
	expected := t.w.c.expected()
	t.merger.Expect(expected)
	t.books.reconcile(t.w.partition, expected, func(e *fleet.Expected) []uint64 { return e.Windows })
	if h, ok := t.merger.Due(now.UnixNano()); ok {
		h.Generation = int64(t.w.ID)
		if err := t.w.c.publish(ctx, t.w.topic, t.w.partition, []fleet.Out{{Partition: t.w.partition, Head: h}}); err != nil {
			return err
		}
	}
	return t.republish(ctx, now)
}

// maxRemade is how many windows one rereading of the log serves, so that what else is due does not wait for long.
const maxRemade = 64

// republish publishes again windows whose records came late, the earliest first, and none until the log was quiet for a
// moment. The log is read once more for them. It takes as many as fit into the memory of one, or else the first.
func (t *sliceTask) republish(ctx context.Context, now time.Time) error {
	pending := t.merger.Pending()
	if len(pending) == 0 || now.Sub(t.rebuilt) < t.w.c.opt.Params.Window/4 {
		return nil
	}
	t.rebuilt = now
	var list []*fleet.Rebuild // by label
	from, to := int64(math.MaxInt64), int64(0)
	for _, end := range pending[:min(len(pending), maxRemade)] {
		if r := t.merger.Rebuild(end); r != nil {
			list = append(list, r)
			from, to = min(from, r.From()), max(to, r.To())
		}
	}
	held := int64(0)
	err := t.w.reread(ctx, from, to, func(rec *fleet.Record) {
		i, ok := slices.BinarySearchFunc(list, rec.Head.End, func(r *fleet.Rebuild, end int64) int { return cmp.Compare(r.End(), end) })
		if !ok {
			return
		}
		held -= list[i].Held()
		err := list[i].Add(rec)
		held += list[i].Held()
		if err != nil {
			t.w.noteError(err)
			if lost := t.books.lose(rec.Head.End, rec.Head.Reports, err); errors.Is(err, fleet.ErrFull) {
				t.w.c.leaveOut(lost, 0)
			}
		}
		for last := len(list) - 1; last > 0 && held > t.w.c.cfg.WindowBytes; last-- {
			held -= list[last].Held()
			list = list[:last]
		}
	})
	if err != nil {
		return err
	}
	for _, r := range list {
		m, err := r.Merged()
		if err != nil { // its records are gone
			t.w.noteError(err)
			t.books.lose(r.End(), math.MaxUint64, err)
			continue
		}
		if err := t.publish(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// reread reads a part of the partition once more.
func (w *worker) reread(ctx context.Context, from, to int64, handle func(*fleet.Record)) error {
	return w.readRun(ctx, w.c.opt.Kafka.Reader(w.topic, w.partition, from), to, handle)
}

// cannotFetch reports whether an error is one after which work begins anew from the last checkpoint.
func cannotFetch(err error) bool {
	_, ok := errors.AsType[*fleet.FetchError](err)
	return ok
}

const (
	nearby    = 64       // records between two that are wanted, which are read as well
	oneRecord = 64 << 10 // bytes of an answer with one record, which has a batch at least
)

// fetch reads records of the partition again. It is a [fleet.Fetch].
func (w *worker) fetch(offsets []int64, handle func(*fleet.Record)) error {
	for len(offsets) > 0 {
		n := 1
		for n < len(offsets) && offsets[n]-offsets[n-1] <= nearby {
			n++
		}
		if err := w.fetchRun(offsets[0], offsets[n-1]+1, handle); err != nil {
			return err
		}
		offsets = offsets[n:]
	}
	return nil
}

// fetchRun reads a part of the partition for fetch.
func (w *worker) fetchRun(from, to int64, handle func(*fleet.Record)) error {
	r := w.c.opt.Kafka.Reader(w.topic, w.partition, from)
	if to-from == 1 {
		r.Limit(oneRecord)
	}
	return w.readRun(w.ctx, r, to, handle)
}

// readRun reads a part of the partition, all of which was read before. An earlier end of the log is therefore an error
// that passes.
func (w *worker) readRun(ctx context.Context, r ingest.LogReader, to int64, handle func(*fleet.Record)) error {
	for failures := 0; r.Offset() < to; {
		messages, err := r.Next(ctx)
		if err == nil && len(messages) == 0 {
			err = fmt.Errorf("%s/%d ends at offset %d, and had records up to %d before", w.topic, w.partition, r.High(), to-1)
		}
		if err != nil {
			if failures++; ctx.Err() != nil || failures > 10 {
				return err
			}
			w.noteError(err)
			continue
		}
		for i := range messages {
			m := &messages[i]
			if m.Offset >= to {
				return nil
			}
			if h, err := fleet.ReadHead(m.Head); err == nil {
				handle(&fleet.Record{Offset: m.Offset, Head: h, Value: m.Value, Time: m.Time})
			}
		}
	}
	return nil
}

func (t *sliceTask) noteHole(to int64) { t.books.noteHole(to, t.w.c.opt.Now().UnixNano()) }

func (t *sliceTask) floor() int64 { return t.merger.Floor() }
func (t *sliceTask) label() int64 { return t.lastPublished }

func (t *sliceTask) appendState(b []byte) []byte {
	return appendParts(b, t.admission.AppendState(nil), t.merger.AppendState(nil), t.books.append())
}

func (t *sliceTask) readState(b []byte) error {
	parts, err := readParts(b, 3)
	if err != nil {
		return err
	}
	if err := t.admission.ReadState(parts[0]); err != nil {
		return err
	}
	if err := t.merger.ReadState(parts[1]); err != nil {
		return err
	}
	t.lastPublished = t.merger.Last()
	if t.books, err = readBooks(parts[2]); err != nil {
		return err
	}
	return nil
}

func (t *sliceTask) report(s *partitionStatus) {
	g := t.merger.Stats()
	s.Open, s.Closed = t.merger.Open(), t.closed
	s.Reread, s.heldBytes = t.merger.Reread(), t.merger.Held()
	s.Late, s.duplicates, s.Conflicts, s.gateRefused, s.gateUnknown = g.Late, g.Duplicates, g.Conflicts, g.Refused+g.Evicted+t.badRecords, g.Unknown
	s.Missing = t.missing
	t.books.report(s)
}

func windowName(end int64) string { return time.Unix(0, end).UTC().Format(time.RFC3339Nano) }

// messagesOf makes messages of records.
func messagesOf(records []fleet.Out, at time.Time) []ingest.Message {
	out := make([]ingest.Message, len(records))
	for i := range records {
		out[i] = ingest.Message{Time: at.UnixNano(), Value: records[i].Value, Head: records[i].Head.Append(nil)}
	}
	return out
}
