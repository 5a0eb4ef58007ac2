package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/hopscope/hopscope/decode"
	headers "github.com/hopscope/hopscope/decode/packet"
	labels "github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/internal/testkit"
	tables "github.com/hopscope/hopscope/p4"
	programs "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// pathNetwork is emulated switches that run hopscope.p4 behind P4Runtime, with a host behind each leaf.
type pathNetwork struct {
	t       *testing.T
	dir     string
	graph   *topo.Graph
	fabric  *programs.Fabric
	servers []*p4rttest.Server // by node
	config  *p4rt.Pipeline
	hosts   map[string]netip.Addr
	plan    cover.Plan
}

func newPathNetwork(t *testing.T, dir, topology string) *pathNetwork {
	t.Helper()
	x := &pathNetwork{t: t, dir: dir, hosts: map[string]netip.Addr{}}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	var err error
	x.graph, err = load.Topology(topology)
	must(err)
	x.fabric, err = programs.NewFabric(x.graph, "hopscope")
	must(err)
	x.fabric.Locked = func(n int, do func()) { x.servers[n].Inspect(func(p4rttest.Tables) { do() }) }
	x.config, err = p4rt.BMv2("hopscope")
	must(err)
	hosts := map[string]any{}
	for n := range x.graph.NumNodes() {
		name := x.graph.NodeName(n)
		if strings.HasPrefix(name, "leaf") {
			x.hosts[name] = netip.AddrFrom4([4]byte{10, 0, byte(n), 1})
			hosts[name] = map[string]string{"address": x.hosts[name].String(), "mac": fmt.Sprintf("02:00:00:00:01:%02x", n), "switch_mac": fmt.Sprintf("02:00:00:00:02:%02x", n)}
		}
		s := p4rttest.New(0, func(*configpb.P4Info, []byte) (p4rttest.Tables, error) {
			sw, err := programs.New("hopscope")
			if err != nil {
				return nil, err
			}
			x.fabric.Replace(n, sw)
			return sw.Store(), nil
		})
		x.servers = append(x.servers, s)
		must(s.Boot(x.config.Config()))
	}
	b, err := json.Marshal(hosts)
	must(err)
	must(os.WriteFile(filepath.Join(dir, "hosts.json"), b, 0o600))
	return x
}

// entries is the file with the entries of a switch.
func (x *pathNetwork) entries(n int) string {
	return filepath.Join(x.dir, x.graph.NodeName(n)+"-entries.json")
}

// planned makes a plan of probes, and the entries of all switches by tables.py.
func (x *pathNetwork) planned(args ...string) {
	x.t.Helper()
	at := func(name string) string { return filepath.Join(x.dir, name) }
	args = append([]string{"plan", "cover", "--topology", at("lab.yaml"), "--directed", "--sr", "--depots", "leaf-1,leaf-2", "--max-hops", "4", "--format", "json"}, args...)
	b, err := program(args...).Output()
	if err != nil {
		x.t.Fatalf("%q: %v", args, err)
	}
	x.plan = cover.Plan{}
	if err := json.Unmarshal(b, &x.plan); err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(at("path.json"), b, 0o600); err != nil {
		x.t.Fatal(err)
	}
	for n := range x.graph.NumNodes() {
		b, err := exec.Command(testkit.Python(x.t), "../../p4/tables.py", at("path.json"), "--node", x.graph.NodeName(n), "--hosts", at("hosts.json"), "--json").CombinedOutput()
		if err != nil {
			x.t.Fatalf("tables.py: %v\n%s", err, b)
		}
		list, err := p4rt.ReadJSON(b)
		if err != nil {
			x.t.Fatal(err)
		}
		follow := tables.Entry{Table: "ingress.probes", Match: slices.Repeat([]tables.Match{tables.Masked(0, 0)}, 4), Action: "follow", Priority: 1}
		list = append(list, follow, tables.Entry{Table: "egress.device", Action: "set_device", Params: tables.Uints(uint64(n+1), 0)})
		f, err := os.Create(x.entries(n))
		if err == nil {
			err = p4rt.WriteJSON(f, list)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			x.t.Fatal(err)
		}
	}
}

// held is what a switch holds in the tables of both ends of routes.
func (x *pathNetwork) held(n int) (list []tables.Entry) {
	x.servers[n].Inspect(func(s p4rttest.Tables) {
		for _, name := range []string{tables.GeneratorsName, tables.CollectorsName} {
			for _, e := range s.Read(name) {
				if !e.Default() {
					list = append(list, e)
				}
			}
		}
	})
	return list
}

// differs returns in what switches differ from the plan, "" if in nothing. They hold an entry for each probe that begins there,
// and one if any ends there. An empty probe with the number of a probe leaves at its collector, with a label of each node on
// its way; one with the next number is dropped.
func (x *pathNetwork) differs() string {
	ends := map[string]int{}
	for n := range x.graph.NumNodes() {
		name, want := x.graph.NodeName(n), 0
		for i := range x.plan.Probes {
			p := &x.plan.Probes[i]
			if p.Agent == name {
				want++
			}
			if p.Collector == name && ends[name] == 0 {
				ends[name]++
				want++
			}
		}
		if list := x.held(n); len(list) != want {
			return fmt.Sprintf("%s holds %d entries of ends of routes, want %d", name, len(list), want)
		}
	}
	for i := range x.plan.Probes {
		p := &x.plan.Probes[i]
		if d := x.send(uint32(i+1), p.Agent, p.AgentPort, p.Collector, p.CollectorPort, p.Nodes); d != "" {
			return fmt.Sprintf("probe %s: %s", p.ID, d)
		}
	}
	p := &x.plan.Probes[0]
	return x.send(uint32(len(x.plan.Probes)+1), p.Agent, p.AgentPort, p.Collector, 0, nil)
}

