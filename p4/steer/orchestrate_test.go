package steer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/topo"
)

const tcpFlow, udpFlow = "10.0.0.1:80 > 10.0.0.2:5001 tcp", "[2001:db8::1]:80 > [2001:db8::2]:5001 udp"

func orchestrateLinks(t testing.TB) *Links {
	t.Helper()
	g, err := topo.Parse("leaf-spine:2,2")
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]uint32, g.NumNodes())
	for n := range ids {
		ids[n] = uint32(n + 1)
	}
	return NewLinks(g, ids)
}

func allSwitches(l *Links) map[string]bool {
	all := map[string]bool{}
	for n := range l.graph.NumNodes() {
		all[l.graph.NodeName(n)] = true
	}
	return all
}

func planOf(tables ...orchestrate.Table) *orchestrate.Plan {
	return &orchestrate.Plan{Assignment: map[string]string{"a": "b"}, Tables: tables}
}

func tableOf(id, flow string, first, items int64, sink bool) orchestrate.Table {
	return orchestrate.Table{Interface: id, Entries: []orchestrate.Entry{{Flow: flow, First: first, Items: items, Sink: sink}}}
}

// A plan becomes entries that the program takes, by the switches that have its interfaces. Nodes have names or numbers.
func TestAssignmentEntries(t *testing.T) {
	l, c := orchestrateLinks(t), DefaultOrchestrateConfig()
	leaf, spine := l.graph.NodeName(0), l.graph.NodeName(l.graph.NumNodes()-1)
	number := fmt.Sprint(l.graph.NumNodes())
	got, err := c.Entries(planOf(tableOf(leaf+":1", tcpFlow, 0, 4, false), tableOf(number+":2", tcpFlow, 0, 4, true), tableOf(leaf+":2", udpFlow, 0, 4, true)), l, allSwitches(l))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || len(got[leaf]) != 2 || len(got[spine]) != 1 {
		t.Fatalf("entries %v", got)
	}
	if e := got[leaf][0]; e.Action != p4.CarryAction || e.Match[5].Value != p4.Uint(1) || e.Match[2].Value != p4.Uint(6) || e.Match[3].Value != p4.Uint(80) || e.Params[0] != p4.Uint(0xf000) {
		t.Errorf("entry %v", &e)
	}
	if e := got[spine][0]; e.Action != p4.ExtractAction || len(e.Params) != 3 || e.Match[5].Value != p4.Uint(2) {
		t.Errorf("entry %v", &e)
	}
	s, err := program.New("into")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range got {
		if err := loop.Fits(s.Tables(), list); err != nil {
			t.Error(err)
		}
	}
	for _, tt := range []struct {
		plan *orchestrate.Plan
		want string
	}{
		{planOf(), "the plan has no tables"},
		{planOf(tableOf("leaf", tcpFlow, 0, 4, true)), "is not NODE:PORT"},
		{planOf(tableOf("nowhere:1", tcpFlow, 0, 4, true)), `has no node "nowhere"`},
		{planOf(tableOf(leaf+":1", "all", 0, 4, true)), "is no flow"},
		{planOf(tableOf(leaf+":1", "10.0.0.1:0 > 10.0.0.2:0 icmp", 0, 4, true)), "neither TCP nor UDP"},
		{planOf(tableOf(leaf+":1", "10.0.0.1:1 > 10.0.0.2:17768 udp", 0, 4, true)), "is of probes"},
		{planOf(tableOf(leaf+":1", "[::a00:1]:80 > [2001:db8::2]:5001 tcp", 0, 4, true)), "has an address in ::/96"},
		{planOf(tableOf(leaf+":1", "[2001:db8::1]:80 > [::a00:2]:5001 tcp", 0, 4, true)), "has an address in ::/96"},
		{planOf(tableOf(leaf+":1", tcpFlow, 0, 1, true)), "plan with --items 4"},
		{planOf(tableOf(leaf+":1", tcpFlow, 2, 4, true)), "are split among flows"},
	} {
		if _, err := c.Entries(tt.plan, l, allSwitches(l)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("plan %+v: %v, want %q", tt.plan, err, tt.want)
		}
	}
	if _, err := c.Entries(planOf(tableOf(leaf+":1", tcpFlow, 0, 4, true)), l, nil); err == nil || !strings.Contains(err.Error(), "with the program into") {
		t.Errorf("on a switch with another program: %v", err)
	}
	var many []orchestrate.Table
	for k := range 64 {
		many = append(many, tableOf(fmt.Sprintf("%s:%d", leaf, k+1), tcpFlow, 0, 4, false))
	}
	if _, err := c.Entries(planOf(many...), l, allSwitches(l)); err == nil || !strings.Contains(err.Error(), "do not fit into the header") {
		t.Errorf("64 interfaces on a packet: %v", err)
	}
}

