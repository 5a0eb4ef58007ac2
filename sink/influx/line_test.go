package influx

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	influxwrite "github.com/influxdata/influxdb-client-go/v2/api/write"
	protocol "github.com/influxdata/line-protocol"

	"github.com/hopscope/hopscope/sink"
)

func TestAppendPoint(t *testing.T) {
	tags := func(kv ...string) (out []sink.Tag) {
		for i := 0; i < len(kv); i += 2 {
			out = append(out, sink.Tag{Key: kv[i], Value: kv[i+1]})
		}
		return out
	}
	one := []sink.Field{sink.IntField("v", 1)}
	tests := []struct {
		name    string
		p       sink.Point
		want    string
		dropped int
	}{
		{"plain", sink.Point{Measurement: "hop", Tags: tags("egress_if", "3", "node", "17"), Fields: []sink.Field{
			sink.IntField("count", 12), sink.FloatField("tx", 0.25), sink.StringField("path", "1-2")}, Time: 1700000000000000000},
			"hop,egress_if=3,node=17 count=12i,tx=0.25,path=\"1-2\" 1700000000000000000\n", 0},
		{"no tags, time before 1970", sink.Point{Measurement: "m", Fields: one, Time: -5}, "m v=1i -5\n", 0},
		{"extreme integers", sink.Point{Measurement: "m", Fields: []sink.Field{sink.IntField("a", math.MinInt64), sink.IntField("b", math.MaxInt64)}},
			"m a=-9223372036854775808i,b=9223372036854775807i 0\n", 0},
		{"floats", sink.Point{Measurement: "m", Fields: []sink.Field{sink.FloatField("a", 1e300), sink.FloatField("b", -0.1), sink.FloatField("c", 3)}},
			"m a=1e+300,b=-0.1,c=3 0\n", 0},
		{"special characters in a measurement", sink.Point{Measurement: "a,b c=d", Fields: one}, `a\,b\ c=d v=1i 0` + "\n", 0},
		{"special characters in a tag", sink.Point{Measurement: "m", Tags: tags("a b=c,d", "e f=g,h"), Fields: one},
			`m,a\ b\=c\,d=e\ f\=g\,h v=1i 0` + "\n", 0},
		{"quote in a tag and a field key", sink.Point{Measurement: "m", Tags: tags("a", `"b"`), Fields: []sink.Field{sink.IntField(`v"w`, 1)}},
			`m,a="b" v'w=1i 0` + "\n", 0},
		{"backslash inside stays", sink.Point{Measurement: "m", Tags: tags("a", `b\c`), Fields: one}, `m,a=b\c v=1i 0` + "\n", 0},
		{"backslash before a separator", sink.Point{Measurement: `m\`, Tags: tags("a", `b\`, "c", `d\\,e`), Fields: one},
			`m/,a=b/,c=d//\,e v=1i 0` + "\n", 0},
		{"control characters in a tag", sink.Point{Measurement: "m", Tags: tags("a", "b\nc\r\td\x00\x7f"), Fields: one},
			`m,a=b\nc\r\td` + "\ufffd\ufffd v=1i 0\n", 0},
		{"not UTF-8", sink.Point{Measurement: "m", Tags: tags("a", "é\xff"), Fields: []sink.Field{sink.StringField("s", "\xc3ü")}},
			"m,a=é\ufffd s=\"\ufffdü\" 0\n", 0},
		{"text", sink.Point{Measurement: "m", Fields: []sink.Field{sink.StringField("s", "a \"b\" \\ c,d=e\nf\x00")}},
			"m s=\"a \\\"b\\\" \\\\ c,d=e\nf\ufffd\" 0\n", 0},
		{"empty tag and empty text", sink.Point{Measurement: "m", Tags: tags("a", "", "b", "x"), Fields: []sink.Field{sink.StringField("s", "")}},
			"m,b=x s=\"\" 0\n", 0},
		{"not finite", sink.Point{Measurement: "m", Fields: []sink.Field{sink.FloatField("a", math.NaN()), sink.IntField("b", 2), sink.FloatField("c", math.Inf(-1))}},
			"m b=2i 0\n", 2},
		{"nothing finite", sink.Point{Measurement: "m", Fields: []sink.Field{sink.FloatField("a", math.Inf(1))}}, "", 1},
		{"no field", sink.Point{Measurement: "m"}, "", 0},
		{"no measurement", sink.Point{Fields: one}, "", 0},
		{"comment", sink.Point{Measurement: "#m", Fields: one}, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, dropped := AppendPoint([]byte("before\n"), &tt.p)
			if want := "before\n" + tt.want; string(got) != want || dropped != tt.dropped {
				t.Errorf("AppendPoint(%+v) = %q, %d, want %q, %d", tt.p, got, dropped, want, tt.dropped)
			}
		})
	}
	p := hopPoint(3)
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { buf, _ = AppendPoint(buf[:0], &p) }); n != 0 {
		t.Errorf("%v allocs per point, want 0", n)
	}
}

