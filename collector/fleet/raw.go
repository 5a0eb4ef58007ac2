package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/arrow"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
)

// rawTask counts single reports: a partition of topic reports. It sends the resulting windows to topic windows, as a
// collector would. Their name and numbers follow from the partition and the window alone.
type rawTask struct {
	w             *worker
	gate          *fleet.Gate
	codec         *fleet.Codec
	decoder       arrow.Decoder
	state         *shard.State
	publisher     *fleet.Publisher
	batch         decode.Batch
	lastPublished int64
	after         int64
	republished   map[int64]int // how often a window was published that had ended before, by label
	books         books
	booked        int64 // records before this offset are in the books, also where they are read again

	passed, closed, bad uint64
}

const (
	// keptPaths is of how many flows a checkpoint keeps the paths.
	keptPaths = 100_000
	// leastReport is what a report is charged at least: a window has at most WindowBytes / leastReport of them. All
	// reports of a window are in memory at once, and a record of a few kilobytes can hold tens of thousands of equal
	// ones.
	leastReport = 32
	// lateNumbers is where the numbers of records begin that publish a window once more.
	lateNumbers = 128
	// statedRuns is how many runs of numbers a statement has. Its exporters' sequences share them, each with at least
	// 16. The numbers in between are in other partitions, so a run may be one number. A sequence with more runs is
	// stated by how many numbers came in each stretch.
	statedRuns = 1 << 16
)

func (c *Consumer) newRaw(w *worker) (*rawTask, error) {
	t := &rawTask{
		w: w, codec: fleet.NewCodec(0, c.limits), republished: map[int64]int{}, books: newBooks(),
		publisher: fleet.NewPublisher(fleet.PublisherConfig{
			From: fleet.PseudoName(w.partition), Slicer: c.opt.Slicer, Window: int64(c.opt.Params.Window), MaxSize: c.cfg.RecordBytes,
		}),
	}
	var err error
	if t.gate, err = fleet.NewGate(c.gate(w, true)); err != nil {
		return nil, err
	}
	t.state, err = c.opt.Shard()
	return t, err
}

func (t *rawTask) rewrite(from int64, last *checkpoint) error {
	t.after = from
	if last == nil {
		return nil
	}
	t.w.rewriteTo = last.label
	before, err := t.w.c.newRaw(t.w)
	if err == nil {
		err = before.readState(last.state)
	}
	if err == nil {
		t.books, t.booked = before.books, before.gate.Next()
	}
	return err
}

func (t *rawTask) add(ctx context.Context, r *fleet.Record) error {
	h := &r.Head
	known := t.gate.Next()
	v, err := t.gate.AddRecord(r)
	if cannotFetch(err) {
		return err
	}
	if err != nil {
		t.w.noteError(err)
	}
	if r.Offset >= max(known, t.booked) {
		t.books.count(r, v.Kind, err)
		t.books.evict(v.Evicted)
		t.w.c.countFull(r, v.Kind, err, v.Evicted)
	}
	switch {
	case v.Kind == fleet.Conflict:
		t.w.c.redraw(h.From, h.Boot)
	case v.Kind == fleet.Late && h.Kind == fleet.Reports:
		return t.late(ctx, r)
	}
	for _, passed := range v.Passed {
		if err := t.close(ctx, passed); err != nil {
			return err
		}
	}
	if v.Closing == nil {
		return nil
	}
	err = t.close(ctx, v.Closing)
	t.books.expire(t.gate.Last() - int64(t.w.c.cfg.Corrections))
	return err
}

