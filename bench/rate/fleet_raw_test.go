package rate

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestRaw sends some reports in both ways through a real Kafka.
func TestRaw(t *testing.T) {
	testkit.Long(t)
	broker := servertest.StartBroker(t, servertest.BrokerOptions{})
	cfg := DefaultRawConfig(broker.Internal)
	cfg.Reports, cfg.Rounds = 20_000, 2
	r, err := Raw(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Ours) != 2 || len(r.Library) != 2 || r.Bytes < 10 || r.Bytes > 70 || r.LibraryBytes < 10 {
		t.Errorf("Raw = %+v", r)
	}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil || !strings.Contains(out.String(), "(median of 2 rounds)") {
		t.Errorf("Print wrote %q, %v", out.String(), err)
	}
}

// BenchmarkRaw measures both ways against a real Kafka.
func BenchmarkRaw(b *testing.B) {
	broker := servertest.StartBroker(b, servertest.BrokerOptions{})
	for b.Loop() {
		r, err := Raw(b.Context(), DefaultRawConfig(broker.Internal))
		if err != nil {
			b.Fatal(err)
		}
		var out strings.Builder
		r.Print(&out)
		b.Log(out.String(), r.Ours, r.Library)
	}
}