// hopPoint is a point as the collector makes thousands of in each window.
func hopPoint(i int) sink.Point {
	return sink.Point{
		Measurement: "hop",
		Tags:        []sink.Tag{{Key: "egress_if", Value: "12"}, {Key: "node", Value: "2035"}},
		Fields: []sink.Field{
			sink.IntField("count", 48211+int64(i)), sink.IntField("latency_p50", 1210), sink.IntField("latency_p90", 4302),
			sink.IntField("latency_p99", 88123), sink.IntField("latency_max", 1288123), sink.IntField("queue_p50", 0),
			sink.IntField("queue_p99", 48000), sink.IntField("queue_max", 192000), sink.FloatField("tx_utilization_max", 0.734),
		},
		Time: 1_790_000_000_000_000_000,
	}
}

// clientPoint is p as the client wants it.
func clientPoint(p *sink.Point) *influxwrite.Point {
	out := influxwrite.NewPointWithMeasurement(p.Measurement).SetTime(time.Unix(0, p.Time))
	for _, t := range p.Tags {
		out.AddTag(t.Key, t.Value)
	}
	for _, f := range p.Fields {
		switch f.Kind {
		case sink.Int:
			out.AddField(f.Key, f.Int)
		case sink.Float:
			out.AddField(f.Key, f.Float)
		default:
			out.AddField(f.Key, f.Str)
		}
	}
	return out
}

// clientEncoder is set as the client sets it.
func clientEncoder(buf *bytes.Buffer) *protocol.Encoder {
	e := protocol.NewEncoder(buf)
	e.SetFieldTypeSupport(protocol.UintSupport)
	e.FailOnFieldErr(true)
	e.SetPrecision(time.Nanosecond)
	return e
}

// The client's own encoder is the oracle where both can write the point.
func TestAppendPointLikeClient(t *testing.T) {
	const letters = `abc019-_.:/,= "é`
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		word := func() string {
			b := make([]rune, 1+r.IntN(6))
			for i := range b {
				b[i] = []rune(letters)[r.IntN(len([]rune(letters)))]
			}
			return string(b)
		}
		p := sink.Point{Measurement: word(), Time: r.Int64()}
		for i := range r.IntN(4) {
			p.Tags = append(p.Tags, sink.Tag{Key: string(rune('a'+i)) + word(), Value: word()})
		}
		for i := range 1 + r.IntN(4) {
			f := sink.Field{Key: string(rune('a' + i)), Kind: sink.FieldKind(r.IntN(3)), Int: int64(r.Uint64()), Float: r.NormFloat64() * 1e6, Str: word()}
			p.Fields = append(p.Fields, f)
		}
		got, _ := AppendPoint(nil, &p)
		var want bytes.Buffer
		if _, err := clientEncoder(&want).Encode(clientPoint(&p)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		g, w := parse(t, got), parse(t, want.Bytes()) // the spelling of floats may differ
		if g != w {
			t.Fatalf("seed %d: AppendPoint(%+v)\n = %q\nreads %s\nwant  %s", seed, p, got, g, w)
		}
	}
}

// parse reads one line with the parser of the line protocol's own module.
func parse(t *testing.T, line []byte) string {
	t.Helper()
	handler := protocol.NewMetricHandler()
	metrics, err := protocol.NewParser(handler).Parse(line)
	if err != nil || len(metrics) != 1 {
		t.Fatalf("parse %q: %d metrics, %v", line, len(metrics), err)
	}
	var b bytes.Buffer
	m := metrics[0]
	b.WriteString(m.Name())
	for _, tag := range m.TagList() {
		b.WriteString("|" + tag.Key + "|" + tag.Value)
	}
	for _, f := range m.FieldList() {
		b.WriteString("|" + f.Key + "|")
		b.WriteString(string(appendAny(nil, f.Value)))
	}
	b.WriteString(m.Time().String())
	return b.String()
}

func appendAny(dst []byte, v any) []byte {
	p := sink.Point{Measurement: "m"}
	switch v := v.(type) {
	case int64:
		p.Fields = []sink.Field{sink.IntField("v", v)}
	case float64:
		p.Fields = []sink.Field{sink.FloatField("v", v)}
	case string:
		p.Fields = []sink.Field{sink.StringField("v", v)}
	}
	dst, _ = AppendPoint(dst, &p)
	return dst
}

