package pipeline

import (
	"testing"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
)

// Diverting allocates nothing a report.
func TestDivertAllocates(t *testing.T) {
	p, _ := newTest(t, Config{Block: true, Sources: workers(1)}, exporters.DefaultConfig())
	p.diversion = &diversion{Diverter: all{}}
	p.Start()
	defer p.Close()
	var frames []ingest.Frame
	for _, data := range datagrams(t, 100) {
		frames = append(frames, ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Time: 1e18})
	}
	for range 200 { // until each exporter is known to repeat what it sent: the first repeated reports wait, in memory of their own
		p.Handle(p.workers[0], frames)
	}
	if n := testing.AllocsPerRun(100, func() { p.Handle(p.workers[0], frames) }); n > 0 {
		t.Errorf("%v allocations for %d reports", n, len(frames))
	}
	if n := p.workers[0].divertedNumber; n < 100*100 {
		t.Errorf("%d reports were diverted", n)
	}
}

// all takes everything and keeps nothing.
type all struct{ sink.Diverter }

func (all) Takes(*decode.Report) bool    { return true }
func (all) Divert(int, []*decode.Report) {}