// send sends an empty probe from the host of a node, and returns in what its end differs from nodes; "" for none.
func (x *pathNetwork) send(id uint32, agent string, port int, collector string, out int, nodes []string) string {
	b := headers.AppendEthernet(nil, headers.MAC{5: 1}, headers.MAC{5: 2}, headers.EtherIPv4)
	b = headers.AppendIPv4(b, &headers.IPv4{TTL: 64, Proto: headers.ProtoUDP, Src: x.hosts[agent].As4(), Dst: x.hosts[collector].As4()}, 8+4)
	b = binary.BigEndian.AppendUint32(headers.AppendUDP(b, 4000, 2222, 4), id)
	from, _ := x.graph.Lookup(agent)
	left, err := x.fabric.Send(from, programs.Frame{Port: uint16(port), Bytes: b})
	if err != nil {
		return err.Error()
	}
	if nodes == nil && len(left) == 0 {
		return ""
	}
	if len(left) != 1 {
		return fmt.Sprintf("%d frames leave", len(left))
	}
	if nodes == nil || x.graph.NodeName(left[0].Node) != collector || int(left[0].Port) != out {
		return fmt.Sprintf("it leaves %s by port %d, want %s and %d", x.graph.NodeName(left[0].Node), left[0].Port, collector, out)
	}
	var r decode.Report
	labels.DecodePath(&r, left[0].Bytes[34:], len(left[0].Bytes)-34, 34, false)
	var got []string
	for _, h := range r.Hops {
		got = append(got, x.graph.NodeName(int(h.NodeID)-1))
	}
	if r.Error() != nil || !slices.Equal(got, nodes) {
		return fmt.Sprintf("its labels are of %v, want %v: %v", got, nodes, r.Error())
	}
	return ""
}

// TestControlPath carries out INT-path's generators and collectors: a plan of probes becomes entries by tables.py, control
// writes them over P4Runtime and reads them back, and empty probes of hosts take the planned routes. They do so again after
// a switch has restarted, an entry was removed from it, and another plan was loaded with SIGHUP.
func TestControlPath(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir, config, listen, admin := controlSettings(t, "http://127.0.0.1:1")
	at := func(name string) string { return filepath.Join(dir, name) }
	x := newPathNetwork(t, dir, at("lab.yaml"))
	x.planned()
	var switches []string
	for n, s := range x.servers {
		address, stop, err := s.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		switches = append(switches, fmt.Sprintf("{name: %s, address: \"%s\", plaintext: true, program: hopscope, entries: %s}", x.graph.NodeName(n), address, x.entries(n)))
	}
	text := string(mustRead(t, config))
	before, _, _ := strings.Cut(text, "switches: ")
	_, after, _ := strings.Cut(text, "admin: ")
	before = strings.Replace(before, "loop: {", "loop: {audit: 1, ", 1)
	text = fmt.Sprintf("%sswitches: [%s]\nadmin: %s", before, strings.Join(switches, ", "), after)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, p := range map[string]*pretender{"leaf-1": {keeps: true}, "leaf-2": {keeps: true}} {
		go func() {
			for ctx.Err() == nil {
				_ = p.follow(ctx, dir, listen, name)
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	l := &controlLife{t: t, config: config, admin: admin, log: &heardLog{}}
	l.start()
	settled := func(what string) {
		t.Helper()
		why := ""
		defer func() {
			if t.Failed() {
				t.Log(why)
			}
		}()
		l.until(what, func(s *loop.Status, _ int) bool {
			if !isSteady(s) {
				return false
			}
			for _, d := range s.Devices {
				if d.State != "ready" {
					return false
				}
			}
			why = x.differs()
			return why == ""
		})
	}
	settled("empty probes take their routes")

	leaf, _ := x.graph.Lookup("leaf-1")
	if err := x.servers[leaf].Boot(x.config.Config()); err != nil {
		t.Fatal(err)
	}
	settled("after the restart of a switch")

	gone := x.held(leaf)[0]
	x.servers[leaf].Inspect(func(s p4rttest.Tables) {
		if err := s.Delete(&gone); err != nil {
			t.Error(err)
		}
	})
	if x.differs() == "" {
		t.Error("no entry was removed")
	}
	settled("after the removal of an entry")

	first := x.plan
	x.planned("--skip", "leaf-1--spine-1")
	if same := slices.EqualFunc(first.Probes, x.plan.Probes, func(a, b planner.Probe) bool { return slices.Equal(a.Nodes, b.Nodes) }); same {
		t.Fatal("both plans have the same probes")
	}
	l.hangup()
	settled("after another plan")
	if err := l.end(os.Interrupt); err != nil {
		t.Errorf("control ends with %v\n%s", err, l.log)
	}
}
