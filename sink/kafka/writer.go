package kafka

import (
	"context"
	"errors"
	"fmt"
	"hash/crc64"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/window"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/ingest/retry"
	"github.com/hopscope/hopscope/sink"
)

// Writer publishes windows, and single reports. It implements [sink.WindowEncoder], [sink.Diverter] and [sink.Placer].
type Writer struct {
	conf   Config
	client *brokers.Client
	member *member // nil before Join

	// clockOff is the least distance of this machine's clock from the brokers', in ns; positive is ahead. It is 0 as
	// long as it is not known.
	clockOff atomic.Int64
	stats    stats
	clock    func() time.Time // of this machine; tests put it wrong

	diverter *Diverter

	mu        sync.Mutex
	publisher *fleet.Publisher // nil before Join
	confirmed confirmed

	// WriteEncoded's own.
	doing progress
	lanes map[laneKey]*lane
	pace  pace

	flights context.Context // of requests; it ends with the writer
	land    context.CancelFunc

	sending   sync.Mutex      // of what follows, and of doing while send runs
	unsure    map[uint64]bool // records that were sent and not confirmed, by [record.sum]; at most maxUnsure
	roundTrip time.Duration   // a request with an answer, on a running average
}

// stats are counted for metrics.
type stats struct {
	records, bytes, repeats, requests atomic.Uint64
	label                             atomic.Int64
}

// Stats holds the counts of what was sent, and the state of the member.
type Stats struct {
	Records  uint64        // that Kafka confirmed
	Bytes    uint64        // of their values
	Repeats  uint64        // that were sent again, since it was not known whether Kafka had them
	Requests uint64        // to write records
	Clock    time.Duration // that the clock is ahead of the brokers' at least; negative is behind
	Label    int64         // of the last window that Kafka confirmed
	Problem  string        // that keeps the member from being one, or ""
	Extra    int           // partitions that were added later, and that stay empty
	Diverted divertStats   // reports that go one by one
}

// confirmed is how many reports Kafka has of a run, by topic and partition.
type confirmed struct {
	boot   uint64
	totals [2][]uint64 // by topic as in payloads
}

// Confirmed returns how many reports of a run Kafka has confirmed, by partition of windows and of reports. It may be called at any
// time.
func (w *Writer) Confirmed(boot uint64) (windows, reports []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.confirmed.boot != boot {
		return nil, nil
	}
	return slices.Clone(w.confirmed.totals[toWindows]), slices.Clone(w.confirmed.totals[toReports])
}

// confirm notes that Kafka has a record. Those of runs before are not of interest.
func (w *Writer) confirm(r *record) {
	h, err := fleet.ReadHead(r.head)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.publisher == nil || h.Boot != w.publisher.Boot() || r.partition >= w.conf.Slices {
		return
	}
	if w.confirmed.boot != h.Boot {
		w.confirmed = confirmed{h.Boot, [2][]uint64{make([]uint64, w.conf.Slices), make([]uint64, w.conf.Slices)}}
	}
	total := &w.confirmed.totals[r.topic][r.partition]
	*total = max(*total, h.Total)
}

// Stats may be called at any time.
func (w *Writer) Stats() Stats {
	s := Stats{
		Records: w.stats.records.Load(), Bytes: w.stats.bytes.Load(), Repeats: w.stats.repeats.Load(),
		Requests: w.stats.requests.Load(), Clock: time.Duration(w.clockOff.Load()), Label: w.stats.label.Load(),
		Diverted: w.diverter.divertStats(),
	}
	if w.member != nil {
		if err := w.member.problem(); err != nil {
			s.Problem = err.Error()
		}
		s.Extra = int(w.member.extra.Load())
	}
	return s
}

