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

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// withAddresses declares all IPv4 addresses of the sites as their own.
func withAddresses(list []Site) (out []Site) {
	for _, s := range list {
		s.Addresses = []string{"10.0.0.0/8", "0.0.0.0/1", "128.0.0.0/1"}
		out = append(out, s)
	}
	return out
}

// TestFlowsOfSites sends flows with the same addresses from two sites, each with these addresses for itself, and from
// no site. They are separate flows, each with its own reports and path, and no flow changes a path.
func TestFlowsOfSites(t *testing.T) {
	_, alone := sendFrom(t, nil, nil, "10.9.0.1")
	_, three := sendFrom(t, withAddresses(testSites), nil, "10.1.0.1", "10.2.0.1", "10.9.0.1")
	count := func(windows []*sink.Window) (packets map[string]uint64, nodes map[string][]uint32) {
		packets, nodes = map[string]uint64{}, map[string][]uint32{}
		for _, w := range windows {
			if len(w.Paths) > 0 {
				t.Errorf("%d changes of paths: %+v", len(w.Paths), w.Paths[0])
			}
			for i := range w.Flows {
				f := &w.Flows[i]
				packets[f.Key.String()] += f.Packets
				nodes[f.Key.String()] = nil
				for _, h := range f.Hops {
					nodes[f.Key.String()] = append(nodes[f.Key.String()], h.Node)
				}
			}
		}
		return packets, nodes
	}
	want, paths := count(alone.windows)
	got, nodes := count(three.windows)
	if len(want) == 0 || len(got) != 3*len(want) {
		t.Fatalf("%d flows of three parts of the network, %d of one", len(got), len(want))
	}
	for text, n := range want {
		key, err := decode.ParseFlow(text)
		if err != nil {
			t.Fatal(err)
		}
		for site := range uint8(3) {
			k := key
			k.Src, k.Dst = key.Src.InSite(site), key.Dst.InSite(site)
			if got[k.String()] != n {
				t.Errorf("%s: %d reports, want %d", k, got[k.String()], n)
			}
			for i, node := range nodes[k.String()] {
				if node != uint32(site)<<24|paths[text][i] {
					t.Errorf("%s leads over %v, want %v", k, nodes[k.String()], paths[text])
				}
			}
		}
	}
}

// digestDatagrams are reports with digests of one flow over a path.
func digestDatagrams(plan *pint.Plan, seed uint64, n int, path ...uint32) (frames [][]byte) {
	rng := rand.New(rand.NewPCG(seed, 5))
	inner := []byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 19, 137, 0, 8, 0, 0}
	for i := range n {
		d := decode.Digest{Epoch: plan.Epoch, Hops: uint8(len(path)), ID: rng.Uint32()}
		for k, node := range path {
			d.Value = plan.Write(d.Value, d.ID, k+1, pint.Values{Node: node}, rng.Uint32())
		}
		h := telemetry.Header{Flags: decode.Tracked, Inner: telemetry.InnerIPv4, Digest: &d, DigestBits: plan.Bits}
		b := telemetry.AppendGroup(nil, 0, uint32(i), path[len(path)-1])
		frames = append(frames, append(telemetry.Append20(b, &h, len(inner)), inner...))
	}
	return frames
}

