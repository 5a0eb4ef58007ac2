package ledger

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hopscope/hopscope/sink"
)

// Reports are moved about at random, by several goroutines: nothing is ever unsettled.
func TestLedgerBalances(t *testing.T) {
	const seed = 7
	l := New("a", "b")
	l.Account("a").Carry(5, 9, nil)
	var wg sync.WaitGroup
	for n := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, n))
			for range 2000 {
				k := r.Uint64N(10)
				l.Receive(Ring, k)
				l.Receive(DroppedKernel, k/2)
				l.Move(Ring, DroppedMalformed, k/3)
				l.Move(Ring, ShardQueue, k-k/3)
				l.Move(ShardQueue, Window, k-k/3)
				l.Close(k - k/3)
				l.Account("a").Make([]sink.SeriesCount{{Series: "hop", Points: k}, {Series: "flow", Points: 2 * k}})
				l.Account("a").Move(sink.InMemory, sink.OnDisk, k/4, k)
				l.Account("b").Move(sink.InMemory, sink.Stored, k-k/3, 0)
				l.Account("a").Move(sink.OnDisk, sink.Rejected, 0, k/2)
				l.Account("a").End(sink.Rejected, []sink.SeriesCount{{Series: "hop", Points: k / 2}})
				for _, b := range l.Snapshot() {
					if b.Unsettled != 0 || b.Points.Unsettled != 0 {
						t.Errorf("seed %d: %+v", seed, b)
					}
				}
			}
		})
	}
	wg.Wait()
	s := l.Snapshot()
	a, b := s[0], s[1]
	if a.Sink != "a" || a.Carried != 5 || a.Received != b.Received+5 || a.Stored != 0 || a.InFlight["spool"] < 5 {
		t.Errorf("a: %+v", a)
	}
	if p := a.Points; p.Carried != 9 || p.Made != 9+p.Series["hop"].Made*3 || p.Refused == 0 || p.Refused != p.Series["hop"].Refused ||
		p.InFlight["spool"]+int64(p.Refused) != 9+int64(p.Series["hop"].Made) || p.Stored != 0 {
		t.Errorf("points of a: %+v", p)
	}
	if b.Stored == 0 || b.Dropped["kernel"] == 0 || b.Dropped["malformed"] == 0 || b.InFlight["window"] != 0 || b.InFlight["sink-queue"] != 0 {
		t.Errorf("b: %+v", b)
	}
}

// Without a sink what left the window is stored: the page and the summary are all there is.
func TestLedgerWithoutSinks(t *testing.T) {
	l := New()
	l.Receive(Window, 3)
	l.Close(2)
	b := l.Snapshot()
	if len(b) != 1 || b[0].Stored != 2 || b[0].InFlight["window"] != 1 || b[0].Unsettled != 0 {
		t.Errorf("%+v", b)
	}
}

// A stage that is in flight and one that drops may share a name, two of one sort may not.
func TestStageNames(t *testing.T) {
	seen := map[string]Stage{}
	for s := range numStages {
		name := s.String()
		if s.Dropped() {
			name = "dropped " + name
		}
		if other, ok := seen[name]; ok || s.String() == "" {
			t.Errorf("stages %d and %d are both called %q", s, other, name)
		}
		seen[name] = s
		if s.InFlight() == s.Dropped() && s != Stored {
			t.Errorf("stage %d is in flight and dropped, or neither", s)
		}
	}
}

// What is dropped behind the border of a window is of the next one. What was missed is counted behind the border, and of the window.
func TestAtBorder(t *testing.T) {
	l := New("a", "b")
	drop := func() {
		l.Receive(Ring, 10)
		l.Move(Ring, DroppedShardQueue, 3)
		l.Move(Ring, DroppedMalformed, 1)
		l.Move(Ring, Window, 6)
	}
	drop()
	l.Border()
	drop()
	l.Receive(DroppedDown, 5)
	for _, b := range l.AtBorder() {
		if b.Received != 21 || b.Dropped["shard-queue"] != 3 || b.Dropped["malformed"] != 1 || b.Dropped["down"] != 5 || b.InFlight["window"] != 12 || b.Unsettled != 0 {
			t.Errorf("%+v", b)
		}
	}
	if b := l.Snapshot()[0]; b.Received != 25 || b.Dropped["shard-queue"] != 6 {
		t.Errorf("%+v", b)
	}
}