// New makes a Writer. It reads the files that the settings name; Kafka is asked by Join.
func New(c Config) (*Writer, error) {
	client, err := c.Config.Dial("hopscope-collector")
	if err != nil {
		return nil, err
	}
	w := &Writer{conf: c, client: client, clock: time.Now, lanes: map[laneKey]*lane{}}
	w.flights, w.land = context.WithCancel(context.Background())
	raw := make([]netip.Prefix, len(c.RawExporters))
	for i, s := range c.RawExporters {
		if raw[i], err = netip.ParsePrefix(s); err != nil {
			client.Close()
			return nil, fmt.Errorf("raw_exporters[%d]: %w", i, err)
		}
	}
	w.diverter = NewDiverter(DivertConfig{
		Reports: c.Reports, Raw: raw, Slices: c.Slices, MaxValue: c.MaxMessageBytes,
		Bundle: func(label int64, partition int, head, value []byte) []byte {
			p := newPayload(label, w.clockBad())
			p.add(toReports, partition, head, value)
			return p.b
		},
	})
	return w, nil
}

// Open implements [sink.Diverter].
func (w *Writer) Open(workers int, put func(sink.Encoded)) { w.diverter.Open(workers, put) }

// Takes implements [sink.Diverter]. Nothing is taken before Join, since there is no name under which it could be sent.
func (w *Writer) Takes(r *decode.Report) bool { return w.member != nil && w.diverter.Takes(r) }

// Divert implements [sink.Diverter].
func (w *Writer) Divert(worker int, reports []*decode.Report) { w.diverter.Divert(worker, reports) }

// Tick implements [sink.Diverter].
func (w *Writer) Tick(now int64) { w.diverter.Tick(now) }

// OpenWindow implements [sink.Diverter].
func (w *Writer) OpenWindow(end int64) {
	if w.diverter != nil {
		w.diverter.OpenWindow(end)
	}
}

// EndWindow implements [sink.Diverter].
func (w *Writer) EndWindow(end int64) {
	if w.member != nil {
		w.diverter.EndWindow(end)
	}
}

// MarkWindow implements [sink.Diverter].
func (w *Writer) MarkWindow(end int64) {
	if w.member != nil {
		w.diverter.MarkWindow(end)
	}
}

// Name implements [sink.Writer].
func (w *Writer) Name() string { return "kafka" }

// errPoints is the outcome of points: the consumers of a fleet make these.
var errPoints = errors.New("kafka: takes windows and no points")

// Write refuses points.
func (w *Writer) Write(context.Context, *sink.Batch) error {
	return &sink.PermanentError{Err: errPoints}
}

// Encode leaves out all points.
func (w *Writer) Encode(dst []byte, b *sink.Batch) (out []byte, left uint64) {
	return dst, uint64(len(b.Points))
}

// series is the name of records in the accounts.
const series = "part"

// EncodeWindow makes the records of a window, at least one for each slice, in as few payloads as their bound allows.
func (w *Writer) EncodeWindow(win *sink.Window) []sink.Encoded {
	label := win.Label
	raw := w.diverter.Counts(label)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.publisher == nil {
		return nil // not joined, so there is no name under which anything could be sent
	}
	outs, err := w.publisher.Window(nil, win.Partial, label, raw, 0)
	if err != nil {
		// A window that cannot be encoded carries its reports all the same: the store will refuse it, with the
		// reason.
		return []sink.Encoded{{Payload: []byte("window to " + time.Unix(0, label).UTC().Format(time.RFC3339Nano) + ": " + err.Error()), Series: []sink.SeriesCount{{Series: series, Points: 1}}, Reports: win.Reports}}
	}
	list := w.payloads(toWindows, label, outs)
	list[len(list)-1].Reports = win.Reports
	return list
}

// payloads makes payloads of records. The order of those of a partition stays.
func (w *Writer) payloads(topic byte, label int64, outs []fleet.Out) (list []sink.Encoded) {
	p := newPayload(label, w.clockBad())
	end := func() {
		list = append(list, sink.Encoded{Payload: p.b, Series: []sink.SeriesCount{{Series: series, Points: p.records}}})
	}
	var head []byte
	for i := range outs {
		o := &outs[i]
		head = o.Head.Append(head[:0])
		if p.records > 0 && len(p.b)+len(head)+len(o.Value) > maxPayload {
			end()
			p = newPayload(label, w.clockBad())
		}
		p.add(topic, o.Partition, head, o.Value)
	}
	if p.records > 0 || len(list) == 0 {
		end()
	}
	return list
}

