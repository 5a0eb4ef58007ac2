package fleet

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink/notify"
)

// compacted is a topic of state in memory: it keeps the last record of each key.
type compacted struct {
	ingest.Log
	messages []ingest.Message
}

func (l *compacted) Append(_ context.Context, _ string, _ int, messages ...ingest.Message) (int64, error) {
	first := int64(0)
	if n := len(l.messages); n > 0 {
		first = l.messages[n-1].Offset + 1
	}
	for i, m := range messages {
		m.Offset = first + int64(i)
		kept := l.messages[:0]
		for _, old := range l.messages {
			if !bytes.Equal(old.Key, m.Key) {
				kept = append(kept, old)
			}
		}
		l.messages = append(kept, m)
	}
	return first, nil
}

func (l *compacted) Bounds(context.Context, string, int) (int64, int64, error) {
	if len(l.messages) == 0 {
		return 0, 0, nil
	}
	return l.messages[0].Offset, l.messages[len(l.messages)-1].Offset + 1, nil
}

func (l *compacted) Reader(string, int, int64) ingest.LogReader { return &compactedReader{log: l} }

type compactedReader struct {
	ingest.LogReader
	log  *compacted
	read bool
}

func (r *compactedReader) Next(context.Context) ([]ingest.Message, error) {
	r.read = true
	return r.log.messages, nil
}

func (r *compactedReader) High() int64 {
	_, next, _ := r.log.Bounds(context.Background(), "", 0)
	return next
}

func (r *compactedReader) Offset() int64 {
	if r.read {
		return r.High()
	}
	return 0
}

// readFormer reads the records that a former program left in a partition.
func readFormer(t *testing.T, topic string, partition int) *compacted {
	t.Helper()
	text, err := os.ReadFile("testdata/former.log")
	if err != nil {
		t.Fatal(err)
	}
	l := &compacted{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] != topic || f[1] != fmt.Sprint(partition) {
			continue
		}
		var m ingest.Message
		_, err := fmt.Sscan(f[2], &m.Offset)
		var errs [3]error
		if f[3] != "-" {
			m.Key, errs[0] = hex.DecodeString(f[3])
		}
		m.Head, errs[1] = hex.DecodeString(f[4])
		m.Value, errs[2] = hex.DecodeString(f[5])
		if err := errors.Join(err, errors.Join(errs[:]...)); err != nil {
			t.Fatal(err)
		}
		l.messages = append(l.messages, m)
	}
	if len(l.messages) == 0 {
		t.Fatalf("nothing is kept of %s/%d", topic, partition)
	}
	return l
}

// keepsOf are the checkpoints of a task in a log.
func keepsOf(task task, log ingest.Log) *checkpoints {
	c := &checkpoints{log: log, topic: "state", name: "x", boot: 9, codec: fleet.NewCodec(checkpointBytes, window.Limits{})}
	if k, ok := task.(keeper); ok {
		c.aside = k.asideName()
	}
	return c
}

// goesOn lets a task go on from what is in a log, as a worker does.
func goesOn(t *testing.T, task task, log ingest.Log) *checkpoint {
	t.Helper()
	last, err := keepsOf(task, log).read(t.Context(), func(err error) { t.Error(err) })
	if err != nil || last == nil {
		t.Fatalf("there is no checkpoint: %v", err)
	}
	if k, ok := task.(keeper); ok {
		k.readAside(last.aside)
	}
	if err := task.readState(last.state); err != nil {
		t.Fatal(err)
	}
	return last
}

// reported are the alerts of a window, but for signs of life.
func reported(o *ownerTask, at int64, found ...inference.Finding) (out []string) {
	found = append(o.unalerted, found...)
	o.unalerted = nil
	for _, a := range o.w.c.alerting.Step(at, found, nil) {
		if a.Status != notify.Heartbeat {
			out = append(out, a.Status.String()+" "+a.Key)
		}
	}
	return out
}

