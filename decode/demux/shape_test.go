package demux

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/internal/testkit"
)

// stacks returns datagrams with stacks as sinks send them, of every version and in every encapsulation that has
// shapes, and some that have none.
func stacks(t testing.TB) (list [][]byte) {
	t.Helper()
	list = append(list,
		postcard05(2, 0x20, ether(t, ipv4(0, 17, udp(5000, make([]byte, 9))))),
		postcard05(2, 0x20, ether(t, ipv4(0, 6, tcp(443, 0, nil)))),
		postcard05(2, 0x20, ether(t, ipv4(0, 17, udp(4789, make([]byte, 50))))),
		report20(flagF, 0, nil, ipv4(0, 17, udp(17768, int21(0xf000, 5)))),
		report20(flagF, 0, nil, ipv4(0, 17, udp(17768, int21(0xf000, 3)))),
		report20(flagF, 0, nil, ipv4(0, 17, udp(17768, int21(0xfc00, 3)))),
		report20(flagF, 0, nil, ipv4(0, 17, udp(17768, int21(0xdc00, 3)))),
		report20(flagF, 0, nil, ipv4(0, 17, udp(17768, int21(0xf100, 2)))),
		report20(flagF, 0, nil, ether(t, ipv4(0x17, 6, tcp(443, 0, marked21(0xf000, 4))))),
		report20(flagF, 0, nil, ether(t, ipv4(0x17, 17, append(udp(5000, marked21(0xf000, 4)), 1, 2, 3, 4)))),
		report20(flagF, 0x4000, make([]byte, 4), ipv4(0, 17, udp(17768, int21(0xf000, 2)))),
		report20(flagQ|flagF, 0, nil, ipv4(0, 17, udp(17768, int21(0xf000, 2)))),
		headed10(1, 0x41, ipv4(0x17, 17, udp(4789, append(int10(0xf000, 3), vxlan(t)...)))),
		headed10(1, 0x41, ipv4(0x17, 17, udp(5000, append(int10(0xf000, 3), vxlan(t)...)))),
	)
	for _, c := range datagrams() {
		list = append(list, c.payload)
	}
	for _, c := range reportCases(t) {
		list = append(list, c.payload)
	}
	return slices.DeleteFunc(list, func(data []byte) bool { return len(data) == 0 })
}

// postcard05 is a report 0.5 of a switch with its hop and a packet.
func postcard05(nproto, flags byte, packet []byte) []byte {
	b := append([]byte{nproto, flags, 0, 7}, 0, 0, 0, 9, 0, 1, 2, 3) // hardware id, number, time
	b = append(b, 0, 0, 0, 5, 0, 1, 0, 2)                            // node, interfaces
	if nproto == 2 {
		b = append(b, 3, 0, 0, 17, 0, 1, 4, 5) // queue, time
	} else {
		b = append(b, 3, 1, 0, 0) // queue, reason of a drop
	}
	return append(b, packet...)
}

// withTime returns a postcard with another egress time.
func withTime(postcard []byte, time ...byte) []byte {
	b := slices.Clone(postcard)
	copy(b[24:], time)
	return b
}

// marked21 is int21 for packets that are marked by their DSCP.
func marked21(bitmap uint16, n int) []byte {
	b := int21(bitmap, n)
	b[0], b[2], b[3] = 0x10, 0, 0
	return b
}

// twins are two decoders of a profile that read the same: some formats remember what they read.
type twins struct{ lazy, general *Decoder }

func newTwins(p Profile) twins { return twins{New(p), New(p)} }

// lazyDecoders returns decoders with options that affect shapes.
func lazyDecoders(t testing.TB) (list []twins) {
	for _, d := range singles(t) {
		list = append(list, newTwins(d.profile))
	}
	for _, change := range []func(*Profile){
		func(p *Profile) { p.INT.WideTimes = true },
		func(p *Profile) { p.INT.HostINT, p.Report.HostINT = true, true },
		func(p *Profile) { p.INT.TailPort = 5000 },
		func(p *Profile) { p.Report.Postcard = true },
		func(p *Profile) { p.Wrong = decode.HopLatency },
	} {
		p := profile(t, "auto")
		change(&p)
		list = append(list, newTwins(p))
	}
	return list
}

