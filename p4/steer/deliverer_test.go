package steer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/delivery"
)

// TestDelivererMeasures takes rates from pages of servers. They do not fall while a server with reports does not answer, nor
// while the windows of others began before; a point without any report keeps its rate, as one behind answers that no
// collector gives.
func TestDelivererMeasures(t *testing.T) {
	links := orchestrateLinks(t)
	point := links.graph.NodeName(0)
	status, exporters := `{"window_ms":1000,"windows":50}`, map[string]string{"a": `{"node":"1","recent_reports":120}`, "b": ""}
	open := func(url string) *Page {
		return &Page{URL: url, Get: func(_ context.Context, path string, into any) error {
			list, up := exporters[url]
			text := `{}`
			switch {
			case !up:
				return errors.New("refused")
			case path == "/api/status":
				text = status
			case strings.HasPrefix(path, "/api/hops"):
				text = `{"recent_windows":12}`
			case strings.HasPrefix(path, "/api/exporters"):
				text = `{"total":1,"exporters":[` + list + `]}`
			}
			return json.Unmarshal([]byte(text), into)
		}}
	}
	now := time.Now()
	o := &deliverer{links: links, missed: map[string]int{}, silent: map[string]int64{}, plan: &delivery.Plan{Assignment: []delivery.Assignment{{ID: point + "/1", Point: point, Server: "a", Rate: 125}}},
		cfg: p4.DeliveryConfig{Margin: 1.25, Quiet: time.Hour, ReportBytes: 125_000_000, Servers: []p4.DeliveryHost{{Name: "a", Page: "a"}, {Name: "b", Page: "b"}}, Points: []p4.DeliveryPoint{{Name: point}}}}
	check := func(what string, rate float64, held string, down bool) {
		t.Helper()
		m, err := o.measure(t.Context(), open)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if m.Rates[point] != rate || !strings.Contains(m.Held[point], held) || held == "" && len(m.Held) > 0 || m.Down["a"] != down {
			t.Errorf("%s: %+v", what, m)
		}
	}
	check("all answer", 10, "", false) // 120 reports of 1 Gbit in 12 s
	exporters["a"] = `{"node":"1","recent_reports":0}`
	check("silence", 100, "no server has a report", false)
	exporters["a"] = `{"node":"1","recent_reports":-5,"recent_lost":-1e300}`
	check("negative numbers", 100, "no server has a report", false)
	exporters["a"], status = `{"node":"1","recent_reports":5}`, `{"window_ms":0,"windows":50}`
	check("a server that restarted", 100, "no server has a report", false)
	status = `{"window_ms":1000,"windows":50}`
	delete(exporters, "a")
	check("no answer", 100, "does not answer", false)
	check("down", 100, "does not answer", true)
	if o.lost.Before(now) {
		t.Error("the loss of a server has no time")
	}
	if len(o.silent) != 0 {
		t.Error("the loss of a server counts as silence of a point")
	}
	o.plan.Assignment[0].Server, exporters["b"] = "b", `{"node":"1","recent_reports":24}`
	check("the other one has a part of the time", 100, "windows of servers", true)
	exporters["b"] = `{"node":"1","recent_reports":2400}`
	check("a rise is followed", 200, "", true)
	o.lost, exporters["b"] = now.Add(-13*time.Second), `{"node":"1","recent_reports":24}`
	check("all of the time", 2, "", true)
	exporters["b"] = ""
	check("quiet", 100, "no server has a report", true)
	o.silent[point] -= int64(59 * time.Minute)
	check("quiet for 59 minutes", 100, "no server has a report", true)
	o.silent[point] -= int64(time.Minute)
	check("quiet for an hour", delivery.LeastRate, "", true)
	exporters["b"] = `{"node":"1","recent_reports":24}`
	check("no longer quiet", 2, "", true)
	exporters["b"] = ""
	check("quiet again", 100, "no server has a report", true)
	o.counts = map[string]*p4.Counts{point: {Sent: map[int64]int64{0: 9, 1: 5}}}
	o.silent[point] -= int64(2 * time.Hour)
	check("its switch sends", 100, "no server has a report", true)
	check("and has done so", 100, "no server has a report", true)
	o.silent[point] -= int64(2 * time.Hour)
	o.counts[point].Sent[0] = 99
	check("reports of others pass", delivery.LeastRate, "", true)
	o.silent[point] = now.Add(-2 * time.Hour).UnixNano()
	o.counts[point].Refused = map[int64]int64{1: 1}
	check("its switch refuses", 100, "no server has a report", true)
	o.silent[point] = now.Add(-2 * time.Hour).UnixNano()
	o.cfg.Servers = append(o.cfg.Servers, p4.DeliveryHost{Name: "c"})
	o.plan.Assignment[0].Server = "c"
	check("its server has no page", 100, "no server has a report", true)
	exporters["b"] = `{"node":"1","recent_reports":24}`
	status = `{"window_ms":9223372036854775807,"windows":50}`
	if _, err := o.measure(t.Context(), open); err == nil || !strings.Contains(err.Error(), "none of a collector") {
		t.Errorf("windows of %s: %v", status, err)
	}
}

