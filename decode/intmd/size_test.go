package intmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

var fantOptions = Options{Versions: V21, Domains: []Domain{FANT}}

// The widths follow from the published sums of FANT, which are two. Both hold, and so do those of the specifications.
func TestStackBytes(t *testing.T) {
	tests := []struct {
		name                 string
		opts                 Options
		bitmap               uint16
		header, perHop, hops int // hops in 1458 bytes: Ethernet's 1500 without IPv4, UDP and the first 14 of a payload
	}{
		{"FANT, detailed: 84 bytes of metrics", fantOptions, 0xfffe, 16, 84, 12},
		{"FANT, detailed, with checksum complement", fantOptions, 0xffff, 16, 84 + 4, 11},
		{"FANT, basic: 28 bytes of metrics", fantOptions, 0xf160, 16, 28, 36},
		{"FANT, basic, with checksum complement", fantOptions, 0xf161, 16, 28 + 4, 31},
		{"2.1", all, 0xffff, 16, 4 * 19, 13},
		{"2.1, node id", all, 0x8000, 16, 4, 252},
		{"2.1 from the other end", Options{Versions: V21, LeastFirst: true}, 0x0070, 16, 24, 42},
		{"1.0", Options{Versions: V10}, 0xff00, 12, 36, 28},
		{"1.0 with wide times", Options{Versions: V10, WideTimes: true}, 0xff00, 12, 40, 25},
		{"0.5", Options{Versions: V05}, 0xff00, 16, 32, 31},
		{"0.5 of Intel's hosts", Options{Versions: V05, HostINT: true}, 0xff00, 20, 32, 31},
	}
	for _, tt := range tests {
		header, perHop, err := tt.opts.StackBytes(tt.bitmap)
		if err != nil || header != tt.header || perHop != tt.perHop {
			t.Errorf("%s: %d and %d bytes a hop, %v; want %d and %d", tt.name, header, perHop, err, tt.header, tt.perHop)
		}
		if n, err := tt.opts.MaxHops(tt.bitmap, 1458); err != nil || n != tt.hops {
			t.Errorf("%s: %d hops, %v; want %d", tt.name, n, err, tt.hops)
		}
		if n, err := tt.opts.MaxHops(tt.bitmap, header+3*perHop-1); err != nil || n != 2 {
			t.Errorf("%s: %d hops in a byte less than three, %v", tt.name, n, err)
		}
		if n, err := tt.opts.MaxHops(tt.bitmap, 3); err != nil || n != 0 {
			t.Errorf("%s: %d hops in 3 bytes, %v", tt.name, n, err)
		}
	}
	for want, try := range map[string]struct {
		opts   Options
		bitmap uint16
	}{
		"asks for nothing":      {fantOptions, 0},
		"no INT in packets":     {Options{}, 0x8000},
		"writes another width":  {Options{Versions: V10, WideTimes: true}, 0x3000},
		"bitmap 0x0000 asks fo": {Options{Versions: V05}, 0},
	} {
		if _, _, err := try.opts.StackBytes(try.bitmap); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %#04x: %v, want %s", try.opts, try.bitmap, err, want)
		}
		if _, err := try.opts.MaxHops(try.bitmap, 1000); err == nil {
			t.Errorf("%+v, %#04x: hops without bytes", try.opts, try.bitmap)
		}
	}
}

// The sizes equal those of the encoder's output, for every bitmap.
func TestStackBytesAreWritten(t *testing.T) {
	for _, opts := range []Options{fantOptions, all, {Versions: V10}, {Versions: V05}} {
		for bitmap := 1; bitmap < 1<<16; bitmap += 61 {
			h, err := opts.header(uint16(bitmap))
			if err != nil {
				t.Fatal(err)
			}
			header, perHop, err := opts.StackBytes(h.Instructions)
			if err != nil {
				t.Fatal(err)
			}
			if b := Append(nil, &h, make([]decode.Hop, 2)); len(b) != header+2*perHop {
				t.Fatalf("%+v, %#04x: %d bytes, the model says %d + 2 * %d", opts, bitmap, len(b), header, perHop)
			}
		}
	}
	if n := 4 * packet.Words(packet.INT2FANT, 0xffff); n != 4*packet.MaxWords || n/4 > maxHopWords {
		t.Errorf("the largest block has %d bytes", n)
	}
}

// What is written of FANT's hops and counts is what the worked examples have; counts that are not known are all ones.
func TestAppendFANT(t *testing.T) {
	buf := make([]byte, 0, 256)
	for _, tt := range []struct {
		vector string
		bitmap uint16
		counts [2]int // where a block has bits 9 to 14
	}{
		{"fant-basic", 0xf161, [2]int{20, 28}}, {"fant-detailed", 0xffff, [2]int{48, 84}},
	} {
		h := Header{Version: decode.V21, Instructions: tt.bitmap, RemainingHops: 6, DSCP: 10, DomainID: FANTDomain, Layout: FANT.Layout}
		hops, counts := fantHops(allFields), fantCounts(^decode.HopCount(0))
		want := bytesOf(t, tt.vector)
		got := AppendHeader(nil, &h, 2*4*h.HopWords())
		for i := len(hops) - 1; i >= 0; i-- {
			got = AppendCounted(got, &h, &hops[i], &counts[i])
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", tt.vector, got, want)
		}
		for at := h.Len(); at < len(want); at += 4 * h.HopWords() {
			for k := at + tt.counts[0]; k < at+tt.counts[1]; k++ {
				want[k] = 0xff
			}
		}
		if got := Append(nil, &h, hops); !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", tt.vector, got, want)
		}
		if n := testing.AllocsPerRun(100, func() { buf = Append(buf[:0], &h, hops) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", tt.vector, n)
		}
	}
}