// sameReports reads data as records and as reports, and compares.
func sameReports(t testing.TB, d twins, records *decode.LazyBatch, batch *decode.Batch, data []byte, length int) (short bool) {
	t.Helper()
	records.Reset()
	batch.Reset()
	n := d.lazy.lazy(records, &exporter, data, length, 7)
	if m := d.general.DatagramCut(batch, exporter, data, length, 7); n != m || len(records.List) != m {
		t.Fatalf("profile %+v, %x: %d records, want %d", d.lazy.profile, data, n, m)
	}
	for i, r := range records.List {
		short = r.Shape != nil
		if got, want := r.Report(), batch.Reports[i]; !reflect.DeepEqual(normal(got), normal(want)) {
			t.Fatalf("profile %s, %x, short %v:\n got %+v\nwant %+v", d.lazy.profile.Name, data, short, got, want)
		}
	}
	return short
}

// normal returns a copy without the difference between no slice and an empty one, and without the memory that r
// keeps.
func normal(r *decode.Report) decode.Report {
	x := *r
	if len(x.Hops) == 0 {
		x.Hops = nil
	}
	x.AddRare() // which takes the memory
	if x.Rare = r.Rare; x.Rare == nil {
		return x
	}
	rare := *r.Rare
	if len(rare.Counts) == 0 {
		rare.Counts = nil
	}
	if len(rare.Histogram.Buckets) == 0 {
		rare.Histogram.Buckets = nil
	}
	if len(rare.IOAM.Nodes) == 0 {
		rare.IOAM.Nodes = nil
	}
	x.Rare = &rare
	return x
}

// TestLazyMutations holds that a record has the report of its datagram, whatever shapes the decoder has. Bytes,
// lengths and words of datagrams are changed at random, mostly where decoders check them.
func TestLazyMutations(t *testing.T) {
	var records decode.LazyBatch
	var batch decode.Batch
	seeds := stacks(t)
	decoders := lazyDecoders(t)
	rng := rand.New(rand.NewPCG(3, 4))
	interesting := []byte{0, 1, 2, 4, 0x10, 0x17 << 2, 0x20, 0x45, 0x5c, 0x7f, 0x80, 0xf0, 0xff, 17, 6}
	short := 0
	for range testkit.Rounds(1_000_000, 10_000_000) {
		d := decoders[rng.IntN(len(decoders))]
		data := slices.Clone(seeds[rng.IntN([]int{10, len(seeds)}[rng.IntN(2)])]) // the first ones have shapes
		for range rng.IntN(4) {
			at := rng.IntN(len(data))
			switch rng.IntN(5) {
			case 0:
				data[at] ^= 1 << rng.IntN(8)
			case 1:
				data[at] = interesting[rng.IntN(len(interesting))]
			case 2:
				data[at] += byte(rng.IntN(9) - 4)
			case 3:
				data[at] = byte(rng.Uint32())
			case 4: // an invalid value, or a port
				for i := range min(rng.IntN(5), len(data)-at) {
					data[at+i] = 0xff
				}
			}
		}
		length := len(data)
		switch rng.IntN(12) {
		case 0:
			data = data[:rng.IntN(len(data)+1)]
			length = len(data)
		case 1:
			data = data[:rng.IntN(len(data)+1)] // cut by the capture
		case 2:
			data = append(data, make([]byte, rng.IntN(9))...)
			length = len(data)
		}
		if sameReports(t, d, &records, &batch, data, length) {
			short++
		}
	}
	if short < testkit.Rounds(30_000, 300_000) {
		t.Errorf("%d records in the short form: the test holds nothing", short)
	}
}

