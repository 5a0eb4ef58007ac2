package kafka

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/arrow"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/sink"
)

const divertWindow = 10 * time.Second

// diverted is one record that was put.
type diverted struct {
	label     int64
	partition int
	head      fleet.Head
	value     []byte
	reports   uint64
}

// log collects what a Diverter puts.
type log struct {
	mu      sync.Mutex
	records []diverted
}

func (l *log) put(t testing.TB) func(sink.Encoded) {
	return func(e sink.Encoded) {
		label, n := binary.Varint(e.Payload)
		b := e.Payload[n:]
		partition, size := int(b[0]), binary.BigEndian.Uint32(b[1:])
		h, err := fleet.ReadHead(b[5 : 5+size])
		if err != nil {
			t.Error(err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.records = append(l.records, diverted{label, partition, h, b[5+size:], e.Reports})
	}
}

func bundle(label int64, partition int, head, value []byte) []byte {
	b := append(binary.AppendVarint(nil, label), byte(partition))
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	return append(append(b, head...), value...)
}

func testDiverter(t testing.TB, change func(*DivertConfig)) (*Diverter, *log) {
	conf := DivertConfig{
		Reports: "all", From: "c1", Boot: 77, Key: decode.NewHashKey(5), Slices: 16, Window: divertWindow, Bundle: bundle,
	}
	if change != nil {
		change(&conf)
	}
	d, l := NewDiverter(conf), &log{}
	d.Open(3, l.put(t))
	return d, l
}

func flowReport(flow uint32, at int64) *decode.Report {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], flow|10<<24)
	r := &decode.Report{
		Time: at, Format: decode.TelemetryReport, Kind: decode.KindStack, INT: decode.V21, Has: decode.HasFlow | decode.HasPorts | decode.HasExporter,
		Exporter: decode.AddrFrom4([]byte{192, 0, 2, 1}), Units: &decode.DefaultUnits,
		Flow: decode.FlowKey{Src: decode.AddrFrom4(a[:]), Dst: decode.AddrFrom4([]byte{10, 1, 2, 3}), SrcPort: uint16(flow), DstPort: 443, Proto: 6, IPVersion: 4},
	}
	for i := range uint32(5) {
		*r.AddHop() = decode.Hop{Has: decode.HopNodeID | decode.HopEgressIf | decode.HopLatency, NodeID: i + 1, EgressIf: uint16(flow%8) + 1, Latency: 500 + flow*(i+1)%977}
	}
	return r
}

func (l *log) decode(t testing.TB, r *diverted) []*decode.Report {
	t.Helper()
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	plain, err := z.DecodeAll(r.value, nil)
	if err != nil {
		t.Fatal(err)
	}
	var d arrow.Decoder
	var b decode.Batch
	if unknown, err := d.Decode(plain, &b); err != nil || unknown != 0 {
		t.Fatalf("Decode = %d, %v", unknown, err)
	}
	return b.Reports
}

func TestTakes(t *testing.T) {
	with := func(change func(*decode.Report)) *decode.Report {
		r := flowReport(1, 1)
		change(r)
		return r
	}
	postcard := with(func(r *decode.Report) { r.Kind, r.INT, r.Hops = decode.KindPostcard, 0, r.Hops[:1] })
	noFlow := with(func(r *decode.Report) { r.Kind, r.INT, r.Hops, r.Has = decode.KindPostcard, 0, r.Hops[:1], 0 })
	for _, c := range []struct {
		name              string
		r                 *decode.Report
		needed, with, all bool
	}{
		{"stack", flowReport(1, 1), false, false, true},
		{"postcard", postcard, true, true, true},
		{"postcard without a flow", noFlow, false, false, true},
		{"drop", with(func(r *decode.Report) { r.Kind, r.INT, r.Hops = decode.KindDrop, 0, r.Hops[:1] }), false, false, true},
		{"stack of one hop", with(func(r *decode.Report) { r.Kind, r.INT, r.Hops = decode.KindTrace, 0, r.Hops[:1] }), false, false, true},
		{"digest", with(func(r *decode.Report) { r.Kind, r.Has, r.Hops = decode.KindDigest, r.Has|decode.HasDigest, nil }), true, true, true},
		{"exporter in a network", with(func(r *decode.Report) { r.Exporter = decode.AddrFrom4([]byte{10, 9, 255, 3}) }), false, true, true},
		{"exporter beside it", with(func(r *decode.Report) { r.Exporter = decode.AddrFrom4([]byte{10, 10, 0, 3}) }), false, false, true},
		{"exporter of IPv6", with(func(r *decode.Report) { r.Exporter = decode.AddrFrom(netip.MustParseAddr("2001:db8::7")) }), false, true, true},
		{"exporter beside it, of IPv6", with(func(r *decode.Report) { r.Exporter = decode.AddrFrom(netip.MustParseAddr("2001:db9::7")) }), false, false, true},
	} {
		for setting, want := range map[string]bool{"needed": c.needed, "all": c.all, "none": false} {
			d, _ := testDiverter(t, func(conf *DivertConfig) { conf.Reports = setting })
			if got := d.Takes(c.r); got != want {
				t.Errorf("%s: Takes = %v with %s, want %v", c.name, got, setting, want)
			}
		}
		d, _ := testDiverter(t, func(conf *DivertConfig) {
			conf.Reports, conf.Raw = "needed", []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16"), netip.MustParsePrefix("2001:db8::/32")}
		})
		if got := d.Takes(c.r); got != c.with {
			t.Errorf("%s: Takes = %v with networks, want %v", c.name, got, c.with)
		}
	}
}