// TestDigestsOfSites sends digests of one 5-tuple from two sites whose nodes have the same numbers, and from none. Those of the site
// of the topology are read, as of its nodes; all others are counted and not read, which is logged once.
func TestDigestsOfSites(t *testing.T) {
	c := pint.Published(8)
	c.Instances = 2
	scheme, err := pint.New(c)
	if err != nil {
		t.Fatal(err)
	}
	plan := &pint.Plan{Epoch: 7, Bits: 16, Queries: []pint.Query{{Name: "path", Value: pint.NodeValue, Aggregation: pint.Static, Bits: 16, Scheme: scheme}},
		Sets: []pint.Set{{Share: 1, Slots: []pint.Slot{{Query: 0}}}}}
	network := &Network{Nodes: []uint32{1, 2, 100, 101}, Links: [][2]int32{{0, 2}, {0, 3}, {1, 2}, {1, 3}}}
	const key = "10.0.0.1:80 > 10.0.0.2:5001 udp"
	for _, tt := range []struct {
		site     string
		sites    []Site
		flows    map[string]string // packets and path, by flow
		other    uint64
		reported string
	}{
		{"berlin", testSites, map[string]string{key: "300 16777217 > 16777316 > 16777218"}, 200, "site=bonn pint.site=berlin"},
		{"bonn", testSites, map[string]string{key: "300 33554433 > 33554533 > 33554434"}, 200, "site=berlin pint.site=bonn"},
		{"", testSites, map[string]string{key: "300 1 > 100 > 2"}, 200, "site=berlin pint.site=none"},
		{"bonn", withAddresses(testSites), map[string]string{"10.0.0.1%1:80 > 10.0.0.2%1:5001 udp": "100 ", "10.0.0.1%2:80 > 10.0.0.2%2:5001 udp": "100 33554433 > 33554533 > 33554434", key: "100 "},
			200, "site=berlin pint.site=bonn"},
		{"", nil, map[string]string{key: "300 1 > 100 > 2"}, 0, ""},
	} {
		var sources []Source
		for i, from := range []string{"10.1.0.1", "10.2.0.1", "10.9.0.1"} {
			path := []uint32{1, 100, 2}
			if from == "10.2.0.1" && tt.sites != nil {
				path[1] = 101
			}
			s := &sender{canned{workers: 1, batches: 1, frames: digestDatagrams(plan, uint64(i), 100, path...),
				times: func(_, batch int) int64 { return 1e18 + int64(batch)*int64(10*time.Millisecond) }}, netip.MustParseAddr(from)}
			sources = append(sources, Source{Name: from, Source: s})
		}
		var log bytes.Buffer
		keep := &keeper{}
		collector := newEngine(t, func(p *program) { p.Exporters.Sites, p.PINT.Site = tt.sites, tt.site },
			Options{Policy: Replay, Seed: 7, Sources: sources, Writers: []sink.WindowWriter{keep}, Network: network, Plans: []*pint.Plan{plan}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err := run(t, collector); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, w := range keep.windows {
			for i := range w.Flows {
				f := &w.Flows[i]
				var hops []inference.HopKey
				for _, h := range f.Hops {
					hops = append(hops, h.HopKey)
				}
				got[f.Key.String()] = fmt.Sprintf("%d %s", f.Packets, inference.NodePath(hops))
			}
			if len(w.Paths)+len(w.Digests)+len(w.Deviations) > 0 {
				t.Errorf("pint.site %q: %+v %+v %+v", tt.site, w.Paths, w.Digests, w.Deviations)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.flows) {
			t.Errorf("pint.site %q: flows %v, want %v", tt.site, got, tt.flows)
		}
		d := collector.Summary(10, 10).Digests
		if d == nil || d.Digests != 300 || d.Elsewhere != tt.other || d.Unread != 0 || d.Unexplained != 0 {
			t.Errorf("pint.site %q: %+v", tt.site, d)
		}
		if n := strings.Count(log.String(), "digests are not read"); tt.reported == "" && n > 0 || tt.reported != "" && (n != 1 || !strings.Contains(log.String(), "pint.site="+strings.Split(tt.reported, "pint.site=")[1])) {
			t.Errorf("pint.site %q: it is reported %d times, want once with %q: %s", tt.site, n, tt.reported, log.String())
		}
	}
}

// TestPINTSiteIsChecked refuses settings that name a site which is none, or nodes that have no place in it.
func TestPINTSiteIsChecked(t *testing.T) {
	for want, change := range map[string]func(*program){
		"pint.site: mainz is none of exporters.sites": func(p *program) { p.Exporters.Sites, p.PINT.Site = testSites, "mainz" },
		"pint.site: berlin is none":                   func(p *program) { p.PINT.Site = "berlin" },
		"node 16777216 of site berlin":                func(p *program) { p.Exporters.Sites, p.PINT.Site, p.PINT.Nodes = testSites, "berlin", "16777216" },
		"would be taken for node 5 of site berlin":    func(p *program) { p.Exporters.Sites, p.PINT.Nodes = testSites, "16777221" },
	} {
		cfg := testConfig()
		change(cfg)
		if _, err := New(cfg.Config, cfg.Analysis, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := NewShard(&cfg.Analysis, Options{Sites: cfg.Exporters.Sites}, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of a consumer: %v, want %q", err, want)
		}
	}
}
