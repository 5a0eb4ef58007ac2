package decode_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// notColumns are the fields of a Report that are in no column as they are, with the reason.
var notColumns = map[string]string{
	"Weight":         "is of samples, of which none is handed over",
	"Has":            "is the presence of the columns",
	"FlowHash":       "depends on a secret key of the collector, and is computed again",
	"Units":          "are numbered within a stream: ColUnits is the number",
	"Remarks":        "are counted where the report was decoded",
	"Hops":           "have a table of their own",
	"Rare.Inner":     "takes the place of Flow in all that a collector hands on; JSON writes it",
	"Rare.Template":  "is for people who look at a record; a record of which something is known is handed over as that",
	"Rare.Counts":    "has no columns in streams and files; JSON writes it",
	"Rare.Histogram": "is of windows, and not handed over one by one",
	"Rare.Counters":  "are of windows, and not handed over one by one; JSON writes them",
	"Rare.Traffic":   "is of samples and flow records, of which none is handed over; a sample of sFlow with a hop is, as that hop",
	"Rare.Probes":    "are of windows, and not handed over one by one; JSON writes them",
	"Rare.IOAM":      "has no columns in streams and files; JSON writes it",
	"kept":           "is memory",
	"Err.Field":      "is a text: ColErrField",
}

// leaves calls f with each field that is no struct, and descends into structs and rare parts. It skips the fields in
// except, and deletes them there.
func leaves(v reflect.Value, path string, except map[string]string, f func(path string, v reflect.Value)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := path + field.Name
		switch {
		case field.Name == "_":
		case except[name] != "":
			delete(except, name)
		case field.Type == reflect.TypeFor[*decode.Rare]():
			leaves(reflect.New(field.Type.Elem()).Elem(), name+".", except, f)
		case field.Type.Kind() == reflect.Struct:
			leaves(v.Field(i), name+".", except, f)
		default:
			f(name, v.Field(i))
		}
	}
}

// set sets a field to a value that uses all of its bits.
func set(v reflect.Value, rng *rand.Rand) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(rng.Uint64() | 1))
	case reflect.Slice:
		v.SetBytes([]byte{1, byte(rng.Uint32())})
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(rng.Uint64N(255) + 1)
		}
	default:
		v.SetUint(rng.Uint64()<<(64-v.Type().Bits())>>(64-v.Type().Bits()) | 1)
	}
}

// widths are the bits of the numbers of each type.
var widths = map[decode.ValueType]int{
	decode.TypeUint8: 8, decode.TypeCode: 8, decode.TypeUint16: 16, decode.TypeUint32: 32, decode.TypeUint64: 64, decode.TypeInt64: 64, decode.TypeTime: 64,
}

// transport returns a report that is made from r by the columns in want.
func transport(r *decode.Report, want decode.Columns) (to decode.Report) {
	var v decode.ReportNumbers
	r.Numbers(want, &v)
	to.SetNumbers(want, &v)
	for c := range decode.ReportColumns {
		switch decode.ReportColumns[c].Type {
		case decode.TypeAddress:
			*to.Address(c) = *r.Address(c)
		case decode.TypeBytes:
			*to.Bytes(c) = *r.Bytes(c)
		}
	}
	return to
}

// TestReportColumns holds that each field of a report is in one column, of its width, and in the lists beside the table.
func TestReportColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var r decode.Report
	seen := decode.Columns(1<<decode.ColErrField | 1<<decode.ColUnits)
	except := maps.Clone(notColumns)
	leaves(reflect.ValueOf(&r).Elem(), "", except, func(path string, field reflect.Value) {
		set(field, rng)
		defer field.SetZero()
		var v decode.ReportNumbers
		r.Numbers(^decode.Columns(0), &v)
		in := decode.Columns(0)
		for c := range decode.ReportColumns {
			col := &decode.ReportColumns[c]
			switch col.Type {
			case decode.TypeAddress:
				if *r.Address(c) != (decode.Addr{}) {
					in |= 1 << c
				}
			case decode.TypeBytes:
				if *r.Bytes(c) != nil {
					in |= 1 << c
				}
			case decode.TypeBool:
				in |= decode.Columns(v[c]) << c
			default:
				if v[c] == 0 {
					break
				}
				in |= 1 << c
				if w := widths[col.Type]; w != field.Type().Bits() {
					t.Errorf("%s has %d bits, column %q %d", path, field.Type().Bits(), col.Name, w)
				}
			}
		}
		if bits.OnesCount64(uint64(in)) != 1 || seen&in != 0 {
			t.Errorf("%s is in the columns %#x, want one that no other field is in: name it in columns.go, in Numbers, and in SetNumbers", path, in)
		}
		seen |= in
		if got := transport(&r, in); !reflect.DeepEqual(got, r) {
			t.Errorf("%s: the columns %#x give back %+v, want %+v", path, in, got, r)
		}
	})
	if seen != 1<<decode.NumColumns-1 {
		t.Errorf("no field is in the columns %#x", (1<<decode.NumColumns-1)&^seen)
	}
	for name, why := range except {
		t.Errorf("a report has no field %s, of which columns_test.go says that it %s", name, why)
	}
}

