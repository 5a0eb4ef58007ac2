package events

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// countedAt lets a detector see what an interface counts in every second window, and returns the findings that it
// published.
func countedAt(d *Detector, windows int, at func(i int) (decode.Counters, bool)) (all []inference.Finding) {
	const window = 10e9
	for i := range windows {
		w := inference.Window{Start: int64(i) * window, End: int64(i+1) * window}
		if c, ok := at(i); ok {
			w.Interfaces = []inference.InterfaceStats{{Node: 7, Samples: 1, Counters: c}}
		}
		all = append(all, d.Step(&w)...)
	}
	return all
}

func ofInterface(passed, errors, discards uint64) decode.Counters {
	return decode.Counters{
		Has: decode.CountInPackets | decode.CountOutPackets | decode.CountInErrors | decode.CountOutDiscards, Interface: 3,
		InPackets: passed, OutPackets: passed, InErrors: errors, OutDiscards: discards,
	}
}

// A finding begins if an interface counts more than its settings allow. It lasts as long as no counters come, and ends
// when they show it.
func TestInterfaces(t *testing.T) {
	for _, tt := range []struct {
		name             string
		errors, discards uint64 // of a million packets, between the windows 20 and 40
		unknown          bool   // how many packets passed is not known
		until            int    // no counters come from there on
		want             []string
	}{
		{"nothing", 0, 0, false, 99, nil},
		{"fewer than are allowed", 1, 10, false, 99, nil},
		{"errors", 300, 0, false, 99, []string{
			"interface-errors warning node 7 interface 3 counted 300 of 1000300 packets as errors in since 1970-01-01 00:03:20, 0.03 %, at least 0.021 %",
			"interface-errors warning node 7 interface 3 counted 3000 of 19003000 packets as errors in since 1970-01-01 00:03:20, 0.0158 %, and then 0 of 9000000",
		}},
		{"discards", 0, 50_000, false, 99, []string{
			"interface-discards critical node 7 interface 3 counted 50000 of 1050000 packets as discards out since 1970-01-01 00:03:20, 4.76 %, at least 4.6 %",
			"interface-discards critical node 7 interface 3 counted 500000 of 17500000 packets as discards out since 1970-01-01 00:03:20, 2.86 %, and then 0 of 7000000",
		}},
		{"discards, and then no counters", 0, 50_000, false, 30, []string{
			"interface-discards critical node 7 interface 3 counted 50000 of 1050000 packets as discards out since 1970-01-01 00:03:20, 4.76 %, at least 4.6 %",
		}},
		{"errors of an unknown number", 300, 0, true, 99, []string{"interface-errors warning node 7 interface 3 counted 300 packets as errors in since 1970-01-01 00:03:20"}},
	} {
		var got []string
		d := New(DefaultConfig())
		for _, f := range countedAt(d, 80, func(i int) (decode.Counters, bool) {
			c := ofInterface(1_000_000, 0, 0)
			if i >= 20 && i < 40 {
				c.InErrors, c.OutDiscards = tt.errors, tt.discards
			}
			if tt.unknown {
				c.Has, c.InPackets = decode.CountInErrors, 0
			}
			return c, i%2 == 0 && i < tt.until
		}) {
			if f.Node != 7 || f.Element.String() != "interface 7:3" {
				t.Errorf("%s: %+v", tt.name, f)
			}
			got = append(got, f.Kind.String()+" "+f.Severity.String()+" "+f.Text)
		}
		if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s:\n%s, want\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

// Counts of interfaces by chance within their settings are no finding in a million samples.
func TestInterfaceFalseAlarms(t *testing.T) {
	testkit.Long(t)
	for _, passed := range []uint64{10, 10_000, 100_000_000} {
		rng := rand.New(rand.NewPCG(passed, 3))
		n := 0
		for _, f := range countedAt(New(DefaultConfig()), 200_000, func(i int) (decode.Counters, bool) {
			return ofInterface(passed, poisson(rng, float64(passed)*1e-6), poisson(rng, float64(passed)*1e-5)), true
		}) {
			if f.End == 0 {
				n++
			}
		}
		if n > 0 {
			t.Errorf("%d findings of %d packets a sample", n, passed)
		}
	}
}
