package jsonl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// end is the end of the window that the tests write.
const end = int64(1_763_773_210_000_000_000) // 2025-11-22T01:00:10Z

func hopPoint(i int) sink.Point {
	return sink.Point{
		Measurement: "hop", Time: end,
		Tags: []sink.Tag{{Key: "egress_if", Value: "3"}, {Key: "node", Value: fmt.Sprint(i)}},
		Fields: []sink.Field{
			sink.IntField("count", int64(i)), sink.IntField("latency_p50", 1800), sink.IntField("latency_p90", 2500),
			sink.IntField("latency_p99", 40_000), sink.IntField("latency_max", 52_000), sink.IntField("queue_p50", 3000),
			sink.IntField("queue_p99", 90_000), sink.IntField("queue_max", 123_456), sink.FloatField("tx_utilization_max", 0.625),
		},
	}
}

func TestAppendPoint(t *testing.T) {
	one := []sink.Field{sink.IntField("v", 1)}
	const epoch = "1970-01-01T00:00:00.000000000Z"
	tests := []struct {
		name    string
		p       sink.Point
		want    string
		dropped int
	}{
		{"plain", sink.Point{Measurement: "hop", Tags: []sink.Tag{{Key: "egress_if", Value: "3"}, {Key: "node", Value: "17"}}, Fields: []sink.Field{
			sink.IntField("count", 12), sink.FloatField("tx", 0.25), sink.StringField("path", "1-2")}, Time: end + 123},
			`{"measurement":"hop","time":"2025-11-22T01:00:10.000000123Z","tags":{"egress_if":"3","node":"17"},"fields":{"count":12,"tx":0.25,"path":"1-2"}}`, 0},
		{"no tags, time before 1970", sink.Point{Measurement: "m", Fields: one, Time: -5},
			`{"measurement":"m","time":"1969-12-31T23:59:59.999999995Z","tags":{},"fields":{"v":1}}`, 0},
		{"first time", sink.Point{Measurement: "m", Fields: one, Time: math.MinInt64},
			`{"measurement":"m","time":"1677-09-21T00:12:43.145224192Z","tags":{},"fields":{"v":1}}`, 0},
		{"last time", sink.Point{Measurement: "m", Fields: one, Time: math.MaxInt64},
			`{"measurement":"m","time":"2262-04-11T23:47:16.854775807Z","tags":{},"fields":{"v":1}}`, 0},
		{"extreme integers", sink.Point{Measurement: "m", Fields: []sink.Field{sink.IntField("a", math.MinInt64), sink.IntField("b", math.MaxInt64)}},
			`{"measurement":"m","time":"` + epoch + `","tags":{},"fields":{"a":-9223372036854775808,"b":9223372036854775807}}`, 0},
		{"floats look like floats", sink.Point{Measurement: "m", Fields: []sink.Field{sink.FloatField("a", 3), sink.FloatField("b", -0.1), sink.FloatField("c", 1e300),
			sink.FloatField("d", 1e-7), sink.FloatField("e", math.Copysign(0, -1)), sink.FloatField("f", 1e20)}},
			`{"measurement":"m","time":"` + epoch + `","tags":{},"fields":{"a":3.0,"b":-0.1,"c":1e+300,"d":1e-07,"e":-0.0,"f":100000000000000000000.0}}`, 0},
		{"what strings need", sink.Point{Measurement: `a"b`, Tags: []sink.Tag{{Key: "k\\", Value: "l\nm\r\t"}}, Fields: []sink.Field{
			sink.StringField("s", "\x00\x1f\x7f é → 😀 <&> \u2028 \xff \xc3"), sink.StringField("", "")}},
			`{"measurement":"a\"b","time":"` + epoch + `","tags":{"k\\":"l\nm\r\t"},"fields":{"s":"\u0000\u001f\u007f é → 😀 <&> \u2028 ` + "\ufffd \ufffd" + `","":""}}`, 0},
		{"not finite", sink.Point{Measurement: "m", Fields: []sink.Field{sink.FloatField("a", math.NaN()), sink.IntField("b", 2), sink.FloatField("c", math.Inf(-1))}},
			`{"measurement":"m","time":"` + epoch + `","tags":{},"fields":{"b":2}}`, 2},
		{"nothing finite", sink.Point{Measurement: "m", Fields: []sink.Field{sink.FloatField("a", math.Inf(1))}}, "", 1},
		{"no field", sink.Point{Measurement: "m"}, "", 0},
	}
	var buf []byte
	for _, tt := range tests {
		got, dropped := AppendPoint([]byte("before"), &tt.p)
		want := "before"
		if tt.want != "" {
			want += tt.want + "\n"
		}
		if string(got) != want || dropped != tt.dropped {
			t.Errorf("%s: AppendPoint = %q, %d\nwant %q, %d", tt.name, got, dropped, want, tt.dropped)
		}
		if tt.want != "" {
			sameAsJSON(t, &tt.p)
		}
		buf = append(buf[:0], make([]byte, 0, 1024)...)
		if n := testing.AllocsPerRun(100, func() { buf, _ = AppendPoint(buf[:0], &tt.p) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", tt.name, n)
		}
	}
}

// sameAsJSON holds the line of a point against what encoding/json makes of it: both must be read back as the same.
func sameAsJSON(t *testing.T, p *sink.Point) {
	t.Helper()
	line, _ := AppendPoint(nil, p)
	if i := bytes.IndexByte(line, '\n'); i != len(line)-1 || !utf8.Valid(line) {
		t.Fatalf("line %q: line break at %d, or not UTF-8", line, i)
	}
	type object struct {
		Measurement string            `json:"measurement"`
		Time        time.Time         `json:"time"`
		Tags        map[string]string `json:"tags"`
		Fields      map[string]any    `json:"fields"`
	}
	o := object{p.Measurement, time.Unix(0, p.Time).UTC(), map[string]string{}, map[string]any{}}
	for _, tag := range p.Tags {
		o.Tags[tag.Key] = tag.Value
	}
	for _, f := range p.Fields {
		switch {
		case f.Kind == sink.Int:
			o.Fields[f.Key] = f.Int
		case f.Kind == sink.String:
			o.Fields[f.Key] = f.Str
		case !math.IsNaN(f.Float) && !math.IsInf(f.Float, 0):
			o.Fields[f.Key] = f.Float
		}
	}
	theirs, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) (out object) {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		d.DisallowUnknownFields()
		if err := d.Decode(&out); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		return out
	}
	got, want := read(line), read(theirs)
	for k, v := range want.Fields { // compared as numbers below
		if sameNumber(got.Fields[k], v) {
			got.Fields[k] = v
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("line %q reads as %v, want %v", line, got, want)
	}
}

// sameNumber reports whether a and b are one number in JSON. Two integers are compared by all their digits. If one has
// a fraction or an exponent, both are floats. Package encoding/json writes whole floats without a fraction, and their
// last digits are not those of an integer.
func sameNumber(a, b any) bool {
	m, isA := a.(json.Number)
	n, isB := b.(json.Number)
	if !isA || !isB {
		return false
	}
	i, errA := m.Int64()
	j, errB := n.Int64()
	if errA == nil && errB == nil {
		return i == j
	}
	f, errA := m.Float64()
	g, errB := n.Float64()
	return errA == nil && errB == nil && f == g
}

// Every series and a finding go through, with the keys of the list of series in its order.
func TestAllSeries(t *testing.T) {
	for i := range sink.AllSeries {
		s := &sink.AllSeries[i]
		p := sink.Point{Measurement: s.Measurement, Time: end}
		want := []string{`"measurement"`, `"` + s.Measurement + `"`, `"time"`, `"tags"`}
		for _, tag := range s.Tags {
			p.Tags = append(p.Tags, sink.Tag{Key: tag.Key, Value: "x"})
			want = append(want, `"`+tag.Key+`"`)
		}
		want = append(want, `"fields"`)
		for _, f := range s.Fields {
			p.Fields = append(p.Fields, sink.Field{Key: f.Key, Kind: f.Kind, Int: 7, Float: 0.5, Str: "y"})
			want = append(want, `"`+f.Key+`"`)
		}
		if err := sink.CheckPoint(&p); err != nil {
			t.Fatal(err)
		}
		sameAsJSON(t, &p)
		line, _ := AppendPoint(nil, &p)
		rest := string(line)
		for _, key := range want {
			_, after, ok := strings.Cut(rest, key)
			if !ok {
				t.Fatalf("%s: %s is missing or out of order in %q", s.Measurement, key, line)
			}
			rest = after
		}
	}

	w := sink.NewWindow("here", &inference.Window{End: end}, []inference.Finding{{Node: 7, Text: `port 3 "drops"`, Updated: end, Start: end}})
	for i := range w.Points() {
		sameAsJSON(t, &w.Points()[i])
	}
	if len(w.Points()) != 1 {
		t.Errorf("a finding is %d points, want 1", len(w.Points()))
	}
}

func FuzzAppendPoint(f *testing.F) {
	f.Add("hop", "node", "17", "text", "a \"b\" \\ \n\x00é→😀\xff", int64(12), 0.25, end)
	f.Add("", "", "", "", "", int64(math.MinInt64), math.Inf(1), int64(math.MinInt64))
	f.Add("\xed\xa0\x80", "\u2028", "</script>", "\x7f", "\xf4\x90\x80\x80", int64(1)<<53+1, 1e21, int64(-1))
	f.Add("a", "b", "c", "d", "\xe2\x82", int64(0), 5e-324, int64(math.MaxInt64))
	f.Add("a", "b", "c", "d", "e", int64(9007199254740920), 2857142857142857000.0, int64(-1)) // a float above 2^53 that is whole
	f.Fuzz(func(t *testing.T, measurement, tagKey, tagValue, fieldKey, text string, i int64, v float64, at int64) {
		// The prefixes keep keys apart that differ in bytes which are no UTF-8.
		sameAsJSON(t, &sink.Point{
			Measurement: measurement, Time: at, Tags: []sink.Tag{{Key: tagKey, Value: tagValue}},
			Fields: []sink.Field{sink.StringField("s"+fieldKey, text), sink.IntField("i"+fieldKey, i), sink.FloatField("f"+fieldKey, v)},
		})
	})
}