// TestDelivererAvoids leaves suspicious links out of plans, from a weight on and in either direction, while there is another way.
func TestDelivererAvoids(t *testing.T) {
	links := orchestrateLinks(t)
	g := links.graph
	point, spines := "leaf-1", []string{"spine-0", "spine-1"}
	problem := &delivery.Problem{Nodes: []delivery.Node{{ID: point, Kind: delivery.PointNode, Rate: 0.1, Deadline: 100, Loss: 0.5}, {ID: "a", Kind: delivery.ServerNode, Capacity: 1, Up: 1}}}
	between := map[string][2]int{} // numbers of both directions, by spine
	leaf, _ := g.Lookup(point)
	for k, spine := range spines {
		n, ok := g.Lookup(spine)
		if !ok {
			t.Fatalf("no node %s", spine)
		}
		to, from := g.Between(leaf, n), g.Between(n, leaf)
		between[spine] = [2]int{to, from}
		problem.Nodes = append(problem.Nodes, delivery.Node{ID: spine, Kind: delivery.SwitchNode, Capacity: 1, Up: 1})
		problem.Links = append(problem.Links, delivery.Link{A: point, B: spine, PortA: g.Port(to), PortB: g.Port(from), Latency: 1, Capacity: 1, Up: 1},
			delivery.Link{A: spine, B: "a", PortA: 400, PortB: k + 1, Latency: 1, Capacity: 1, Up: 1})
	}
	o := &deliverer{links: links, problem: problem, missed: map[string]int{}, silent: map[string]int64{},
		cfg: p4.DeliveryConfig{Margin: 1.25, Avoid: 2, ReportBytes: 200, Servers: []p4.DeliveryHost{{Name: "a"}}, Points: []p4.DeliveryPoint{{Name: point}}}}
	next := func(what string, suspects ...control.Suspect) string {
		t.Helper()
		plan, err := o.next(t.Context(), nil, suspects)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if plan != nil {
			o.plan = plan
		}
		if len(o.plan.Assignment) != 1 || len(o.plan.Unserved) > 0 {
			t.Fatalf("%s: %+v", what, o.plan)
		}
		return o.plan.Assignment[0].Path[1]
	}
	was := next("no suspicion")
	for direction := range 2 {
		of := func(spine string, weight float64) control.Suspect {
			return control.Suspect{Link: links.Name(between[spine][direction]), Weight: weight}
		}
		if now := next("a low weight", of(was, 1.9)); now != was {
			t.Errorf("direction %d: weight 1.9 moves reports to %s", direction, now)
		}
		now := next("a suspicious link", of(was, 2))
		if now == was {
			t.Errorf("direction %d: reports pass a suspicious link", direction)
		}
		if was = next("both links", of(spines[0], 2), of(spines[1], 2)); was != now {
			t.Errorf("direction %d: reports move where every way is suspicious", direction)
		}
	}
}
