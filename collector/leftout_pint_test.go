package collector

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
)

// fabricOfDigests has 8 leaves and 16 spines. It returns the network, a plan whose packets carry paths, and a shortest path, drawn.
func fabricOfDigests(t *testing.T) (*Network, *pint.Plan, func(r *rand.Rand) []uint32) {
	t.Helper()
	c := pint.Published(8)
	c.Instances = 2
	scheme, err := pint.New(c)
	if err != nil {
		t.Fatal(err)
	}
	plan := &pint.Plan{Epoch: 7, Bits: 16, Queries: []pint.Query{{Name: "path", Value: pint.NodeValue, Aggregation: pint.Static, Bits: 16, Scheme: scheme}},
		Sets: []pint.Set{{Share: 1, Slots: []pint.Slot{{Query: 0}}}}}
	n := &Network{}
	for leaf := range int32(8) {
		n.Nodes = append(n.Nodes, uint32(leaf+1))
		for spine := range int32(16) {
			n.Links = append(n.Links, [2]int32{leaf, 8 + spine})
		}
	}
	for spine := range uint32(16) {
		n.Nodes = append(n.Nodes, 100+spine)
	}
	return n, plan, func(r *rand.Rand) []uint32 { return []uint32{1, 100 + r.Uint32N(16), 2} }
}

// Digests come of ten times as many flows as the memory for their paths has room for. Flows with several paths are
// also ten times too many. What finds no room is reported with the setting to raise, counted by the metric, and logged
// once.
func TestPINTLeftOut(t *testing.T) {
	network, plan, path := fabricOfDigests(t)
	for name, tt := range map[string]struct {
		limit         func(p *program)
		flows, rounds int // of digests
		room          int // digests that the memory holds, at most
		share         float64
		want          string
	}{
		"paths": {func(p *program) { p.PINT.MemoryBytes = 1 << 20 }, 30_000, 1, 3000, 0.9,
			"digests are of flows for whose paths no memory was left: raise pint.memory_bytes"},
		"paths of one flow": {func(p *program) { p.PINT.SprayBytes = 64 << 10 }, 40, 1200, 64 << 10 / 16, 0.5,
			"digests of flows that use several paths were not kept, or not for long, because their memory was full: raise pint.spray_bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.flows*tt.rounds < 10*tt.room {
				t.Fatalf("%d digests are not ten times %d", tt.flows*tt.rounds, tt.room)
			}
			r := rand.New(rand.NewPCG(1, 2))
			var frames [][]byte
			for range tt.rounds {
				for flow := range tt.flows {
					b := digestDatagrams(plan, r.Uint64(), 1, path(r)...)[0]
					port := b[len(b)-8:] // the source port of the packet
					port[0], port[1] = byte(flow>>8), byte(flow)
					frames = append(frames, b)
				}
			}
			src := &sender{canned{workers: 1, batches: 1, frames: frames, waits: true, times: func(_, _ int) int64 { return 1e18 }}, netip.MustParseAddr("10.1.0.1")}
			var log bytes.Buffer
			c := newEngine(t, func(p *program) {
				p.Shards, p.Window = 1, time.Hour
				tt.limit(p)
			}, Options{Policy: Replay, Seed: 7, Sources: []Source{{Name: "canned", Source: src}}, Network: network, Plans: []*pint.Plan{plan},
				Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err := run(t, c); err != nil {
				t.Fatal(err)
			}
			var n uint64
			for _, l := range c.leftOut() {
				if strings.HasSuffix(tt.want, ": raise "+l.Setting) && strings.HasPrefix(tt.want, l.What) {
					n = l.N
				}
			}
			if all := uint64(len(frames)); n < uint64(tt.share*float64(all)) || n > all {
				t.Errorf("%d of %d digests are left out", n, all)
			}
			if s := c.Status(); !strings.Contains(strings.Join(s.LeftOut, "\n"), tt.want) || !strings.Contains(strings.Join(s.Problems, "\n"), tt.want) {
				t.Errorf("%q is not said: %q", tt.want, fmt.Sprint(s.LeftOut, s.Problems))
			}
			_, setting, _ := strings.Cut(tt.want, ": raise ")
			if counted := leftOutMetric(t, c, setting); counted != float64(n) {
				t.Errorf("the metric has %v of %s, want %d", counted, setting, n)
			}
			for range 3 { // whether the run had a moment for it or not
				c.logLeftOut()
			}
			if lines := strings.Count(log.String(), tt.want); lines != 1 {
				t.Errorf("%d lines:\n%s", lines, &log)
			}
		})
	}
}

// leftOutMetric returns what the metric of left out things has for a setting.
func leftOutMetric(t *testing.T, c *Collector, setting string) float64 {
	t.Helper()
	families, err := c.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "hopscope_left_out" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == setting {
				return m.GetGauge().GetValue()
			}
		}
	}
	return 0
}