// TestPresence holds that each bit of Has has columns, and that they give the bit back.
func TestPresence(t *testing.T) {
	all := decode.Columns(0)
	for f := decode.Field(1); f <= decode.HasDigest; f <<= 1 {
		c := f.Columns()
		if c == 0 || c&all != 0 || c.Fields() != f || (decode.AlwaysColumns|c).Fields() != f {
			t.Errorf("the bit %#x of Has has the columns %#x, which are those of the bits %#x", f, c, c.Fields())
		}
		all |= c
	}
	if got := (^decode.Field(0)).Columns(); got != all {
		t.Errorf("columns of bits that Has does not have: %#x", got&^all)
	}
	r := decode.Report{Has: decode.HasGap | decode.HasTTL, To: 1, SeqBits: 1, FirstOfGroup: true, HeaderCut: true, Announced: 1, Unknown: []byte{1}, Units: &decode.DefaultUnits}
	r.Fail(decode.PINT, "x", 1, decode.Short)
	byValue := (1<<decode.NumColumns - 1) &^ (all | decode.AlwaysColumns)
	if got, want := r.Present(), byValue|decode.AlwaysColumns|(decode.HasGap|decode.HasTTL).Columns(); got != want {
		t.Errorf("Present = %#x, want %#x", got, want)
	}
	if got := new(decode.Report).Present(); got != decode.AlwaysColumns {
		t.Errorf("Present of an empty report = %#x, want %#x", got, decode.AlwaysColumns)
	}
}

// TestHopColumns holds that the columns of hops are its fields, each under its bit, and that Numbers and Merge know
// them all.
func TestHopColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	hops := make([]decode.Hop, 3)
	seen := map[int]bool{}
	except := map[string]string{"Has": "is the presence of the columns"}
	leaves(reflect.ValueOf(&hops[1]).Elem(), "", except, func(path string, field reflect.Value) {
		set(field, rng)
		defer field.SetZero()
		for c := range decode.HopColumns {
			col := &decode.HopColumns[c]
			b := make([]byte, 3*8)
			col.Move(b, hops, false)
			var numbers decode.HopNumbers
			hops[1].Numbers(1<<c, &numbers)
			v, w := numbers[c], widths[col.Type]/8
			var one [8]byte
			copy(one[:], b[w:2*w])
			if got := binary.LittleEndian.Uint64(one[:]); got != v {
				t.Errorf("%s: column %q moves %#x, Numbers gives %#x", path, col.Name, got, v)
			}
			if v == 0 {
				continue
			}
			if w != int(field.Type().Size()) || seen[c] {
				t.Errorf("%s has %d bytes, its column %q %d, and another field is in it: %v", path, field.Type().Size(), col.Name, w, seen[c])
			}
			seen[c] = true
			back := make([]decode.Hop, 3)
			if col.Move(b, back, true); !reflect.DeepEqual(back, hops) {
				t.Errorf("%s: column %q gives back %+v, want %+v", path, col.Name, back, hops)
			}
			var merged decode.Hop
			if c == decode.HopTimeBits {
				continue
			}
			hops[1].Has = 1 << c
			if merged.Merge(&hops[1]); merged != hops[1] {
				t.Errorf("%s: Merge gives %+v, want %+v", path, merged, hops[1])
			}
			if name := hops[1].Has.Names(); fmt.Sprint(name) != "["+col.Name+"]" {
				t.Errorf("%s: the bit of column %q is called %q", path, col.Name, name)
			}
			hops[1].Has = 0
		}
	})
	if len(seen) != decode.NumHopColumns {
		t.Errorf("%d of %d columns have a field", len(seen), decode.NumHopColumns)
	}
}

// TestColumnsDocumented holds that docs/reports-arrow.md names each column, with its type and its unit.
func TestColumnsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/reports-arrow.md")
	if err != nil {
		t.Fatal(err)
	}
	types := map[decode.ValueType]string{
		decode.TypeUint8: "uint8", decode.TypeUint16: "uint16", decode.TypeUint32: "uint32", decode.TypeUint64: "uint64", decode.TypeInt64: "int64",
		decode.TypeTime: "timestamp[ns, UTC]", decode.TypeBool: "bool", decode.TypeCode: "dictionary of string", decode.TypeAddress: "fixed_size_binary[16]",
		decode.TypeBytes: "binary", decode.TypeText: "string", decode.TypeUnits: "uint16",
	}
	units := map[decode.ValueUnit]string{
		decode.LatencyUnit: "unit of latency", decode.TimeUnit: "device clock", decode.QueueUnit: "queue", decode.TxUnit: "full scale",
		decode.HeaderTimeUnit: "exporter's unit",
	}
	_, reports, _ := strings.Cut(string(page), "## Reports")
	reports, hops, _ := strings.Cut(reports, "A hop is a struct")
	row := regexp.MustCompile(`(?m)^\| ([a-z0-9_, ]+) \| ([^|]+) \|([^|]*)\|$`)
	check := func(page, name string, typ decode.ValueType, unit decode.ValueUnit) {
		for _, cells := range row.FindAllStringSubmatch(page, -1) {
			if strings.Contains(", "+cells[1]+",", ", "+name+",") {
				if cells[2] != types[typ] || !strings.Contains(cells[3], units[unit]) {
					t.Errorf("docs/reports-arrow.md has %q, want the type %s and %q", cells[0], types[typ], units[unit])
				}
				return
			}
		}
		t.Errorf("docs/reports-arrow.md has no column %s", name)
	}
	for _, c := range decode.ReportColumns {
		check(reports, c.Name, c.Type, c.Unit)
	}
	for _, c := range decode.HopColumns {
		check(hops, c.Name, c.Type, c.Unit)
	}
}