// progress is the knowledge about a payload that was tried before.
type progress struct {
	sum     uint64
	size    int
	done    []bool // by record: Kafka has it
	refused map[int]error
}

var table = crc64.MakeTable(crc64.ECMA)

// WriteEncoded appends the records of a payload to their partitions, and returns nil when all replicas have all of them.
// Called again for a payload that failed, it sends only what Kafka has not confirmed.
func (w *Writer) WriteEncoded(ctx context.Context, b []byte) error {
	c, err := readPayload(b)
	if err != nil {
		return w.permanent(b, 1, fmt.Errorf("kafka: %w", err))
	}
	n := uint64(len(c.records))
	if w.member != nil {
		if err := w.member.admit(ctx); err != nil {
			return passing(ctx, err, false)
		}
		if c.clockOff {
			return w.permanent(b, n, errors.New("kafka: the window was counted while the clock of this machine was off Kafka's by more than a window, so its label is wrong"))
		}
		if ahead := time.Duration(c.label - w.now().UnixNano()); ahead > w.farAhead(&c) {
			return w.permanent(b, n, fmt.Errorf("kafka: the window ends %v after the present time of Kafka: it was counted under a wrong clock", ahead.Round(time.Millisecond)))
		}
		if w.now().Sub(time.Unix(0, c.label)) > drainAge*w.member.id.Params.Window {
			if err := w.pace.wait(ctx, len(b), w.conf.DrainBytes); err != nil {
				return err
			}
		}
	}
	if sum := crc64.Checksum(b, table); w.doing.sum != sum || w.doing.size != len(b) || len(w.doing.done) != len(c.records) {
		w.doing = progress{sum: sum, size: len(b), done: make([]bool, len(c.records)), refused: map[int]error{}}
	}
	some, err := w.send(ctx, &c)
	if err != nil {
		err = passing(ctx, err, some)
		if re, ok := errors.AsType[*sink.RetryError](err); ok {
			re.Doubt = !re.Config // another partition may have a leader
			re.Rest, re.Refused = w.rest(&c)
		}
		return err
	}
	defer func() { w.doing = progress{} }()
	if k := len(c.records); k > 0 && c.records[k-1].topic == toWindows { // reports go before their window has ended
		w.stats.label.Store(max(w.stats.label.Load(), c.label))
	}
	if len(w.doing.refused) == 0 {
		return nil
	}
	return w.refusals(&c)
}

// drainAge is after how many windows a payload counts as one of an outage.
const drainAge = 4

// now is the present time by Kafka's clock, as far as its offset is known.
func (w *Writer) now() time.Time { return w.clock().Add(-time.Duration(w.clockOff.Load())) }

// farAhead is how far ahead of Kafka's clock the window of a payload may end.
func (w *Writer) farAhead(c *contents) time.Duration {
	return fleet.Ahead(w.member.id.Params.Window, len(c.records) > 0 && c.records[0].topic == toReports) + w.slack()
}

// slack is how much a measurement of the clock may be off.
func (w *Writer) slack() time.Duration { return time.Second }

// clockBad reports whether present counts go under wrong labels.
func (w *Writer) clockBad() bool {
	m := w.member
	return m != nil && fleet.ClockOff(time.Duration(w.clockOff.Load()), m.id.Params.Window)
}

// seeClock takes the time of the brokers for something that happened between two times of this machine.
func (w *Writer) seeClock(before, after, broker time.Time) {
	if broker.IsZero() {
		return // the topic keeps no such times
	}
	off := time.Duration(0)
	switch {
	case broker.Add(time.Millisecond).Before(before): // it counts in milliseconds
		off = before.Sub(broker.Add(time.Millisecond))
	case broker.After(after):
		off = -broker.Sub(after)
	}
	w.clockOff.Store(int64(off))
}

// permanent refuses a payload of n records as a whole.
func (w *Writer) permanent(b []byte, n uint64, err error) error {
	return &sink.PermanentError{Err: err, Refused: []sink.Refusal{{
		Payload: slices.Clone(b), Points: n, Series: []sink.SeriesCount{{Series: series, Points: n}}, Reason: err.Error(),
	}}}
}