func TestOrchestrateConfig(t *testing.T) {
	for _, tt := range []struct {
		change func(c *OrchestrateConfig)
		want   string
	}{
		{func(c *OrchestrateConfig) {}, ""},
		{func(c *OrchestrateConfig) { c.File, c.Every = "f", time.Minute }, ""},
		{func(c *OrchestrateConfig) { c.Every = time.Minute }, "every: needs file"},
		{func(c *OrchestrateConfig) { c.File, c.Every = "f", time.Millisecond }, "is below 1s"},
		{func(c *OrchestrateConfig) { c.Bitmap = "most" }, "is not a number of 16 bits"},
		{func(c *OrchestrateConfig) { c.Bitmap = "0x3000" }, "does not have node id and interfaces"},
		{func(c *OrchestrateConfig) { c.Bitmap = "0xf001" }, "beyond 0xff80"},
		{func(c *OrchestrateConfig) { c.PacketBytes = 1470 }, "have room for 3 items"},
	} {
		c := DefaultOrchestrateConfig()
		tt.change(&c)
		errs := fmt.Sprint(c.Validate("http://127.0.0.1:1", false))
		if tt.want == "" && errs != "[]" || !strings.Contains(errs, tt.want) {
			t.Errorf("%+v: %s, want %q", c, errs, tt.want)
		}
	}
	c := DefaultOrchestrateConfig()
	c.File, c.Every = "f", time.Minute
	if errs := fmt.Sprint(c.Validate("", true)); !strings.Contains(errs, "needs collector.url") {
		t.Error(errs)
	}
	c.Every = 0
	if errs := fmt.Sprint(c.Validate("", true)); !strings.Contains(errs, "does not go with fleet") {
		t.Error(errs)
	}
	if c.words() != 4 || c.capacity() != 121 {
		t.Errorf("%d words, a capacity of %d", c.words(), c.capacity())
	}
}

