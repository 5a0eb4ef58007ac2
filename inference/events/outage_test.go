package events

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// fleetOf returns windows of a second with exporters 10.0.0.1 and so on, each with a hop. Those for which silent is
// true are silent.
func fleetOf(n int, window int64, silent func(i int) bool) *inference.Window {
	w := &inference.Window{Start: window * 1e9, End: (window + 1) * 1e9}
	for i := range n {
		e := inference.ExporterStats{ExporterKey: inference.ExporterKey{Addr: decode.AddrFrom(netip.AddrFrom4([4]byte{10, 0, byte(2 * i / n), byte(1 + i)})), Node: uint32(1 + i)}}
		if !silent(i) {
			e.Reports = 100
			w.Reports += 100
			v := 20_000 + uint64(window*7919%97)
			w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Node: e.Node, EgressIf: 1}, Count: 100, Latency: inference.Summary{Count: 100, P50: v, P90: v + 100, P99: v + 200, Max: v + 300}})
		}
		w.Exporters = append(w.Exporters, e)
	}
	return w
}

// TestOutage lets exporters fall silent. All of them and half of them have one cause, and a few have one each. Silent
// hops behind them add no finding. The cause survives a restart, and ends when they are back.
func TestOutage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		silent func(i int, since int64) bool
		top    int // findings without a cause
		what   string
		grave  inference.Severity
	}{
		{"all", func(int, int64) bool { return true }, 1, "no datagrams at all since 1970-01-01 00:01:40, from any of 40 exporters (socket, interface, firewall, sender)", inference.Critical},
		{"all, some a window later", func(i int, since int64) bool { return i%2 == 0 || since >= 1 }, 1, "no datagrams at all since 1970-01-01 00:01:40", inference.Critical},
		{"half", func(i int, _ int64) bool { return i < 20 }, 1, "20 of 40 exporters fell silent together at 1970-01-01 00:01:40, all those of 10.0.0.0/27", inference.Warning},
		{"half of both networks", func(i int, _ int64) bool { return i%2 == 0 }, 1, "20 of 40 exporters fell silent together at 1970-01-01 00:01:40: the network", inference.Warning},
		{"three", func(i int, _ int64) bool { return i < 3 }, 3, "sent nothing", inference.Warning},
		{"one", func(i int, _ int64) bool { return i == 7 }, 1, "sent nothing", inference.Warning},
		{"all, one after the other", func(i int, since int64) bool { return since >= 3*int64(i) }, 0, "", inference.Warning},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const n, begins, ends = 40, 100, 112
			d := New(DefaultConfig())
			for k := int64(0); k < ends; k++ {
				d.Step(fleetOf(n, k, func(i int) bool { return k >= begins && tt.silent(i, k-begins) }))
				if k == ends-4 {
					second := New(DefaultConfig())
					if err := second.ReadState(d.AppendState(nil)); err != nil {
						t.Fatal(err)
					}
					d = second
				}
			}
			top, evidence, claimed := 0, 0, 0
			for _, f := range d.Open() {
				claimed += f.Evidence
				if f.Cause != 0 {
					evidence++
					continue
				}
				if top++; tt.top > 0 && (!strings.Contains(f.Text, tt.what) || f.Severity != tt.grave) {
					t.Errorf("%s %s: %s", f.Severity, f.Element, f.Text)
				}
				if (f.Element.Kind == inference.CollectorElement) != (tt.top == 1 && tt.what != "sent nothing") {
					t.Errorf("%v is named: %s", f.Element, f.Text)
				}
			}
			if tt.top > 0 && top != tt.top {
				t.Errorf("%d findings are no evidence of others, want %d", top, tt.top)
			}
			if claimed != evidence {
				t.Errorf("causes explain %d, and %d findings have a cause", claimed, evidence)
			}
			for k := int64(ends); k < ends+40; k++ {
				d.Step(fleetOf(n, k, func(int) bool { return false }))
			}
			if open := d.Open(); len(open) > 0 {
				t.Errorf("%d are open at the end: %s", len(open), fmt.Sprint(open[0].Text))
			}
		})
	}
}
