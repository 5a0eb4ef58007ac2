package kafka

import (
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/arrow"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/sink"
)

// DivertConfig is the selection of the reports that go to consumers one by one, and the identity of their collector.
type DivertConfig struct {
	Reports string         // needed, all or none
	Raw     []netip.Prefix // exporters whose reports go too, with needed

	From   string // the collector
	Boot   uint64 // of its run
	Key    decode.HashKey
	Slices int // of the fleet: partitions of the topic
	Window time.Duration

	MaxValue int // bytes of a record's value; 0 for as many as Kafka takes as it comes

	// Bundle makes the payload of a record for a partition of the topic reports.
	Bundle func(label int64, partition int, head, value []byte) []byte
}

// Bounds of a batch. A batch goes when it has the bytes, or when its first report has waited for batchAge. Below that age it
// has far more than 1000 reports of the usual length, since a stream costs its schema.
const (
	// batchBytes is before compression, so that no message is longer than brokers take as they come (1 MB).
	batchBytes = 640 << 10
	batchAge   = 200 * time.Millisecond
	// batchSlack is more than one report adds to a batch that is not full.
	batchSlack = 24 << 10
)

// Diverter takes reports out of a collector's statistics and publishes them to the topic reports, those of a flow to one
// partition. It is the part of the [Writer] that implements [sink.Diverter].
//
// Each worker gathers reports in a batch for each partition. The memory is at most workers times partitions times some
// 700 kB. Slow traffic needs a few of these batches. A batch holds reports of one window.
type Diverter struct {
	conf     DivertConfig
	prefixes []prefix
	put      func(sink.Encoded)
	zstd     *zstd.Encoder
	workers  []*divertWorker
	now      atomic.Int64 // of the last tick
	scratch  sync.Pool    // of *[]byte: streams before compression
	ticks    sync.Mutex   // Tick and EndWindow come from where they want
	open     atomic.Int64 // label of the window that is open, or an earlier one
	exact    atomic.Int64 // label of the window that is open; 0 where that is not known
	most     int          // bytes of a batch

	parts []divertPart

	mu       sync.Mutex
	counts   map[int64][]uint64 // by label and partition: reports that were put
	unmarked map[int64]bool     // labels of reports that no mark counts yet
	stats    divertStats
}

// divertStats are totals since the start.
type divertStats struct {
	Reports uint64
	Batches uint64
	Bytes   uint64 // of their values, compressed
	Plain   uint64 // before
}

// divertPart numbers the records of a partition. The lock is held while a record is put, so that they come in order.
type divertPart struct {
	mu    sync.Mutex
	boot  uint64
	seq   uint64
	total uint64           // reports of this boot
	sent  map[int64]uint64 // by label: reports of this boot, which are those that its marks count
}

type divertWorker struct {
	mu      sync.Mutex
	batches []*divertBatch // by partition; nil if it is empty
	spare   []*divertBatch
}

// divertBatch is the waiting reports for one partition.
type divertBatch struct {
	arrow.Encoder
	label int64 // of its window
	since int64 // the tick after which the first report came
}

// prefix is a network of exporters in the form of an address.
type prefix struct{ hi, lo, maskHi, maskLo uint64 }

// NewDiverter makes a Diverter. Nothing happens before Open.
func NewDiverter(conf DivertConfig) *Diverter {
	d := &Diverter{
		conf: conf, counts: map[int64][]uint64{}, unmarked: map[int64]bool{}, parts: make([]divertPart, conf.Slices), most: batchBytes,
	}
	if conf.MaxValue > 0 {
		d.most = min(d.most, conf.MaxValue-batchSlack)
	}
	d.open.Store(math.MinInt64)
	for i := range d.parts {
		d.parts[i].boot, d.parts[i].sent = conf.Boot, map[int64]uint64{}
	}
	for _, p := range conf.Raw {
		n := p.Bits()
		if p.Addr().Is4() {
			n += 96
		}
		q := prefix{maskHi: ^uint64(0) << max(64-n, 0)}
		if n > 64 {
			q.maskLo = ^uint64(0) << (128 - n)
		}
		a := decode.AddrFrom(p.Addr())
		q.hi, q.lo = binary.BigEndian.Uint64(a[:])&q.maskHi, binary.BigEndian.Uint64(a[8:])&q.maskLo
		d.prefixes = append(d.prefixes, q)
	}
	return d
}

// Open implements [sink.Diverter].
func (d *Diverter) Open(workers int, put func(sink.Encoded)) {
	d.put = put
	// All options are constants, so that there is no error. Kafka checks records by itself, and Head.Sum values.
	d.zstd, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(workers+1), zstd.WithEncoderCRC(false))
	for range workers {
		d.workers = append(d.workers, &divertWorker{batches: make([]*divertBatch, d.conf.Slices)})
	}
}

