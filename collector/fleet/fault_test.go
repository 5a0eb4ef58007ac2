package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// read waits until a consumer has read all that there is of windows.
func (w *world) read(c *consumer) {
	w.t.Helper()
	w.eventually("all is read", func() bool {
		for n := range testSlices {
			_, end := w.b.Offsets(w.topics.Windows, n)
			found := false
			for _, s := range c.Partitions() {
				if s.Topic == fleet.Windows && s.Partition == n && s.held && s.Offset >= end {
					found = true
				}
			}
			if !found {
				return false
			}
		}
		return true
	})
}

func (w *world) written(n int) {
	w.t.Helper()
	time1 := fmt.Sprint(w.label(n))
	w.eventually("the window is written", func() bool {
		hops, flows := 0, 0
		for k := range w.store.all() {
			if strings.HasSuffix(k, time1) && strings.HasPrefix(k, "hop[") {
				hops++
			}
			if strings.HasSuffix(k, time1) && strings.HasPrefix(k, "flow[") {
				flows++
			}
		}
		return hops == 20 && flows > 0
	})
}

// A consumer is killed when it has half of a window. Another one takes over, and nothing is missing or different.
func TestKilledInWindow(t *testing.T) {
	testkit.Long(t)
	w := newWorld(t, 2)
	w.briefly()
	a := w.consume("a", nil)
	w.window(0)
	w.window(1)
	w.written(1)
	w.send(w.make("c0", 2))
	w.read(a)
	a.kill()
	began := time.Now()
	b := w.consume("b", nil)
	w.send(w.make("c1", 2))
	w.at(2)
	w.written(2)
	t.Logf("taken over after %v with a session of %v", time.Since(began).Round(10*time.Millisecond), b.cfg.Session)
	w.window(3)
	w.equal()
}

// A consumer is killed when stores have what it merged and no checkpoint says so. All of it is written once more, and is the same.
func TestKilledBeforeCheckpoint(t *testing.T) {
	w := newWorld(t, 2)
	w.briefly()
	a := w.consume("a", func(c *Config, _ *Options) { c.Checkpoint = time.Hour })
	for n := range 4 {
		w.window(n)
	}
	w.written(3)
	a.kill()
	before := w.store.all()
	w.store.wipe()
	b := w.consume("b", nil)
	w.window(4)
	w.equal()
	for k, v := range before {
		if got := w.store.all()[k]; got != v {
			t.Errorf("%s was written anew as\n  %s, and before as\n  %s", k, got, v)
		}
	}
	for _, s := range b.Partitions() {
		if s.Topic == fleet.Series && s.duplicates == 0 {
			t.Error("merged slices were published once more, and no duplicate was counted")
		}
	}
}

// Consumers come and go in order while windows come.
func TestRebalance(t *testing.T) {
	testkit.Long(t)
	w := newWorld(t, 2)
	a := w.consume("a", nil)
	w.window(0)
	w.written(0)
	b := w.consume("b", nil)
	for n := 1; n < 4; n++ {
		w.window(n)
		time.Sleep(100 * time.Millisecond) // real time, in which brokers share partitions out: windows come meanwhile
	}
	w.eventually("both have partitions", func() bool {
		return a.group.Stats().Partitions > 0 && b.group.Stats().Partitions > 0
	})
	w.window(4)
	w.stop(a)
	w.window(5)
	w.equal()
	for _, c := range []*consumer{a, b} {
		if s := c.group.Stats(); s.Lost > 0 || s.Refused > 0 {
			t.Errorf("a rebalance in order cost something: %+v", s)
		}
	}
}

// A consumer stands still for longer than its session, and goes on: two believe for a moment that they have the partitions.
func TestPausedPastSession(t *testing.T) {
	w := newWorld(t, 2)
	w.briefly()
	a := w.consume("a", nil)
	w.window(0)
	w.written(0)
	w.send(w.make("c0", 1))
	w.read(a)
	resume := a.pause()
	b := w.consume("b", nil)
	w.send(w.make("c1", 1))
	w.at(1)
	w.written(1)
	w.window(2)
	w.written(2)
	resume()
	w.window(3)
	w.eventually("it is a member again", func() bool {
		return a.group.Stats().Partitions > 0 && b.group.Stats().Partitions > 0
	})
	w.window(4)
	w.equal()
	if s := a.group.Stats(); s.Lost == 0 {
		t.Errorf("nobody noticed that the partitions were lost: %+v", s)
	}
}