// close counts the reports of a window, in the order of their times.
func (t *rawTask) close(ctx context.Context, c *fleet.Closing) error {
	t.closed++
	t.batch.Reset()
	some := false
	var list []fleet.Statement
	var run fleet.Source
	var unmarked []*decode.Report // of the run
	for i, at := range c.Offsets {
		switch value := c.Values[i]; {
		case value != nil: // marks have none
			some = true
			from := len(t.batch.Reports)
			t.decode(at, value, c.Reports[i])
			if c.Unmarked[i] == (fleet.Source{}) {
				continue
			}
			if c.Unmarked[i] != run { // records of a run follow each other
				list = stateFor(list, run, unmarked, c.End)
				run, unmarked = c.Unmarked[i], nil
			}
			unmarked = append(unmarked, t.batch.Reports[from:]...)
		case c.Reports[i] > 0:
			t.books.lose(c.End, c.Reports[i], fleet.ErrGone)
		}
	}
	list = stateFor(list, run, unmarked, c.End)
	return t.publish(ctx, c.End, 0, true, some, list)
}

// stateFor adds a statement for a run of the reports that it sent of a window, if there are any. It sorts them.
func stateFor(list []fleet.Statement, run fleet.Source, reports []*decode.Report, end int64) []fleet.Statement {
	if len(reports) == 0 {
		return list
	}
	sortByTime(reports)
	cfg := sequence.DefaultConfig()
	cfg.MaxExporters = min(cfg.MaxExporters, len(reports))
	tracker := sequence.New(cfg, 0)
	tracker.Believe()
	tracker.ReportNumbers(max(statedRuns/sequences(reports), 16))
	for _, r := range reports {
		tracker.Observe(r)
	}
	seen := &window.Partial{}
	stats := tracker.Cut(nil, end)
	for i := range stats { // of the exporter's numbers, others are in other partitions
		e := &stats[i]
		e.Lost, e.Provisional, e.Reordered, e.Late, e.Restarts = 0, 0, 0, 0, 0
	}
	seen.AddExporters(stats)
	tracker.Numbers(seen)
	return append(list, fleet.Statement{Run: run, Seen: seen})
}

// late counts reports whose window has ended: they make a part of it of their own.
func (t *rawTask) late(ctx context.Context, r *fleet.Record) error {
	n := t.republished[r.Head.End]
	t.republished[r.Head.End] = n + 1
	if lateNumbers+n >= 1<<8 {
		t.w.noteError(fmt.Errorf("record at offset %d: window %s was published again so often that there are no numbers left: its reports are left out", r.Offset, windowName(r.Head.End)))
		t.books.pass(r.Head.End, 0)
		return nil
	}
	t.batch.Reset()
	t.decode(r.Offset, r.Value, r.Head.Reports)
	// Whether the run marks the window is seen later, if at all.
	list := stateFor(nil, fleet.Source{From: r.Head.From, Boot: r.Head.Boot}, slices.Clone(t.batch.Reports), r.Head.End)
	return t.publish(ctx, r.Head.End, lateNumbers+n, false, true, list)
}

// decode adds the reports of a record, whose number is in its head, while there is room for those of its window.
func (t *rawTask) decode(at int64, value []byte, reports uint64) {
	var stream []byte
	err := error(fleet.ErrFull)
	if int64(len(t.batch.Reports)) < t.w.c.cfg.WindowBytes/leastReport {
		if stream, err = t.codec.Decompress(nil, value); err == nil {
			_, err = t.decoder.Decode(stream, &t.batch)
		}
	}
	if errors.Is(err, fleet.ErrFull) && reports <= maxReports {
		t.w.c.leaveOut(reports, 0)
	}
	if err != nil {
		t.bad++
		t.w.noteError(fmt.Errorf("record at offset %d: %w", at, err))
	}
}

