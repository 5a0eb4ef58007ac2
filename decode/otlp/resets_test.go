package otlp

import (
	"testing"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/hopscope/hopscope/decode"
)

// family writes sums of one of the kinds that count.
type family struct {
	name string
	rule Rule
	of   func(start, at uint64, v uint64) *metrics.Metric
}

func families() (list []family) {
	const cumulative = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	add := func(name string, rule Rule, of func(start, at, v uint64) *metrics.Metric) {
		rule.Metric, rule.Interface = "m", "if"
		list = append(list, family{name, rule, of})
	}
	number := func(start, at, v uint64) *metrics.NumberDataPoint {
		p := doubleAt(int64(at), float64(v), text("if", "e1"))
		p.StartTimeUnixNano = start
		return p
	}
	for _, s := range []Statistic{Octets, Drops, Errors, InPackets, OutPackets, InOctets} {
		rule := Rule{Statistic: s}
		if s == Octets {
			rule.Speed = 8e4 // a hundredth of a percent is a byte in a second
		}
		add(Statistics[s]+" of a sum", rule, func(start, at, v uint64) *metrics.Metric { return counterOf("m", cumulative, number(start, at, v)) })
		add(Statistics[s]+" of a gauge", rule, func(start, at, v uint64) *metrics.Metric { return gaugeOf("m", number(start, at, v)) })
	}
	for _, s := range []Statistic{Latency, Queue} {
		add(Statistics[s]+" of a histogram", Rule{Statistic: s}, func(start, at, v uint64) *metrics.Metric {
			return &metrics.Metric{Name: "m", Data: &metrics.Metric_Histogram{Histogram: &metrics.Histogram{AggregationTemporality: cumulative, DataPoints: []*metrics.HistogramDataPoint{{
				Attributes: attributes(text("if", "e1")), TimeUnixNano: at, StartTimeUnixNano: start, BucketCounts: []uint64{v / 2, v - v/2}, ExplicitBounds: []float64{10}}}}}}
		})
		add(Statistics[s]+" of an exponential histogram", Rule{Statistic: s}, func(start, at, v uint64) *metrics.Metric {
			return &metrics.Metric{Name: "m", Data: &metrics.Metric_ExponentialHistogram{ExponentialHistogram: &metrics.ExponentialHistogram{AggregationTemporality: cumulative,
				DataPoints: []*metrics.ExponentialHistogramDataPoint{{Attributes: attributes(text("if", "e1")), TimeUnixNano: at, StartTimeUnixNano: start, ZeroCount: v / 4,
					Positive: &metrics.ExponentialHistogramDataPoint_Buckets{Offset: 3, BucketCounts: []uint64{v / 2, v - v/2 - v/4}}}}}}}
		})
	}
	return list
}

// A sum that fell under its start, or whose start is unknown, counts nothing of that point: it was set to an unknown
// value. A sum whose start moved counts whole if it fell, or if another one with that start did. Else its increment
// counts.
func TestResets(t *testing.T) {
	const (
		second = uint64(1e9)
		first  = uint64(now)
		third  = first + 2*second // the point at hand; the one before is a second earlier
		begin  = first - 3600*second
	)
	for _, c := range []struct {
		name        string
		start, next uint64 // of the third point, and of those before it
		value, want uint64
		resets      int
	}{
		{"goes on", begin, begin, 1030, 20, 0},
		{"is set", begin, begin, 8, 0, 1},
		{"begins anew", third - second, begin, 8, 8, 1},
		{"a sender began anew, and the sum goes on", third - second, begin, 1030, 20, 1},
		{"a start that is not known", third, begin, 1030, 20, 0},
		{"a start that is not known, and it fell", third, begin, 8, 0, 1},
		{"no start any more", 0, begin, 1030, 20, 0},
		{"no start any more, and it fell", 0, begin, 8, 0, 1},
		{"never a start", 0, 0, 1030, 20, 0},
		{"never a start, and it fell", 0, 0, 8, 0, 1},
		{"a start before the point before", third - second - 1, begin, 1030, 20, 0},
		{"a start before the point before, and it fell", third - second - 1, begin, 8, 0, 1},
		{"an earlier start", begin - second, begin, 1030, 20, 0},
		{"an earlier start, and it fell", begin - second, begin, 8, 0, 1},
		{"a start in the future", third + second, begin, 8, 0, 1},
	} {
		for _, f := range families() {
			d := testDecoder(f.rule)
			resets := 0
			receive := func(start, at, v uint64) uint64 {
				list, got := read(t, d, asked("leaf", f.of(start, at, v)), int64(at))
				resets += got.Resets
				return countedOf(t, list)
			}
			after := min(c.start, third)
			got := [4]uint64{receive(c.next, first, 1000), receive(c.next, third-second, 1010), receive(c.start, third, c.value), receive(after, third+second, c.value+4)}
			if want := [4]uint64{0, 10, c.want, 4}; got != want || resets != c.resets {
				t.Errorf("%s, %s: %d and %d resets, want %d and %d", f.name, c.name, got, resets, want, c.resets)
			}
		}
	}
	// The first point of a stream counts whole if it says that it began a moment before.
	for _, f := range families() {
		for start, want := range map[uint64]uint64{0: 0, begin: 0, first: 0, first + second: 0, first - second: 1000} {
			list, _ := read(t, testDecoder(f.rule), asked("leaf", f.of(start, first, 1000)), now)
			if n := countedOf(t, list); n != want {
				t.Errorf("%s: %d counted of a first point whose start is %v away", f.name, n, time.Duration(start-first))
			}
		}
	}
}