// What is not right is passed over and counted, and so is what a later version wrote.
func TestPoisoned(t *testing.T) {
	w := newWorld(t, 2)
	c := w.consume("a", nil)
	w.window(0)
	good := w.make("c0", 1)
	r := good[1]
	head := func(change func(*fleet.Head)) []byte {
		h := r.Head
		change(&h)
		return h.Append(nil)
	}
	future := append([]byte{}, r.Head.Append(nil)...)
	future[0] = 200
	garbage := []byte(strings.Repeat("\xff\x00garbage", 1000))
	poison := []ingest.Message{
		{Value: []byte("no head")},
		{Head: []byte{}, Value: []byte("empty head")},
		{Head: garbage, Value: garbage},
		{Head: future, Value: r.Value},
		{Head: head(func(h *fleet.Head) { h.Kind = 99; h.Seq = 1000 }), Value: r.Value},
		{Head: head(func(h *fleet.Head) { h.Seq = 1001; h.Boot++; h.From = "evil" }), Value: garbage},
		{Head: head(func(h *fleet.Head) { h.Seq = 1002; h.End++; h.Boot++; h.From = "evil" }), Value: r.Value},
		{Head: head(func(h *fleet.Head) { h.Seq = 1003; h.Slice = 3; h.Boot++; h.From = "evil" }), Value: r.Value},
		{Head: head(func(h *fleet.Head) { h.Seq = 1004; h.End = -h.End; h.Boot++; h.From = "evil" }), Value: r.Value},
		{Key: []byte("a key alone")},
	}
	if _, err := w.log.Append(t.Context(), w.topics.Windows, 1, poison...); err != nil {
		t.Fatal(err)
	}
	if _, err := w.log.Append(t.Context(), w.topics.Series, 0, poison...); err != nil {
		t.Fatal(err)
	}
	for i := range poison { // topics that are compacted take no record without a key
		poison[i].Key = []byte("b/0")
	}
	if _, err := w.log.Append(t.Context(), w.topics.State, 1, poison...); err != nil {
		t.Fatal(err)
	}
	w.send(good)
	w.send(good) // all of them twice, as retries of a producer may write them
	w.send(w.make("c1", 1))
	w.at(1)
	w.window(2)
	w.equal()
	for _, s := range c.Partitions() {
		if s.Topic == fleet.Windows && s.Partition == 1 {
			if s.Unknown != 2 || s.gateUnknown != 1 || s.refused != 3 || s.gateRefused != 4 || s.duplicates != 1 {
				t.Errorf("counted %+v", s)
			}
		}
	}
	// Under a number that was merged come other bytes: the collector is asked to draw another one.
	w.stop(c)
	reported := make(chan uint64, 9)
	c = w.consume("b", func(_ *Config, o *Options) { o.Redraw = func(_ string, boot uint64) { reported <- boot } })
	other := w.make("c0", 3)
	delete(w.seen, w.label(3))
	w.labels = w.labels[:len(w.labels)-1]
	for i := range other {
		h := &other[i].Head
		h.Seq = good[i].Head.Seq
	}
	w.send(other)
	w.read(c)
	select {
	case boot := <-reported:
		if boot != 100 {
			t.Errorf("reported that run %d is there twice", boot)
		}
	case <-time.After(testkit.Patience):
		t.Error("nobody was reported")
	}
	w.equal()
}