// Takes implements [sink.Diverter].
func (d *Diverter) Takes(r *decode.Report) bool {
	if r.Kind == decode.KindHistogram || r.Kind == decode.KindSample || r.Kind == decode.KindDelay || r.Kind == decode.KindProbes ||
		r.Rare != nil && (r.Rare.Counters.Has != 0 || len(r.Rare.Counts) > 0) {
		return false // which columns have no place for, and windows add up
	}
	switch d.conf.Reports {
	case "all":
		return true
	case "needed":
		return needsFlow(r) || len(d.prefixes) > 0 && d.raw(r)
	}
	return false
}

// needsFlow reports whether a report needs others of its flow to be evaluated. This holds for a digest, and for a hop
// whose place on the path follows from the other postcards.
func needsFlow(r *decode.Report) bool {
	if r.Has&decode.HasDigest != 0 {
		return true
	}
	if len(r.Hops) != 1 || r.INT != 0 || r.Has&decode.HasFlow == 0 {
		return false
	}
	switch r.Kind {
	case decode.KindDrop:
		return false
	case decode.KindStack, decode.KindProbe, decode.KindTrace:
		return r.Flags&(decode.Transit|decode.Dropped) != 0
	}
	return true
}

func (d *Diverter) raw(r *decode.Report) bool {
	hi, lo := binary.BigEndian.Uint64(r.Exporter[:]), binary.BigEndian.Uint64(r.Exporter[8:])
	for i := range d.prefixes {
		if p := &d.prefixes[i]; hi&p.maskHi == p.hi && lo&p.maskLo == p.lo {
			return r.Has&decode.HasExporter != 0
		}
	}
	return false
}

// identify sets the name under which reports go, if it was not known before. It is called before Divert.
func (d *Diverter) identify(from string, boot uint64, key decode.HashKey, window time.Duration) {
	d.conf.From, d.conf.Key, d.conf.Window = from, key, window
	d.Redraw(boot)
}

// label is the end of the window that a time is in.
func (d *Diverter) label(t int64) int64 {
	w := int64(d.conf.Window)
	over := t % w
	if over < 0 {
		over += w
	}
	return t - over + w
}

// partition is that of a report's flow; reports without a flow go to the first one.
func (d *Diverter) partition(r *decode.Report) int {
	if r.Has&decode.HasFlow == 0 {
		return 0
	}
	hi, _ := bits.Mul64(d.conf.Key.Flow(&r.Flow)&^(1<<32-1), uint64(d.conf.Slices))
	return int(hi)
}

// Divert implements [sink.Diverter].
func (d *Diverter) Divert(worker int, reports []*decode.Report) {
	w := d.workers[worker]
	now := d.now.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	// What comes late, or under a clock that was set back, counts in the window that is open, as it does for its exporter.
	// So does what waited for a machine that stood still, with times of windows that the collector passed over.
	open, exact := d.open.Load(), d.exact.Load()
	label, end := exact, int64(0) // of the report before, so that most are not divided
	for _, r := range reports {
		if exact == 0 && (r.Time >= end || r.Time < end-int64(d.conf.Window) || end == 0) {
			end = d.label(r.Time)
			label = max(end, open)
		}
		i := d.partition(r)
		b := w.batches[i]
		if b != nil && (b.label != label || b.Bytes() >= d.most || b.Full()) {
			w.batches[i] = nil
			d.flush(i, b)
			w.spare = append(w.spare, b)
			b = nil
		}
		if b == nil {
			b = w.emptyBatch()
			b.label, b.since = label, now
			w.batches[i] = b
		}
		b.Append(r)
	}
}

func (w *divertWorker) emptyBatch() *divertBatch {
	n := len(w.spare)
	if n == 0 {
		return &divertBatch{}
	}
	b := w.spare[n-1]
	w.spare = w.spare[:n-1]
	return b
}

// Tick implements [sink.Diverter].
func (d *Diverter) Tick(now int64) {
	d.ticks.Lock()
	defer d.ticks.Unlock()
	d.now.Store(now)
	d.flushIf(func(b *divertBatch) bool { return now-b.since >= int64(batchAge) || now < b.since })
}

// flushIf puts the batches for which f holds. Workers go on meanwhile.
func (d *Diverter) flushIf(f func(b *divertBatch) bool) {
	for i := range d.conf.Slices {
		for _, w := range d.workers {
			w.mu.Lock()
			b := w.batches[i]
			if b != nil && f(b) {
				w.batches[i] = nil
			} else {
				b = nil
			}
			w.mu.Unlock()
			if b == nil {
				continue
			}
			d.flush(i, b)
			w.mu.Lock()
			w.spare = append(w.spare, b)
			w.mu.Unlock()
		}
	}
}