func TestSplit(t *testing.T) {
	var payload []byte
	var lines [][]byte
	for _, s := range []string{"a", "line\nbreak", `quote"`, `\`, `end\"` + "\n", ""} {
		p := sink.Point{Measurement: `m"x`, Tags: []sink.Tag{{Key: `k"`, Value: "v 1"}, {Key: "l", Value: `"`}},
			Fields: []sink.Field{sink.StringField(`f"`, s), sink.IntField("i", 1)}, Time: 7}
		line, _ := AppendPoint(nil, &p)
		lines = append(lines, line)
		payload = append(payload, line...)
	}
	if n := countLines(payload); n != len(lines) {
		t.Fatalf("countLines = %d, want %d", n, len(lines))
	}
	for n := range len(lines) + 2 {
		head, tail := split(payload, n)
		if want := bytes.Join(lines[:min(n, len(lines))], nil); !bytes.Equal(head, want) || len(head)+len(tail) != len(payload) {
			t.Errorf("split(%d) = %q, want %q", n, head, want)
		}
	}
	for _, line := range lines {
		if got, want := formOf(line), "m\"x\nf'\ni"; got != want || measurementOf(line) != `m"x` {
			t.Errorf("formOf(%q) = %q, want %q; measurement %q", line, got, want, measurementOf(line))
		}
	}
}

// Refused lines are divided by their form, then in halves, and none is lost or repeated.
func TestDivide(t *testing.T) {
	var mixed []byte
	for i := range 30 {
		mixed = fmt.Appendf(mixed, "m%d,t=a\\ b%d v=1i,w=\"x, y=\\\" z\" %d\n", i%3, i, i)
		mixed = fmt.Appendf(mixed, "m\\,0,t=%d v=1i %d\n", i, i)
	}
	pieces := divide(mixed)
	var sizes []int
	var names []string
	for _, p := range pieces {
		sizes, names = append(sizes, countLines(p)), append(names, measurementOf(p))
	}
	if !slices.Equal(sizes, []int{10, 30, 10, 10}) || !slices.Equal(names, []string{"m0", "m,0", "m1", "m2"}) {
		t.Errorf("pieces of %v points of %q", sizes, names)
	}
	halves := divide(pieces[1])
	if len(halves) != 2 || countLines(halves[0]) != 15 || !bytes.Equal(bytes.Join(halves, nil), pieces[1]) {
		t.Errorf("%d halves: %q", len(halves), halves)
	}
	for _, odd := range []string{"m", "m,t", "m v", "m v=", `m v="`, `m v="x`, "m v=1,", "m v=1 1\nm", "\n\n", `\`, `m,t=\`} {
		_ = divide([]byte(odd)) // a payload from a damaged disk does no harm
	}
}

// FuzzAppendPoint turns any point into one line. The reader of this package and the parser of the line protocol's
// module both take it as one point with the same number of fields.
func FuzzAppendPoint(f *testing.F) {
	f.Add("hop", "node", "17", "text", "a sentence", "id", int64(3), 0.5)
	f.Add(`m\`, `k\\`, `v,\ =`, `f"=`, "a\nb\"\\", `g\`, int64(-1), math.Inf(1))
	f.Add("\x00\xff", "=", " ", ",", "\x00", "#", int64(0), math.Copysign(0, -1))
	f.Fuzz(func(t *testing.T, m, tagKey, tagValue, textKey, text, intKey string, i int64, x float64) {
		if textKey != "" && (textKey[0] == 'i' || textKey[0] == 'x') { // the parser keeps one field a key
			textKey = "t" + textKey
		}
		if intKey != "" {
			intKey = "i" + intKey
		}
		p := sink.Point{Measurement: m, Tags: []sink.Tag{{Key: tagKey, Value: tagValue}, {Key: "z", Value: "1"}},
			Fields: []sink.Field{sink.StringField(textKey, text), sink.IntField(intKey, i), sink.FloatField("x", x)}, Time: i}
		line, dropped := AppendPoint(nil, &p)
		if len(line) == 0 {
			if m != "" && m[0] != '#' && (textKey != "" || intKey != "" || dropped == 0) {
				t.Fatalf("%+v was not written", p)
			}
			return
		}
		if got, rest := nextLine(line); len(got) != len(line) || len(rest) != 0 || line[len(line)-1] != '\n' {
			t.Fatalf("%q is cut to %q", line, got)
		}
		metrics, err := protocol.NewParser(protocol.NewMetricHandler()).Parse(line)
		if err != nil || len(metrics) != 1 {
			t.Fatalf("%+v: %q: %d points, %v", p, line, len(metrics), err)
		}
		want := 1 - dropped
		if textKey != "" {
			want++
		}
		if intKey != "" {
			want++
		}
		if n := len(metrics[0].FieldList()); n != want {
			t.Fatalf("%+v: %q: %d fields, want %d", p, line, n, want)
		}
	})
}