// publish counts the reports of the batch, and sends the result. No reader waits for a window without records.
func (t *rawTask) publish(ctx context.Context, end int64, first int, inOrder, some bool, list []fleet.Statement) error {
	sortByTime(t.batch.Reports)
	for _, r := range t.batch.Reports {
		r.FlowHash = 0 // the seed's holder computes it
	}
	t.state.Update(t.batch.Reports)
	n := len(t.batch.Reports)
	cut := t.state.Cut(end)
	var p window.Partial
	cut.AddTo(&p)
	t.state.Recycle(cut)
	p.Span(end-int64(t.w.c.opt.Params.Window), end)
	if inOrder {
		t.lastPublished = end
		for label := range t.republished {
			if label < end-int64(t.w.c.cfg.Corrections) {
				delete(t.republished, label)
			}
		}
	}
	t.books.pass(end, uint64(n))
	if end <= t.after || !some {
		return nil
	}
	t.passed += uint64(n)
	records, err := t.publisher.Window(nil, &p, end, nil, first)
	if err != nil {
		return fmt.Errorf("reports %d of window %s: %w", t.w.partition, windowName(end), err)
	}
	if records, err = t.publisher.Statements(records, list, end, first); err != nil {
		return fmt.Errorf("statements of reports %d of window %s: %w", t.w.partition, windowName(end), err)
	}
	for _, r := range records {
		if err := t.w.c.publish(ctx, t.w.c.opt.Topics.Windows, r.Partition, []fleet.Out{r}); err != nil {
			return err
		}
	}
	return nil
}

// sequences counts the sequences of numbers that reports can have. Exporters are distinguished by address, node and
// hardware id, and each destination and width of numbers has its own sequence.
func sequences(reports []*decode.Report) int {
	type sequence struct {
		from        decode.Addr
		to          uint64
		node        uint32
		named       bool
		hwID, width uint8
	}
	known := map[sequence]bool{}
	for _, r := range reports {
		s := sequence{from: r.Exporter, to: r.To, named: r.Has&decode.HasNodeID != 0, hwID: r.HWID, width: r.SeqBits}
		if s.named {
			s.node = r.NodeID
		}
		known[s] = true
	}
	return len(known)
}

func sortByTime(reports []*decode.Report) {
	slices.SortStableFunc(reports, func(a, b *decode.Report) int { return cmp.Compare(a.Time, b.Time) })
}

func (t *rawTask) noteHole(to int64) { t.books.noteHole(to, t.w.c.opt.Now().UnixNano()) }

func (t *rawTask) due(ctx context.Context, now time.Time) error {
	t.books.reconcile(t.w.partition, t.w.c.expected(), func(e *fleet.Expected) []uint64 { return e.Reports })
	if h, ok := t.gate.Due(now.UnixNano()); ok {
		h.Generation = int64(t.w.ID)
		return t.w.c.publish(ctx, t.w.topic, t.w.partition, []fleet.Out{{Partition: t.w.partition, Head: h}})
	}
	return nil
}

func (t *rawTask) floor() int64 { return t.gate.Floor() }
func (t *rawTask) label() int64 { return t.lastPublished }

// rawBooks is the part of the books in a checkpoint.
type rawBooks struct {
	Books       books         `json:"books"`
	Republished map[int64]int `json:"again"`
}

func (t *rawTask) appendState(b []byte) []byte {
	account, err := json.Marshal(&rawBooks{t.books, t.republished})
	if err != nil {
		panic(err) // it consists of numbers and texts
	}
	return appendParts(b, t.gate.AppendState(nil), t.state.AppendPaths(nil, keptPaths), account)
}

func (t *rawTask) readState(b []byte) error {
	parts, err := readParts(b, 3)
	if err != nil {
		return err
	}
	var account rawBooks
	if err := json.Unmarshal(parts[2], &account); err != nil {
		return fmt.Errorf("%w: %w", errCheckpoint, err)
	}
	if err := t.gate.ReadState(parts[0]); err != nil {
		return err
	}
	if err := t.state.ReadPaths(parts[1]); err != nil {
		t.w.noteError(fmt.Errorf("paths of flows begin anew: %w", err))
	}
	t.books, t.lastPublished = account.Books, t.gate.Last()
	t.books.restored()
	maps.Copy(t.republished, account.Republished)
	return nil
}

func (t *rawTask) report(s *partitionStatus) {
	g := t.gate.Stats()
	s.Open, s.Closed = t.gate.Open(), t.closed
	s.Reread, s.heldBytes = t.gate.Reread(), t.gate.Held()
	s.Late, s.duplicates, s.Conflicts, s.gateRefused, s.gateUnknown = g.Late, g.Duplicates, g.Conflicts, g.Refused+g.Evicted+t.bad, g.Unknown
	t.books.report(s)
}
