package sink

import "sync"

// Stage is a place behind a [Queue] where a report or a point can be, or where it ended.
type Stage uint8

// The stages, in the order in which a report passes them.
const (
	InMemory Stage = iota // waiting for a store
	OnDisk                // in the spool, waiting for a store

	Stored // acknowledged by the store

	DroppedMemory   // the queue was full, or had to end
	DroppedDisk     // evicted from a full spool, damaged there, or refused by the disk
	DroppedEncoding // has no form that the store knows
	Rejected        // refused by the store

	NumStages
)

var stageNames = [NumStages]string{"memory", "disk", "stored", "dropped from memory", "dropped from disk", "not encodable", "rejected"}

// String is the stage's name.
func (s Stage) String() string { return stageNames[min(s, NumStages-1)] }

// Account receives where the reports and the points behind a queue are. It is used by several goroutines at a time.
//
// Points are what a store can confirm. Reports follow them: the reports of a batch are stored when all its points are.
// Otherwise they end at the stage where the first point ended that was not stored.
type Account interface {
	// Carry counts points that the spool still held from an earlier run, as OnDisk. Their series follow in a later
	// call, when they are known; its points are additional ones.
	Carry(reports, points uint64, series []SeriesCount)
	// Make counts points that come to a queue, as InMemory.
	Make(series []SeriesCount)
	// Move takes reports and points from one stage to another. Reports come to a queue InMemory.
	Move(from, to Stage, reports, points uint64)
	// End counts by series the points that were moved to Stored or Rejected.
	End(to Stage, series []SeriesCount)
}

// PointAccount counts the points behind one queue by their stages and series. It has no lock.
type PointAccount struct {
	made, carried uint64 // carried among made
	at            [NumStages]int64
	series        map[string]*SeriesBalance
}

// Carry counts points that the spool still held from an earlier run. Their series come beside their number.
func (p *PointAccount) Carry(points uint64, series []SeriesCount) {
	p.made += points
	p.carried += points
	p.at[OnDisk] += int64(points)
	p.count(series, madePoints)
}

// Make counts points that come to the queue.
func (p *PointAccount) Make(series []SeriesCount) {
	n := p.count(series, madePoints)
	p.made += n
	p.at[InMemory] += int64(n)
}

// Move takes points from one stage to another.
func (p *PointAccount) Move(from, to Stage, points uint64) {
	p.at[from] -= int64(points)
	p.at[to] += int64(points)
}

// End counts by series the points that were moved to Stored or Rejected.
func (p *PointAccount) End(to Stage, series []SeriesCount) {
	outcome := refusedPoints
	if to == Stored {
		outcome = storedPoints
	}
	p.count(series, outcome)
}

func madePoints(b *SeriesBalance) *uint64    { return &b.Made }
func storedPoints(b *SeriesBalance) *uint64  { return &b.Stored }
func refusedPoints(b *SeriesBalance) *uint64 { return &b.Refused }

// otherSeries is where points are counted when a spool names more series than there are.
const (
	otherSeries = "other"
	maxSeries   = 64
)

// count adds points to one figure of their series, and returns their sum.
func (p *PointAccount) count(series []SeriesCount, figure func(*SeriesBalance) *uint64) (sum uint64) {
	if p.series == nil {
		p.series = map[string]*SeriesBalance{}
	}
	for _, c := range series {
		b := p.series[c.Series]
		if b == nil && len(p.series) >= maxSeries {
			c.Series = otherSeries
			b = p.series[c.Series]
		}
		if b == nil {
			b = &SeriesBalance{}
			p.series[c.Series] = b
		}
		*figure(b) += c.Points
		sum += c.Points
	}
	return sum
}

// Balance returns the account. Function name returns the names of stages.
func (p *PointAccount) Balance(name func(Stage) string) PointBalance {
	b := PointBalance{
		Made: p.made, Carried: p.carried, Stored: uint64(p.at[Stored]), Refused: uint64(p.at[Rejected]), Unsettled: int64(p.made),
		InFlight: map[string]int64{}, Dropped: map[string]int64{}, Series: map[string]SeriesBalance{},
	}
	for i, n := range p.at {
		switch s := Stage(i); s {
		case InMemory, OnDisk:
			b.InFlight[name(s)] = n
		case DroppedMemory, DroppedDisk, DroppedEncoding:
			b.Dropped[name(s)] = n
		}
		b.Unsettled -= n
	}
	for series, s := range p.series {
		b.Series[series] = *s
	}
	return b
}

// Tally is the [Account] of a queue that is used without a collector: it adds up.
type Tally struct {
	mu      sync.Mutex
	carried uint64
	reports [NumStages]int64
	points  PointAccount
}

// Receive counts n reports that are put into the queue.
func (t *Tally) Receive(n uint64) {
	t.mu.Lock()
	t.reports[InMemory] += int64(n)
	t.mu.Unlock()
}

// Carry implements [Account].
func (t *Tally) Carry(reports, points uint64, series []SeriesCount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.carried += reports
	t.reports[OnDisk] += int64(reports)
	t.points.Carry(points, series)
}

// Make implements [Account].
func (t *Tally) Make(series []SeriesCount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.points.Make(series)
}

// Move implements [Account].
func (t *Tally) Move(from, to Stage, reports, points uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reports[from] -= int64(reports)
	t.reports[to] += int64(reports)
	t.points.Move(from, to, points)
}

// End implements [Account].
func (t *Tally) End(to Stage, series []SeriesCount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.points.End(to, series)
}

// At returns the number of reports that are in a stage now.
func (t *Tally) At(s Stage) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reports[s]
}

// PointsAt returns the number of points that are in a stage now.
func (t *Tally) PointsAt(s Stage) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.points.at[s]
}

// Points returns the points as a [Balance] has them, with the names of the stages.
func (t *Tally) Points() PointBalance {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.points.Balance(Stage.String)
}
