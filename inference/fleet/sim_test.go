package fleet

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
)

const second = int64(1e9)

var wide = window.Limits{Hops: 1e6, Flows: 1e6, Paths: 1e6, Drops: 1e6, Faults: 1e6, Exporters: 1e6}

func flowKey(n uint32) decode.FlowKey {
	return decode.FlowKey{
		Src: decode.AddrFrom4(binary.BigEndian.AppendUint32(nil, 10<<24|n)), Dst: decode.AddrFrom4([]byte{10, 255, 0, 1}),
		SrcPort: uint16(n), DstPort: 80, Proto: 6, IPVersion: 4,
	}
}

func encoded(t testing.TB, p *window.Partial) []byte {
	t.Helper()
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// see makes up what is seen of a window and adds it to one of the parts, and to all. Each exporter and each flow
// reaches one part.
func see(rng *rand.Rand, start, end int64, all *window.Partial, parts []*window.Partial) {
	emit := func(i int, f func(p *window.Partial)) {
		f(all)
		f(parts[i])
	}
	any := func() int { return rng.IntN(len(parts)) }
	at := func() int64 { return start + rng.Int64N(end-start) }
	hop := func() inference.HopKey {
		return inference.HopKey{Node: rng.Uint32N(5), EgressIf: rng.Uint32N(3)}
	}
	all.Span(start, end)
	for _, p := range parts {
		p.Span(start, end)
	}
	for range rng.IntN(20) {
		k, v, q, u := hop(), rng.Uint64()>>rng.IntN(64), rng.Uint64N(3000), rng.Float64()
		other := rng.IntN(20) == 0
		emit(any(), func(p *window.Partial) {
			p.Reports++
			if other {
				k = inference.HopKey{Other: true}
				p.OtherHops++
			}
			h := p.Hop(k)
			h.Latency.AddValue(v)
			h.Queue.AddValue(q)
			h.Utilization, h.HasUtilization = max(h.Utilization, u), true
		})
	}
	for n := range rng.Uint32N(6) {
		i := any()
		f := window.FlowPart{Key: flowKey(n), Packets: 1 + rng.Uint64N(100), PathID: rng.Uint64(), Last: at()}
		for range rng.IntN(3) {
			k := hop()
			f.Path = append(f.Path, k)
			f.Hop(k).Latency.AddValue(rng.Uint64N(1e6))
		}
		c := inference.PathChange{Time: at(), Flow: f.Key, From: []inference.HopKey{hop()}, To: []inference.HopKey{hop(), hop()}, PathID: rng.Uint64()}
		first := at()
		d := inference.DigestFault{Flow: f.Key, Node: rng.Uint32N(5), Count: 2, First: first, Last: max(first, at())}
		emit(i, func(p *window.Partial) {
			p.FlowCount++
			p.AddFlow(&f)
			p.AddPath(&c)
			p.AddFault(&d)
		})
	}
	for range rng.IntN(4) {
		d := inference.DropStats{Node: rng.Uint32N(3), Reason: uint8(rng.IntN(2)), Count: 1, Last: at(), Flow: flowKey(rng.Uint32N(9))}
		emit(any(), func(p *window.Partial) { p.AddDrops(&d) })
	}
	for n := range rng.Uint32N(8) {
		e := inference.ExporterStats{ExporterKey: inference.ExporterKey{Addr: flowKey(n).Src, Node: n, Nameless: n == 0}, Reports: rng.Uint64N(9), Lost: rng.Int64N(3), Last: at(), Sequenced: true}
		emit(int(n)%len(parts), func(p *window.Partial) { p.AddExporters([]inference.ExporterStats{e}) })
	}
}

// reported is the outcome of a window, in a form that compares.
type reported struct {
	End, First    int64
	Revision      uint64
	Sources       []Source
	Missing, Dead []string
	Owners        []uint32
	Partial       string
	Bad           int
}

func emit(t testing.TB, m *Merged) reported {
	return reported{m.End, m.First, m.Revision, m.Sources, m.Missing, m.Dead, m.Owners, string(encoded(t, m.Partial)), len(m.Bad)}
}

// oracle computes the windows of a log by maps and loops over all of it.
type oracle struct {
	t      testing.TB
	log    []Record
	window int64
	closed map[int64]int64 // label to the offset of its close
	passed map[int64]bool  // labels that were open when a later window closed
}

func newOracle(t testing.TB, log []Record, window int64) *oracle {
	o := &oracle{t, log, window, map[int64]int64{}, map[int64]bool{}}
	last := int64(0)
	for i := range log {
		h := &log[i].Head
		if h.Kind != Close || h.End <= last {
			continue
		}
		for j := range log[:i] {
			if e := log[j].Head.End; log[j].Head.Kind == Part && e > last && e < h.End {
				o.passed[e] = true
			}
		}
		o.closed[h.End], last = log[i].Offset, h.End
	}
	return o
}

// merged merges the records of a window that are before an offset, each once.
func (o *oracle) merged(end, before int64) (bytes []byte, records []Source) {
	type name struct {
		from      string
		boot, seq uint64
	}
	seen := map[name]bool{}
	bounds := map[string]uint64{}
	codec := NewCodec(0, wide)
	var all, one window.Partial
	greatest := map[Source]uint64{}
	for i := range o.log {
		r := &o.log[i]
		h := &r.Head
		n := name{h.From, h.Boot, h.Seq}
		if h.Kind != Part || seen[n] {
			continue
		}
		seen[n] = true // also under another window: then it is a conflict
		if h.End != end || r.Offset >= before {
			continue
		}
		if err := codec.Decode(&one, r.Value); err != nil {
			o.t.Fatal(err)
		}
		bounds[h.From] = max(bounds[h.From], one.FlowBound)
		all.Merge(&one)
		k := Source{From: h.From, Boot: h.Boot}
		greatest[k] = max(greatest[k], h.Seq)
	}
	all.FlowBound = 0
	for _, b := range bounds {
		all.FlowBound += b
	}
	for k, seq := range greatest {
		k.Seq = seq
		records = append(records, k)
	}
	slices.SortFunc(records, compareSources)
	return encoded(o.t, &all), records
}

// member is a collector of a simulated fleet.
type member struct {
	name  string
	pub   *Publisher
	queue [][]Out // by partition: drawn and not yet in the log, in order
	sent  [][]Out // by partition: the last ones
	dead  bool
	boot  uint64
}

// world is a simulated fleet: collectors, logs, and the owners of partitions.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	slicer  window.Slicer
	window  int64
	members []*member
	logs    [][]Record
	owners  [][]*Merger // of a partition: one, or two that both believe to be it
	read    [][]int
	outputs [][]reported // of the first owner of each
	truth   map[int64]*window.Partial
	roster  []Expected
	now     int64
	cfg     func(slice int) Options
	twice   bool
}

