package agent

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4/probe"
)

var agentEnds = probe.Ends{
	ToMAC: packet.MAC{2, 0, 0, 0, 0, 2}, FromMAC: packet.MAC{2, 0, 0, 0, 0, 1},
	From: netip.MustParseAddr("10.0.0.1"), To: netip.MustParseAddr("10.0.0.2"), Mark: 27,
}

// planOfOne is a plan of one probe.
func planOfOne(d probe.Dialect, detailed bool, route ...int) *probe.Plan {
	p := &probe.Plan{Epoch: 7, Dialect: d, Probes: []probe.Probe{{ID: "p1", Route: route, Interval: time.Second, Detailed: detailed, Agent: "a", Collector: "a"}}}
	p.Basic, p.Detailed = d.Bitmaps()
	return p
}

func templateOf(t testing.TB, p *probe.Plan, number uint32) *probe.Template {
	t.Helper()
	x, err := probe.NewTemplate(p, &p.Probes[0], number, &agentEnds)
	if err != nil {
		t.Fatal(err)
	}
	return &x
}

func profileOf(t testing.TB, name string) demux.Profile {
	t.Helper()
	p, ok := demux.Lookup(name)
	if !ok {
		t.Fatalf("no profile %q", name)
	}
	return p
}

// keyFile writes a file of keys.
func keyFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