// TestFormerOwner goes on from the checkpoint of an owner of a former program. Its findings stay open under their ids
// or end with the next window, once. An open finding becomes an alert, once, though no detector publishes it again.
func TestFormerOwner(t *testing.T) {
	o := ownerOf(t, true)
	last := goesOn(t, o, readFormer(t, "state", 8))
	if o.lastPublished != last.label || o.detected != last.label || last.label == 0 {
		t.Errorf("goes on at %d and %d, behind %d", o.lastPublished, o.detected, last.label)
	}
	open := o.detector.Open()
	if len(open) != 2 || open[0].ID != 1 || open[0].Kind != inference.PacketDrops || open[1].ID != 2 || open[1].Kind != inference.HighLatency {
		t.Fatalf("open: %+v", open)
	}
	end := last.label + 1e9
	w := inference.Window{Start: last.label, End: end, Drops: []inference.DropStats{{Node: 40, Reason: 4, Count: 9, Last: end - 5}}}
	found := o.detector.Step(&w)
	if len(found) != 1 || found[0].ID != 2 || found[0].End != end {
		t.Errorf("reported: %+v", found)
	}
	if got := fmt.Sprint(reported(o, end, found...)); got != "[firing drops node 40]" {
		t.Errorf("alerts: %s", got)
	}
	if got := reported(o, end+1e9); got != nil {
		t.Errorf("alerts, one window later: %q", got)
	}
	// A slice, which has no detectors.
	c := o.w.c
	task, err := c.newTask(&worker{c: c, kind: fleet.Windows, topic: fleet.Windows, status: &shared[partitionStatus]{}})
	if err != nil {
		t.Fatal(err)
	}
	if slice := goesOn(t, task, readFormer(t, "state", 0)); task.label() != slice.label || slice.label != last.label {
		t.Errorf("the slice goes on at %d, behind %d", task.label(), slice.label)
	}
}

// TestFormerSeries reads the series of a former program as a console does.
func TestFormerSeries(t *testing.T) {
	codec := fleet.NewCodec(0, window.Limits{Hops: 1 << 10, Flows: 1 << 10, Exporters: 1 << 10, Paths: 1 << 10, Drops: 1 << 10, Faults: 1 << 10})
	var findings []string
	slices := 0
	for _, m := range readFormer(t, "series", 0).messages {
		h, err := fleet.ReadHead(m.Head)
		if err != nil {
			t.Fatal(err)
		}
		switch h.Kind {
		case fleet.Whole:
			d, err := fleet.DecodeWhole(codec, m.Value)
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.Findings {
				f, err := d.Findings[i].Finding()
				if err != nil {
					t.Fatal(err)
				}
				findings = append(findings, fmt.Sprint(f.ID, " ", f.Kind))
			}
		case fleet.Slice:
			p := &window.Partial{}
			if err := codec.Decode(p, m.Value); err != nil {
				t.Fatal(err)
			}
			slices++
		}
	}
	if got := fmt.Sprint(findings); got != "[1 drops 2 high-latency]" || slices == 0 {
		t.Errorf("findings %s, and %d slices", got, slices)
	}
}

