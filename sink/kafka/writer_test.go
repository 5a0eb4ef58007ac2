package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/window"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

func TestMain(m *testing.M) { servertest.Main(m) }

var (
	_ sink.WindowEncoder = (*Writer)(nil)
	_ sink.Encoder       = (*Writer)(nil)
	_ sink.Diverter      = (*Writer)(nil)
)

const (
	windowLength = time.Second
	testSeed     = 7
)

// of returns settings for the broker's address and the topics of the test.
func of(b *servertest.Broker) Config {
	c := DefaultConfig()
	c.Brokers, c.Prefix, c.Slices = []string{b.Addr}, b.Prefix, 4
	return c
}

func params(c *Config) roster.Params {
	return roster.NewParams(c.Fleet, c.Slices, windowLength, testSeed)
}

// create makes the topics, as a user that may.
func create(t *testing.T, b *servertest.Broker, c Config) {
	t.Helper()
	c.Brokers, c.TLS, c.CAFile, c.SASL, c.User, c.PasswordFile = []string{b.Internal}, false, "", "none", "", ""
	c.Timeout = time.Minute // whatever a test gives its writer
	a := admin(t, c)
	if made, err := a.Create(t.Context(), false); err != nil {
		t.Fatalf("%v, %v", made, err)
	}
	for _, topic := range []string{brokers.Windows, brokers.Reports, brokers.Series, brokers.State, brokers.Roster} {
		b.Await(c.Topic(topic))
	}
}

