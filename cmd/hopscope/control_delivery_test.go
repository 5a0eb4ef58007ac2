package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"

	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/internal/testkit"
	tables "github.com/hopscope/hopscope/p4"
	programs "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// serverPort is the port of a spine behind which a server is.
const serverPort = 400

// counting is the tables of an emulated switch with its counters.
type counting struct {
	*tables.Store
	of *programs.Switch
}

func (c counting) Count(name string, cell int) uint64 { return c.of.Count(name, cell) }

// deliveryNetwork is emulated switches that run rft behind P4Runtime, with a collector behind each spine.
type deliveryNetwork struct {
	t       *testing.T
	graph   *topo.Graph
	fabric  *programs.Fabric
	servers []*p4rttest.Server  // by node
	to      map[string]net.Conn // by spine: the collector there

	mu      sync.Mutex
	rate    int            // reports of leaf-1 a second
	arrived map[string]int // by path: point, tag and the spine that it leaves
	made    int            // packets that were to be reported
}

func newDeliveryNetwork(t *testing.T, dir, topology string, collectors map[string]string) *deliveryNetwork {
	t.Helper()
	x := &deliveryNetwork{t: t, to: map[string]net.Conn{}, arrived: map[string]int{}}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	var err error
	x.graph, err = load.Topology(topology)
	must(err)
	x.fabric, err = programs.NewFabric(x.graph, "rft")
	must(err)
	x.fabric.Locked = func(n int, do func()) { x.servers[n].Inspect(func(p4rttest.Tables) { do() }) }
	began := time.Now()
	x.fabric.Clock = func() uint64 { return uint64(time.Since(began).Microseconds()) + 1_000_000 }
	for spine, address := range collectors {
		x.to[spine], err = net.Dial("udp", address)
		must(err)
		t.Cleanup(func() { _ = x.to[spine].Close() })
	}
	pipeline, err := p4rt.BMv2("rft")
	must(err)
	for n := range x.graph.NumNodes() {
		s := p4rttest.New(0, func(*configpb.P4Info, []byte) (p4rttest.Tables, error) {
			sw, err := programs.New("rft")
			if err != nil {
				return nil, err
			}
			sw.Mirror(1, 500)
			x.fabric.Replace(n, sw)
			return counting{sw.Store(), sw}, nil
		})
		x.servers = append(x.servers, s)
		must(s.Boot(pipeline.Config()))
		f, err := os.Create(filepath.Join(dir, x.graph.NodeName(n)+"-entries.json"))
		must(err)
		device := tables.Entry{Table: "egress.device", Action: "set_device", Params: tables.Uints(uint64(n+1), 0)}
		drops := tables.Entry{Table: "ingress.drops", Match: []tables.Match{tables.Number(29)}, Action: "report_drop", Params: tables.Uints(1, 1)}
		must(p4rt.WriteJSON(f, []tables.Entry{device, drops}))
		must(f.Close())
	}
	return x
}

// run sends packets that leaf-1 cannot route, each of which makes a report, until ctx ends.
func (x *deliveryNetwork) run(ctx context.Context) {
	leaf, _ := x.graph.Lookup("leaf-1")
	payload := make([]byte, 172)
	b := headers.AppendEthernet(nil, headers.MAC{5: 1}, headers.MAC{5: 2}, headers.EtherIPv4)
	b = headers.AppendIPv4(b, &headers.IPv4{TTL: 9, Proto: headers.ProtoUDP, Src: [4]byte{1, 1, 1, 1}, Dst: [4]byte{2, 2, 2, 2}}, 8+len(payload))
	b = append(headers.AppendUDP(b, 1, 2, len(payload)), payload...)
	due, last := 0.0, time.Now()
	for ; ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		x.mu.Lock()
		now := time.Now()
		due += float64(x.rate) * now.Sub(last).Seconds()
		for last = now; due >= 1; due-- {
			left, err := x.fabric.Send(leaf, programs.Frame{Port: 9, Bytes: b})
			if err != nil {
				x.t.Error(err)
			}
			x.made++
			for _, a := range left {
				spine := x.graph.NodeName(a.Node)
				if a.Port != serverPort || x.to[spine] == nil {
					continue // a report without a plan
				}
				x.arrived[fmt.Sprintf("leaf-1/%d %s", int(a.Bytes[34])<<8+int(a.Bytes[35])-tables.TagPort, spine)]++
				_, _ = x.to[spine].Write(a.Bytes[42:]) // a server that is down refuses it
			}
		}
		x.mu.Unlock()
	}
}