// Every report is put once, in the partition of its flow and a batch of its window, under numbers without gaps. The
// marks hold the counts.
func TestDivert(t *testing.T) {
	d, l := testDiverter(t, nil)
	var sent [3][]*decode.Report // by window
	const perWorker = 20_000
	for w := range sent {
		start := int64(w) * int64(divertWindow)
		lists := make([][]*decode.Report, 3)
		for worker := range lists {
			rng := rand.New(rand.NewPCG(uint64(w), uint64(worker)))
			for range perWorker {
				r := flowReport(rng.Uint32N(1000), start+rng.Int64N(int64(divertWindow)))
				if rng.IntN(20) == 0 {
					r.Has, r.Flow = 0, decode.FlowKey{}
				}
				lists[worker] = append(lists[worker], r)
			}
			sent[w] = append(sent[w], lists[worker]...)
		}
		var wait sync.WaitGroup
		for worker, list := range lists {
			wait.Go(func() {
				for part := range slices.Chunk(list, 128) {
					d.Divert(worker, part)
				}
			})
		}
		for i := range int64(5) {
			d.Tick(start + i*1e8)
		}
		wait.Wait()
		d.EndWindow(start + int64(divertWindow))
		d.MarkWindow(start + int64(divertWindow))
	}

	var got [3][]*decode.Report
	var total uint64
	seqs, counts := map[int]uint64{}, map[int]uint64{}
	key := decode.NewHashKey(5)
	for i := range l.records {
		r := &l.records[i]
		h := &r.head
		seqs[r.partition]++
		if h.From != "c1" || h.Boot != 77 || h.Seq != seqs[r.partition] || int(h.Slice) != r.partition || h.Sum != fleet.Sum(r.value) ||
			h.End != r.label || h.Start != h.End-int64(divertWindow) {
			t.Fatalf("record %d of partition %d: %+v", seqs[r.partition], r.partition, h)
		}
		total += r.reports
		w := int(h.Start / int64(divertWindow))
		if h.Kind == fleet.Mark {
			if h.Reports != counts[r.partition] || d.Counts(h.End)[r.partition] != h.Reports {
				t.Errorf("window %d, partition %d: the mark reports %d reports, Counts of %d, there were %d",
					w, r.partition, h.Reports, d.Counts(h.End)[r.partition], counts[r.partition])
			}
			counts[r.partition] = 0
			continue
		}
		reports := l.decode(t, r)
		if h.Kind != fleet.Reports || uint64(len(reports)) != h.Reports || r.reports != h.Reports {
			t.Fatalf("%+v has %d reports, and is counted as %d", h, len(reports), r.reports)
		}
		counts[r.partition] += h.Reports
		for _, r2 := range reports {
			want := 0
			if r2.Has&decode.HasFlow != 0 {
				want = int((key.Flow(&r2.Flow) >> 32) * 16 >> 32)
			}
			if r.partition != want || r2.Time < h.Start || r2.Time >= h.End {
				t.Fatalf("a report of %d about %v in partition %d and the window to %d", r2.Time, r2.Flow, r.partition, h.End)
			}
		}
		got[w] = append(got[w], reports...)
	}
	if st := d.divertStats(); total != 9*perWorker || st.Reports != total {
		t.Errorf("%d reports for the ledger, %d in the statistics, want %d", total, st.Reports, 9*perWorker)
	}
	for w := range sent {
		if !slices.Equal(names(got[w]), names(sent[w])) {
			t.Errorf("window %d: %d reports came, not the %d that were sent", w, len(got[w]), len(sent[w]))
		}
	}
}

// names returns reports in an order of their own.
func names(list []*decode.Report) (out []uint64) {
	key := decode.NewHashKey(1)
	for _, r := range list {
		out = append(out, key.Flow(&r.Flow)^key.Word(uint64(r.Time)))
	}
	slices.Sort(out)
	return out
}

