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

// Account is told where the reports and the points behind a queue are. It is used by several goroutines at a time.
//
// Points are what a store can confirm. Reports follow them: those of a batch are stored when all its points are, and
// otherwise end where the first of its points ended that is not.
type Account interface {
	// Carry counts what the spool still held from an earlier run; it is OnDisk. The series of points are told when
	// they are known, which is later, and beside their number.
	Carry(reports, points uint64, series []SeriesCount)
	// Make counts points that come to a queue: they are InMemory.
	Make(series []SeriesCount)
	// Move takes reports and points from one stage to another. Reports come to a queue InMemory.
	Move(from, to Stage, reports, points uint64)
	// End says which series points are of that were moved to Stored or Rejected.
	End(to Stage, series []SeriesCount)
}

// Tally is the [Account] of a queue that is used without a collector: it adds up.
type Tally struct {
	mu      sync.Mutex
	carried uint64
	reports [NumStages]int64

	made, carriedPoints uint64
	points              [NumStages]int64
	series              map[string]*SeriesBalance
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
	t.made += points
	t.carriedPoints += points
	t.points[OnDisk] += int64(points)
	t.count(series, func(b *SeriesBalance) *uint64 { return &b.Made })
}

// Make implements [Account].
func (t *Tally) Make(series []SeriesCount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.count(series, func(b *SeriesBalance) *uint64 { return &b.Made })
	t.made += n
	t.points[InMemory] += int64(n)
}

// Move implements [Account].
func (t *Tally) Move(from, to Stage, reports, points uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reports[from] -= int64(reports)
	t.reports[to] += int64(reports)
	t.points[from] -= int64(points)
	t.points[to] += int64(points)
}

// End implements [Account].
func (t *Tally) End(to Stage, series []SeriesCount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(series, func(b *SeriesBalance) *uint64 {
		if to == Stored {
			return &b.Stored
		}
		return &b.Refused
	})
}

func (t *Tally) count(series []SeriesCount, of func(*SeriesBalance) *uint64) (sum uint64) {
	if t.series == nil {
		t.series = map[string]*SeriesBalance{}
	}
	for _, c := range series {
		b := t.series[c.Series]
		if b == nil {
			b = &SeriesBalance{}
			t.series[c.Series] = b
		}
		*of(b) += c.Points
		sum += c.Points
	}
	return sum
}

// At gives the number of reports that are in a stage now.
func (t *Tally) At(s Stage) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reports[s]
}

// PointsAt gives the number of points that are in a stage now.
func (t *Tally) PointsAt(s Stage) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.points[s]
}

// Points gives the points as a [Balance] has them, with the names of the stages.
func (t *Tally) Points() PointBalance {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := PointBalance{Made: t.made, Carried: t.carriedPoints, Stored: uint64(t.points[Stored]), Refused: uint64(t.points[Rejected]),
		InFlight: map[string]int64{}, Dropped: map[string]int64{}, Series: map[string]SeriesBalance{}}
	b.Unsettled = int64(t.made)
	for s, n := range t.points {
		b.Unsettled -= n
		switch stage := Stage(s); {
		case stage < Stored:
			b.InFlight[stage.String()] = n
		case stage > Stored && stage != Rejected:
			b.Dropped[stage.String()] = n
		}
	}
	for name, s := range t.series {
		b.Series[name] = *s
	}
	return b
}