// differs returns in what the reports that arrive within some time differ from a plan: each path has its share of them,
// and no other path has any.
func (x *deliveryNetwork) differs(p *delivery.Plan) string {
	x.mu.Lock()
	x.arrived, x.made = map[string]int{}, 0
	x.mu.Unlock()
	time.Sleep(2 * time.Second)
	x.mu.Lock()
	defer x.mu.Unlock()
	sum, all := 0.0, 0
	for _, a := range p.Assignment {
		sum += a.Rate
	}
	for _, n := range x.arrived {
		all += n
	}
	if all != x.made {
		return fmt.Sprintf("%d of %d reports arrive", all, x.made)
	}
	paths := 0
	for _, a := range p.Assignment {
		n := x.arrived[a.ID+" "+a.Path[len(a.Path)-2]]
		if paths += n; math.Abs(float64(n)-a.Rate/sum*float64(all)) > 3 {
			return fmt.Sprintf("path %s has %d of %d reports, want a share of %.3f", a.ID, n, all, a.Rate/sum)
		}
	}
	if paths != all {
		return fmt.Sprintf("reports arrive over %v, and the plan has other paths", x.arrived)
	}
	return ""
}

// TestControlDelivery carries out over which paths reports go to which collectors. Collectors measure the rate of a point,
// control plans paths for it and writes them over P4Runtime, and reports arrive by the assigned paths, each at its share.
// Reports beyond the assigned rate are refused and counted, until another plan assigns more. Collectors are switched on and
// off as the rate asks for; another one takes over from one that fails. A kill of the control changes nothing, at rest and in
// the middle of a change.
func TestControlDelivery(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir, config, listen, admin := controlSettings(t, "http://127.0.0.1:1")
	at := func(name string) string { return filepath.Join(dir, name) }
	reports, collectors, servers := map[string]string{}, map[string]*exec.Cmd{}, ""
	for k, spine := range []string{"spine-1", "spine-2"} {
		page := testkit.FreeAddr(t)
		reports[spine] = testkit.FreeAddr(t)
		c := program("collect", "--config", writeFile(t, fmt.Sprintf("window: 1s\nudp: {listen: [\"%s\"]}\nweb: {listen: \"%s\"}\n", reports[spine], page)))
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		collectors[spine] = c
		servers += fmt.Sprintf("{name: at-%s, address: \"10.0.0.%d:32766\", mac: \"02:00:00:00:00:0%d\", page: \"http://%s\"}, ", spine, k+1, k+1, page)
	}
	x := newDeliveryNetwork(t, dir, at("lab.yaml"), reports)
	port := func(a, b string) int {
		n, _ := x.graph.Lookup(a)
		m, _ := x.graph.Lookup(b)
		return x.graph.Port(x.graph.Between(n, m))
	}
	const report = 206 // bytes
	gbps := func(reports float64) float64 { return reports * report * 8 / 1e9 }
	instance := delivery.Problem{Nodes: []delivery.Node{{ID: "leaf-1", Kind: delivery.PointNode, Rate: gbps(60), Deadline: 100, Loss: 0.5}}}
	for _, spine := range []string{"spine-1", "spine-2"} {
		instance.Nodes = append(instance.Nodes, delivery.Node{ID: spine, Kind: delivery.SwitchNode, Capacity: 1, Up: 1}, delivery.Node{ID: "at-" + spine, Kind: delivery.ServerNode, Capacity: 1, Up: 1})
		instance.Links = append(instance.Links, delivery.Link{A: "leaf-1", B: spine, PortA: port("leaf-1", spine), PortB: port(spine, "leaf-1"), Latency: 1, Capacity: gbps(100), Up: 1},
			delivery.Link{A: spine, B: "at-" + spine, PortA: serverPort, PortB: 1, Latency: 1, Capacity: 1, Up: 1})
	}
	b, err := json.Marshal(&instance)
	if err == nil {
		err = os.WriteFile(at("network.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var switches []string
	for n, s := range x.servers {
		address, stop, err := s.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		name := x.graph.NodeName(n)
		switches = append(switches, fmt.Sprintf("{name: %s, address: \"%s\", plaintext: true, program: rft, entries: %s}", name, address, at(name+"-entries.json")))
	}
	text := string(mustRead(t, config))
	before, _, _ := strings.Cut(text, "switches: ")
	_, after, _ := strings.Cut(text, "admin: ")
	text = fmt.Sprintf("%sswitches: [%s]\ndelivery: {file: %s, instance: %s, every: 1s, report_bytes: %d, servers: [%s], points: [{name: leaf-1, address: 10.255.0.1}]}\nadmin: %s", before, strings.Join(switches, ", "), at("delivery.json"), at("network.json"), report, servers, after)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	x.rate = 60
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { x.run(ctx) })
	defer done.Wait()
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
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.log)
		}
	})
	plan := func() (p delivery.Plan) {
		b, err := os.ReadFile(at("delivery.json"))
		if err != nil || json.Unmarshal(b, &p) != nil {
			return delivery.Plan{}
		}
		return p
	}
	settled := func(what string, ok func(d *tables.DeliveryStatus) bool) (s loop.Status) {
		t.Helper()
		why := ""
		defer func() {
			if t.Failed() {
				t.Log(why)
			}
		}()
		return l.until(what, func(s *loop.Status, _ int) bool {
			d := s.Delivery
			if d == nil || !d.InForce || !ok(d) {
				return false
			}
			p := plan()
			why = x.differs(&p)
			return len(p.Assignment) > 0 && why == ""
		})
	}
	on := func(d *tables.DeliveryStatus) (n int) {
		for _, s := range d.Servers {
			if s.On {
				n++
			}
		}
		return n
	}

	// The first plan is of the instance's rate, since no collector knows one yet.
	settled("reports arrive over an assigned path", func(d *tables.DeliveryStatus) bool { return len(d.Paths) == 1 })

	// The rate rises: switches refuse what is beyond the assigned one, and another plan assigns more, over both links.
	x.setRate(120)
	settled("more reports, over two paths", func(d *tables.DeliveryStatus) bool { return len(d.Paths) == 2 && on(d) == 2 })
	l.until("the switches' counters have those refused while the rate rose, and those sent over each path", func(s *loop.Status, _ int) bool {
		d := s.Delivery // which is older than the reports of the last step
		return d != nil && d.Refused > 0 && len(d.Paths) == 2 && d.Paths[0].Sent > 0 && d.Paths[1].Sent > 0
	})

	// It falls: a server is switched off.
	x.setRate(30)
	s := settled("fewer reports, over one path", func(d *tables.DeliveryStatus) bool { return len(d.Paths) == 1 && on(d) == 1 })

	// That server fails, and the other one takes over.
	spine := strings.TrimPrefix(s.Delivery.Paths[0].Server, "at-")
	_ = collectors[spine].Process.Kill()
	s = settled("after the failure of a server", func(d *tables.DeliveryStatus) bool {
		return len(d.Paths) == 1 && d.Paths[0].Server != "at-"+spine && on(d) == 1
	})

	// The control is killed, and nothing changes: not while it is gone, and not when it is back.
	now := plan()
	_ = l.end(os.Kill)
	if d := x.differs(&now); d != "" {
		t.Errorf("without a control: %s", d)
	}
	l.start()
	settled("after a kill", func(d *tables.DeliveryStatus) bool { return true })
	out, err := program("control", "status", "--url", admin).CombinedOutput()
	if !strings.Contains(string(out), "1 points over 1 paths to 1 of 2 servers, in force") || !strings.Contains(string(out), "down: ") {
		t.Errorf("status: %v\n%s", err, out)
	}

	// It is killed while a plan is on its way.
	x.setRate(70)
	within(t, "another plan is written", func() bool {
		p := plan()
		return len(p.Assignment) > 0 && p.Assignment[0].Rate != now.Assignment[0].Rate
	})
	_ = l.end(os.Kill)
	l.start()
	settled("after a kill in the middle", func(d *tables.DeliveryStatus) bool { return d.Paths[0].Rate > now.Assignment[0].Rate })
	if err := l.end(os.Interrupt); err != nil {
		t.Errorf("control ends with %v\n%s", err, l.log)
	}
}

func (x *deliveryNetwork) setRate(reports int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rate = reports
}