// flush puts a batch and empties it.
func (d *Diverter) flush(partition int, b *divertBatch) {
	scratch, _ := d.scratch.Get().(*[]byte)
	if scratch == nil {
		scratch = new([]byte)
	}
	plain := b.AppendStream((*scratch)[:0])
	value := d.zstd.EncodeAll(plain, make([]byte, 0, len(plain)/3))
	*scratch = plain
	defer d.scratch.Put(scratch)
	rows := uint64(b.Rows())
	d.record(partition, &fleet.Head{Kind: fleet.Reports, End: b.label, Reports: rows}, value)
	b.Reset()

	d.mu.Lock()
	defer d.mu.Unlock()
	counts := d.counts[b.label]
	if counts == nil {
		counts = make([]uint64, d.conf.Slices)
		d.counts[b.label] = counts
	}
	counts[partition] += rows
	d.unmarked[b.label] = true
	d.stats.Reports += rows
	d.stats.Batches++
	d.stats.Bytes += uint64(len(value))
	d.stats.Plain += uint64(len(plain))
}

// record names a record and puts it.
func (d *Diverter) record(partition int, h *fleet.Head, value []byte) {
	h.From, h.Slice, h.Start, h.Sum = d.conf.From, uint32(partition), h.End-int64(d.conf.Window), fleet.Sum(value)
	p := &d.parts[partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq++
	h.Boot, h.Seq = p.boot, p.seq
	reports := h.Reports
	if h.Kind == fleet.Mark {
		h.Reports = p.sent[h.End]
	} else {
		p.sent[h.End] += reports
		p.total += reports
	}
	h.Total = p.total
	d.put(sink.Encoded{
		Payload: d.conf.Bundle(h.End, partition, h.Append(nil), value), Series: []sink.SeriesCount{{Series: series, Points: 1}}, Reports: reports,
	})
}

// OpenWindow implements [sink.Diverter].
func (d *Diverter) OpenWindow(end int64) { d.exact.Store(end) }

// EndWindow implements [sink.Diverter]. Reports that wait under a later label belong to the window that ends: the
// collector counts them there, because its clock was set back.
func (d *Diverter) EndWindow(end int64) {
	d.ticks.Lock()
	defer d.ticks.Unlock()
	d.flushIf(func(b *divertBatch) bool {
		b.label = min(b.label, end)
		return true
	})
	d.open.Store(end + int64(d.conf.Window))
}

// MarkWindow implements [sink.Diverter]. A mark holds the number of the run's reports under a label so far. The clock
// may come to a label twice, and a run may begin in the window that the one before ended. Reports under an earlier
// label, sent while the clock was ahead, get their mark now. Marks come after the part of their window, which has the
// statistics of the exporters. A consumer without the mark computes these itself.
//
// A Diverter that is set to take nothing writes no marks: no reader waits for it.
func (d *Diverter) MarkWindow(end int64) {
	if d.conf.Reports == "none" {
		return
	}
	d.ticks.Lock()
	defer d.ticks.Unlock()
	d.mu.Lock()
	d.unmarked[end] = true
	var labels []int64
	for label := range d.unmarked {
		if label <= end {
			labels = append(labels, label)
			delete(d.unmarked, label)
		}
	}
	d.mu.Unlock()
	slices.Sort(labels)
	for _, label := range labels {
		for i := range d.conf.Slices {
			d.record(i, &fleet.Head{Kind: fleet.Mark, End: label}, nil)
		}
	}
	oldest := end - keptLabels*int64(d.conf.Window)
	old := func(label int64) bool { return label < oldest }
	for i := range d.parts {
		p := &d.parts[i]
		p.mu.Lock()
		maps.DeleteFunc(p.sent, func(label int64, _ uint64) bool { return old(label) })
		p.mu.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.counts, func(label int64, _ []uint64) bool { return old(label) })
}

// keptLabels is for how many windows counts are kept. A collector whose clock was set back comes to labels again.
const keptLabels = 64

// Counts returns how many reports of a window were put so far, by partition, or nil if none. It is the value of Raw in
// the head of the last part of the window. A window that comes again counts all of its reports again, whatever their
// boot.
func (d *Diverter) Counts(end int64) []uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]uint64(nil), d.counts[end]...)
}

// Redraw gives later records another boot, because the topic already has records with the same numbers and other
// contents. Marks announce that the former boot sends no more of the open window, so that no reader takes it for
// killed.
func (d *Diverter) Redraw(boot uint64) {
	open := d.open.Load()
	for i := range d.parts {
		p := &d.parts[i]
		p.mu.Lock()
		labels := slices.Sorted(maps.Keys(p.sent))
		p.mu.Unlock()
		for _, label := range labels {
			if label >= open {
				d.record(i, &fleet.Head{Kind: fleet.Mark, End: label}, nil)
			}
		}
		p.mu.Lock()
		p.boot, p.seq, p.total = boot, 0, 0
		clear(p.sent)
		p.mu.Unlock()
	}
}

// divertStats returns the counts of diverted reports.
func (d *Diverter) divertStats() divertStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}