func newWorld(t testing.TB, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 77))
	w := &world{t: t, rng: rng, slicer: window.NewSlicer(seed, 1+rng.IntN(3)), window: second * (1 + rng.Int64N(10)), truth: map[int64]*window.Partial{}}
	patience := 1 + rng.IntN(4)
	w.cfg = func(slice int) Options {
		return Options{Name: "owner", Slice: slice, Window: w.window, Patience: patience, Corrections: 3600 * second, Limits: wide}
	}
	n := w.slicer.Slices()
	w.logs, w.owners, w.read, w.outputs = make([][]Record, n), make([][]*Merger, n), make([][]int, n), make([][]reported, n)
	for i := range n {
		w.owners[i], w.read[i] = []*Merger{w.merger(i)}, []int{0}
	}
	for i := range 1 + rng.IntN(4) {
		w.members = append(w.members, &member{name: fmt.Sprintf("c%d", i)})
		w.boot(w.members[i])
	}
	w.now = 1000 * w.window
	return w
}

func (w *world) merger(slice int) *Merger {
	m, err := NewMerger(w.cfg(slice))
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *world) boot(m *member) {
	m.boot = w.rng.Uint64() | 1
	maxSize := 1 << 20
	if w.rng.IntN(3) == 0 {
		maxSize = 300
	}
	n := w.slicer.Slices()
	m.pub = NewPublisher(PublisherConfig{From: m.name, Boot: m.boot, Slicer: w.slicer, Window: w.window, MaxSize: maxSize})
	if m.queue == nil {
		m.queue, m.sent = make([][]Out, n), make([][]Out, n)
	}
}

