// Package ledger counts reports and points by where they are: received = stored + in flight + dropped, at every moment and
// for every store.
package ledger

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
	DroppedRing       // lost in a packet ring
	DroppedCut        // in a frame or a datagram that was captured shorter than it was, behind what is there of it
	DroppedMalformed  // rejected by a decoder; by reason in the decoder's own counters
	DroppedForeign    // no telemetry (captures only), or of a kind that no statistics are kept of
	DroppedDuplicate  // a copy of a report that was counted, as its number and its bytes prove
	DroppedShardQueue // the shard's queue was full
	DroppedSinkQueue  // the sink's queue was full
	DroppedSpool      // evicted from a full spool, damaged there, or the disk refused
	DroppedEncoding   // points have no form that the store knows
	DroppedRejected   // the store refused points
	DroppedDown       // sent while no collector ran, or taken by one that was killed, as the exporters' numbers show

	numStages
)

var stageNames = [numStages]string{
	"ring", "shard-queue", "window", "sink-queue", "spool", "stored",
	"kernel", "ring", "cut", "malformed", "foreign", "duplicate", "shard-queue", "sink-queue", "spool", "not-encodable", "rejected", "down",
}

// String is the stage's name. In-flight and dropped stages of the same place share it.
func (s Stage) String() string { return stageNames[s] }

// InFlight reports whether a report in this stage can still be stored.
func (s Stage) InFlight() bool { return s < Stored }

// Dropped reports whether this stage is an end without storage.
func (s Stage) Dropped() bool { return s > Stored }

// Ledger holds the place of every report: received = stored + in flight + dropped, at every moment and for every sink.
// It is moved in batches, so its lock is taken a few thousand times a second, never per report.
type Ledger struct {
	mu       sync.Mutex
	received uint64
	head     [Stored]int64     // Ring..Window in flight
	drops    [numStages]uint64 // common drops
	border   [numStages]uint64 // what they were when the last window ended
	passed   uint64            // reports that left Window
	accounts map[string]*account
}

// account is the ledger's account of one sink. It implements [sink.Account].
type account struct {
	ledger  *Ledger
	reports *tail // nil for a sink that no reports come to
	points  sink.PointAccount
}

// tail counts reports of one sink by their stages.
type tail struct {
	carried uint64 // found in the spool at the start
	at      [numStages]int64
}

func (t *tail) move(from, to Stage, n uint64) {
	t.at[from] -= int64(n)
	t.at[to] += int64(n)
}

// New makes an empty ledger for the named sinks.
func New(sinks ...string) *Ledger {
	l := &Ledger{accounts: map[string]*account{}}
	for _, s := range sinks {
		l.accounts[s] = &account{ledger: l, reports: &tail{}}
	}
	return l
}

// Aside adds sinks that receive points of their own and no reports: receivers of alerts. Snapshot leaves them out.
func (l *Ledger) Aside(sinks ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range sinks {
		l.accounts[s] = &account{ledger: l}
	}
}

// AsidePoints returns the balances in points of the sinks that Aside added, by their names.
func (l *Ledger) AsidePoints() map[string]*sink.PointBalance {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]*sink.PointBalance{}
	for name, a := range l.accounts {
		if a.reports == nil {
			out[name] = a.pointBalance()
		}
	}
	return out
}

// Account is the part of the ledger that the queue of a sink keeps.
func (l *Ledger) Account(name string) sink.Account { return l.accounts[name] }

// Receive counts n new reports that are now at stage s (a common one; DroppedKernel for losses that the kernel reported).
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

// Border notes that a window ends. Later drops belong to the next window, for [Ledger.AtBorder].
func (l *Ledger) Border() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.border = l.drops
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
	for _, a := range l.accounts {
		if a.reports != nil {
			a.reports.at[SinkQueue] += int64(n)
		}
	}
}

// queueStages maps the stages of a queue to those of the ledger.
var queueStages = [sink.NumStages]Stage{
	sink.InMemory: SinkQueue, sink.OnDisk: SpoolQueue, sink.Stored: Stored,
	sink.DroppedMemory: DroppedSinkQueue, sink.DroppedDisk: DroppedSpool, sink.DroppedEncoding: DroppedEncoding,
	sink.Rejected: DroppedRejected,
}

// Move takes reports and points from one stage of the queue to another.
func (a *account) Move(from, to sink.Stage, reports, points uint64) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if a.reports != nil {
		a.reports.move(queueStages[from], queueStages[to], reports)
	}
	a.points.Move(from, to, points)
}

// Carry counts what a sink's spool still held from an earlier run. The series of points come beside their number.
func (a *account) Carry(reports, points uint64, series []sink.SeriesCount) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if a.reports != nil {
		a.reports.carried += reports
		a.reports.at[SpoolQueue] += int64(reports)
	}
	a.points.Carry(points, series)
}

// Make counts points that come to a sink's queue.
func (a *account) Make(series []sink.SeriesCount) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.points.Make(series)
}

// End counts by series the points that a sink stored or refused.
func (a *account) End(to sink.Stage, series []sink.SeriesCount) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.points.End(to, series)
}

func (a *account) pointBalance() *sink.PointBalance {
	b := a.points.Balance(func(s sink.Stage) string { return queueStages[s].String() })
	return &b
}

// AtBorder returns what Snapshot returns, without what the next window has dropped since Border. What was missed while no collector ran is
// counted when a window has ended, and of that window.
func (l *Ledger) AtBorder() []sink.Balance {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.snapshot()
	for s := Stored + 1; s < numStages; s++ {
		n := l.drops[s] - l.border[s]
		if s == DroppedDown || n == 0 {
			continue
		}
		for i := range out {
			out[i].Received -= n
			out[i].Dropped[s.String()] -= int64(n)
		}
	}
	return out
}

// Snapshot returns a consistent balance for every sink, by name. Without a sink there is one, named "", in which
// reports of ended windows count as stored.
func (l *Ledger) Snapshot() []sink.Balance {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.snapshot()
}

func (l *Ledger) snapshot() (out []sink.Balance) {
	for _, name := range slices.Sorted(maps.Keys(l.accounts)) {
		if a := l.accounts[name]; a.reports != nil {
			b := l.balance(name, a.reports)
			b.Points = a.pointBalance()
			out = append(out, b)
		}
	}
	if len(out) == 0 {
		passed := &tail{}
		passed.at[Stored] = int64(l.passed)
		out = append(out, l.balance("", passed))
	}
	return out
}

func (l *Ledger) balance(name string, t *tail) sink.Balance {
	b := sink.Balance{
		Sink: name, Received: l.received + t.carried, Carried: t.carried, Stored: uint64(t.at[Stored]),
		InFlight: map[string]int64{}, Dropped: map[string]int64{},
	}
	b.Unsettled = int64(b.Received)
	for s, n := range t.at {
		switch s := Stage(s); {
		case s.InFlight():
			n += l.head[s]
			b.InFlight[s.String()] = n
		case s.Dropped():
			n += int64(l.drops[s])
			b.Dropped[s.String()] += n
		}
		b.Unsettled -= n
	}
	return b
}
