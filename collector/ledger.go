package collector

import (
	"maps"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/sink"
)

// Stage is a place where a report can be, or where it ended.
type Stage uint8

// The stages, in the order in which a report passes them. Up to Window they are common to all sinks; behind it every
// sink has its own.
const (
	Ring       Stage = iota // received, not yet decoded
	ShardQueue              // decoded, waiting for its shard
	Window                  // counted in a window that is still open
	SinkQueue               // in memory, waiting for a store
	SpoolQueue              // on disk, waiting for a store

	Stored // acknowledged by the store

	DroppedKernel     // lost in the socket buffer
	DroppedRing       // lost in a packet ring, or cut on receipt
	DroppedMalformed  // rejected by a decoder; by reason in the decoder's own counters
	DroppedForeign    // no telemetry (captures only), or of a kind that no statistics are kept of
	DroppedShardQueue // the shard's queue was full
	DroppedSinkQueue  // the sink's queue was full
	DroppedSpool      // evicted from a full spool, damaged there, or the disk refused
	DroppedEncoding   // points have no form that the store knows
	DroppedRejected   // the store refused points
	DroppedDown       // sent while no collector ran, or taken by one that was killed, as the exporters' numbers tell

	numStages
)

var stageNames = [numStages]string{
	"ring", "shard-queue", "window", "sink-queue", "spool", "stored",
	"kernel", "ring", "malformed", "foreign", "shard-queue", "sink-queue", "spool", "not-encodable", "rejected", "down",
}

// String is the stage's name. In-flight and dropped stages of the same place share it.
func (s Stage) String() string { return stageNames[s] }

// InFlight reports whether a report in this stage can still be stored.
func (s Stage) InFlight() bool { return s < Stored }

// Dropped reports whether this stage is an end without storage.
func (s Stage) Dropped() bool { return s > Stored }

// Ledger knows where every report is: received = stored + in flight + dropped, at every moment and for every sink.
// It is moved in batches, so its lock is taken a few thousand times a second, never per report.
type Ledger struct {
	mu       sync.Mutex
	received uint64
	carried  map[string]uint64 // reports that a sink found in its spool at the start
	head     [Stored]int64     // Ring..Window in flight
	drops    [numStages]uint64 // common drops
	passed   uint64            // reports that left Window
	tails    map[string]*[numStages]int64
	points   map[string]*pointTail
}

// pointTail is where the points of one store are.
type pointTail struct {
	made, carried uint64
	at            [numStages]int64
	series        map[string]*sink.SeriesBalance
}

// NewLedger makes an empty ledger for the named sinks.
func NewLedger(sinks ...string) *Ledger {
	l := &Ledger{carried: map[string]uint64{}, tails: map[string]*[numStages]int64{}, points: map[string]*pointTail{}}
	for _, s := range sinks {
		l.tails[s] = new([numStages]int64)
		l.points[s] = &pointTail{series: map[string]*sink.SeriesBalance{}}
	}
	return l
}

// Aside adds sinks that no reports come to, but points of their own: receivers of alerts. Snapshot leaves them out.
func (l *Ledger) Aside(sinks ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range sinks {
		l.points[s] = &pointTail{series: map[string]*sink.SeriesBalance{}}
	}
}

// AsidePoints gives the balances in points of the sinks that Aside added, by their names.
func (l *Ledger) AsidePoints() map[string]*sink.PointBalance {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]*sink.PointBalance{}
	for name, p := range l.points {
		if l.tails[name] == nil {
			out[name] = p.balance()
		}
	}
	return out
}

// Receive counts n new reports that are now at stage s (a common one; DroppedKernel for losses that the kernel told).
func (l *Ledger) Receive(s Stage, n uint64) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received += n
	l.add(s, int64(n))
}

// Move takes n reports from one common stage to another.
func (l *Ledger) Move(from, to Stage, n uint64) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(from, -int64(n))
	l.add(to, int64(n))
}

func (l *Ledger) add(s Stage, n int64) {
	if s.InFlight() {
		l.head[s] += n
	} else {
		l.drops[s] += uint64(n)
	}
}

// Close takes n reports out of the open window and hands them to every sink's queue.
func (l *Ledger) Close(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head[Window] -= int64(n)
	l.passed += n
	for _, t := range l.tails {
		t[SinkQueue] += int64(n)
	}
}

// MoveIn takes reports and points of one sink from a stage behind the window to another.
func (l *Ledger) MoveIn(name string, from, to Stage, reports, points uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.points[name]
	if t := l.tails[name]; t != nil {
		t[from] -= int64(reports)
		t[to] += int64(reports)
	}
	p.at[from] -= int64(points)
	p.at[to] += int64(points)
}