// A batch waits for 1000 reports or for 200 ms, whichever comes first, and does not grow beyond its bytes.
func TestBatches(t *testing.T) {
	d, l := testDiverter(t, func(conf *DivertConfig) { conf.Slices = 1 })
	d.Tick(1e9)
	one := []*decode.Report{flowReport(1, 1e9)}
	d.Divert(0, one)
	d.Tick(11e8)
	if len(l.records) != 0 {
		t.Errorf("%d records after 100 ms, want none", len(l.records))
	}
	d.Tick(12e8)
	if len(l.records) != 1 || l.records[0].head.Reports != 1 {
		t.Errorf("%d records after 200 ms, want the one report", len(l.records))
	}
	for i := range uint32(50_000) {
		d.Divert(0, []*decode.Report{flowReport(i, 12e8)})
	}
	if len(l.records) < 5 {
		t.Errorf("%d records of 50000 reports", len(l.records))
	}
	for _, r := range l.records[1:] {
		if r.head.Reports < 1000 {
			t.Errorf("a batch of %d reports", r.head.Reports)
		}
	}
	if st := d.divertStats(); st.Plain/st.Batches > batchBytes+10<<10 {
		t.Errorf("batches of %d bytes", st.Plain/st.Batches)
	}
	d.EndWindow(1e10)
	if d.MarkWindow(1e10); l.records[len(l.records)-1].head.Kind != fleet.Mark {
		t.Error("no mark at the end of the window")
	}
	n := len(l.records)
	d.Redraw(78)
	d.EndWindow(2e10)
	d.MarkWindow(2e10)
	if h := l.records[n].head; h.Boot != 78 || h.Seq != 1 || h.Reports != 0 {
		t.Errorf("after another boot was drawn: %+v", h)
	}
}

