package rate

import "testing"

// TestWindowAllocations holds the joint allocations of reports and windows in the steady state. A report allocates
// nothing, and a window what its merged rows need.
func TestWindowAllocations(t *testing.T) {
	cfg := DefaultPipelineConfig(1000)
	cfg.shard.MemoryBytes = 8 << 20
	p, err := newPipelineRun(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const batches = 100 // a window
	now := int64(1)
	windows := func() {
		for range batches {
			if err := p.batch(cfg.Batch, now); err != nil {
				t.Fatal(err)
			}
			now += int64(cfg.Batch)
		}
		p.window(now)
	}
	for range 100 { // until every flow, hop, histogram and history has what it needs
		windows()
	}
	const want = 16
	if n := testing.AllocsPerRun(50, windows); n > want {
		t.Errorf("%v allocations in a window of %d reports, want %d", n, batches*cfg.Batch, want)
	}
}