// Reports that come when their window is over are merged into it: its points are written again.
func TestLate(t *testing.T) {
	w := newWorld(t, 2)
	w.goes = true
	w.consume("a", func(c *Config, _ *Options) { c.Patience = 2 })
	w.window(0)
	w.written(0)
	w.send(w.make("c0", 1))
	late := w.make("c1", 1)
	w.send(w.make("c0", 2))
	w.at(3) // two windows behind the first one, which does not wait any more
	w.written(1)
	w.send(late)
	w.send(w.make("c1", 2))
	w.at(2)
	w.window(3)
	w.equal("event")
	n := 0
	for k, v := range w.store.all() {
		if strings.HasPrefix(k, "hop[") && strings.HasSuffix(k, fmt.Sprint(w.label(1))) && strings.Contains(v, "revision") {
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d of 20 hops of the window have a revision", n)
	}
}

// A window for which no collector delivered anything in time, as when Kafka was away from all collectors.
func TestAllLate(t *testing.T) {
	w := newWorld(t, 2)
	w.goes = true
	w.consume("a", func(c *Config, _ *Options) { c.Patience = 2 })
	w.window(0)
	w.written(0)
	w.at(4)
	w.eventually("the window is over", func() bool {
		_, end := w.b.Offsets(w.topics.Windows, 0)
		return end >= 4 // two parts, their end, and another one
	})
	for n := 1; n < 5; n++ {
		w.window(n)
	}
	w.equal("event")
}

// As long as a store is away, nothing is committed. The consumer after a kill writes all of it.
func TestStoreAway(t *testing.T) {
	w := newWorld(t, 2)
	w.briefly()
	a := w.consume("a", nil)
	w.window(0)
	w.written(0)
	w.store.fail(true)
	for n := 1; n < 4; n++ {
		w.window(n)
	}
	w.read(a)
	time.Sleep(600 * time.Millisecond) // two checkpoints, of which nothing shows that they committed nothing
	w.eventually("it is not ready, as the store does not take anything", func() bool { return len(a.NotReady()) > 0 })
	a.kill()
	w.store.fail(false)
	w.consume("b", nil)
	w.window(4)
	w.equal()
}

// Windows are written again from a time on, and findings are those that were published then.
func TestFrom(t *testing.T) {
	w := newWorld(t, 2)
	a := w.consume("a", nil)
	for n := range 6 {
		w.window(n)
	}
	w.equal()
	w.stop(a)
	w.store.wipe()
	b := w.consume("b", func(_ *Config, o *Options) { o.From = time.Unix(0, w.label(2)) })
	w.written(5)
	w.window(6)
	w.written(6)
	w.booked(b)
	want := w.want()
	got := w.store.all()
	for k, v := range want {
		old := false
		for n := range 3 {
			old = old || strings.HasSuffix(k, fmt.Sprint(w.label(n)))
		}
		switch _, there := got[k]; {
		case strings.HasPrefix(k, "event["), strings.HasPrefix(k, "collector["):
		case old && there:
			t.Errorf("written again although it is older: %s", k)
		case !old && got[k] != v:
			t.Errorf("%s is %s, want %s", k, got[k], v)
		}
	}
	for k := range got {
		if want[k] == "" {
			t.Errorf("too much: %s", k)
		}
	}
}

// booked waits until the books of a consumer have each report of the fleet once.
func (w *world) booked(c *consumer) {
	w.t.Helper()
	var reports uint64
	for _, p := range w.seen {
		reports += p.Reports
	}
	var taken, reported uint64
	if !testkit.Await(func() bool {
		taken, reported = 0, 0
		for _, s := range c.Partitions() {
			if s.Topic == fleet.Windows {
				taken, reported = taken+s.Taken, reported+s.Delivered
			}
		}
		return taken == reports && reported == reports
	}) {
		w.t.Errorf("of %d reports the books have %d taken and %d reported", reports, taken, reported)
	}
}

// Windows are written again from a time on that lies behind what consumers had read before: nothing in between is left out.
func TestFromBehindCheckpoint(t *testing.T) {
	w := newWorld(t, 2)
	short := func(c *Config, _ *Options) { c.Patience = 2 }
	a := w.consume("a", short)
	w.consumersAway(0, 1)
	w.equal()
	w.stop(a)
	w.consumersAway(1, 20)
	b := w.consume("b", func(c *Config, o *Options) { short(c, o); o.From = time.Unix(0, w.label(18)) })
	w.equal()
	w.booked(b)
}

// What is written again was counted before, also what a consumer does not read again.
func TestFromBooks(t *testing.T) {
	w := newWorld(t, 2)
	short := func(c *Config, _ *Options) { c.Patience = 2 }
	a := w.consume("a", short)
	w.consumersAway(0, 20)
	w.equal()
	w.stop(a)
	w.store.wipe()
	b := w.consume("b", func(c *Config, o *Options) { short(c, o); o.From = time.Unix(0, w.label(18)) })
	w.written(19)
	w.consumersAway(20, 21)
	w.written(20)
	w.booked(b)
}

// consumersAway has all collectors send windows, in the log at the times when they end.
func (w *world) consumersAway(from, to int) {
	w.t.Helper()
	for n := from; n < to; n++ {
		for _, name := range w.names {
			for _, r := range w.make(name, n) {
				if _, err := w.log.Append(w.t.Context(), w.topics.Windows, r.Partition, messagesOf([]fleet.Out{r}, time.Unix(0, w.label(n)))...); err != nil {
					w.t.Fatal(err)
				}
			}
		}
	}
	w.at(to - 1)
}

// Topics that forget too early are reported before anything is lost.
func TestRetention(t *testing.T) {
	w := newWorld(t, 1)
	short := w.b.Prefix + "short"
	w.b.CreateTopic(short, testSlices, "retention.ms=60000")
	c := w.consume("a", nil)
	if err := c.Check(t.Context()); err != nil {
		t.Errorf("a week is too short: %v", err)
	}
	opt := c.opt
	opt.Topics.Windows = short
	other, err := New(c.cfg, opt) // which only checks
	if err != nil {
		t.Fatal(err)
	}
	err = other.Check(t.Context())
	if e, ok := errors.AsType[*retentionError](err); !ok || e.Topic != short || e.Have != time.Minute || e.Need < 30*time.Minute {
		t.Errorf("%v", err)
	}
}

// After an outage of many windows the spools of the collectors come one after the other. A hundred windows of one are
// in the log before the first one of the other. With the default settings nothing is refused, published without one of
// them, or published twice. The same holds with hardly any room for their records.
func TestSpoolsOneAfterTheOther(t *testing.T) {
	for name, held := range map[string]int64{"default": defaultConfig().HeldBytes, "tiny": 8 << 10} {
		t.Run(name, func(t *testing.T) {
			const windows = 100
			w := newWorld(t, 2)
			for _, name := range w.names {
				batches := make([][]fleet.Out, testSlices)
				for n := range windows {
					for _, r := range w.make(name, n) {
						batches[r.Partition] = append(batches[r.Partition], r)
					}
				}
				for p, batch := range batches {
					if _, err := w.log.Append(t.Context(), w.topics.Windows, p, messagesOf(batch, time.Now())...); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.at(windows)
			c := w.consume("a", func(cfg *Config, _ *Options) {
				// The clock goes on, and nothing comes of the windows behind: they are waited for until the end of the test.
				cfg.Patience, cfg.Corrections, cfg.HeldBytes = 1000, defaultConfig().Corrections, held
			})
			w.equal()
			// A window is counted as closed behind its publication.
			testkit.Await(func() bool {
				return !slices.ContainsFunc(c.Partitions(), func(s partitionStatus) bool { return s.Topic == fleet.Windows && s.Closed < windows })
			})
			second := uint64(0)
			for _, s := range c.Partitions() {
				second += s.Reread
				if s.gateRefused+s.refused+s.Late+s.Missing+s.forced+s.restarts != 0 {
					t.Errorf("%s/%d: %+v", s.Topic, s.Partition, s)
				}
				if s.Topic == fleet.Windows && s.Closed < windows {
					t.Errorf("%s/%d: %d windows closed", s.Topic, s.Partition, s.Closed)
				}
				if s.heldBytes != 0 && s.heldBytes > max(held, 64<<10) {
					t.Errorf("%s/%d: %d bytes are kept", s.Topic, s.Partition, s.heldBytes)
				}
			}
			if name == "tiny" && second < windows {
				t.Errorf("only %d records were read again", second)
			}
		})
	}
}

// A writer of the topics closes a window that lies days ahead, and publishes slices of it: what comes then is merged all the same.
func TestFarAhead(t *testing.T) {
	w := newWorld(t, 2)
	c := w.consume("a", nil)
	w.window(0)
	w.written(0)
	far := w.label(100_000)
	evil := fleet.NewPublisher(fleet.PublisherConfig{From: "evil", Boot: 666, Slicer: window.NewSlicer(testSeed, testSlices), Window: int64(testWindow)})
	out, err := evil.Window(nil, &window.Partial{}, far, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.send(out)
	for n := range testSlices {
		w.send([]fleet.Out{{Partition: n, Head: fleet.Head{Kind: fleet.Close, From: "evil", Slice: uint32(n), Start: far - int64(testWindow), End: far}}})
		r := out[0]
		r.Partition, r.Head.Kind, r.Head.Slice, r.Head.Part, r.Head.Parts = 0, fleet.Slice, uint32(n), 0, 1
		w.sendTo(w.topics.Series, r)
	}
	w.window(1)
	w.window(2)
	w.equal()
	refused := uint64(0)
	for _, s := range c.Partitions() {
		refused += s.refused
	}
	if want := uint64(3 * testSlices); refused != want {
		t.Errorf("%d records refused, want %d", refused, want)
	}
}