// formerOwner handles a checkpoint as the former program does. It splits four parts, looks at the first byte of the
// detectors, and goes on with everything else. Then it writes its own checkpoint over the older side, with detectors
// of its own.
func formerOwner(t *testing.T, log *compacted, generation, label int64) {
	t.Helper()
	former := &checkpoints{log: log, topic: "state", name: "old", boot: 8, codec: fleet.NewCodec(checkpointBytes, window.Limits{})}
	last, err := former.read(t.Context(), func(err error) { t.Error(err) })
	if err != nil || last == nil {
		t.Fatalf("the former program finds no checkpoint: %v", err)
	}
	if last.aside != nil {
		t.Error("the former program reads what is beside the checkpoint")
	}
	parts, err := readParts(last.state, 4)
	if err != nil {
		t.Fatalf("the former program reads everything again: %v", err)
	}
	was, err := former.newestOf(t, readFormer(t, "state", 8))
	if err != nil {
		t.Fatal(err)
	}
	if parts[1][0] == was[1][0] {
		t.Errorf("detectors of version %d, which the former program reads as its own", parts[1][0])
	}
	for _, i := range []int{0, 3} { // admission and assembler begin with their versions
		if parts[i][0] != was[i][0] {
			t.Errorf("part %d has version %d, and the former program reads %d", i, parts[i][0], was[i][0])
		}
	}
	state := appendParts(nil, parts[0], was[1], parts[2], parts[3])
	for range 2 { // both sides
		if err := former.write(t.Context(), &checkpoint{generation: generation, offset: last.offset, label: label, state: state}); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *checkpoints) newestOf(t *testing.T, log ingest.Log) ([][]byte, error) {
	other := *c
	other.log = log
	p, err := other.read(t.Context(), func(err error) { t.Error(err) })
	if err != nil || p == nil {
		return nil, errors.Join(errCheckpoint, err)
	}
	return readParts(p.state, 4)
}

// TestBackAndForth hands the series from this program to a former one and back, as in an upgrade that was begun, taken back
// and done again. What was learnt before and the alerts are still there; what the former one left open ends.
func TestBackAndForth(t *testing.T) {
	for _, alerts := range []bool{true, false} {
		log := &compacted{}
		first := ownerOf(t, alerts)
		start := time.Now().Add(-time.Hour).Truncate(time.Second).UnixNano()
		hop := inference.HopKey{Node: 7, EgressIf: 3}
		window := func(n int, drops bool) *inference.Window {
			end := start + int64(n+1)*1e9
			w := &inference.Window{Start: end - 1e9, End: end, Hops: []inference.HopStats{{HopKey: hop, Count: 9, Latency: inference.Summary{Count: 9, P50: 1000, P90: 1100, P99: 1200, Max: 1300}}}}
			if drops {
				w.Drops = []inference.DropStats{{Node: 77, Reason: 4, Count: 9, Last: end - 5}}
			}
			return w
		}
		var found []inference.Finding
		for n := range 200 {
			found = first.detector.Step(window(n, n > 150))
			first.detected = window(n, false).End
			if alerts {
				reported(first, first.detected, found...)
			}
		}
		if n := len(first.detector.Open()); n != 1 {
			t.Fatalf("%d findings are open", n)
		}
		keep := keepsOf(first, log)
		for g := range int64(2) {
			if err := keep.write(t.Context(), &checkpoint{generation: g + 1, offset: 5, label: first.detected, state: first.appendState(nil), aside: first.asideState()}); err != nil {
				t.Fatal(err)
			}
		}
		formerOwner(t, log, 3, first.detected)

		next := ownerOf(t, alerts)
		goesOn(t, next, log)
		if a, b := next.detector.Stats(), first.detector.Stats(); a.Hops != b.Hops || a.Watched != b.Watched || a.Hops != 1 {
			t.Errorf("what was learnt is gone: %+v, was %+v", a, b)
		}
		kinds := ""
		for _, f := range next.detector.Open() {
			kinds += fmt.Sprint(f.ID, " ", f.Kind, " ", f.Node, "; ")
		}
		// The former program's own finding of drops has the id of ours, and ends with it; its other one ends at once.
		if kinds != "1 drops 77; 2 high-latency 5; " {
			t.Errorf("open: %s", kinds)
		}
		found = next.detector.Step(window(200, true))
		if len(found) != 1 || found[0].ID != 2 || found[0].End == 0 {
			t.Errorf("reported: %+v", found)
		}
		if !alerts {
			continue
		}
		if got := reported(next, window(200, true).End, found...); got != nil {
			t.Errorf("what is open is reported again: %q", got)
		}
		for n := 201; n < 260; n++ {
			if got := reported(next, window(n, false).End, next.detector.Step(window(n, false))...); got != nil && fmt.Sprint(got) != "[resolved drops node 77]" {
				t.Errorf("reported %q", got)
			} else if got != nil {
				alerts = false
			}
		}
		if alerts {
			t.Error("its end is not reported")
		}
	}
}

// TestOldAside leaves what was kept too long ago, or is of a time that has not come, and takes what is there.
func TestOldAside(t *testing.T) {
	o := ownerOf(t, true)
	o.detected = 1_800_000_000e9
	aside := o.asideState()
	for _, x := range []struct {
		at   int64
		want bool
	}{{0, true}, {int64(keptFor), true}, {int64(keptFor) + 1, false}, {-1, false}} {
		o.aside = aside
		if d, _, err := o.readKept(o.detected + x.at); err != nil || (d != nil) != x.want {
			t.Errorf("after %d ns: %v, %v", x.at, d != nil, err)
		}
	}
	former := events.New(o.w.c.opt.Events).AppendState(nil)
	former[0] = 200
	next := ownerOf(t, true)
	for n := range aside { // however it is damaged, the detectors begin anew and everything else goes on
		next.readAside(aside[:n])
		next.readDetectors(former, o.detected)
		if n := len(next.detector.Open()); n != 0 {
			t.Fatalf("%d findings are open", n)
		}
	}
}

// TestDocumentForFormer reads the document of a window with the names and types that the former program knows.
func TestDocumentForFormer(t *testing.T) {
	f := inference.Finding{ID: 1, Kind: inference.BlackHole, Severity: inference.Critical, Start: 1e9, Updated: 2e9, Element: inference.ElementOfNode(7), Cause: 3, Evidence: 2, Statistic: "x", Learning: true}
	w := &inference.Window{Hops: []inference.HopStats{{HopKey: inference.HopKey{Node: 7}, Learning: true}}}
	text, err := fleet.NewDocument("fleet", &fleet.Assembled{End: 2e9}, w, []inference.Finding{f}).AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Version    int
		Fleet      string
		Start, End time.Time
		Revision   uint64
		Collectors []struct{ Name, State string }
		Totals     struct {
			Reports, Flows, FlowBound uint64
			Hops, Exporters           int
		}
		Findings []struct {
			ID, Kind, Severity string
			Start, Updated     time.Time
			Node               uint32
			Value, Baseline    *float64
			Text               string
		}
	}
	if err := json.Unmarshal(text, &d); err != nil || d.Version != 1 || d.Totals.Hops != 1 || len(d.Findings) != 1 || d.Findings[0].ID != "0000000000000001" {
		t.Errorf("%v: %+v", err, d)
	}
}