// step lets a window pass.
func (w *world) step() {
	rng := w.rng
	end := w.now + w.window
	all := &window.Partial{}
	var parts []*window.Partial
	var alive []*member
	for _, m := range w.members {
		if rng.IntN(40) == 0 {
			m.dead = true
		}
		if !m.dead {
			alive, parts = append(alive, m), append(parts, &window.Partial{})
		}
	}
	if len(alive) > 0 {
		see(rng, w.now, end, all, parts)
		w.truth[end] = all
	}
	w.now = end
	for i, m := range alive {
		if rng.IntN(15) == 0 { // another run of it: what was drawn before it still comes, of a spool
			w.boot(m)
		}
		out, err := m.pub.Window(nil, parts[i], end, nil, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range out {
			m.queue[o.Partition] = append(m.queue[o.Partition], o)
		}
	}
	for range 1 + rng.IntN(4) {
		w.deliver()
		w.readAll(w.now + rng.Int64N(w.window))
	}
}

// deliver appends some of the drawn records to the logs, and some of them twice.
func (w *world) deliver() {
	rng := w.rng
	for _, m := range w.members {
		for p := range m.queue {
			if rng.IntN(5) == 0 {
				continue // it is away for a while
			}
			for len(m.queue[p]) > 0 && rng.IntN(6) > 0 {
				o := m.queue[p][0]
				m.queue[p] = m.queue[p][1:]
				w.append(p, o.Head, o.Value)
				m.sent[p] = append(m.sent[p], o)
				if rng.IntN(8) == 0 { // retries write what came last once more
					for _, o := range m.sent[p][max(0, len(m.sent[p])-1-rng.IntN(3)):] {
						w.append(p, o.Head, o.Value)
					}
				}
			}
		}
	}
}

func (w *world) append(p int, h Head, value []byte) {
	w.logs[p] = append(w.logs[p], Record{Offset: int64(len(w.logs[p])), Head: h, Value: value})
}

// readAll lets the owners read, and close what is due when they have read all.
func (w *world) readAll(now int64) {
	for p := range w.logs {
		if w.twice && len(w.owners[p]) == 1 && w.rng.IntN(4) == 0 {
			// Another one takes over, and the first one has no notice of it.
			m := w.merger(p)
			if err := m.ReadState(w.owners[p][0].AppendState(nil)); err != nil {
				w.t.Fatal(err)
			}
			w.owners[p] = append(w.owners[p], m)
			w.read[p] = append(w.read[p], int(w.owners[p][0].Floor()))
		}
		for i, m := range w.owners[p] {
			if w.rng.IntN(4) == 0 {
				continue
			}
			m.Expect(w.roster)
			for w.read[p][i] < len(w.logs[p]) {
				w.one(p, i, m)
			}
			if h, ok := m.Due(now); ok {
				w.append(p, h, nil)
			}
		}
	}
}

func (w *world) one(p, i int, m *Merger) {
	r := &w.logs[p][w.read[p][i]]
	w.read[p][i]++
	e, err := m.Add(r)
	if err != nil {
		w.t.Fatalf("partition %d: %v: %v", p, e.Kind, err)
	}
	if e.Closed != nil && i == 0 {
		w.outputs[p] = append(w.outputs[p], emit(w.t, e.Closed))
		m.Release(e.Closed)
	}
}

// finish lets everything arrive, and all readers read all.
func (w *world) finish() {
	for range 200 {
		w.deliver()
		w.readAll(w.now)
	}
	for range 20 * 4 {
		w.now += w.window
		w.readAll(w.now)
	}
	for p := range w.logs {
		for i, m := range w.owners[p] {
			for w.read[p][i] < len(w.logs[p]) {
				w.one(p, i, m)
			}
		}
	}
}

func simulate(t testing.TB, seed uint64, windows int, twice bool) *world {
	w := newWorld(t, seed)
	w.twice = twice
	for range windows {
		w.step()
	}
	w.finish()
	return w
}

// TestSimulatedFleet runs fleets whose collectors are late, die, restart and write twice, and whose partitions have two
// owners at times. Each window closes with exactly the records before the first record that closes it. It has all of
// them when it is made again; then all windows equal those of one process.
func TestSimulatedFleet(t *testing.T) {
	testkit.Long(t)
	closes, late, duplicates := 0, 0, 0
	for seed := range uint64(300) {
		w := simulate(t, seed, 8, seed%2 == 0)
		final := make([]map[int64]*window.Partial, len(w.logs))
		for p, log := range w.logs {
			o := newOracle(t, log, w.window)
			final[p] = map[int64]*window.Partial{}
			m := w.owners[p][0]
			stats := m.Gate.Stats()
			duplicates += int(stats.Duplicates)
			if stats.Refused != 0 || stats.Conflicts != 0 || stats.Unknown != 0 {
				t.Fatalf("seed %d, partition %d: %+v", seed, p, stats)
			}
			if len(w.outputs[p]) != len(o.closed) {
				t.Fatalf("seed %d, partition %d: %d windows closed, want %d", seed, p, len(w.outputs[p]), len(o.closed))
			}
			last := int64(0)
			for _, got := range w.outputs[p] {
				closes++
				if got.End <= last {
					t.Fatalf("seed %d, partition %d: window to %d behind that to %d", seed, p, got.End, last)
				}
				last = got.End
				want, sources := o.merged(got.End, o.closed[got.End])
				if got.Partial != string(want) || len(sources) > 0 && !reflect.DeepEqual(got.Sources, sources) || got.Revision != 0 || got.Bad != 0 {
					t.Fatalf("seed %d, partition %d, window to %d: other bytes or sources %v, want %v", seed, p, got.End, got.Sources, sources)
				}
				q := &window.Partial{}
				if err := q.ReadBinary([]byte(got.Partial), wide); err != nil {
					t.Fatal(err)
				}
				final[p][got.End] = q
			}
			for _, end := range m.Pending() {
				late++
				r := m.Rebuild(end)
				for at := r.From(); at < r.To(); at++ {
					if err := r.Add(&log[at]); err != nil {
						t.Fatal(err)
					}
				}
				got, err := r.Merged()
				if err != nil {
					t.Fatalf("seed %d, partition %d, window to %d: %v", seed, p, end, err)
				}
				want, sources := o.merged(end, int64(len(log)))
				if !bytes.Equal(encoded(t, got.Partial), want) || !reflect.DeepEqual(got.Sources, sources) || got.Revision == 0 {
					t.Fatalf("seed %d, partition %d, window to %d made again: other bytes or sources %v, want %v", seed, p, end, got.Sources, sources)
				}
				if len(got.Missing) != 0 && !slices.ContainsFunc(w.members, func(m *member) bool { return slices.Contains(got.Missing, m.name) && m.dead }) {
					t.Fatalf("seed %d, partition %d, window to %d made again: %v missing", seed, p, end, got.Missing)
				}
				final[p][end] = got.Partial
			}
			if left := m.Pending(); len(left) > 0 || m.Gate.Open() > 0 || len(m.values.held) > 0 || m.values.bytes != 0 {
				t.Fatalf("seed %d, partition %d: %v pending, %d open, %d values left", seed, p, left, m.Gate.Open(), len(m.values.held))
			}
			for i, other := range w.owners[p] {
				if i > 0 && !bytes.Equal(other.Gate.AppendState(nil), w.merged(p).Gate.AppendState(nil)) {
					t.Fatalf("seed %d, partition %d: another owner knows something else", seed, p)
				}
			}
		}
		for end, want := range w.truth {
			var got window.Partial
			for p := range final {
				if final[p][end] != nil {
					got.Merge(final[p][end])
				}
			}
			if !bytes.Equal(encoded(t, &got), encoded(t, want)) {
				t.Fatalf("seed %d: the window to %d is not what one process sees", seed, end)
			}
		}
	}
	if closes < 1000 || late < 100 || duplicates < 100 {
		t.Errorf("only %d windows, %d late ones, %d duplicates: the simulation does not simulate", closes, late, duplicates)
	}
}

// merged reads a whole log with a merger of its own.
func (w *world) merged(p int) *Merger {
	m := w.merger(p)
	for i := range w.logs[p] {
		if _, err := m.Add(&w.logs[p][i]); err != nil {
			w.t.Fatal(err)
		}
	}
	return m
}

// TestReplay goes on from the state that was written behind each record of a log, and reads it again from the floor.
// The windows behind are the same, and so is the state at the end.
func TestReplay(t *testing.T) {
	for seed := range uint64(120) {
		w := simulate(t, seed+1000, 5, seed%3 == 0)
		for p, log := range w.logs {
			type at struct {
				event    Event
				reported reported
			}
			var want []at
			var states [][]byte
			var floors []int64
			m := w.merger(p)
			for i := range log {
				states, floors = append(states, m.AppendState(nil)), append(floors, m.Floor())
				e, err := m.Add(&log[i])
				if err != nil {
					t.Fatal(err)
				}
				a := at{event: e}
				if e.Closed != nil {
					a.reported, a.event.Closed = emit(t, e.Closed), nil
				}
				want = append(want, a)
			}
			end := m.AppendState(nil)
			for cut := range log {
				r := w.merger(p)
				if err := r.ReadState(states[cut]); err != nil {
					t.Fatalf("seed %d, cut %d: %v", seed, cut, err)
				}
				if !bytes.Equal(r.AppendState(nil), states[cut]) || r.Floor() != floors[cut] {
					t.Fatalf("seed %d, cut %d: the state is another one after it was read, floor %d, want %d", seed, cut, r.Floor(), floors[cut])
				}
				if cmp.Compare(floors[cut], int64(cut)) > 0 {
					t.Fatalf("seed %d, cut %d: floor %d", seed, cut, floors[cut])
				}
				for i := floors[cut]; i < int64(len(log)); i++ {
					e, err := r.Add(&log[i])
					if err != nil {
						t.Fatal(err)
					}
					if i < int64(cut) {
						if e.Kind != Nothing || e.Closed != nil {
							t.Fatalf("seed %d, cut %d: record %d is reported again: %+v", seed, cut, i, e)
						}
						continue
					}
					got := at{event: e}
					if e.Closed != nil {
						got.reported, got.event.Closed = emit(t, e.Closed), nil
					}
					if !reflect.DeepEqual(got, want[i]) {
						t.Fatalf("seed %d, cut %d, record %d:\n%+v\nwant\n%+v", seed, cut, i, got, want[i])
					}
				}
				if !bytes.Equal(r.AppendState(nil), end) {
					t.Fatalf("seed %d, cut %d: another state in the end", seed, cut)
				}
			}
		}
	}
}