// A run that continues under another boot publishes how many reports of the open window it sent under the former one.
// Each record holds the number of its boot's reports up to it.
func TestRedrawReportsTheOpenWindow(t *testing.T) {
	d, l := testDiverter(t, func(conf *DivertConfig) { conf.Slices = 1 })
	w := int64(divertWindow)
	d.EndWindow(w)
	d.MarkWindow(w)
	d.Divert(0, []*decode.Report{flowReport(1, w+1), flowReport(2, w+2)})
	d.Tick(2*w - 1)
	d.Redraw(78)
	d.Divert(0, []*decode.Report{flowReport(3, w+3)})
	d.EndWindow(2 * w)
	d.MarkWindow(2 * w)
	var got []fleet.Head
	for _, r := range l.records {
		if h := r.head; h.End == 2*w {
			got = append(got, fleet.Head{Kind: h.Kind, Boot: h.Boot, Reports: h.Reports, Total: h.Total})
		}
	}
	former := got[0].Boot
	want := []fleet.Head{
		{Kind: fleet.Reports, Boot: former, Reports: 2, Total: 2}, {Kind: fleet.Mark, Boot: former, Reports: 2, Total: 2},
		{Kind: fleet.Reports, Boot: 78, Reports: 1, Total: 1}, {Kind: fleet.Mark, Boot: 78, Reports: 1, Total: 1},
	}
	if former == 78 || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A batch holds reports of one window, also where a worker's reports come from two. The mark of a later window than the one
// that ends comes with its own end.
func TestBatchOfOneWindow(t *testing.T) {
	d, l := testDiverter(t, func(conf *DivertConfig) { conf.Slices = 1 })
	w := int64(divertWindow)
	d.Divert(0, []*decode.Report{flowReport(1, 1), flowReport(1, w-1), flowReport(1, w), flowReport(1, 2*w), flowReport(1, -1)})
	var got [][2]int64
	d.EndWindow(w)
	d.MarkWindow(w)
	for _, r := range l.records {
		if r.head.Kind == fleet.Reports {
			got = append(got, [2]int64{r.head.End, int64(len(l.decode(t, &r)))})
		}
	}
	if want := [][2]int64{{w, 2}, {2 * w, 1}, {3 * w, 1}, {0, 1}}; !slices.Equal(got, want) {
		t.Errorf("batches of windows and reports %v, want %v", got, want)
	}
	n := len(l.records)
	d.EndWindow(2 * w)
	d.MarkWindow(2 * w)
	if len(l.records) != n+1 || l.records[n].head.Kind != fleet.Mark || l.records[n].head.Reports != 1 {
		t.Errorf("%d records at the end of a window without further reports, want a mark of the one", len(l.records)-n)
	}
}

// A late report counts in the open window, as it does for its exporter. A window that ends twice, because the clock
// was set back or ahead, has marks and counts of everything under its label. A gate that reads the records thus finds
// every window complete, and every report in it.
func TestWindowsThatComeAgain(t *testing.T) {
	d, l := testDiverter(t, func(conf *DivertConfig) { conf.Slices = 1 })
	const w = int64(divertWindow)
	at := func(times ...int64) (list []*decode.Report) {
		for _, at := range times {
			list = append(list, flowReport(1, at))
		}
		return list
	}
	d.Divert(0, at(10*w, 10*w+1))
	d.EndWindow(11 * w)
	d.MarkWindow(11 * w)
	d.Divert(0, at(11*w+1, 10*w+2, 3*w)) // two of them late
	d.Tick(1)
	d.Tick(2 + int64(batchAge))
	d.Divert(0, at(9*w)) // by a clock that is set back,
	d.EndWindow(10 * w)  // as the end of the window says
	d.MarkWindow(10 * w)
	d.Divert(0, at(10*w+3)) // of a window that is published again
	d.EndWindow(11 * w)
	d.MarkWindow(11 * w)
	d.Divert(0, at(11*w+2))
	d.EndWindow(12 * w)
	d.MarkWindow(12 * w)
	d.Divert(0, at(12*w+1)) // the clock is set ahead
	d.Tick(3 + 2*int64(batchAge))
	d.Tick(4 + 4*int64(batchAge))
	d.EndWindow(20 * w)
	d.MarkWindow(20 * w)
	d.Redraw(78)
	d.Divert(0, at(20*w))
	d.EndWindow(21 * w)
	d.MarkWindow(21 * w)
	d.Divert(0, at(20*w))
	d.EndWindow(21 * w)
	d.MarkWindow(21 * w)

	g, err := fleet.NewGate(fleet.Options{Reports: true, Window: w})
	if err != nil {
		t.Fatal(err)
	}
	g.Expect([]fleet.Expected{{Name: "c1", Until: 21 * w}})
	got, offset := map[int64]uint64{}, int64(0)
	for i := range l.records {
		r := &l.records[i]
		if v, err := g.Add(&r.head, offset, len(r.value), 0); err != nil || v.Kind != fleet.Nothing {
			t.Fatalf("record %+v: %+v, %v", r.head, v, err)
		}
		offset++
		if r.head.Kind == fleet.Reports {
			got[r.head.End/w] += r.head.Reports
		}
	}
	for g.Open() > 0 {
		h, ok := g.Due(21*w + 1)
		skipped := h.End > 13*w && h.End < 20*w // by the clock
		if !ok || len(h.Missing) > 0 && !skipped {
			t.Fatalf("%d windows stay open: %+v", g.Open(), h)
		}
		if v, err := g.Add(&h, offset, 0, 0); err != nil || v.Kind != fleet.Closed {
			t.Fatal(v, err)
		}
		offset++
	}
	want := map[int64]uint64{11: 3, 12: 4, 10: 1, 13: 1, 21: 2}
	for n, reports := range want {
		if counts := d.Counts(n * w); got[n] != reports || len(counts) != 1 || counts[0] != reports {
			t.Errorf("window %d: %d reports, and %v are reported, want %d", n, got[n], counts, reports)
		}
	}
	if len(got) != len(want) {
		t.Errorf("reports by window %v, want %v", got, want)
	}
}

// After a standstill, all reports that a machine receives at once count in the open window, as they do for their
// exporter. Their times are of windows that the collector passed over, for which no part ever comes.
func TestDivertAfterStandstill(t *testing.T) {
	d, l := testDiverter(t, func(conf *DivertConfig) { conf.Slices = 1 })
	const w = int64(divertWindow)
	at := func(n int64) []*decode.Report { return []*decode.Report{flowReport(1, n*w), flowReport(2, n*w+1)} }
	d.OpenWindow(11 * w)
	for n := range int64(5) {
		d.Divert(0, at(10+n))
	}
	d.EndWindow(11 * w)
	d.MarkWindow(11 * w)
	d.OpenWindow(16 * w) // the next one that it has
	d.Divert(0, at(15))
	d.Divert(0, at(12))
	d.EndWindow(16 * w)
	d.MarkWindow(16 * w)
	got := map[int64]uint64{}
	for _, r := range l.records {
		if r.head.Kind == fleet.Reports {
			got[r.head.End/w] += r.head.Reports
		}
	}
	if want := map[int64]uint64{11: 10, 16: 4}; !maps.Equal(got, want) {
		t.Errorf("reports by window %v, want %v", got, want)
	}
}

// A diverter that takes nothing is not waited for.
func TestNoMarks(t *testing.T) {
	d, l := testDiverter(t, func(conf *DivertConfig) { conf.Reports = "none" })
	d.EndWindow(int64(divertWindow))
	d.MarkWindow(int64(divertWindow))
	if len(l.records) != 0 || d.Counts(int64(divertWindow)) != nil {
		t.Errorf("%d records, counts %v", len(l.records), d.Counts(int64(divertWindow)))
	}
}

var _ sink.Diverter = struct {
	sink.Encoder
	*Diverter
}{}
