package events

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

var update = flag.Bool("update", false, "write testdata/findings.golden anew")

// worldConfigs are the settings under which worlds are watched: the defaults, and limits that are hit all the time.
func worldConfigs() []subject.Config {
	tight := DefaultConfig()
	tight.MaxHops, tight.MaxFlows, tight.MaxDrops = 9, 6, 5
	tight.Warmup, tight.ForgetAfter, tight.LearnAfter = 20, 12, 60
	tight.PathGroup, tight.PathFlaps, tight.SilentSevere = 3, 3, 8
	slow := DefaultConfig()
	slow.EndAfter, slow.PathStable, slow.Critical = 6, 10, 1.5
	slow.ForgetAfter, slow.MinRecords, slow.SilenceAfter, slow.FalseADay = 40, 1, 1, 0.01
	return []Config{DefaultConfig(), tight, slow}
}

// line writes all of a finding but digits of numbers that depend on how the processor rounds.
func line(f *inference.Finding) string {
	return fmt.Sprintf("%d %s %s %d %d %d %d:%d %q %s %d %d %.9g %.9g %s\n", f.ID, f.Kind, f.Severity, f.Start/1e9, f.Updated/1e9, f.End/1e9,
		f.Node, f.EgressIf, f.FlowText(), f.Exporter, f.HWID, f.Reason, f.Value, f.Baseline, f.Text)
}

// holdsFigures holds that the figures of a finding are those that it rests on: what is called high is above what is
// usual.
func holdsFigures(t *testing.T, f *inference.Finding) {
	t.Helper()
	switch f.Kind {
	case inference.HighLatency, inference.HighQueue, inference.HighUtilization:
		if f.Value <= f.Baseline {
			t.Errorf("%s: %g is not above the usual %g", f.Text, f.Value, f.Baseline)
		}
	case inference.LowLatency, inference.LowUtilization:
		if f.Value >= f.Baseline {
			t.Errorf("%s: %g is not below the usual %g", f.Text, f.Value, f.Baseline)
		}
	}
}

// TestGolden holds every finding of long random histories to the letter, through limits that are hit and settings that
// change. The golden file has the findings of some early windows in full, and a sum over each block of windows. The
// findings open at the end of a block and the statistics are part of it.
func TestGolden(t *testing.T) {
	const blocks, size = 20, 200
	var got bytes.Buffer
	var refused subject.Stats
	kinds := map[inference.Kind]int{}
	for i, cfg := range worldConfigs() {
		for seed := range uint64(2) {
			w, d := newWorld(seed), New(cfg)
			for block := range blocks {
				if block == blocks/2 {
					d.Configure(worldConfigs()[(i+1)%3])
				}
				sum, n := sha256.New(), 0
				for k := range size {
					for _, f := range d.Step(w.next()) {
						n++
						kinds[f.Kind]++
						holdsFigures(t, &f)
						fmt.Fprint(sum, line(&f))
						if block == 0 && k >= 60 && k < 75 {
							got.WriteString(line(&f))
						}
					}
				}
				for _, f := range d.Open() {
					fmt.Fprint(sum, line(&f))
					holdsFigures(t, &f)
				}
				fmt.Fprintf(&got, "settings %d seed %d block %d: %d findings %+v %x\n", i, seed, block, n, d.Stats(), sum.Sum(nil)[:8])
			}
			s := d.Stats()
			refused.HopsRefused += s.HopsRefused
			refused.DropsRefused += s.DropsRefused
			refused.FaultsRefused += s.FaultsRefused
		}
	}
	for _, k := range []inference.Kind{inference.PathChanged, inference.PacketDrops, inference.ExporterLoss, inference.ExporterSilence,
		inference.HighLatency, inference.HighQueue, inference.StrangeDigests, inference.RoutingLoop,
		inference.LowLatency, inference.HighUtilization, inference.LowUtilization, inference.HopSilence} {
		if least := 20; kinds[k] < least {
			t.Errorf("%d findings of %s are too few to hold anything", kinds[k], k)
		}
	}
	if refused.HopsRefused == 0 || refused.DropsRefused == 0 || refused.FaultsRefused == 0 {
		t.Errorf("limits that nothing hit: %+v", refused)
	}
	const name = "testdata/findings.golden"
	if *update {
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	g, w := bytes.Split(got.Bytes(), []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(g), len(w)) {
		if !bytes.Equal(g[i], w[i]) {
			t.Fatalf("line %d of %s:\n got %s\nwant %s", i+1, name, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Errorf("%d lines, want the %d of %s", len(g), len(w), name)
	}
}
