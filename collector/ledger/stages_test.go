package ledger

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/sink"
)

// figures returns a balance in one line, without zeros: "received 5 = stored 2 + window 1 + dropped kernel 2".
func figures(b *sink.Balance) string {
	text := fmt.Sprintf("received %d carried %d = stored %d", b.Received, b.Carried, b.Stored)
	for _, stage := range slices.Sorted(maps.Keys(b.InFlight)) {
		if n := b.InFlight[stage]; n != 0 {
			text += fmt.Sprintf(" + %s %d", stage, n)
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(b.Dropped)) {
		if n := b.Dropped[stage]; n != 0 {
			text += fmt.Sprintf(" + dropped %s %d", stage, n)
		}
	}
	return text
}

// Each report is counted in its stage, whatever way it took there, and the balance settles at every step.
func TestStages(t *testing.T) {
	l := New("s")
	a := l.Account("s")
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { l.Receive(Ring, 100) }, "received 100 carried 0 = stored 0 + ring 100"},
		{func() { l.Receive(DroppedKernel, 7) }, "received 107 carried 0 = stored 0 + ring 100 + dropped kernel 7"},
		{func() { l.Receive(Ring, 0) }, "received 107 carried 0 = stored 0 + ring 100 + dropped kernel 7"},
		{func() { l.Move(Ring, DroppedMalformed, 1) }, "received 107 carried 0 = stored 0 + ring 99 + dropped kernel 7 + dropped malformed 1"},
		{func() { l.Move(Ring, DroppedForeign, 2) }, "received 107 carried 0 = stored 0 + ring 97 + dropped foreign 2 + dropped kernel 7 + dropped malformed 1"},
		{func() { l.Move(Ring, ShardQueue, 97) }, "received 107 carried 0 = stored 0 + shard-queue 97 + dropped foreign 2 + dropped kernel 7 + dropped malformed 1"},
		{func() { l.Move(ShardQueue, DroppedShardQueue, 10) }, "received 107 carried 0 = stored 0 + shard-queue 87 + dropped foreign 2 + dropped kernel 7 + dropped malformed 1 + dropped shard-queue 10"},
		{func() { l.Move(ShardQueue, Window, 80) }, "received 107 carried 0 = stored 0 + shard-queue 7 + window 80 + dropped foreign 2 + dropped kernel 7 + dropped malformed 1 + dropped shard-queue 10"},
		{func() { l.Receive(DroppedDown, 3) }, "received 110 carried 0 = stored 0 + shard-queue 7 + window 80 + dropped down 3 + dropped foreign 2 + dropped kernel 7 + dropped malformed 1 + dropped shard-queue 10"},
		{func() { l.Close(70) }, "received 110 carried 0 = stored 0 + shard-queue 7 + sink-queue 70 + window 10 + dropped down 3 + dropped foreign 2 + dropped kernel 7 + dropped malformed 1 + dropped shard-queue 10"},
		{func() { a.Move(sink.InMemory, sink.OnDisk, 40, 0) }, "received 110 carried 0 = stored 0 + shard-queue 7 + sink-queue 30 + spool 40 + window 10 + dropped down 3 + dropped foreign 2 + dropped kernel 7 + dropped malformed 1 + dropped shard-queue 10"},
		{func() { a.Carry(1000, 0, nil) }, "received 1110 carried 1000 = stored 0 + shard-queue 7 + sink-queue 30 + spool 1040 + window 10 + dropped down 3 + dropped foreign 2 + dropped kernel 7 + dropped malformed 1 + dropped shard-queue 10"},
		{func() { a.Move(sink.OnDisk, sink.Stored, 1000, 0) }, "received 1110 carried 1000 = stored 1000 + shard-queue 7 + sink-queue 30 + spool 40 + window 10 + dropped down 3 + dropped foreign 2 + dropped kernel 7 + dropped malformed 1 + dropped shard-queue 10"},
		{func() {
			a.Move(sink.OnDisk, sink.DroppedDisk, 4, 0)
			a.Move(sink.InMemory, sink.DroppedMemory, 5, 0)
			a.Move(sink.InMemory, sink.DroppedEncoding, 6, 0)
			a.Move(sink.InMemory, sink.Rejected, 8, 0)
		}, "received 1110 carried 1000 = stored 1000 + shard-queue 7 + sink-queue 11 + spool 36 + window 10 + dropped down 3 + dropped foreign 2 + dropped kernel 7 + dropped malformed 1 + dropped not-encodable 6 + dropped rejected 8 + dropped shard-queue 10 + dropped sink-queue 5 + dropped spool 4"},
	} {
		step.do()
		b := l.Snapshot()
		if len(b) != 1 || b[0].Unsettled != 0 {
			t.Fatalf("%+v", b)
		}
		if got := figures(&b[0]); got != step.want {
			t.Fatalf("%s\nwant %s", got, step.want)
		}
	}
	l.head[Ring]++ // a defect: a report that was not received
	if b := l.Snapshot()[0]; b.Unsettled != -1 {
		t.Errorf("%d unsettled, want -1", b.Unsettled)
	}
}