// refusals returns the records that Kafka will never take.
func (w *Writer) refusals(c *contents) *sink.PermanentError {
	out := &sink.PermanentError{Rejected: len(w.doing.refused)}
	for i := range c.records {
		err := w.doing.refused[i]
		if err == nil {
			continue
		}
		if out.Err == nil {
			out.Err = err
		}
		r := refusalOf(c, []record{c.records[i]})
		r.Reason = err.Error()
		out.Refused = append(out.Refused, r)
	}
	return out
}

// rest returns the records of a payload that are still to be written, and those that Kafka will never take; nil if it
// has none.
func (w *Writer) rest(c *contents) (rest *sink.Refusal, never []sink.Refusal) {
	var left []record
	for i, r := range c.records {
		if !w.doing.done[i] && w.doing.refused[i] == nil {
			left = append(left, r)
		}
	}
	if len(left) == len(c.records) {
		return nil, nil
	}
	r := refusalOf(c, left)
	return &r, w.refusals(c).Refused
}

// refusalOf makes a payload of records of another one.
func refusalOf(c *contents, records []record) sink.Refusal {
	if len(records) == 0 {
		return sink.Refusal{}
	}
	p := newPayload(c.label, c.clockOff)
	for _, r := range records {
		p.add(r.topic, r.partition, r.head, r.value)
	}
	return sink.Refusal{Payload: p.b, Points: p.records, Series: []sink.SeriesCount{{Series: series, Points: p.records}}}
}

// Part implements [sink.Parter]. The key of a record is its partition, since records of windows say how many reports went before them.
func (w *Writer) Part(payload []byte, held func(key string) bool) (behind, rest sink.Refusal, err error) {
	c, err := readPayload(payload)
	if err != nil {
		return behind, rest, err
	}
	var late, others []record
	for _, r := range c.records {
		if held(strconv.Itoa(r.partition)) {
			late = append(late, r)
		} else {
			others = append(others, r)
		}
	}
	return refusalOf(&c, late), refusalOf(&c, others), nil
}

// Places implements [sink.Placer].
func (w *Writer) Places() int { return w.conf.Slices }

// recordOverhead is about what the protocol adds to a record.
const recordOverhead = 64

// maxUnsure bounds the records whose answer was lost and that are remembered. Beyond it their repeats are not counted.
const maxUnsure = 1 << 16

// sum names a record.
func (r *record) sum() uint64 {
	return crc64.Update(uint64(r.topic)<<32|uint64(r.partition), table, r.head)
}

func (r *record) size() int { return len(r.head) + len(r.value) + recordOverhead }

// needsPerson reports whether an error stays until an operator changes a setting.
func needsPerson(err error) bool {
	if e, ok := errors.AsType[*brokers.Error](err); ok {
		return e.NeedsPerson()
	}
	_, differs := errors.AsType[*MismatchError](err)
	return differs
}

// passing wraps what may pass. The end of the context is returned as it is.
func passing(ctx context.Context, err error, progress bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &sink.RetryError{Err: err, Config: needsPerson(err), Progress: progress}
}

// pace spreads sending over time.
type pace struct {
	next time.Time // when the bytes that were sent are paid for
}

// wait returns when so many bytes may be sent at a rate of most a second; 0 is no limit.
func (p *pace) wait(ctx context.Context, bytes int, most int64) error {
	if most <= 0 {
		return nil
	}
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(float64(bytes) / float64(most) * float64(time.Second)))
	if delay := p.next.Sub(now) - pacedAhead; delay > 0 && !retry.Sleep(ctx, delay) {
		return context.Cause(ctx)
	}
	return nil
}

// pacedAhead is for how long a burst may run ahead of its rate.
const pacedAhead = 200 * time.Millisecond

// drawBoot draws the number of a run, which is never 0.
func drawBoot() uint64 {
	for {
		if n := rand.Uint64(); n != 0 {
			return n
		}
	}
}

// slicer distributes the entities of a network over the slices of the fleet.
func slicer(seed uint64, p *roster.Params) window.Slicer {
	return window.NewSlicer(seed, p.Slices)
}