func admin(t *testing.T, c Config) *Admin {
	t.Helper()
	a, err := NewAdmin(c, params(&c), 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func open(t *testing.T, c Config) *Writer {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func identity(c *Config, name string) Identity {
	return Identity{Name: name, Params: params(c), Seed: testSeed}
}

func join(t *testing.T, c Config, name string) *Writer {
	t.Helper()
	w := open(t, c)
	if err := w.Join(t.Context(), identity(&c, name)); err != nil {
		t.Fatal(err)
	}
	if p := w.Stats().Problem; p != "" {
		t.Fatal(p)
	}
	return w
}

// partial is a window of some hops, which differ from label to label.
func partial(label int64, hops int) *window.Partial {
	p := &window.Partial{}
	p.Span(label-int64(windowLength), label)
	p.Reports = uint64(hops)
	for n := range hops {
		h := p.Hop(inference.HopKey{Node: uint32(n)})
		for i := range 20 {
			h.Latency.AddValue(uint64(label>>20) * uint64(n+1) * uint64(i*i+1) % 1_000_003)
		}
	}
	return p
}

func encode(t *testing.T, w *Writer, label int64, hops int) []sink.Encoded {
	t.Helper()
	list := w.EncodeWindow(&sink.Window{Window: &inference.Window{}, Label: label, Partial: partial(label, hops)})
	if len(list) == 0 {
		t.Fatal("no payload")
	}
	return list
}

func write(w *Writer, list []sink.Encoded) error {
	for _, e := range list {
		if err := w.WriteEncoded(context.Background(), e.Payload); err != nil {
			return err
		}
	}
	return nil
}

// deliver writes as the queue of a sink does: a record that its broker has not answered yet is written again.
func deliver(w *Writer, list []sink.Encoded) (err error) {
	for _, e := range list {
		if !testkit.Await(func() bool {
			err = w.WriteEncoded(context.Background(), e.Payload)
			return err == nil || !strings.Contains(err.Error(), "has not answered yet")
		}) || err != nil {
			return err
		}
	}
	return nil
}

// labelNow is the end of the present window.
func labelNow() int64 { return fleet.Label(time.Now().UnixNano(), int64(windowLength)) }

// parts reads the heads and values of a topic's partitions.
func parts(t *testing.T, b *servertest.Broker, c Config) (all [][]fleet.Record) {
	t.Helper()
	for i := range c.Slices {
		var list []fleet.Record
		for _, m := range b.Read(c.Topic(brokers.Windows), i, 0) {
			h, err := fleet.ReadHead(m.Header(fleet.HeaderKey))
			if err != nil {
				t.Fatal(err)
			}
			if h.Sum != fleet.Sum(m.Value) || int(h.Slice) != i {
				t.Fatalf("record %d of partition %d: %+v", m.Offset, i, h)
			}
			list = append(list, fleet.Record{Offset: m.Offset, Head: h, Value: m.Value})
		}
		all = append(all, list)
	}
	return all
}

// merged returns the bytes of the merged windows of all records, each counted once.
func merged(t *testing.T, all [][]fleet.Record) map[int64][]byte {
	t.Helper()
	codec := fleet.NewCodec(0, window.Limits{Hops: 1e6, Flows: 1e6, Paths: 1e6, Drops: 1e6, Faults: 1e6, Exporters: 1e6})
	sums := map[int64]*window.Partial{}
	for _, list := range all {
		seen := map[string]uint64{}
		for _, r := range list {
			key := fmt.Sprint(r.Head.From, r.Head.Boot, r.Head.Seq)
			if sum, ok := seen[key]; ok {
				if sum != r.Head.Sum {
					t.Fatalf("%s has two contents", key)
				}
				continue
			}
			seen[key] = r.Head.Sum
			var p window.Partial
			if err := codec.Decode(&p, r.Value); err != nil {
				t.Fatal(err)
			}
			if sums[r.Head.End] == nil {
				sums[r.Head.End] = &window.Partial{}
			}
			sums[r.Head.End].Merge(&p)
		}
	}
	out := map[int64][]byte{}
	for label, p := range sums {
		b, err := p.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		out[label] = b
	}
	return out
}

func same(t *testing.T, got map[int64][]byte, label int64, hops int) {
	t.Helper()
	want, err := partial(label, hops).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got[label], want) {
		t.Errorf("the window to %d differs: %d bytes, want %d", label, len(got[label]), len(want))
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	c := of(b)
	create(t, b, c)
	w := join(t, c, "east")
	label := labelNow()
	list := encode(t, w, label, 500)
	list = append(list, encode(t, w, label+int64(windowLength), 0)...) // an empty window has its records, too
	if err := deliver(w, list); err != nil {
		t.Fatal(err)
	}
	all := parts(t, b, c)
	same(t, merged(t, all), label, 500)
	boot := all[0][0].Head.Boot
	for i, list := range all {
		if len(list) != 2 {
			t.Errorf("%d records in partition %d, want 2", len(list), i)
		}
		for n, r := range list {
			h := r.Head
			if h.Kind != fleet.Part || h.From != "east" || h.Boot != boot || boot == 0 || h.Seq != uint64(n+1) || h.Part != 0 || h.Parts != 1 || h.Raw != nil {
				t.Errorf("record %d of partition %d: %+v", n, i, h)
			}
		}
	}
	if s := w.Stats(); s.Records != 8 || s.Requests != 8 || s.Repeats != 0 || s.Clock != 0 || s.Extra != 0 {
		t.Errorf("%+v", s)
	}
	if out, left := w.Encode(nil, &sink.Batch{Points: make([]sink.Point, 3)}); len(out) != 0 || left != 3 {
		t.Errorf("points: %x, %d left out", out, left)
	}
	if err := w.Write(t.Context(), &sink.Batch{}); !sink.Permanent(err) {
		t.Errorf("points: %v", err)
	}
}

// Diverted reports go to the partition of their flow in topic reports, in records within the length of the settings.
// They precede the records of their window, which hold their number. An order to continue under another boot applies
// to both.
func TestDivertToKafka(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.SharedBroker(t)
	c := of(b)
	c.Reports, c.MaxMessageBytes = "all", 64<<10
	create(t, b, c)
	w := open(t, c)
	if w.Takes(flowReport(1, 1)) {
		t.Error("takes reports before it has a name to send them under")
	}
	var list []sink.Encoded
	w.Open(1, func(e sink.Encoded) { list = append(list, e) })
	if err := w.Join(t.Context(), identity(&c, "east")); err != nil {
		t.Fatal(err)
	}
	label, sent := labelNow(), uint64(0)
	var first uint64
	for i := range 2 { // windows
		at := label + int64(i-1)*int64(windowLength)
		for n := range uint32(5000) {
			r := flowReport(n*2654435761>>8, at+int64(n))
			if !w.Takes(r) {
				t.Fatal("does not take a report")
			}
			w.Divert(0, []*decode.Report{r})
			sent++
		}
		w.EndWindow(at + int64(windowLength))
		w.MarkWindow(at + int64(windowLength))
		list = append(list, encode(t, w, at+int64(windowLength), 3)...)
		if err := deliver(w, list); err != nil {
			t.Fatal(err)
		}
		if list = nil; i > 0 {
			break
		}
		first = w.publisher.Boot()
		reader := w.client.NewTable(c.Topic(brokers.Roster), brokers.TableBounds{Keys: 10, Value: 1000, Bytes: 10_000})
		if _, err := reader.Put(t.Context(), roster.RedrawKey("east"), fmt.Appendf(nil, `{"boot":"%d"}`, first)); err != nil {
			t.Fatal(err)
		}
		if err := w.member.syncRoster(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	total, boots := uint64(0), map[uint64]bool{}
	raw := map[int64][]uint64{}
	for _, list := range parts(t, b, c) {
		for _, r := range list {
			raw[r.Head.End] = r.Head.Raw
			boots[r.Head.Boot] = true
		}
	}
	for i := range c.Slices {
		counts, seqs := map[int64]uint64{}, map[uint64]uint64{}
		for _, m := range b.Read(c.Topic(brokers.Reports), i, 0) {
			h, err := fleet.ReadHead(m.Header(fleet.HeaderKey))
			if err != nil {
				t.Fatal(err)
			}
			seqs[h.Boot]++
			if h.From != "east" || int(h.Slice) != i || h.Seq != seqs[h.Boot] || !boots[h.Boot] || (h.Boot == first) != (h.End == label) || len(m.Value) > c.MaxMessageBytes || h.Sum != fleet.Sum(m.Value) {
				t.Fatalf("record %d of partition %d: %+v with %d bytes", m.Offset, i, h, len(m.Value))
			}
			switch h.Kind {
			case fleet.Reports:
				counts[h.End] += h.Reports
				total += h.Reports
			case fleet.Mark:
				if h.Reports != counts[h.End] || len(raw[h.End]) != c.Slices || raw[h.End][i] != h.Reports || h.Reports == 0 {
					t.Errorf("partition %d, window %d: the mark reports %d reports and the parts of %v, there are %d", i, h.End, h.Reports, raw[h.End], counts[h.End])
				}
			}
		}
		if len(counts) != 2 || len(seqs) != 2 {
			t.Errorf("partition %d has reports of %v, under the boots %v", i, counts, seqs)
		}
	}
	if s := w.Stats(); total != sent || s.Diverted.Reports != sent || s.Diverted.Bytes == 0 {
		t.Errorf("%d reports of %d, %+v", total, sent, s.Diverted)
	}
}

// TestLongWindow has more than a record, a payload and a topic take.
func TestLongWindow(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.SharedBroker(t)
	c := of(b)
	c.MaxMessageBytes = 1 << 16
	create(t, b, c)
	w := join(t, c, "east")
	label := labelNow()
	list := encode(t, w, label, 60_000)
	if len(list) < 2 {
		t.Errorf("%d payloads, want several", len(list))
	}
	for i, e := range list {
		if len(e.Payload) > maxPayload+1<<16 {
			t.Errorf("payload %d has %d bytes", i, len(e.Payload))
		}
		if last := i == len(list)-1; !last && e.Reports > 0 {
			t.Errorf("payload %d of %d stands for %d reports", i, len(list), e.Reports)
		}
	}
	if err := deliver(w, list); err != nil {
		t.Fatal(err)
	}
	all := parts(t, b, c)
	same(t, merged(t, all), label, 60_000)
	for i, list := range all {
		if len(list) < 2 {
			t.Errorf("partition %d has %d records, want several", i, len(list))
		}
		for n, r := range list {
			if int(r.Head.Parts) != len(list) || int(r.Head.Part) != n || len(r.Value) > c.MaxMessageBytes {
				t.Errorf("record %d of %d: %d bytes, %+v", n, len(list), len(r.Value), r.Head)
			}
		}
	}

	// A topic that takes less than it should: what is too long is refused, and the rest is stored.
	small := of(servertest.SharedBroker(t))
	b.CreateTopic(small.Topic(brokers.Windows), 4, "max.message.bytes=3000")
	create(t, b, small)
	w = join(t, small, "west")
	var outs []fleet.Out
	for i := range 4 {
		for n := range 3 {
			value := bytes.Repeat([]byte("x"), 100)
			if i == 2 && n == 1 {
				value = bytes.Repeat([]byte("x"), 5000)
			}
			outs = append(outs, fleet.Out{Partition: i, Head: fleet.Head{Kind: fleet.Part, From: "west", Boot: 1, Seq: uint64(n + 1), Slice: uint32(i), End: label, Sum: fleet.Sum(value)}, Value: value})
		}
	}
	err := write(w, w.payloads(toWindows, label, outs))
	p, ok := errors.AsType[*sink.PermanentError](err)
	if !ok || p.Rejected != 1 || len(p.Refused) != 1 || p.Refused[0].Points != 1 || !strings.Contains(p.Refused[0].Reason, "max.message.bytes") {
		t.Fatalf("%v (%+v)", err, p)
	}
	if second, err := readPayload(p.Refused[0].Payload); err != nil || len(second.records) != 1 || len(second.records[0].value) != 5000 {
		t.Errorf("what was refused is %+v, %v", second, err)
	}
	for i, list := range parts(t, b, small) {
		want := 3
		if i == 2 {
			want = 2
		}
		if len(list) != want {
			t.Errorf("partition %d has %d records, want %d", i, len(list), want)
		}
	}
}

// untilStored does what a queue does with a payload, and returns the number of failures on the way.
func untilStored(w *Writer, payload []byte) (failures int, _ error) {
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(20 * time.Millisecond) {
		err := w.WriteEncoded(context.Background(), payload)
		if err == nil {
			return failures, nil
		}
		if r := (*sink.RetryError)(nil); !errors.As(err, &r) || r.Config || time.Now().After(deadline) {
			return failures, err
		}
		failures++
	}
}

// TestBrokerKilled kills the broker while it is written to: what it confirmed is there, and the rest is, once or again.
func TestBrokerKilled(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.StartBroker(t, servertest.BrokerOptions{})
	c := of(b)
	c.Timeout = 2 * time.Second
	create(t, b, c)
	w := join(t, c, "east")
	const windows = 400
	first := labelNow() - windows*int64(windowLength)
	half, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := range windows {
			if n == windows/2 {
				close(half)
			}
			for _, e := range w.EncodeWindow(&sink.Window{Window: &inference.Window{}, Label: first + int64(n)*int64(windowLength), Partial: partial(first+int64(n)*int64(windowLength), 50)}) {
				if _, err := untilStored(w, e.Payload); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	<-half
	b.Kill()
	b.Start()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	all := parts(t, b, c)
	got := merged(t, all)
	for n := range windows {
		same(t, got, first+int64(n)*int64(windowLength), 50)
	}
	for i, list := range all {
		high := uint64(0)
		for _, r := range list {
			if r.Head.Seq > high+1 {
				t.Fatalf("partition %d: number %d comes after %d", i, r.Head.Seq, high)
			}
			high = max(high, r.Head.Seq)
		}
	}
	t.Logf("%d records were sent again", w.Stats().Repeats)
}

// TestAway starts while Kafka is not there.
func TestAway(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.StartBroker(t, servertest.BrokerOptions{})
	c := of(b)
	c.Timeout = time.Second
	create(t, b, c)
	b.Stop()
	w := open(t, c)
	if err := w.Join(t.Context(), identity(&c, "east")); err != nil {
		t.Fatalf("Kafka is away: %v", err)
	}
	other := open(t, c)
	id := identity(&c, "west")
	id.Params.Window *= 2
	done := make(chan error, 1)
	go func() { done <- other.Join(t.Context(), id) }()
	label := labelNow()
	list := encode(t, w, label, 10)
	err := write(w, list)
	if r := (*sink.RetryError)(nil); !errors.As(err, &r) || r.Config || !strings.Contains(err.Error(), b.Addr) {
		t.Errorf("%v", err)
	}
	if p := w.Stats().Problem; !strings.Contains(p, b.Addr) {
		t.Errorf("problem %q does not name the broker", p)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.Start()
	for _, e := range list {
		if _, err := untilStored(w, e.Payload); err != nil {
			t.Fatal(err)
		}
	}
	same(t, merged(t, parts(t, b, c)), label, 10)

	// A member that does not fit gets the error when Kafka is there.
	var r *sink.RetryError
	testkit.Until(t, "a person is asked for", func() bool {
		err := write(other, encode(t, other, label, 10))
		if err == nil {
			t.Fatal("the windows of another fleet were taken")
		}
		return errors.As(err, &r) && r.Config
	})
	if !strings.Contains(r.Error(), "window: the fleet has 1s, this member 2s") {
		t.Errorf("%v", r)
	}
	if n := len(parts(t, b, c)[0]); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// A slow broker costs time, and repeats.
func TestSlowBroker(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.StartBroker(t, servertest.BrokerOptions{})
	c := of(b)
	c.Timeout = time.Second
	create(t, b, c)
	w := join(t, c, "east")
	label := labelNow()
	list := encode(t, w, label, 10)
	b.Pause()
	err := write(w, list)
	if r := (*sink.RetryError)(nil); !errors.As(err, &r) || r.Config {
		t.Errorf("%v", err)
	}
	b.Continue()
	for _, e := range list {
		if _, err := untilStored(w, e.Payload); err != nil {
			t.Fatal(err)
		}
	}
	same(t, merged(t, parts(t, b, c)), label, 10)
	if w.Stats().Repeats == 0 {
		t.Error("nothing was sent again")
	}
}

func TestMismatch(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	c := of(b)
	refused := func(id Identity, words ...string) {
		t.Helper()
		err := open(t, c).Join(t.Context(), id)
		if e := (*MismatchError)(nil); !errors.As(err, &e) {
			t.Fatalf("%v (%T)", err, err)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
	}
	refused(identity(&c, "east"), "hopscope kafka topics create")
	for _, name := range []string{brokers.Windows, brokers.Reports, brokers.Series, brokers.State, brokers.Roster} {
		b.CreateTopic(c.Topic(name), 2)
	}
	refused(identity(&c, "east"), "hopscope kafka topics create")
	few := c
	few.Slices = 2
	create(t, b, few)
	id := identity(&few, "east")
	id.Params = roster.NewParams("other", 8, time.Minute, testSeed+1)
	refused(id, "name: the fleet has fleet, this member other", "slices: the fleet has 2, this member 8", "window: the fleet has 1s, this member 1m0s", "seed: ")
	c = few
	join(t, c, "east")

	// Partitions can get lost only with their topic, but it may have been made by hand.
	b.CreateTopic("x"+c.Prefix+brokers.Windows, 1)
	odd := c
	odd.Prefix = "x" + c.Prefix
	create(t, b, odd)
	c = odd
	refused(identity(&odd, "east"), "partitions: the topic has 1, and the fleet has 2 slices")
}

// TestClock has a collector whose clock is an hour off.
func TestClock(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	c := of(b)
	create(t, b, c)
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		name := "ahead"
		if off < 0 {
			name = "behind"
		}
		w := open(t, c)
		var shift atomic.Int64
		shift.Store(int64(off))
		w.clock = func() time.Time { return time.Now().Round(0).Add(time.Duration(shift.Load())) }
		if err := w.Join(t.Context(), identity(&c, name)); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); !strings.Contains(s.Problem, "h0m0") && !strings.Contains(s.Problem, "59m59") || !strings.Contains(s.Problem, name) || s.Clock.Round(time.Minute) != off {
			t.Errorf("%+v", s)
		}
		list := encode(t, w, fleet.Label(w.clock().UnixNano(), int64(windowLength)), 10)
		if err := write(w, list); !sink.Permanent(err) || !strings.Contains(err.Error(), "clock") {
			t.Errorf("%v", err)
		}
		shift.Store(0)
		if err := w.member.syncRoster(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); s.Problem != "" || s.Clock != 0 {
			t.Errorf("%+v", s)
		}
		if err := deliver(w, encode(t, w, labelNow(), 10)); err != nil {
			t.Fatal(err)
		}
		// A window of the future is refused, whatever the clock was when it was counted.
		if err := write(w, encode(t, w, labelNow()+int64(time.Hour), 10)); !sink.Permanent(err) {
			t.Errorf("%v", err)
		}
	}
	for i, list := range parts(t, b, c) {
		if len(list) != 2 {
			t.Errorf("partition %d has %d records, want one of each collector", i, len(list))
		}
	}
}

// TestClockBorder runs collectors whose clocks are nearly as far off as allowed. Everything that they send is
// accepted, windows after their end and single reports during theirs. Collectors whose clocks are farther off send
// nothing.
func TestClockBorder(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	c := of(b)
	create(t, b, c)
	for name, off := range map[string]time.Duration{
		"ahead": windowLength - 10*time.Millisecond, "behind": -windowLength + 10*time.Millisecond, "far-ahead": 2 * windowLength, "far-behind": -2 * windowLength,
	} {
		w := open(t, c)
		w.clock = func() time.Time { return time.Now().Round(0).Add(off) }
		if err := w.Join(t.Context(), identity(&c, name)); err != nil {
			t.Fatal(err)
		}
		far := off.Abs() > windowLength
		if err := w.Unfit(); (err != nil) != far {
			t.Errorf("%s: the problem is %v", name, err)
		}
		end := fleet.Label(w.clock().UnixNano(), int64(windowLength))
		single := newPayload(end, w.clockBad())
		head := fleet.Head{Kind: fleet.Reports, From: name, Boot: 1, Seq: 1, End: end, Reports: 1, Total: 1}
		single.add(toReports, 0, head.Append(nil), nil)
		for what, err := range map[string]error{
			"its last window": write(w, encode(t, w, end-int64(windowLength), 10)), "a report": w.WriteEncoded(t.Context(), single.b),
		} {
			if sink.Permanent(err) != far || !far && err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

// TestRoster checks the status that a member writes, and an order to it.
func TestRoster(t *testing.T) {
	t.Parallel()
	b := servertest.SharedBroker(t)
	c := of(b)
	create(t, b, c)
	w := open(t, c)
	id := identity(&c, "east")
	id.Status = func(boot uint64, left bool) []byte {
		return fmt.Appendf(nil, `{"boot":"%d","left":%v}`, boot, left)
	}
	if err := w.Join(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	reader := w.client.NewTable(c.Topic(brokers.Roster), brokers.TableBounds{Keys: 10, Value: 1000, Bytes: 10_000})
	said := func() (boot uint64, left bool) {
		t.Helper()
		if _, err := reader.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		value, _ := reader.Get("collector/east")
		var m struct {
			Boot uint64 `json:"boot,string"`
			Left bool   `json:"left"`
		}
		if err := json.Unmarshal(value, &m); err != nil {
			t.Fatalf("%v in %s", err, value)
		}
		return m.Boot, m.Left
	}
	first, left := said()
	if first == 0 || left {
		t.Errorf("boot %d, left %v", first, left)
	}
	label := labelNow()
	old := encode(t, w, label, 1)
	for _, boot := range []uint64{first + 1, first} { // the first one is not for this run
		if _, err := reader.Put(t.Context(), "collector/east/redraw", fmt.Appendf(nil, `{"boot":"%d"}`, boot)); err != nil {
			t.Fatal(err)
		}
		if err := w.member.syncRoster(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now, _ := said(); (now == first) != (boot != first) {
			t.Errorf("ordered to leave boot %d: now it is %d, and was %d", boot, now, first)
		}
	}
	second, _ := said()
	if err := deliver(w, append(old, encode(t, w, label+int64(windowLength), 1)...)); err != nil {
		t.Fatal(err)
	}
	for i, list := range parts(t, b, c) {
		if len(list) != 2 || list[0].Head.Boot != first || list[0].Head.Seq != 1 || list[1].Head.Boot != second || list[1].Head.Seq != 1 {
			t.Errorf("partition %d: %+v", i, list)
		}
	}
	reading, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	reader = reading.client.NewTable(c.Topic(brokers.Roster), brokers.TableBounds{Keys: 10, Value: 1000, Bytes: 10_000})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if boot, left := said(); boot != second || !left {
		t.Errorf("after the end: boot %d, left %v", boot, left)
	}
}

// What another version of the program left in the spool is refused, and kept.
func TestUnknownPayload(t *testing.T) {
	w := open(t, DefaultConfig())
	err := w.WriteEncoded(t.Context(), []byte{payloadVersion + 1, 0, 0})
	if p, ok := errors.AsType[*sink.PermanentError](err); !ok || len(p.Refused) != 1 || len(p.Refused[0].Payload) != 3 {
		t.Errorf("%v", err)
	}
	if list := w.EncodeWindow(&sink.Window{Window: &inference.Window{}, Partial: partial(labelNow(), 1)}); list != nil {
		t.Errorf("%d payloads without a name", len(list))
	}
}

func TestPace(t *testing.T) {
	var p pace
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := p.wait(ended, 1<<20, 0); err != nil {
			t.Fatal("there is no limit")
		}
	}
	before := time.Now()
	if err := p.wait(ended, 100, 1000); err != nil {
		t.Errorf("a burst of 100 ms: %v", err)
	}
	if err := p.wait(ended, 10_000, 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("ten seconds on top: %v", err)
	}
	// What was allowed is paid for: the next one waits for about as long as all of it takes.
	if p.next.Before(before.Add(9*time.Second)) || p.next.After(time.Now().Add(11*time.Second)) {
		t.Errorf("free in %v, want about 10 s", time.Until(p.next))
	}
}