// countedOf adds up the counts of reports.
func countedOf(t *testing.T, list []decode.Report) (n uint64) {
	t.Helper()
	for i := range list {
		r := &list[i]
		if r.Err.Reason != 0 {
			t.Error(r.Error())
		}
		n += r.AddRare().Counters.InPackets + r.AddRare().Counters.OutPackets + r.AddRare().Counters.InOctets + uint64(r.Weight)
		for _, h := range r.Hops {
			n += uint64(h.TxUtilization)
		}
		for _, b := range r.AddRare().Histogram.Buckets {
			n += b.Count
		}
	}
	return n
}

// What began anew with the start of a sum that fell counts whole, though it has more than before.
func TestRestartOfAll(t *testing.T) {
	for _, f := range families() {
		if f.rule.Statistic == Drops || f.rule.Statistic == Errors {
			continue // of which others are counted here
		}
		other := Rule{Metric: "other", Interface: "if", Statistic: Drops}
		d := testDecoder(f.rule, other)
		drops := func(start, at int64, v float64) *metrics.Metric {
			p := doubleAt(at, v, text("if", "e1"))
			p.StartTimeUnixNano = uint64(start)
			return counterOf("other", 2, p)
		}
		old, start, at := now-3600e9, now+1e9, now+2e9
		read(t, d, asked("leaf", drops(old, now, 50), f.of(uint64(old), uint64(now), 20)), now)
		list, got := read(t, d, asked("leaf", drops(start, at, 3), f.of(uint64(start), uint64(at), 25)), at)
		if n := countedOf(t, list); n != 25+3 || got.Resets != 2 {
			t.Errorf("%s: %d counted and %d resets, want 28 and 2", f.name, n, got.Resets)
		}
		// The one that fell may come behind it.
		d = testDecoder(f.rule, other)
		read(t, d, asked("leaf", f.of(uint64(old), uint64(now), 20), drops(old, now, 50)), now)
		list, got = read(t, d, asked("leaf", f.of(uint64(start), uint64(at), 25), drops(start, at, 3)), at)
		if n := countedOf(t, list); n != 25+3 || got.Resets != 2 || got.Points != 2 {
			t.Errorf("%s, before the one that fell: %d counted of %d points and %d resets, want 28, 2 and 2", f.name, n, got.Points, got.Resets)
		}
		// A sender that began anew, and whose sums go on, has none that fell.
		d = testDecoder(f.rule, other)
		read(t, d, asked("leaf", f.of(uint64(old), uint64(now), 20), drops(old, now, 50)), now)
		list, got = read(t, d, asked("leaf", f.of(uint64(start), uint64(at), 25), drops(start, at, 53)), at)
		if n := countedOf(t, list); f.rule.Statistic != Octets && n != 5+3 || got.Resets != 2 { // those of a use go by the time
			t.Errorf("%s, none fell: %d counted and %d resets, want 8 and 2", f.name, n, got.Resets)
		}
	}
}

// A sum that restarted and is above the point before counts whole if its start moved and all of it fits the time
// since then. A sum whose total is too high for that time went on under the new start of its sender. Without evidence
// of its start, the difference counts, which can be too little by the old total.
func TestAnewAbove(t *testing.T) {
	const second = uint64(1e9)
	first := uint64(now)
	for _, c := range []struct {
		name        string
		start       uint64
		value, want uint64
	}{
		{"began anew", first + 2*second, 80, 80},
		{"is too high for the time since its start", first + 2*second, 400, 380},
		{"has its old start", first - second, 80, 60},
		{"has no start", 0, 80, 60},
		{"began before the point before", first, 80, 60},
	} {
		for _, f := range families() {
			d := testDecoder(f.rule)
			receive := func(start, at, v uint64) uint64 {
				list, _ := read(t, d, asked("leaf", f.of(start, at, v)), int64(at))
				return countedOf(t, list)
			}
			receive(first-second, first, 10)
			if before := receive(first-second, first+second, 20); before != 10 {
				t.Fatalf("%s: %d counted before", f.name, before)
			}
			got := receive(c.start, first+10*second, c.value)
			if f.rule.Statistic == Octets { // those of a use go by the time
				continue
			}
			if got != c.want {
				t.Errorf("%s, %s: %d counted, want %d", f.name, c.name, got, c.want)
			}
		}
	}
}

// A request is read ahead a few times at most, however many starts it has.
func TestManyStarts(t *testing.T) {
	const sums = 3000
	d := testDecoder(Rule{Metric: "m", Statistic: Drops})
	sum := func(k int, start, at int64, v float64) *metrics.NumberDataPoint {
		p := doubleAt(at, v, number("k", int64(k)))
		p.StartTimeUnixNano = uint64(start)
		return p
	}
	request := func(at int64, v float64, start func(k int) int64) *metrics.Metric {
		var points []*metrics.NumberDataPoint
		for k := range sums {
			points = append(points, sum(k, start(k), at, v))
		}
		return counterOf("m", 2, points...)
	}
	read(t, d, asked("leaf", request(now, 20, func(int) int64 { return now - 3600e9 })), now)
	list, got := read(t, d, asked("leaf", request(now+2e9, 25, func(k int) int64 { return now + 1e9 + int64(k) })), now+2e9)
	if n := countedOf(t, list); n != 5*sums || got.Resets != sums || d.asks > 4 {
		t.Errorf("%d counted, %d resets, read ahead %d times", n, got.Resets, d.asks)
	}
}
