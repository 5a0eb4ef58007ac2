package pipeline

import (
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/ingest"
)

// What a worker may hold back is bounded: then it waits, and what still finds no room counts where it is.
func TestHeldReportsAreBounded(t *testing.T) {
	p, _ := newTest(t, Config{Block: true, Sources: workers(1), Window: 50 * time.Millisecond}, exporters.DefaultConfig())
	p.Start()
	w := p.workers[0]
	w.receipt.on = true
	p.receipt.edge = 1000
	var frames []ingest.Frame
	for i, data := range datagrams(t, 40*200) {
		frames = append(frames, ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Time: 900 + int64(i%200)}) // half before
	}
	for batch := range slices.Chunk(frames, 200) {
		p.Handle(w, batch)
	}
	if held, wrong := len(w.receipt.held.List), p.receipt.misplaced.Load(); held != HeldReports || wrong != 40*100-HeldReports {
		t.Errorf("%d are held back, %d misplaced", held, wrong)
	}
	first, _ := p.Cut(End{Label: 1000, Wall: 1000, Steady: 1000, Next: 2000}, 1000)
	n := first.Reports
	second, _ := p.Cut(End{Start: 1000, Label: 2000, Wall: 2000, Steady: 2000, Next: 3000}, 2000)
	if n != 40*200-HeldReports || second.Reports != HeldReports {
		t.Errorf("%d and %d reports in two windows", n, second.Reports)
	}
	p.Close()
}
