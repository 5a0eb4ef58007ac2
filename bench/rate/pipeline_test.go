package rate

import (
	"os"
	"testing"
)

// TestRun runs a little traffic through everything and wants what was sent.
func TestPipeline(t *testing.T) {
	cfg := DefaultPipelineConfig(100)
	cfg.Warmup, cfg.Reports, cfg.Window = 1000, 5000, 500
	cfg.shard.MemoryBytes = 4 << 20
	r, err := Pipeline(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Reports != 5000 || r.Flows != 100 || r.Findings != 0 || r.Decode <= 0 || r.Shard <= 0 || r.Window <= 0 {
		t.Errorf("%+v", r)
	}
}

func benchmark(b *testing.B, flows int) {
	cfg := DefaultPipelineConfig(flows)
	for b.Loop() {
		r, err := Pipeline(cfg)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Print(os.Stderr); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(r.Rate(), "reports/s")
		b.ReportMetric(r.MedianRate(), "median-reports/s")
		b.ReportMetric(float64(r.Total().Nanoseconds())/float64(r.Reports), "ns/report")
		b.ReportMetric(float64(r.MemoryBytes)/float64(r.Flows), "B/flow")
	}
}

func BenchmarkPipeline10k(b *testing.B) { benchmark(b, 10_000) }

func BenchmarkPipeline1M(b *testing.B) { benchmark(b, 1_000_000) }

func BenchmarkPipeline100(b *testing.B) { benchmark(b, 100) }

// TestAllocations holds that the way of a report from its bytes to the tables allocates nothing.
func TestAllocations(t *testing.T) {
	cfg := DefaultPipelineConfig(1000)
	cfg.shard.MemoryBytes = 8 << 20
	p, err := newPipelineRun(cfg)
	if err != nil {
		t.Fatal(err)
	}
	batch := func() {
		if err := p.batch(cfg.Batch, 1); err != nil {
			t.Fatal(err)
		}
	}
	for range 5000 { // until every flow, hop and histogram has what it needs
		batch()
	}
	if n := testing.AllocsPerRun(200, batch); n != 0 {
		t.Errorf("%v allocations in %d reports, want 0", n, cfg.Batch)
	}
}