// FuzzRecord holds the same for bytes that a fuzzer finds: it changes a datagram whose shape is known.
func FuzzLazy(f *testing.F) {
	for _, data := range stacks(f) {
		f.Add(data, uint16(9), byte(1), uint16(30), byte(2))
	}
	decoders := lazyDecoders(f)
	f.Fuzz(func(t *testing.T, data []byte, at1 uint16, v1 byte, at2 uint16, v2 byte) {
		var records decode.LazyBatch
		var batch decode.Batch
		for _, d := range decoders {
			sameReports(t, d, &records, &batch, data, len(data))
			if len(data) == 0 {
				continue
			}
			changed := slices.Clone(data)
			changed[int(at1)%len(data)] += v1
			changed[int(at2)%len(data)] += v2
			sameReports(t, d, &records, &batch, changed, len(changed))
			sameReports(t, d, &records, &batch, changed[:int(at1)%(len(data)+1)], len(changed))
		}
	})
}

// vxlan is a packet in VXLAN.
func vxlan(t testing.TB) []byte {
	return append([]byte{8, 7: 0}, ether(t, ipv4(0, 6, tcp(80, 0, nil)))...)
}

// shortUDP is udp with another length.
func shortUDP(dst uint16, length int, b []byte) []byte {
	b = udp(dst, b)
	b[4], b[5] = byte(length>>8), byte(length)
	return b
}

// TestShapes holds which datagrams have a shape, and that the second of a kind is read by it.
func TestShapes(t *testing.T) {
	inner := func(port uint16) []byte { return ipv4(0x17, 17, udp(port, marked21(0xf000, 3))) }
	for _, c := range []struct {
		name          string
		first, second []byte
		want          bool
	}{
		{"the same", stacks(t)[3], stacks(t)[3], true},
		{"another port, marked by DSCP", report20(flagF, 0, nil, inner(5000)), report20(flagF, 0, nil, inner(5001)), true},
		{"a port that marks INT", report20(flagF, 0, nil, inner(5000)), report20(flagF, 0, nil, inner(17768)), false},
		{"a tunnel's port", report20(flagF, 0, nil, inner(5000)), report20(flagF, 0, nil, inner(intmd.PortGeneve)), false},
		{"longer payload", report20(flagF, 0, nil, inner(5000)), report20(flagF, 0, nil, ipv4(0x17, 17, udp(5000, append(marked21(0xf000, 3), 1, 2, 3, 4)))), true},
		{"a tunnel's packet behind the end of UDP", headed10(1, 0x41, ipv4(0x17, 17, udp(5000, int10(0xf000, 3)))), headed10(1, 0x41, ipv4(0x17, 17, shortUDP(4789, 8+len(int10(0xf000, 3)), append(int10(0xf000, 3), vxlan(t)...)))), false},
		{"another bitmap", report20(flagF, 0, nil, inner(5000)), report20(flagF, 0, nil, ipv4(0x17, 17, udp(5000, marked21(0xe000, 4)))), false},
		{"one hop more", report20(flagF, 0, nil, inner(5000)), report20(flagF, 0, nil, ipv4(0x17, 17, udp(5000, marked21(0xf000, 4)))), false},
		{"own metadata", stacks(t)[10], stacks(t)[10], false},
		{"congestion", stacks(t)[11], stacks(t)[11], false},
		{"without latency", stacks(t)[6], stacks(t)[6], false},
		{"with utilisation", stacks(t)[7], stacks(t)[7], false},
		{"a postcard", stacks(t)[0], postcard05(2, 0x20, ether(t, ipv4(0, 17, udp(6000, make([]byte, 99))))), true},
		{"a postcard about TCP", stacks(t)[1], postcard05(2, 0x20, ether(t, ipv4(0, 6, tcp(80, 0, make([]byte, 99))))), true},
		{"a postcard about a packet that carries another one", stacks(t)[0], postcard05(2, 0x20, ether(t, ipv4(0, 17, udp(4789, vxlan(t))))), false},
		{"a postcard about a packet that may have INT", stacks(t)[0], postcard05(2, 0x20, ether(t, ipv4(0, 17, udp(17768, make([]byte, 99))))), false},
		{"a postcard about a packet that is marked", stacks(t)[0], postcard05(2, 0x20, ether(t, ipv4(0x17, 17, udp(5000, make([]byte, 99))))), false},
		{"a postcard whose packet left before it came", stacks(t)[0], withTime(stacks(t)[0], 0, 0, 0, 9), false},
		{"a postcard without the time when its packet left", stacks(t)[0], withTime(stacks(t)[0], 0, 0, 0, 0), false},
		{"a postcard that says congestion", stacks(t)[0], postcard05(2, 0x60, ether(t, ipv4(0, 17, udp(5000, nil)))), false},
		{"a drop", postcard05(1, 0x80, ether(t, ipv4(0, 17, udp(5000, nil)))), postcard05(1, 0x80, ether(t, ipv4(0, 17, udp(5000, nil)))), false},
	} {
		d := newTwins(profile(t, "auto"))
		var records decode.LazyBatch
		var batch decode.Batch
		sameReports(t, d, &records, &batch, c.first, len(c.first))
		if got := sameReports(t, d, &records, &batch, c.second, len(c.second)); got != c.want {
			t.Errorf("%s: in the short form %v, want %v", c.name, got, c.want)
		}
	}
}

