package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// asked asks the page at url for a document until it holds.
func asked[T any](t *testing.T, url string, holds func(*T) bool) *T {
	t.Helper()
	var doc *T
	for end := time.Now().Add(testkit.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		doc = new(T)
		err = json.NewDecoder(resp.Body).Decode(doc)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", url, resp.Status, err)
		}
		if holds(doc) {
			return doc
		}
	}
	t.Fatalf("%s says no more than %+v", url, *doc)
	return nil
}

// playGear sends what a network of gear sends, over UDP and two steps a window, to a collector. It gives where the page answers.
func playGear(t *testing.T, name string) (api string) {
	network, err := scenario.NewGear(name, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := demoConfig("127.0.0.1:0", t.TempDir())
	cfg.Window, cfg.Exporters.Profiles = 100*time.Millisecond, nil
	r, err := openLive(&cfg, collector.Options{Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- r.Run(ctx) }()
	go func() { ended <- network.Play(ctx, r.Addrs()[0], 20) }()
	t.Cleanup(func() {
		stop()
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return strings.TrimSuffix(r.url(), "/") + "/api/"
}

// oneDrops waits for the first finding of drops at a node, which has to be one, and of the reason.
func oneDrops(t *testing.T, api, address string, node uint32, reason string) {
	t.Helper()
	type finding struct{ Kind, Node, Text string }
	type findings struct{ Open, Ended []finding }
	drops := func(f *findings) (of []finding) {
		for _, x := range append(f.Open, f.Ended...) {
			if x.Kind == "drops" && x.Node == fmt.Sprint(node) {
				of = append(of, x)
			}
		}
		return of
	}
	found := drops(asked(t, api+"findings", func(f *findings) bool { return len(drops(f)) > 0 }))
	if len(found) != 1 || !strings.HasPrefix(found[0].Text, "node "+address+" (") || !strings.Contains(found[0].Text, "for reason "+reason) {
		t.Errorf("drops of node %s: %+v", address, found)
	}
}

// allNamed waits until each of six nodes has its eight interfaces. Nodes count from first, and names follow the format
// for 1 to 8.
func allNamed(t *testing.T, api string, first uint32, format string) {
	t.Helper()
	type named struct {
		ID   uint32
		Name string
	}
	type names struct {
		Nodes []struct{ Interfaces []named }
	}
	asked(t, api+"names", func(n *names) bool {
		complete := 0
		for _, x := range n.Nodes {
			for _, i := range x.Interfaces {
				if i.Name == fmt.Sprintf(format, i.ID-first+1) {
					complete++
				}
			}
		}
		return len(n.Nodes) == 6 && complete == 6*8
	})
}

// A network sends sFlow alone, over UDP. The page has one finding of a congested port's drops with their reason in
// words. It has the names of all interfaces as the switches send them. It counts the judged hops without a known
// latency, which are all.
func TestSFlowAlone(t *testing.T) {
	api := playGear(t, "sonic")
	oneDrops(t, api, "10.0.0.1", 10<<24|1, "sFlow: no buffer space")
	allNamed(t, api, 1, "Ethernet%d")
	flowsSeen(t, api, func(ingress, egress string) bool { return ingress != "" && egress != "" })
	type status struct {
		Judged struct {
			Judged    int
			NoLatency int `json:"no_latency"`
			Text      string
		}
	}
	asked(t, api+"status", func(s *status) bool {
		j := s.Judged
		return j.Judged > 0 && j.NoLatency == j.Judged && strings.Contains(j.Text, fmt.Sprintf("of %d no latency is known", j.Judged))
	})
}

// Routers send IPFIX alone, over UDP, each from its own address: drops have the exception code as their reason, and interfaces the names of options.
func TestIPFIXAlone(t *testing.T) {
	api := playGear(t, "juniper")
	oneDrops(t, api, "127.18.0.1", 127<<24|18<<16|1, "Juniper: exception code (66)")
	allNamed(t, api, 501, "et-0/0/%d")
	flowsSeen(t, api, func(ingress, egress string) bool {
		return ingress >= "501" && ingress <= "508" && egress >= "501" && egress <= "508"
	})
}

// flowsSeen waits until there are flows with octets, each seen at a place with the interfaces that it crosses there, and no path.
func flowsSeen(t *testing.T, api string, crosses func(ingress, egress string) bool) {
	t.Helper()
	type seen struct {
		IngressIf       string `json:"ingress_if"`
		EgressIf        string `json:"egress_if"`
		Packets, Octets uint64
	}
	type flow struct {
		Packets, Octets float64
		Seen            []seen
	}
	type list struct{ Flows []flow }
	asked(t, api+"flows", func(l *list) bool {
		for _, f := range l.Flows {
			if f.Packets < 1 || f.Octets < 64*f.Packets/float64(max(len(f.Seen), 1)) || len(f.Seen) == 0 || !crosses(f.Seen[0].IngressIf, f.Seen[0].EgressIf) {
				return false
			}
		}
		return len(l.Flows) > 1
	})
}
