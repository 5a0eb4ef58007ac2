package window

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

func fillCounts(p *Partial, rng *rand.Rand) {
	span := func() (s CountSpan) {
		if s.Has = rng.IntN(3) > 0; s.Has {
			s.Before = rng.IntN(2) > 0
			s.FirstAt, s.LastAt, s.First, s.Last = rng.Int64N(5), 5+rng.Int64N(5), rng.Uint32N(9), rng.Uint32N(9)
		}
		return s
	}
	for range rng.IntN(20) {
		x := InterfaceCounts{Node: rng.Uint32N(3), Interface: rng.Uint32N(5), Sights: rng.Uint64N(3), Sent: span(), Dropped: span()}
		if x.Sent.Has || x.Dropped.Has {
			p.AddCounts(&x)
		}
	}
}

// TestCountsInPackets: the rise of a counter is its latest reading less an earlier one. That is the last one before the
// window, of any shard or process, or the first in it. A counter that fell has none, and neither do those of an
// interface that sends its own.
func TestCountsInPackets(t *testing.T) {
	before := func(at int64, first uint32, to int64, last uint32) CountSpan {
		return CountSpan{true, true, at, to, first, last}
	}
	within := func(at int64, first uint32, to int64, last uint32) CountSpan {
		return CountSpan{true, false, at, to, first, last}
	}
	own := inference.InterfaceStats{Node: 5, Samples: 1, Counters: decode.Counters{Has: decode.CountOutDiscards, Interface: 1, OutDiscards: 3}}
	parts := [2]Partial{}
	for i, list := range [2][]InterfaceCounts{
		{
			{1, 1, 2, before(90, 100, 120, 150), before(90, 7, 120, 8)},
			{2, 1, 1, within(110, 40, 115, 50), CountSpan{}},
			{3, 1, 1, before(90, math.MaxUint32-1, 120, 3), before(90, 0, 120, 0)}, // modulo 2^32, as another interface shows
			{3, 2, 1, before(90, 7, 120, 7), CountSpan{}},
			{6, 1, 1, before(90, 3e9, 120, 3), before(90, 0, 120, 0)},   // began anew, or went on modulo 2^32
			{7, 1, 1, before(90, 3e9, 120, 3), before(90, 3e9, 120, 0)}, // began anew
			{7, 2, 1, before(90, 3e9, 120, 8), CountSpan{}},
			{8, 1, 1, before(90, 3e9, 120, 3), before(90, 1, 120, 2)}, // modulo 2^32, as the other counter shows
			{9, 1, 1, before(90, 3e9, 5e9, 3), CountSpan{}},           // the other counter was read too long before
			{9, 2, 1, before(90, 3e9, 3e9, 3e9), CountSpan{}},
			{10, 1, 1, before(90, 3e9, 5e9, 3), CountSpan{}}, // or is read since too short a time
			{10, 2, 1, within(3e9, 8, 5e9, 9), CountSpan{}},
			{4, 1, 1, before(90, 5_000, 120, 3), before(90, 1, 120, 1)}, // began anew
			{5, 1, 1, before(90, 0, 120, 9), before(90, 0, 120, 9)},
		},
		{
			{1, 1, 1, before(80, 95, 130, 160), before(80, 7, 130, 9)},
			{2, 1, 1, within(105, 38, 112, 44), within(105, 1, 112, 3)},
		},
	} {
		for k := range list {
			parts[i].AddCounts(&list[k])
		}
		parts[i].Span(100, 200)
	}
	parts[0].AddInterface(&own)
	want := []inference.InterfaceStats{
		{Node: 1, Samples: 3, Counters: decode.Counters{Has: decode.CountOutPackets | decode.CountOutDiscards, Interface: 1, OutPackets: 62, OutDiscards: 2}},
		{Node: 2, Samples: 2, Counters: decode.Counters{Has: decode.CountOutPackets | decode.CountOutDiscards, Interface: 1, OutPackets: 14, OutDiscards: 2}},
		{Node: 3, Samples: 1, Counters: decode.Counters{Has: decode.CountOutPackets | decode.CountOutDiscards, Interface: 1, OutPackets: 5}},
		{Node: 3, Samples: 1, Counters: decode.Counters{Has: decode.CountOutPackets, Interface: 2}},
		own,
		{Node: 8, Samples: 1, Counters: decode.Counters{Has: decode.CountOutPackets | decode.CountOutDiscards, Interface: 1, OutPackets: 1<<32 - 3e9 + 4, OutDiscards: 1}},
		{Node: 9, Samples: 1, Counters: decode.Counters{Has: decode.CountOutPackets, Interface: 2}},
		{Node: 10, Samples: 1, Counters: decode.Counters{Has: decode.CountOutPackets, Interface: 2, OutPackets: 1}},
	}
	for _, first := range []int{0, 1} {
		var p Partial
		p.Merge(&parts[first])
		p.Merge(read(t, encode(t, &parts[1-first])))
		if w := read(t, encode(t, &p)).Window(wide); !reflect.DeepEqual(w.Interfaces, want) {
			t.Errorf("got  %+v\nwant %+v", w.Interfaces, want)
		}
	}

	// Earlier versions pass over the section, and have the rest as it was.
	var rest, all Partial
	rest.Span(100, 200)
	rest.AddInterface(&own)
	all.Merge(&rest)
	all.AddCounts(&InterfaceCounts{1, 1, 1, before(90, 1, 120, 2), CountSpan{}})
	b, short := encode(t, &all), encode(t, &rest)
	if !slices.Equal(b[:len(short)], short) {
		t.Error("counts change bytes that earlier versions read")
	}
	b[len(short)] = 99
	if got := read(t, b).Window(wide); !reflect.DeepEqual(got.Interfaces, rest.Window(wide).Interfaces) {
		t.Errorf("%+v", got.Interfaces)
	}
}
