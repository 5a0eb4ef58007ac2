package demux

import (
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/reportjson"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

// input is a frame of a link type, or the payload of a datagram.
type input struct {
	frame bool
	link  uint16
	data  []byte
}

// inputs returns datagrams and frames of every format.
func inputs(t testing.TB, rng *rand.Rand) (list []input) {
	for _, data := range stacks(t) {
		list = append(list, input{data: data})
	}
	for k := range 20 {
		version := uint16(9 + k%2)
		records := []*decode.Template{plain.RandomTemplate(rng, version)}
		list = append(list, input{data: plain.RandomSFlow(rng, true)})
		for n := range uint32(2) {
			list = append(list, input{data: plain.RandomIPFIX(rng, version, n, records)})
		}
	}
	list = append(list, input{data: messageOf(0, defineSet(elements(384, 0, juniperElements...)))},
		input{data: messageOf(0, dataOf(384, juniperRecord(195, udpFrame(nil, Profile{}, 53))))})
	for _, c := range slices.Concat(frameCases(t), pintCases(t)) {
		list = append(list, input{true, c.link, c.data})
	}
	for _, name := range testkit.VectorNames() {
		data, err := testkit.Vector(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, input{true, 1, data})
	}
	for _, c := range captures {
		frames := capture(t, filepath.Join("../testdata", c.name+".pcap"))
		list = append(list, input{true, 1, frames[0].data}, input{true, 1, frames[len(frames)-1].data})
	}
	return list
}

// TestReusedMemory holds that reports of any format keep nothing of the reports whose memory they use, and share none
// with each other. One decoder fills reports that change hands between batches, and its twin new ones.
func TestReusedMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	all := inputs(t, rng)
	var decoders []twins
	for _, name := range Profiles() {
		p := profile(t, name)
		p.SFlow, p.IPFIX = true, true
		decoders = append(decoders, newTwins(p))
		p.OuterFlow, p.INT.GREProtocol, p.INT.ProbeMarker, p.INT.Tunnels = true, 0x4569, 0xaaaaaaaabbbbbbbb, true
		decoders = append(decoders, newTwins(p))
	}
	batches := make([]decode.LazyBatch, 6) // the first three of workers, the others of shards
	rare := 0
	for n := range int64(testkit.Rounds(20_000, 1_000_000)) {
		in, d := all[rng.IntN(len(all))], decoders[rng.IntN(len(decoders))]
		data := slices.Clone(in.data)
		for range min(rng.IntN(6), len(data)) {
			data[rng.IntN(len(data))] = byte(rng.Uint32())
		}
		length := len(data)
		data = data[:length-rng.IntN(length+1)*(rng.IntN(8)/7)] // some are cut
		from, to := &batches[rng.IntN(3)], &batches[3+rng.IntN(3)]
		from.Reset()
		var want decode.Batch
		if in.frame {
			d.lazy.outer.Frame(in.link, data, length)
			d.lazy.lazyFrame(from, &d.lazy.outer, data, n)
			d.general.Frame(&want, in.link, data, length, n)
		} else {
			d.lazy.port, d.general.port = 0, 0
			d.lazy.lazy(from, &exporter, data, length, n)
			d.general.DatagramCut(&want, exporter, data, length, n)
		}
		if len(to.List) > 40 {
			to.Reset()
		}
		before := len(to.List)
		from.Scatter(func(*decode.Lazy) *decode.LazyBatch { return to })
		got := to.List[before:]
		if len(got) != len(want.Reports) {
			t.Fatalf("%d reports of %x, want %d", len(got), data, len(want.Reports))
		}
		owner := map[*decode.Rare]bool{}
		for i, x := range got {
			r, w := x.Report(), want.Reports[i]
			if r.Rare != nil {
				rare++
				if owner[r.Rare] {
					t.Fatalf("two reports of %x share %+v", data, r.Rare)
				}
				owner[r.Rare] = true
			}
			if a, b := reused(r), reused(w); !reflect.DeepEqual(a, b) {
				t.Fatalf("%x, profile %s:\n got %+v, %+v\nwant %+v, %+v", data, d.lazy.profile.Name, a, a.Rare, b, b.Rare)
			}
			if a, b := reportjson.Append(nil, 1, r), reportjson.Append(nil, 1, w); string(a) != string(b) {
				t.Fatalf("%x:\n got %s\nwant %s", data, a, b)
			}
		}
	}
	if rare < testkit.Rounds(1000, 50_000) {
		t.Errorf("%d reports had rare parts: the test holds nothing", rare)
	}
}

// reused is normal without the empty parts that Rare keeps, and without the functions of templates, which are not
// compared.
func reused(r *decode.Report) decode.Report {
	x := normal(r)
	if x.Rare == nil {
		return x
	}
	if t := x.Rare.Template; t != nil {
		plain := *t
		plain.Delays = nil
		x.Rare.Template = &plain
	}
	if t := x.Rare.Traffic; t != nil && *t == (decode.Traffic{}) {
		x.Rare.Traffic = nil
	}
	if p := x.Rare.Probes; p != nil {
		counts := *p
		counts.Delays = slices.Clip(append([]decode.DelayCount(nil), p.Delays...))
		if x.Rare.Probes = &counts; reflect.DeepEqual(counts, decode.ProbeCounts{}) {
			x.Rare.Probes = nil
		}
	}
	return x
}