// Carry counts what a sink's spool still held from an earlier run. The series of points are told beside their number.
func (l *Ledger) Carry(name string, reports, points uint64, series []sink.SeriesCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.tails[name]; t != nil {
		l.carried[name] += reports
		t[SpoolQueue] += int64(reports)
	}
	p := l.points[name]
	p.made += points
	p.carried += points
	p.at[SpoolQueue] += int64(points)
	p.count(series, func(b *sink.SeriesBalance) *uint64 { return &b.Made })
}

// Make counts points that come to a sink's queue.
func (l *Ledger) Make(name string, series []sink.SeriesCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.points[name]
	n := p.count(series, func(b *sink.SeriesBalance) *uint64 { return &b.Made })
	p.made += n
	p.at[SinkQueue] += int64(n)
}

// End says which series points are of that a sink stored or refused.
func (l *Ledger) End(name string, to Stage, series []sink.SeriesCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.points[name].count(series, func(b *sink.SeriesBalance) *uint64 {
		if to == Stored {
			return &b.Stored
		}
		return &b.Refused
	})
}

// otherSeries is where points are counted when a spool names more series than there are.
const (
	otherSeries = "other"
	maxSeries   = 64
)

func (p *pointTail) count(series []sink.SeriesCount, of func(*sink.SeriesBalance) *uint64) (sum uint64) {
	for _, c := range series {
		b := p.series[c.Series]
		if b == nil && len(p.series) >= maxSeries {
			c.Series = otherSeries
			b = p.series[c.Series]
		}
		if b == nil {
			b = &sink.SeriesBalance{}
			p.series[c.Series] = b
		}
		*of(b) += c.Points
		sum += c.Points
	}
	return sum
}

func (p *pointTail) balance() *sink.PointBalance {
	b := &sink.PointBalance{
		Made: p.made, Carried: p.carried, Stored: uint64(p.at[Stored]), Refused: uint64(p.at[DroppedRejected]),
		InFlight: map[string]int64{}, Dropped: map[string]int64{}, Series: map[string]sink.SeriesBalance{},
	}
	b.Unsettled = int64(p.made)
	for s := SinkQueue; s < numStages; s++ {
		n := p.at[s]
		switch b.Unsettled -= n; s {
		case SinkQueue, SpoolQueue:
			b.InFlight[s.String()] = n
		case DroppedSinkQueue, DroppedSpool, DroppedEncoding:
			b.Dropped[s.String()] = n
		}
	}
	for name, s := range p.series {
		b.Series[name] = *s
	}
	return b
}

// Snapshot gives a consistent balance for every sink, by name. Without a sink there is one, named "", in which what
// left the window counts as stored.
func (l *Ledger) Snapshot() []sink.Balance {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tails) == 0 {
		var tail [numStages]int64
		tail[Stored] = int64(l.passed)
		return []sink.Balance{l.balance("", &tail)}
	}
	var out []sink.Balance
	for _, name := range slices.Sorted(maps.Keys(l.tails)) {
		out = append(out, l.balance(name, l.tails[name]))
	}
	return out
}

func (l *Ledger) balance(name string, tail *[numStages]int64) sink.Balance {
	b := sink.Balance{
		Sink: name, Received: l.received + l.carried[name], Carried: l.carried[name], Stored: uint64(tail[Stored]),
		InFlight: map[string]int64{}, Dropped: map[string]int64{},
	}
	rest := int64(b.Received) - tail[Stored]
	for s := range numStages {
		n := tail[s]
		switch {
		case s == Stored:
			continue
		case s.InFlight():
			n += l.head[s]
			b.InFlight[s.String()] = n
		default:
			n += int64(l.drops[s])
			b.Dropped[s.String()] += n
		}
		rest -= n
	}
	b.Unsettled = rest
	if p := l.points[name]; p != nil {
		b.Points = p.balance()
	}
	return b
}

// behind maps the stages of a queue to those of the ledger.
var behind = [sink.NumStages]Stage{
	sink.InMemory: SinkQueue, sink.OnDisk: SpoolQueue, sink.Stored: Stored,
	sink.DroppedMemory: DroppedSinkQueue, sink.DroppedDisk: DroppedSpool, sink.DroppedEncoding: DroppedEncoding,
	sink.Rejected: DroppedRejected,
}

// account keeps the ledger of one sink.
type account struct {
	ledger *Ledger
	sink   string
}

func (a account) Carry(reports, points uint64, series []sink.SeriesCount) {
	a.ledger.Carry(a.sink, reports, points, series)
}

func (a account) Make(series []sink.SeriesCount) { a.ledger.Make(a.sink, series) }

func (a account) Move(from, to sink.Stage, reports, points uint64) {
	a.ledger.MoveIn(a.sink, behind[from], behind[to], reports, points)
}

func (a account) End(to sink.Stage, series []sink.SeriesCount) {
	a.ledger.End(a.sink, behind[to], series)
}

// Account is the part of the ledger that the queue of a sink keeps.
func (l *Ledger) Account(name string) sink.Account { return account{l, name} }