// The file of a plan is read as it is written. One that is missing is none, as long as control is to write it.
func TestReadAssignment(t *testing.T) {
	c := DefaultOrchestrateConfig()
	c.File = filepath.Join(t.TempDir(), "into.json")
	if _, err := c.readAssignment(); err == nil || !strings.Contains(err.Error(), "orchestrate.file") {
		t.Errorf("without a file: %v", err)
	}
	c.Every = time.Minute
	if p, err := c.readAssignment(); p != nil || err != nil {
		t.Errorf("without a file yet: %v, %v", p, err)
	}
	b, err := json.Marshal(planOf(tableOf("leaf:1", tcpFlow, 0, 4, true)))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(b) {
		if err := os.WriteFile(c.File, b[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := c.readAssignment(); err == nil || !strings.Contains(err.Error(), c.File) {
			t.Fatalf("cut at %d: %v, %v", cut, p, err)
		}
	}
	if err := os.WriteFile(c.File, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := c.readAssignment(); err != nil || len(p.Tables) != 1 || p.Tables[0].Entries[0].Flow != tcpFlow {
		t.Errorf("%+v, %v", p, err)
	}
}

// collectorWith is the page of a collector that lists flows, by their keys, with the interfaces that they pass.
func collectorWith(flows map[string][]string) *Page {
	return &Page{URL: "http://collector", Get: func(_ context.Context, path string, into any) error {
		type hop struct {
			Node   string `json:"node"`
			Egress string `json:"egress_if"`
			Last   int64  `json:"last_ms"`
		}
		answer := map[string]any{"window_ms": 1000, "windows": 20, "recent_windows": 12}
		var list, hops []any
		for key, path := range flows {
			var way []hop
			for _, id := range path {
				node, port, _ := strings.Cut(id, ":")
				way = append(way, hop{node, port, 60_000})
				hops = append(hops, hop{node, port, 60_000})
			}
			list = append(list, map[string]any{"key": key, "packets": 120, "last_ms": 60_000, "path": way})
		}
		switch {
		case strings.HasPrefix(path, "/api/flows"):
			answer["flows"], answer["total"] = list, len(list)
		case strings.HasPrefix(path, "/api/hops"):
			answer["hops"], answer["total"] = hops, len(hops)
		case !strings.HasPrefix(path, "/api/status"):
			return errors.New("not found")
		}
		b, err := json.Marshal(answer)
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		return err
	}}
}

// Interfaces without room are left out and counted: as many fit as mtu leaves beside packet_bytes. A plan with
// max_changes 0 changes only interfaces that have to.
func TestAssignmentLimits(t *testing.T) {
	l := orchestrateLinks(t)
	leaf := l.graph.NodeName(0)
	way := []string{"1:1", "1:2", "2:1"}
	for _, tt := range []struct {
		packet, mtu, unserved int
	}{
		{1000, 1500, 0},
		{1452, 1500, 1}, // 32 bytes are left: two interfaces
		{1468, 1500, 2},
		{1000, 1032, 2},
	} {
		o := &orchestrator{cfg: DefaultOrchestrateConfig(), links: l, serves: allSwitches(l)}
		o.cfg.PacketBytes, o.cfg.MTU = tt.packet, tt.mtu
		p, err := o.next(t.Context(), collectorWith(map[string][]string{tcpFlow: way}))
		if err != nil {
			t.Fatal(err)
		}
		s := o.describe(nil)
		if s.Unserved != tt.unserved || len(p.Tables) != len(way)-tt.unserved || s.Flows != 1 || s.Interfaces != len(way) {
			t.Errorf("packets of %d bytes, an MTU of %d: %d tables, %+v, want %d left out", tt.packet, tt.mtu, len(p.Tables), s, tt.unserved)
		}
	}
	o := &orchestrator{cfg: DefaultOrchestrateConfig(), links: l, serves: allSwitches(l)}
	first, err := o.next(t.Context(), collectorWith(map[string][]string{tcpFlow: way[:1], udpFlow: way[1:]}))
	if err != nil {
		t.Fatal(err)
	}
	o.adopt(first, &Network{})
	third := "10.0.0.9:80 > 10.0.0.2:5001 tcp"
	all := map[string][]string{tcpFlow: way[:1], udpFlow: way[1:], third: way} // on which alone the fewest flows would carry everything
	if p, err := o.next(t.Context(), collectorWith(all)); p != nil || err != nil {
		t.Errorf("max_changes 0: %+v, %v, want the plan before", p, err)
	}
	if s := o.describe(nil); s.Reported != len(way) || len(s.Silent) > 0 {
		t.Errorf("reported: %+v", s)
	}
	delete(all, tcpFlow)
	p, err := o.next(t.Context(), collectorWith(all))
	if err != nil || p == nil || p.Assignment[leaf+":1"] != third || p.Assignment[leaf+":2"] != udpFlow || changed(first, p) != 1 {
		t.Errorf("a flow is gone: %+v, %v", p, err)
	}
	if _, err := o.next(t.Context(), collectorWith(nil)); err == nil || !strings.Contains(err.Error(), "lists no flow") {
		t.Errorf("without a flow: %v", err)
	}
}

// Whatever a plan names, its entries fit the program, or are refused.
func FuzzAssignment(f *testing.F) {
	f.Add("1:1", tcpFlow, int64(0), int64(4), true)
	f.Add("leaf-0:2", udpFlow, int64(0), int64(4), false)
	f.Add(":", "> tcp", int64(-1), int64(1)<<40, true)
	f.Add("1:99999999", "1.2.3.4:1 > 1.2.3.4:1 udp", int64(0), int64(4), true)
	l, c := orchestrateLinks(f), DefaultOrchestrateConfig()
	s, err := program.New("into")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, flow string, first, items int64, sink bool) {
		got, err := c.Entries(planOf(tableOf(id, flow, first, items, sink)), l, allSwitches(l))
		if err != nil {
			return
		}
		for _, list := range got {
			if err := loop.Fits(s.Tables(), list); err != nil {
				t.Errorf("interface %q, flow %q: %v", id, flow, err)
			}
		}
	})
}

// An interface whose port no switch can match is left out, as those of other switches are. It does not keep the others
// from a plan.
func TestPortsThatNoSwitchHas(t *testing.T) {
	l := orchestrateLinks(t)
	c := DefaultOrchestrateConfig()
	o := &orchestrator{cfg: c, links: l, serves: allSwitches(l)}
	p, err := o.next(t.Context(), collectorWith(map[string][]string{tcpFlow: {"1:1", "1:512", "2:4294967295"}, udpFlow: {"2:511"}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Entries(p, l, o.serves); err != nil || len(p.Tables) != 2 {
		t.Errorf("%d tables, %v", len(p.Tables), err)
	}
	if s := o.describe(nil); s.Outside != 2 || s.Interfaces != 2 {
		t.Errorf("%d outside and %d interfaces, want 2 and 2", s.Outside, s.Interfaces)
	}
}

// Reports that ended with all others count no longer, since the collector's newest window goes on.
func TestReportsThatEnded(t *testing.T) {
	l := orchestrateLinks(t)
	o := &orchestrator{cfg: DefaultOrchestrateConfig(), links: l, serves: allSwitches(l)}
	page := collectorWith(map[string][]string{tcpFlow: {"1:1"}})
	p, err := o.next(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	o.adopt(p, &Network{})
	get := page.Get
	for end, want := range map[int64]int{60_000: 1, 62_999: 1, 63_000: 0, 1 << 60: 0} {
		page.Get = func(ctx context.Context, path string, into any) error {
			if strings.HasPrefix(path, "/api/map/state") {
				return json.Unmarshal(fmt.Appendf(nil, `{"end_ms":%d}`, end), into)
			}
			return get(ctx, path, into)
		}
		_, err := o.next(t.Context(), page)
		if s := o.describe(nil); s.Reported != want || len(s.Silent) != 1-want || (err == nil) != (want == 1) {
			t.Errorf("newest window at %d ms: %d reported, %v silent, %v", end, s.Reported, s.Silent, err)
		}
	}
}

// A plan that names one interface of a flow twice, in whatever way, is refused: a switch has one entry of each.
func TestAssignmentTwice(t *testing.T) {
	l, c := orchestrateLinks(t), DefaultOrchestrateConfig()
	leaf := l.graph.NodeName(0)
	_, err := c.Entries(planOf(tableOf(leaf+":1", tcpFlow, 0, 4, false), tableOf("1:01", tcpFlow, 0, 4, true)), l, allSwitches(l))
	if err == nil || !strings.Contains(err.Error(), "is assigned to it twice") {
		t.Errorf("%v", err)
	}
}

// A plan that control wrote and that the settings no longer fit is replaced by the next one; one of an operator is refused.
func TestAssignmentOfOtherSettings(t *testing.T) {
	l := orchestrateLinks(t)
	leaf := l.graph.NodeName(0)
	f := Files{Orchestrate: DefaultOrchestrateConfig(), Switches: []Switch{{Name: leaf, Program: "into"}}}
	f.Orchestrate.File = filepath.Join(t.TempDir(), "into.json")
	b, err := json.Marshal(planOf(tableOf(leaf+":1", tcpFlow, 0, 3, true)))
	if err == nil {
		err = os.WriteFile(f.Orchestrate.File, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, every := range []time.Duration{0, time.Minute, 0, time.Minute} {
		if f.Switches[0].Program = "into"; i > 1 {
			f.Switches[0].Program = "hopscope"
		}
		f.Orchestrate.Every = every
		x := &Network{Control: &control.Network{}, Config: &Config{Links: l}}
		switch err := x.readOrchestrator(&f); {
		case every == 0:
			if err == nil || !strings.Contains(err.Error(), "plan with --items 4") {
				t.Errorf("a plan of an operator: %v", err)
			}
		case err != nil:
			t.Errorf("a plan of control: %v", err)
		default:
			if s := x.orchestrator.describe(nil); s.Assigned != 0 || !strings.Contains(s.Why, "3 items") {
				t.Errorf("a plan of control: %+v", s)
			}
		}
	}
}

// A collector may list flows whose keys a table does not distinguish. One of them alone can be assigned.
func TestFlowsOfOneKey(t *testing.T) {
	l := orchestrateLinks(t)
	for _, tt := range []struct {
		other         string
		left, entries int
	}{{"[::a00:1]:80 > [::a00:2]:5001 tcp", 1, 1}, {udpFlow, 0, 2}} {
		o := &orchestrator{cfg: DefaultOrchestrateConfig(), links: l, serves: allSwitches(l)}
		o.cfg.Redundancy = 2
		p, err := o.next(t.Context(), collectorWith(map[string][]string{tcpFlow: {"1:1"}, tt.other: {"1:1"}}))
		if err != nil {
			t.Fatal(err)
		}
		lists, err := o.cfg.Entries(p, l, o.serves)
		if n := len(lists[l.graph.NodeName(0)]); err != nil || n != tt.entries || len(p.Unserved) != tt.left {
			t.Errorf("beside %s: %d entries and %d interfaces left, want %d and %d; %v", tt.other, n, len(p.Unserved), tt.entries, tt.left, err)
		}
	}
}

// A plan that waits for approval is not in the file, which the next start carries out without approval. A plan in force is.
func TestAssignmentWaits(t *testing.T) {
	for _, approve := range []bool{true, false} {
		x := newPeered(t, loadIfEmpty, nil, approve, false)
		command := func(v control.Verb) {
			t.Helper()
			if why, err := x.loop.Command(t.Context(), control.Command{Verb: v}); why != "" || err != nil {
				t.Fatal(v, why, err)
			}
		}
		if approve {
			x.until("the programs wait", func() bool { return x.device(bad).Awaits && x.device(healthy).Awaits })
			command(control.Approve)
		}
		x.until("the first plan is in force", func() bool { return x.ready(bad) && x.ready(healthy) })
		o := &orchestrator{cfg: DefaultOrchestrateConfig(), links: orchestrateLinks(t)}
		o.cfg.File = filepath.Join(t.TempDir(), "into.json")
		x.assigned.now.Store(&Network{orchestrator: o})
		s := &Steering{Network: &Network{Control: x.network, Config: &Config{Links: o.links, Sent: &loop.Probing{Dialect: probe.INT21, Interval: time.Second}}, orchestrator: o},
			Loop: x.loop, Log: slog.New(slog.DiscardHandler), Approve: approve}
		s.Network.fixed = map[string][]control.Entry{bad: ports(), healthy: ports()}
		if err := s.carry(t.Context(), o, &orchestrate.Plan{}); err != nil {
			t.Fatal(err)
		}
		if approve {
			x.until("the plan waits", func() bool { return x.status().Pending != nil })
			s.keep(t.Context())
			if _, err := os.Stat(o.cfg.File); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file of a plan that waits: %v", err)
			}
			command(control.Approve)
		}
		x.until("the plan is in force", func() bool { return x.status().Orchestration.InForce })
		s.keep(t.Context())
		if p, err := o.cfg.readAssignment(); err != nil || p == nil {
			t.Errorf("approval %v: the file of a plan in force: %v, %v", approve, p, err)
		}
	}
}
