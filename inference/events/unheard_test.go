package events

import (
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// fleetWindow returns a window of two exporters that report to two collectors.
func fleetWindow(n int64, first, second uint64, lost int64, unheard ...inference.ExporterKey) *inference.Window {
	w := &inference.Window{Start: (n - 1) * 10e9, End: n * 10e9, Unheard: unheard}
	if len(unheard) > 0 {
		w.Missing = []string{"west"}
	}
	w.Exporters = []inference.ExporterStats{
		{ExporterKey: fleetExporter(1), Sequenced: true, Reports: first},
		{ExporterKey: fleetExporter(2), Sequenced: true, Reports: second, Lost: lost},
	}
	return w
}

func fleetExporter(i byte) inference.ExporterKey {
	return inference.ExporterKey{Addr: decode.AddrFrom4([]byte{10, 0, 0, i}), Node: uint32(i)}
}

// An exporter is not silent when its collector was not heard. While that lasts nothing is published, whether it still
// has a row or not. Its silence begins to count when the collector is back. The other exporter is judged as ever.
func TestUnheardIsNotSilent(t *testing.T) {
	for _, listed := range []bool{true, false} {
		d := New(DefaultConfig())
		n := int64(0)
		step := func(first, second uint64, unheard ...inference.ExporterKey) []inference.Finding {
			n++
			w := fleetWindow(n, first, second, 0, unheard...)
			if second == 0 && !listed {
				w.Exporters = w.Exporters[:1]
			}
			return d.Step(w)
		}
		for range 100 {
			if found := step(1000, 1000); len(found) > 0 {
				t.Fatalf("%+v", found)
			}
		}
		for range 200 {
			if found := step(1000, 0, fleetExporter(2)); len(found) > 0 {
				t.Fatalf("listed %t: reported while the collector was missing: %+v", listed, found)
			}
		}
		before := d.Open()
		step(1000, 1000)
		if found := step(1000, 0); len(before)+len(found) > 0 { // one window is no silence
			t.Fatalf("listed %t: %+v", listed, found)
		}
		step(0, 1000)
		step(0, 0, fleetExporter(2))
		found := step(0, 0, fleetExporter(2))
		if len(found) != 1 || found[0].Kind != inference.ExporterSilence || found[0].Exporter != fleetExporter(1).Addr {
			t.Fatalf("listed %t: after three windows without the exporter that was heard: %+v", listed, found)
		}
	}
}

// A published silence is not prolonged by windows in which no collector could hear. It ends when the exporter reports
// in one.
func TestUnheardSilenceStands(t *testing.T) {
	d := New(DefaultConfig())
	n := int64(0)
	step := func(second uint64, unheard ...inference.ExporterKey) []inference.Finding {
		n++
		return d.Step(fleetWindow(n, 1000, second, 0, unheard...))
	}
	for range 100 {
		step(1000)
	}
	for range 5 {
		step(0)
	}
	open := d.Open()
	if len(open) != 1 || open[0].Kind != inference.ExporterSilence {
		t.Fatalf("%+v", open)
	}
	for range 50 {
		step(0, fleetExporter(2))
	}
	if now := d.Open(); !reflect.DeepEqual(now, open) {
		t.Errorf("the finding was %+v and is %+v", open, now)
	}
	if found := step(3, fleetExporter(2)); len(found) != 1 || found[0].End == 0 || found[0].Value != 5 {
		t.Errorf("%+v", found)
	}
}

// An apparent loss in a window without a collector is not weighed, and leaves no trace in the state.
func TestUnheardLossIsNotWeighed(t *testing.T) {
	with, without := New(DefaultConfig()), New(DefaultConfig())
	for n := int64(1); n <= 300; n++ {
		with.Step(fleetWindow(n, 1000, 1000, n%2))
		without.Step(fleetWindow(n, 1000, 1000, n%2))
		if n%50 == 0 {
			if found := with.Step(fleetWindow(n, 1000, 10, 990, fleetExporter(2))); len(found) > 0 {
				t.Fatalf("window %d: %+v", n, found)
			}
			without.Step(fleetWindow(n, 1000, 0, 0, fleetExporter(2)))
		}
	}
	loss := func(d *Detector) lossHistory {
		x := d.detectors[slot(t, d)].(exporters)
		return x.Index[fleetExporter(2)].State.lossHistory
	}
	if a, b := loss(with), loss(without); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, want %+v", a, b)
	}
}

func slot(t *testing.T, d *Detector) int {
	for i, x := range d.detectors {
		if _, ok := x.(exporters); ok {
			return i
		}
	}
	t.Fatal("no detector of exporters")
	return 0
}