// TestShapesForgotten holds that ever new shapes cost no memory, and that a decoder learns again when traffic changes.
func TestShapesForgotten(t *testing.T) {
	d := newTwins(profile(t, "auto"))
	var records decode.LazyBatch
	var batch decode.Batch
	for tos := range 60 {
		data := report20(flagF, 0, nil, ipv4(byte(tos), 17, udp(17768, int21(0xf000, 2))))
		for range 2 * learnEvery {
			sameReports(t, d, &records, &batch, data, len(data))
		}
		if !sameReports(t, d, &records, &batch, data, len(data)) || len(d.lazy.shapes.list) > maxShapes {
			t.Fatalf("TOS %d: not in the short form, %d shapes", tos, len(d.lazy.shapes.list))
		}
	}
}

// TestLazyFrame holds that frames have the records of their reports.
func TestLazyFrame(t *testing.T) {
	p := profile(t, "auto")
	rt := NewRouter(p, nil)
	var records decode.LazyBatch
	var batch decode.Batch
	short := 0
	for _, payload := range stacks(t) {
		frame := ether(t, ipv4(0, 17, udp(p.ReportPorts[0], payload)))
		for _, length := range []int{len(frame), len(frame) + 10} {
			for range 2 {
				records.Reset()
				batch.Reset()
				n := rt.LazyFrame(&records, packet.LinkEthernet, frame, length, 7)
				if m := rt.Frame(&batch, packet.LinkEthernet, frame, length, 7); n != m {
					t.Fatalf("%x: %d records, want %d", frame, n, m)
				}
				for i, r := range records.List {
					if r.Shape != nil {
						short++
					}
					if got, want := r.Report(), batch.Reports[i]; r.Time != want.Time || r.To != want.To || !reflect.DeepEqual(normal(got), normal(want)) {
						t.Fatalf("%x:\n got %+v\nwant %+v", frame, got, want)
					}
				}
			}
		}
	}
	if short == 0 {
		t.Error("no record in the short form")
	}
}

// TestLazyAllocations holds that a record allocates nothing, in either form.
func TestLazyAllocations(t *testing.T) {
	d := New(profile(t, "auto"))
	var records decode.LazyBatch
	list := stacks(t)
	read := func() {
		records.Reset()
		for _, data := range list {
			d.lazy(&records, &exporter, data, len(data), 7)
		}
		for _, r := range records.List {
			r.Report()
		}
	}
	for range 100 {
		read()
	}
	if n := testing.AllocsPerRun(100, read); n > 1 { // shapes are taken now and then
		t.Errorf("%v allocations in %d datagrams, want 0", n, len(list))
	}
}
