package arrow_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/hopscope/hopscope/decode"
	rows "github.com/hopscope/hopscope/decode/arrow"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
)

// frames calls f with every frame of a classic pcap, and its time.
func frames(t testing.TB, file string, f func(link uint16, data []byte, length int, time int64)) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	if len(b) < 24 || le.Uint32(b) != 0xa1b2c3d4 {
		t.Fatalf("%s is no such capture", file)
	}
	link := uint16(le.Uint32(b[20:]))
	for b = b[24:]; len(b) >= 16; {
		n := int(le.Uint32(b[8:]))
		f(link, b[16:16+n:16+n], int(le.Uint32(b[12:])), int64(le.Uint32(b))*1e9+int64(le.Uint32(b[4:]))*1e3)
		b = b[16+n:]
	}
}

// captured are the reports of all captures of the decoders, read with every profile, and those of the worked examples.
func captured(t testing.TB) (list []*decode.Report) {
	var files []string
	for _, dir := range []string{"../testdata", "../*/testdata", "../../internal/plain/testdata"} {
		found, err := filepath.Glob(dir + "/*.pcap")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 20 {
		t.Fatalf("captures: %q", files)
	}
	var b decode.Batch
	for _, name := range demux.Profiles() {
		p, _ := demux.Lookup(name)
		d := demux.New(p)
		for _, file := range files {
			frames(t, file, func(link uint16, data []byte, length int, time int64) { d.Frame(&b, link, data, length, time) })
		}
		for i, name := range testkit.VectorNames() {
			payload, err := testkit.Vector(name)
			if err != nil {
				t.Fatal(err)
			}
			d.Datagram(&b, decode.AddrFrom4([]byte{10, 0, 0, byte(i)}), payload, int64(i))
		}
	}
	for _, r := range b.Reports {
		r.Weight = 0 // streams are of reports that go to another collector, and samples do not
		if r.Rare != nil {
			r.Rare.Traffic = nil
		}
	}
	return slices.DeleteFunc(b.Reports, func(r *decode.Report) bool { return r.Rare != nil && r.Rare.Counters.Has != 0 }) // nor do counters of interfaces
}

// random draws reports with every field there is.
func random(rng *rand.Rand, n int) (list []*decode.Report) {
	reasons := decode.DropReasons{5: `no "route" = 1`, 200: ""}
	units := []*decode.Units{nil, &decode.DefaultUnits, {LatencyNS: 1, QueueBytes: 80, DropReasons: &reasons}, {TimeNS: 1 << 63, LatencyCalc: true}}
	addr := func() (a decode.Addr) {
		if rng.IntN(2) == 0 {
			return decode.AddrFrom4([]byte{10, 0, byte(rng.Uint32()), byte(rng.Uint32())})
		}
		for i := range a {
			a[i] = byte(rng.Uint32())
		}
		return a
	}
	blob := func() []byte {
		b := make([]byte, 1+rng.IntN(70))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	for range n {
		r := &decode.Report{
			Time: rng.Int64(), Format: decode.Format(1 + rng.IntN(8)), Kind: decode.Kind(rng.IntN(12)), // those that version 1 began with
			Version: decode.Version(rng.IntN(30)), INT: decode.Version(rng.IntN(30)), Flags: decode.Flags(rng.Uint32()), Units: units[rng.IntN(len(units))],
			SeqBits: uint8(rng.IntN(2) * 22), FirstOfGroup: rng.IntN(2) == 0, Announced: uint8(rng.IntN(3)),
		}
		is := func(f decode.Field) bool {
			if rng.IntN(3) == 0 {
				r.Has |= f
				return true
			}
			return false
		}
		if is(decode.HasExporter) {
			r.Exporter, r.To = addr(), rng.Uint64()
		}
		if is(decode.HasNodeID) {
			r.NodeID = rng.Uint32()
		}
		if is(decode.HasHWID) {
			r.HWID = uint8(rng.Uint32())
		}
		if is(decode.HasSeq) {
			r.Seq = rng.Uint32()
		}
		if is(decode.HasHeaderTime) {
			r.HeaderTime = rng.Uint32()
		}
		if is(decode.HasFlow) {
			r.Flow = decode.FlowKey{Src: addr(), Dst: addr(), Proto: uint8(rng.Uint32()), IPVersion: uint8(4 + rng.IntN(2)*2)}
			if is(decode.HasPorts) {
				r.Flow.SrcPort, r.Flow.DstPort = uint16(rng.Uint32()), uint16(rng.Uint32())
			}
		}
		if is(decode.HasPacketID) {
			r.PacketID = uint16(rng.Uint32())
		}
		if is(decode.HasTTL) {
			r.TTL = uint8(rng.Uint32())
		}
		if is(decode.HasDropReason) {
			r.DropReason = uint8(rng.Uint32())
		}
		if is(decode.HasRemainingHops) {
			r.RemainingHops = uint8(rng.Uint32())
		}
		if is(decode.HasDomainID) {
			r.DomainID = uint16(rng.Uint32())
		}
		if is(decode.HasInstructions) {
			r.Instructions = uint16(rng.Uint32())
		}
		if is(decode.HasFlowID) {
			r.FlowID = rng.Uint32()
		}
		if is(decode.HasSourceSeq) {
			r.SourceSeq = rng.Uint32()
		}
		if is(decode.HasGap) {
			r.GapTime, r.Lost = rng.Uint32(), rng.Uint32()
		}
		if is(decode.HasActionID) {
			r.ActionID = rng.Uint32()
		}
		if is(decode.HasDigest) {
			r.Digest = decode.Digest{
				Value: rng.Uint64(), ID: rng.Uint32(), Hops: uint8(rng.Uint32()), Epoch: uint8(rng.Uint32()), Coding: decode.Coding(rng.IntN(4)),
				AMS: uint16(rng.Uint32()), LastWriter: uint16(rng.Uint32()),
			}
		}
		if is(decode.HasSourceMetadata) {
			r.SourceMetadata = blob()
		}
		if is(decode.HasSRList) {
			r.SRList = blob()
		}
		if is(decode.HasSRPorts) {
			r.SRPorts = blob()
		}
		if rng.IntN(9) == 0 {
			r.Unknown = blob()
		}
		if rng.IntN(5) == 0 {
			r.Fail(decode.INTMD, "hop_ml", rng.IntN(100), decode.Reason(1+rng.IntN(10)))
		}
		for range rng.IntN(8) {
			all := decode.Hop{
				Has: decode.HopField(rng.Uint32()) & (1<<17 - 1), NodeID: rng.Uint32(), IngressIf: uint16(rng.Uint32()), EgressIf: uint16(rng.Uint32()), Latency: rng.Uint32(),
				QueueOccupancy: rng.Uint32(), BufferOccupancy: rng.Uint32(), TxUtilization: rng.Uint32(), QueueCongestion: rng.Uint32(),
				L2IngressIf: rng.Uint32(), L2EgressIf: rng.Uint32(), IngressTime: rng.Uint64(), EgressTime: rng.Uint64(), EnqTime: rng.Uint32(),
				QueueDelay: rng.Uint32(), DeqOccupancy: rng.Uint32(), QueueID: uint8(rng.Uint32()), BufferID: uint8(rng.Uint32()), TimeBits: uint8(rng.IntN(65)),
			}
			r.AddHop().Merge(&all)
		}
		list = append(list, r)
	}
	return list
}

// plain is a report as decoded from its stream.
func plain(r *decode.Report) decode.Report {
	c := *r
	c.FlowHash = 0
	if c.HeaderCut {
		c.NodeID, c.HWID, c.Seq = 0, 0, 0
		if c.Has&decode.HasNodeID != 0 {
			c.NodeID = r.NodeID
		}
	}
	if c.Units == nil {
		c.Units = &decode.DefaultUnits
	}
	none := func(b []byte) []byte {
		if len(b) == 0 {
			return nil
		}
		return b
	}
	c.SourceMetadata, c.SRList, c.SRPorts, c.Unknown = none(c.SourceMetadata), none(c.SRList), none(c.SRPorts), none(c.Unknown)
	if len(c.Hops) == 0 {
		c.Hops = nil
	}
	c.AddRare()  // which takes the memory that r keeps
	c.Rare = nil // the schema has no columns for it
	return c
}

func encode(list []*decode.Report) []byte {
	var e rows.Encoder
	for _, r := range list {
		e.Append(r)
	}
	return e.AppendStream(nil)
}

func equal(t *testing.T, got, want []*decode.Report) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d reports, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := plain(got[i]), plain(want[i]); !reflect.DeepEqual(g, w) {
			t.Fatalf("report %d:\n%+v, want\n%+v", i, g, w)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var e rows.Encoder
	var d rows.Decoder
	var b decode.Batch
	trip := func(t *testing.T, list []*decode.Report) {
		t.Helper()
		e.Reset()
		for _, r := range list {
			e.Append(r)
		}
		if e.Rows() != len(list) {
			t.Errorf("Rows = %d of %d", e.Rows(), len(list))
		}
		stream := e.AppendStream([]byte("before"))[6:]
		b.Reset()
		unknown, err := d.Decode(stream, &b)
		if err != nil || unknown != 0 {
			t.Fatalf("Decode = %d, %v", unknown, err)
		}
		equal(t, b.Reports, list)
		if err := d.Open(stream); err != nil {
			t.Fatal(err)
		}
		b.Reset()
		for more, limit := true, 1; more; limit = 1 + rng.IntN(200) {
			before := len(b.Reports)
			if more = d.Next(&b, limit); len(b.Reports)-before > limit || more && len(b.Reports)-before < limit {
				t.Fatalf("Next gave %d reports of %d, and says %v", len(b.Reports)-before, limit, more)
			}
		}
		equal(t, b.Reports, list)
	}
	t.Run("captures", func(t *testing.T) {
		all := captured(t)
		t.Logf("%d reports", len(all))
		for len(all) > 0 {
			n := min(1+rng.IntN(3000), len(all))
			trip(t, all[:n])
			all = all[n:]
		}
	})
	t.Run("random", func(t *testing.T) {
		for range 100 {
			trip(t, random(rng, rng.IntN(300)))
		}
	})
	t.Run("one field in some rows", func(t *testing.T) {
		for range 200 {
			list := random(rng, 1)
			for range rng.IntN(20) {
				list = append(list, &decode.Report{Format: decode.PINT})
			}
			rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			trip(t, list)
		}
	})
}

// The shards of a consumer observe the same as those of the collector.
func TestShards(t *testing.T) {
	partial := func(list []*decode.Report) []byte {
		t.Helper()
		cfg := shard.DefaultConfig()
		cfg.MemoryBytes = 16 << 20
		s := shard.New(cfg, 7)
		s.Update(list)
		var p window.Partial
		s.Cut(1).AddTo(&p)
		out, err := p.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, list := range [][]*decode.Report{captured(t), random(rng, 5000)} {
		var read []*decode.Report
		for n := range list {
			if list[n].Err.Reason == 0 {
				read = append(read, list[n])
			}
		}
		list = read
		var b decode.Batch
		var d rows.Decoder
		for at := 0; at < len(list); at += 1000 {
			if _, err := d.Decode(encode(list[at:min(at+1000, len(list))]), &b); err != nil {
				t.Fatal(err)
			}
		}
		if want, got := partial(list), partial(b.Reports); !bytes.Equal(got, want) {
			t.Errorf("the partial of %d reports differs after a stream: %d bytes, %d before", len(list), len(got), len(want))
		}
	}
}

// The library reads what we write, and we read what it writes.
func TestLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, list := range [][]*decode.Report{nil, captured(t)[:2000], random(rng, 1000)} {
		stream := encode(list)
		r, err := ipc.NewReader(bytes.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		var second bytes.Buffer
		w := ipc.NewWriter(&second, ipc.WithSchema(r.Schema()))
		n := 0
		for r.Next() {
			record := r.Record()
			n += int(record.NumRows())
			check(t, record, list)
			if err := w.Write(record); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(r.Err(), w.Close()); err != nil || n != len(list) {
			t.Fatalf("the library read %d rows of %d, %v", n, len(list), err)
		}
		var d rows.Decoder
		var b decode.Batch
		if _, err := d.Decode(second.Bytes(), &b); err != nil {
			t.Fatal(err)
		}
		equal(t, b.Reports, list)
	}
}

// check compares some columns with the library's reading of them.
func check(t *testing.T, record arrow.Record, list []*decode.Report) {
	t.Helper()
	col := func(name string) arrow.Array { return record.Column(record.Schema().FieldIndices(name)[0]) }
	kinds := col("kind").(*array.Dictionary)
	node := col("node_id").(*array.Uint32)
	hops := col("hops").(*array.List)
	values := hops.ListValues().(*array.Struct)
	latency := values.Field(3).(*array.Uint32)
	for i, r := range list {
		if got := kinds.Dictionary().(*array.String).Value(kinds.GetValueIndex(i)); got != r.Kind.String() {
			t.Fatalf("row %d: kind %q, want %q", i, got, r.Kind)
		}
		if node.IsValid(i) != (r.Has&decode.HasNodeID != 0) || node.IsValid(i) && node.Value(i) != r.NodeID {
			t.Fatalf("row %d: node %v %d, want %+v", i, node.IsValid(i), node.Value(i), r)
		}
		from, to := hops.ValueOffsets(i)
		if int(to-from) != len(r.Hops) {
			t.Fatalf("row %d: %d hops, want %d", i, to-from, len(r.Hops))
		}
		for k := range r.Hops {
			if j := int(from) + k; latency.IsValid(j) != r.Hops[k].Set(decode.HopLatency) || latency.IsValid(j) && latency.Value(j) != r.Hops[k].Latency {
				t.Fatalf("row %d, hop %d: latency %v %d, want %+v", i, k, latency.IsValid(j), latency.Value(j), r.Hops[k])
			}
		}
	}
}

// A stream of a later version has unknown columns, columns in other places, and lacks some known ones.
func TestVersions(t *testing.T) {
	pool := memory.NewGoAllocator()
	kinds := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}
	node := arrow.StructOf(arrow.Field{Name: "colour", Type: arrow.BinaryTypes.String}, arrow.Field{Name: "node_id", Type: arrow.PrimitiveTypes.Uint32, Nullable: true})
	fields := []arrow.Field{
		{Name: "new_list", Type: arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Float64)), Nullable: true},
		{Name: "kind", Type: kinds}, {Name: "format", Type: kinds}, {Name: "new_text", Type: arrow.BinaryTypes.String},
		{Name: "hops", Type: arrow.ListOf(node)}, {Name: "time", Type: arrow.FixedWidthTypes.Timestamp_ns}, {Name: "seq", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	}
	stream := func(fields []arrow.Field, meta map[string]string) []byte {
		m := arrow.MetadataFrom(meta)
		schema := arrow.NewSchema(fields, &m)
		b := array.NewRecordBuilder(pool, schema)
		for i := range fields {
			switch f := b.Field(i).(type) {
			case *array.BinaryDictionaryBuilder:
				for _, s := range []string{"a", "b", "c"} {
					f.AppendString(s)
				}
			case *array.TimestampBuilder:
				f.AppendValues([]arrow.Timestamp{10, 20, 30}, nil)
			case *array.Uint32Builder:
				f.AppendValues([]uint32{1, 2, 3}, []bool{true, false, true})
			case *array.StringBuilder:
				f.AppendValues([]string{"x", "yy", "zzz"}, nil)
			case *array.Uint64Builder:
				f.AppendValues([]uint64{1, 2, 3}, nil)
			case *array.ListBuilder:
				if s, ok := f.ValueBuilder().(*array.StructBuilder); ok {
					for range 3 {
						f.Append(true)
						for _, valid := range []bool{true, false} {
							s.Append(true)
							s.FieldBuilder(0).(*array.StringBuilder).Append("red")
							s.FieldBuilder(1).(*array.Uint32Builder).AppendValues([]uint32{9}, []bool{valid})
						}
					}
				} else {
					f.AppendNull()
					f.AppendNull()
					f.AppendNull()
				}
			}
		}
		var out bytes.Buffer
		w := ipc.NewWriter(&out, ipc.WithSchema(schema))
		if err := errors.Join(w.Write(b.NewRecord()), w.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	meta := func(needs string) map[string]string {
		return map[string]string{rows.DatasetKey: "reports", rows.VersionKey: "99", rows.ReaderVersionKey: needs, "new": "thing"}
	}
	var d rows.Decoder
	var b decode.Batch
	if unknown, err := d.Decode(stream(fields, meta("1")), &b); err != nil || unknown != 0 || len(b.Reports) != 3 {
		t.Fatalf("Decode = %d, %v, %d reports", unknown, err, len(b.Reports))
	}
	for i, r := range b.Reports {
		want := decode.Report{Time: int64(10 * (i + 1)), Format: decode.Format(i), Kind: decode.Kind(i), Units: &decode.DefaultUnits}
		if i != 1 {
			want.Has, want.Seq = decode.HasSeq, uint32(i+1)
		}
		want.Hops = []decode.Hop{{Has: decode.HopNodeID, NodeID: 9}, {}}
		if !reflect.DeepEqual(plain(r), want) {
			t.Errorf("report %d:\n%+v, want\n%+v", i, *r, want)
		}
	}
	wrong := append([]arrow.Field{}, fields...)
	wrong[6].Type = arrow.PrimitiveTypes.Uint64
	for name, c := range map[string]struct {
		stream []byte
		err    error
		field  string
	}{
		"needs a later reader": {stream(fields, meta("2")), rows.ErrVersion, rows.ReaderVersionKey},
		"another dataset":      {stream(fields, map[string]string{rows.DatasetKey: "hops"}), rows.ErrMissing, rows.DatasetKey},
		"no time":              {stream(fields[:5], meta("1")), rows.ErrMissing, "time"},
		"another type":         {stream(wrong, meta("1")), rows.ErrType, "seq"},
	} {
		var at *rows.Error
		if _, err := d.Decode(c.stream, &b); !errors.Is(err, c.err) || !errors.As(err, &at) || at.Field != c.field || len(b.Reports) != 3 {
			t.Errorf("%s: %v, %d reports; want %v at %s", name, err, len(b.Reports), c.err, c.field)
		}
	}
}

// A report of a later version's kind is left out and counted.
func TestUnknownKind(t *testing.T) {
	list := []*decode.Report{{Format: decode.PINT, Kind: decode.KindDigest}, {Format: decode.PINT, Kind: 250}, {Format: 99}}
	var d rows.Decoder
	var b decode.Batch
	if unknown, err := d.Decode(encode(list), &b); err != nil || unknown != 2 || len(b.Reports) != 1 {
		t.Errorf("Decode = %d, %v, %d reports; want 2 unknown and 1", unknown, err, len(b.Reports))
	}
}

// Neither direction allocates memory for a report.
func TestAllocations(t *testing.T) {
	list := captured(t)[:3000]
	var read []*decode.Report
	for _, r := range list {
		if r.Err.Reason == 0 {
			read = append(read, r)
		}
	}
	var e rows.Encoder
	var d rows.Decoder
	var b decode.Batch
	var stream []byte
	once := func() {
		e.Reset()
		for _, r := range read {
			e.Append(r)
		}
		stream = e.AppendStream(stream[:0])
		b.Reset()
		if _, err := d.Decode(stream, &b); err != nil {
			t.Fatal(err)
		}
	}
	once()
	once()
	if n := testing.AllocsPerRun(20, once); n > 10 {
		t.Errorf("%v allocations for %d reports", n, len(read))
	}
}

func TestCut(t *testing.T) {
	stream := encode(random(rand.New(rand.NewPCG(7, 8)), 20))
	var d rows.Decoder
	var b decode.Batch
	whole := 0
	for n := range len(stream) {
		_, err := d.Decode(stream[:n], &b)
		var at *rows.Error
		if err == nil {
			whole++
		} else if !errors.As(err, &at) || at.Offset > n {
			t.Errorf("cut at %d: %v", n, err)
		}
		b.Reset()
	}
	if whole != 4 { // between messages, as if the end had been left out
		t.Errorf("%d of the cuts were taken for whole streams, want 4", whole)
	}
}

// A stream with any changed bytes is read, or refused with an error that has the place.
func TestDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	stream := encode(random(rng, 8))
	var d rows.Decoder
	var b decode.Batch
	reasons := map[error]int{}
	for range 20_000 {
		damaged := bytes.Clone(stream)
		for range 1 + rng.IntN(3) {
			at := rng.IntN(len(damaged))
			switch rng.IntN(3) {
			case 0:
				damaged[at] = byte(rng.Uint32())
			case 1:
				damaged[at] ^= 1 << rng.IntN(8)
			default:
				at &^= 3
				binary.LittleEndian.PutUint32(damaged[min(at, len(damaged)-4):], rng.Uint32()>>rng.IntN(32))
			}
		}
		b.Reset()
		_, err := d.Decode(damaged, &b)
		var at *rows.Error
		if err != nil && (!errors.As(err, &at) || at.Offset < 0 || at.Offset > len(damaged) || len(b.Reports) != 0) {
			t.Fatalf("error %v, %d reports", err, len(b.Reports))
		}
		reasons[errors.Unwrap(err)]++
	}
	for _, err := range []error{nil, rows.ErrShort, rows.ErrRange, rows.ErrMissing, rows.ErrType, rows.ErrUnsupported, rows.ErrTooLarge} {
		if reasons[err] == 0 {
			t.Errorf("no damage gave %v: %v", err, reasons)
		}
	}
}

// An encoder keeps nothing of earlier streams except the numbers of units.
func TestReuse(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	var e rows.Encoder
	for range 50 {
		list := random(rng, rng.IntN(60))
		for i, r := range list {
			r.Units = nil
			if i < 20 { // columns that are used begin in the middle of a batch
				r.Has, r.Hops = r.Has&decode.HasFlow, r.Hops[:0]
			}
		}
		e.Reset()
		for _, r := range list {
			e.Append(r)
		}
		if !bytes.Equal(e.AppendStream(nil), encode(list)) {
			t.Fatal("an encoder that was used before writes another stream")
		}
	}
}

// A report has a bounded number of hops, for any number in its stream.
func TestManyHops(t *testing.T) {
	const most = 1 << 14
	r := &decode.Report{Format: decode.INTMD}
	for range most + 1 {
		*r.AddHop() = decode.Hop{Has: decode.HopNodeID, NodeID: 1}
	}
	stream := encode([]*decode.Report{r, r})
	var d rows.Decoder
	var b decode.Batch
	if _, err := d.Decode(stream, &b); err != nil || len(b.Reports[0].Hops) != most || len(b.Reports[1].Hops) != most {
		t.Fatalf("two reports of %d hops: %v", most, err)
	}
	le := binary.LittleEndian
	starts := le.AppendUint32(le.AppendUint32(make([]byte, 4), most), 2*most)
	if bytes.Count(stream, starts) != 1 {
		t.Fatal("the starts of the hops are not in the stream")
	}
	le.PutUint32(stream[bytes.Index(stream, starts)+4:], most-1)
	b.Reset()
	if _, err := d.Decode(stream, &b); !errors.Is(err, rows.ErrRange) || len(b.Reports) != 0 {
		t.Errorf("a report of %d hops: %v, %d reports", most+1, err, len(b.Reports))
	}
}

var update = flag.Bool("update", false, "write testdata again")

// A stream of version 1 is read by every later version.
func TestVersion1(t *testing.T) {
	const file = "testdata/version1.arrow"
	want := random(rand.New(rand.NewPCG(1, 1)), 40)
	if *update {
		if err := os.WriteFile(file, encode(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d rows.Decoder
	var b decode.Batch
	if unknown, err := d.Decode(stream, &b); err != nil || unknown != 0 {
		t.Fatalf("Decode = %d, %v", unknown, err)
	}
	equal(t, b.Reports, want)
	// What is written now has the texts of formats and kinds that came since, and is otherwise the same.
	if got := encode(want); len(got) != len(stream)+128 {
		t.Errorf("the stream of version 1 is now another one, of %d bytes; before of %d", len(got), len(stream))
	}
}

// The bytes of streams stay as they are: those of reports of every kind, with units and errors, rare fields and none.
func TestBytesStay(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	sum := sha256.New()
	for _, n := range []int{0, 1, 15, 16, 17, 40, 1500} {
		sum.Write(encode(random(rng, n)))
	}
	const want = "66f890742714d3e823d0825960752b7f91b0c3848d377c91395c2566ad16950b"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("the streams have the sum %s, want %s", got, want)
	}
}

// FuzzDecode holds that hostile bytes give an error or reports that have a stream again.
func FuzzDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(9, 10))
	f.Add(encode(nil))
	f.Add(encode(random(rng, 3)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var d rows.Decoder
		var b decode.Batch
		_, err := d.Decode(stream, &b)
		if err != nil {
			var at *rows.Error
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(stream) || len(b.Reports) != 0 {
				t.Fatalf("error %v, %d reports", err, len(b.Reports))
			}
			return
		}
		if len(b.Reports) == 0 {
			return
		}
		var second decode.Batch
		if unknown, err := d.Decode(encode(b.Reports), &second); err != nil || unknown != 0 {
			t.Fatalf("again: %d, %v", unknown, err)
		}
		equal(t, second.Reports, b.Reports)
	})
}
