package sink

import "sync"

// Stage is a place behind a [Queue] where a report can be, or where it ended.
type Stage uint8

// The stages, in the order in which a report passes them.
const (
	InMemory Stage = iota // waiting for a store
	OnDisk                // in the spool, waiting for a store

	Stored // acknowledged by the store

	DroppedMemory // the queue was full, or had to end
	DroppedDisk   // evicted from a full spool, damaged there, or refused by the disk
	Rejected      // the store refused the points

	NumStages
)

var stageNames = [NumStages]string{"memory", "disk", "stored", "dropped from memory", "dropped from disk", "rejected"}

// String is the stage's name.
func (s Stage) String() string { return stageNames[min(s, NumStages-1)] }

// Account is told where the reports behind a queue are. It is used by several goroutines at a time.
type Account interface {
	// Carry counts n reports that the spool still held from an earlier run; they are OnDisk.
	Carry(n uint64)
	// Move takes n reports from one stage to another. They come to a queue InMemory.
	Move(from, to Stage, n uint64)
}

// Tally is the [Account] of a queue that is used without a collector: it adds up.
type Tally struct {
	mu      sync.Mutex
	carried uint64
	reports [NumStages]int64
}

// Receive counts n reports that are put into the queue.
func (t *Tally) Receive(n uint64) {
	t.mu.Lock()
	t.reports[InMemory] += int64(n)
	t.mu.Unlock()
}

// Carry implements [Account].
func (t *Tally) Carry(n uint64) {
	t.mu.Lock()
	t.carried += n
	t.reports[OnDisk] += int64(n)
	t.mu.Unlock()
}

// Move implements [Account].
func (t *Tally) Move(from, to Stage, n uint64) {
	t.mu.Lock()
	t.reports[from] -= int64(n)
	t.reports[to] += int64(n)
	t.mu.Unlock()
}

// At gives the number of reports that are in a stage now.
func (t *Tally) At(s Stage) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reports[s]
}
