package scenario

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/p4/emu"
)

var update = flag.Bool("update", false, "write testdata/bytes.txt anew")

// TestScenarioBytes holds what the demonstration and every trouble send against hashes of what they always sent. After a change of a byte on
// purpose, run it with -update.
func TestScenarioBytes(t *testing.T) {
	var got strings.Builder
	cfg, h := demoConfig(), sha256.New()
	n := built(t, cfg, 3)
	n.Run(5*time.Second, func(d emu.Datagram) { h.Write(frame(d, cfg.Exporters)) })
	fmt.Fprintf(&got, "demo: %x\n", h.Sum(nil))

	troubleBytes(t, &got)

	const path = "testdata/bytes.txt"
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Errorf("bytes have changed: %s", line)
		}
	}
}

// troubleBytes adds a line for the beginning of each line of the table of faults, on the network of the demonstration
// with PINT. It also adds one for each kind of source reports that detectors are measured with.
func troubleBytes(t *testing.T, got *strings.Builder) {
	troubles := Troubles()
	for i := range troubles {
		cfg, err := PINTDemo()
		if err != nil {
			t.Fatal(err)
		}
		cfg.Script, cfg.Repeat, cfg.SourceReports, cfg.SampleEvery = nil, 0, i%2 == 0, 1+i%3
		h, err := troubles[i].Happen(built(t, cfg, 5), 300*time.Millisecond, rand.New(rand.NewPCG(5, uint64(i))))
		if err != nil {
			t.Fatal(err)
		}
		h.AddTo(&cfg)
		sum := sha256.New()
		n := built(t, cfg, 5)
		n.Run(1500*time.Millisecond, func(d emu.Datagram) { sum.Write(frame(d, cfg.Exporters)) })
		fmt.Fprintf(got, "trouble %s: %x %+v\n", troubles[i].Name, sum.Sum(nil), n.Stats())
	}
}