// What is common to all sinks is in the balance of each, and what one of them carried or stored in its own alone.
func TestSinksAreApart(t *testing.T) {
	l := New("b", "a")
	l.Account("b").Carry(5, 0, nil)
	l.Receive(Window, 3)
	l.Close(2)
	l.Account("a").Move(sink.InMemory, sink.Stored, 2, 0)
	want := []string{
		"received 3 carried 0 = stored 2 + window 1",
		"received 8 carried 5 = stored 0 + sink-queue 2 + spool 5 + window 1",
	}
	for i, b := range l.Snapshot() {
		if got := figures(&b); b.Sink != []string{"a", "b"}[i] || got != want[i] {
			t.Errorf("%s: %s, want %s", b.Sink, got, want[i])
		}
	}
}

// Points have a ledger of their own: by stage, and by series.
func TestPoints(t *testing.T) {
	l := New("s")
	l.Aside("webhook")
	series := func(name string, n uint64) []sink.SeriesCount { return []sink.SeriesCount{{Series: name, Points: n}} }
	for _, name := range []string{"s", "webhook"} {
		a := l.Account(name)
		a.Carry(0, 30, series("hop", 20))
		a.Make([]sink.SeriesCount{{Series: "hop", Points: 100}, {Series: "flow", Points: 50}})
		a.Move(sink.InMemory, sink.OnDisk, 0, 70)
		a.Move(sink.InMemory, sink.Stored, 0, 40)
		a.End(sink.Stored, series("hop", 40))
		a.Move(sink.InMemory, sink.Rejected, 0, 9)
		a.End(sink.Rejected, series("flow", 9))
		a.Move(sink.InMemory, sink.DroppedMemory, 0, 1)
		a.Move(sink.OnDisk, sink.DroppedDisk, 0, 2)
		a.Move(sink.InMemory, sink.DroppedEncoding, 0, 3)
	}
	if b := l.Snapshot(); len(b) != 1 || b[0].Sink != "s" || b[0].Points == nil {
		t.Fatalf("%+v: a sink aside has no reports", b)
	}
	aside := l.AsidePoints()
	if len(aside) != 1 || aside["webhook"] == nil {
		t.Fatalf("aside: %v", aside)
	}
	for _, p := range []*sink.PointBalance{l.Snapshot()[0].Points, aside["webhook"]} {
		if p.Made != 180 || p.Carried != 30 || p.Stored != 40 || p.Refused != 9 || p.Unsettled != 0 {
			t.Errorf("%+v", p)
		}
		if want := map[string]int64{"sink-queue": 27, "spool": 98}; !maps.Equal(p.InFlight, want) {
			t.Errorf("in flight %v, want %v", p.InFlight, want)
		}
		if want := map[string]int64{"sink-queue": 1, "spool": 2, "not-encodable": 3}; !maps.Equal(p.Dropped, want) {
			t.Errorf("dropped %v, want %v", p.Dropped, want)
		}
		want := map[string]sink.SeriesBalance{"hop": {Made: 120, Stored: 40}, "flow": {Made: 50, Refused: 9}}
		if !maps.Equal(p.Series, want) {
			t.Errorf("series %v, want %v", p.Series, want)
		}
	}
}

