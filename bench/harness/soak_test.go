package harness

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestSoakLost holds that lost is what any sink has not stored, and that the reasons are printed.
func TestSoakLost(t *testing.T) {
	v := map[string]float64{
		`hopscope_ledger_received_total{sink="parquet"}`:                90,
		`hopscope_ledger_stored_total{sink="parquet"}`:                  80,
		`hopscope_ledger_stored_total{sink="influx"}`:                   85,
		`hopscope_ledger_dropped_total{sink="parquet",stage="kernel"}`:  10,
		`hopscope_ledger_dropped_total{sink="parquet",stage="foreign"}`: 0,
	}
	r := SoakResult{Sent: 100, Received: uint64(received(v)), Stored: stored(v), Dropped: dropped(v), Length: time.Minute, Memory: []float64{1}, Early: 2, Late: 3}
	if r.Lost() != 20 {
		t.Errorf("%v lost, want 20", r.Lost())
	}
	if len(r.Dropped) != 1 || r.Dropped["parquet kernel"] != 10 {
		t.Errorf("dropped: %v", r.Dropped)
	}
	var b bytes.Buffer
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"reports stored, influx", "dropped, parquet kernel", "1.500"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestSoakSettled holds that a sink's drops stand for that sink's reports alone.
func TestSoakSettled(t *testing.T) {
	v := map[string]float64{
		`hopscope_ledger_stored_total{sink="parquet"}`:                 90,
		`hopscope_ledger_stored_total{sink="influx"}`:                  80,
		`hopscope_ledger_dropped_total{sink="parquet",stage="kernel"}`: 10,
		`hopscope_ledger_dropped_total{sink="influx",stage="kernel"}`:  10,
	}
	if settled(v, 100) {
		t.Error("10 reports are neither stored in influx nor dropped before it")
	}
	v[`hopscope_ledger_dropped_total{sink="influx",stage="queue"}`] = 10
	if !settled(v, 100) {
		t.Error("all reports are stored or dropped in each sink")
	}
}