// Of a spool that names any series there are, most are counted apart and the rest together.
func TestSeriesAreBounded(t *testing.T) {
	l := New("s")
	a := l.Account("s")
	var series []sink.SeriesCount
	for i := range 70 {
		series = append(series, sink.SeriesCount{Series: fmt.Sprint("series ", i), Points: 2})
	}
	a.Carry(0, 140, series)
	a.End(sink.Stored, series)
	got := l.Snapshot()[0].Points.Series
	if len(got) != 64+1 || got["series 63"] != (sink.SeriesBalance{Made: 2, Stored: 2}) || got["other"] != (sink.SeriesBalance{Made: 12, Stored: 12}) {
		t.Errorf("%d series, %v", len(got), got["other"])
	}
}

// The lines name the counts that are not zero, an earlier run, and a balance that does not settle.
func TestLines(t *testing.T) {
	b := sink.Balance{Sink: "influx", Received: 1000, Stored: 990, InFlight: map[string]int64{"window": 4, "ring": 0}, Dropped: map[string]int64{"kernel": 6}}
	points := &sink.PointBalance{Made: 3295, Stored: 40, Refused: 3255, InFlight: map[string]int64{"spool": 0}, Series: map[string]sink.SeriesBalance{
		"hop": {Refused: 3255}, "flow": {Made: 40},
	}}
	for _, c := range []struct {
		change       func()
		line, points string
	}{
		{func() {}, "influx: 1000 received = 990 stored + 4 in flight (window 4) + 6 dropped (kernel 6)", ""},
		{func() { b.Sink, b.InFlight = "", nil }, "windows: 1000 received = 990 stored + 0 in flight + 6 dropped (kernel 6)", ""},
		{func() { b.Dropped["down"] = 1 }, "windows: 1000 received = 990 stored + 0 in flight + 7 dropped (down 1, kernel 6)", ""},
		{func() { b.Carried, b.Points = 2, points }, "windows: 1000 received = 990 stored + 0 in flight + 7 dropped (down 1, kernel 6); 2 of them from an earlier run",
			": 3295 points made = 40 stored + 0 in flight + 0 dropped + 3255 refused (hop 3255)"},
		{func() { b.Sink, b.Carried, b.Unsettled = "s", 0, -3; points.Unsettled = 1 },
			"s: 1000 received = 990 stored + 0 in flight + 7 dropped (down 1, kernel 6); UNSETTLED -3, please report this",
			"s: 3295 points made = 40 stored + 0 in flight + 0 dropped + 3255 refused (hop 3255); UNSETTLED 1, please report this"},
		{func() {
			b.Unsettled, points.Unsettled, points.Series, points.Refused = 0, 0, nil, 0
			points.InFlight["spool"], points.InFlight["sink-queue"], points.Dropped = 5, 1, map[string]int64{"spool": 7, "not-encodable": 2}
		}, "s: 1000 received = 990 stored + 0 in flight + 7 dropped (down 1, kernel 6)", "s: 3295 points made = 40 stored + 6 in flight + 9 dropped + 0 refused"},
	} {
		c.change()
		if got := Line(&b); got != c.line {
			t.Errorf("%s\nwant %s", got, c.line)
		}
		if got := PointsLine(&b); got != c.points {
			t.Errorf("%s\nwant %s", got, c.points)
		}
	}
}
