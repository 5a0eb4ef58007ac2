package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/internal/testkit"
	tables "github.com/hopscope/hopscope/p4"
	programs "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// These are of the emulated switches of intoNetwork.
const (
	intoHostPort   = 9
	intoReportPort = 500
	intoWords      = 4 // that an interface adds
)

// intoNetwork is emulated switches that run into behind P4Runtime, with hosts that send flows, whose reports go to a
// collector.
type intoNetwork struct {
	t       *testing.T
	graph   *topo.Graph
	fabric  *programs.Fabric
	servers []*p4rttest.Server // by node
	config  *p4rt.Pipeline
	reports net.Conn

	mu    sync.Mutex
	flows map[decode.FlowKey]*intoFlow
	round int
}

// intoFlow is a flow and what the reports of its last orchestrated packet have.
type intoFlow struct {
	from    int      // node of its host
	path    []string // interfaces that it passes
	carried []string // by the last packet, in the order of the path
	reports int      // of it
	round   int      // of it
}

func newIntoNetwork(t *testing.T, dir, topology, collector string) *intoNetwork {
	t.Helper()
	x := &intoNetwork{t: t, flows: map[decode.FlowKey]*intoFlow{}}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	var err error
	x.graph, err = load.Topology(topology)
	must(err)
	x.fabric, err = programs.NewFabric(x.graph, "into")
	must(err)
	x.fabric.Locked = func(n int, do func()) { x.servers[n].Inspect(func(p4rttest.Tables) { do() }) }
	x.config, err = p4rt.BMv2("into")
	must(err)
	x.reports, err = net.Dial("udp", collector)
	must(err)
	t.Cleanup(func() { _ = x.reports.Close() })
	for n := range x.graph.NumNodes() {
		s := p4rttest.New(0, func(*configpb.P4Info, []byte) (p4rttest.Tables, error) {
			sw, err := programs.New("into")
			if err != nil {
				return nil, err
			}
			sw.Mirror(1, intoReportPort)
			x.fabric.Replace(n, sw)
			return sw.Store(), nil
		})
		x.servers = append(x.servers, s)
		must(s.Boot(x.config.Config()))
		f, err := os.Create(filepath.Join(dir, x.graph.NodeName(n)+"-entries.json"))
		must(err)
		must(p4rt.WriteJSON(f, x.fixed(n)))
		must(f.Close())
	}
	return x
}

// fixed are the entries of a switch beside its assignments: routes, ports, and ordinary INT in one of eight packets, from
// which the collector knows flows and their paths.
func (x *intoNetwork) fixed(n int) []tables.Entry {
	entry := func(table, action string, match []tables.Match, params ...uint64) tables.Entry {
		e := tables.Entry{Table: table, Action: action, Match: match}
		for _, p := range params {
			e.Params = append(e.Params, tables.Uint(p))
		}
		return e
	}
	list := []tables.Entry{
		entry("egress.device", "set_device", nil, uint64(n+1), 0),
		entry("egress.envelope.collector", "send", []tables.Match{tables.Number(1)}, 1, 1, 0x7f000001, 0x7f000001, 1, 32766, 900),
	}
	for to := range x.graph.NumNodes() {
		for host := range 2 { // the lowest bit of an address selects the spine
			port, ok := x.next(n, to, host)
			if !ok {
				continue
			}
			for last := host; last < 16; last += 2 {
				e := entry("ingress.forward.forwarding4", "forward", []tables.Match{{Value: tables.Uint(uint64(10<<24 | to<<16 | last)), Prefix: 32}}, uint64(port), 1, 1)
				list = append(list, e)
			}
		}
	}
	if strings.HasPrefix(x.graph.NodeName(n), "leaf") {
		watch := entry("ingress.watch", "track", slices.Repeat([]tables.Match{tables.Masked(0, 0)}, 5), math.MaxUint32/8, 0xf000, 0, 16, 0)
		watch.Priority = 1
		list = append(list, watch,
			entry("ingress.ingress_port", "host", []tables.Match{tables.Number(intoHostPort)}, 0, 0),
			entry("egress.egress_port", "to_host", []tables.Match{tables.Number(intoHostPort)}, 1500, 1, 1))
	}
	return list
}

// next is the port from a switch towards a leaf.
func (x *intoNetwork) next(n, to, host int) (port int, ok bool) {
	leaf := func(n int) bool { return strings.HasPrefix(x.graph.NodeName(n), "leaf") }
	switch {
	case !leaf(to):
		return 0, false
	case n == to:
		return intoHostPort, true
	case leaf(n):
		spine, _ := x.graph.Lookup(fmt.Sprintf("spine-%d", host+1))
		return x.graph.Port(x.graph.Between(n, spine)), true
	}
	return x.graph.Port(x.graph.Between(n, to)), true
}

// begin starts a flow between leafs, by the spine of its destination address.
func (x *intoNetwork) begin(from, to string, host, port uint16) decode.FlowKey {
	a, _ := x.graph.Lookup(from)
	b, _ := x.graph.Lookup(to)
	at := func(n int, last uint16) decode.Addr {
		return decode.AddrFrom(netip.AddrFrom4([4]byte{10, byte(n), 0, byte(last)}))
	}
	k := decode.FlowKey{Src: at(a, host), Dst: at(b, host), SrcPort: port, DstPort: 5001, Proto: headers.ProtoUDP, IPVersion: 4}
	f := &intoFlow{from: a}
	for n := a; ; {
		out, _ := x.next(n, b, int(host%2))
		f.path = append(f.path, fmt.Sprintf("%s:%d", x.graph.NodeName(n), out))
		if n == b {
			break
		}
		n = x.graph.Neighbor(x.graph.ByPort(n, out))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.flows[k] = f
	return k
}

func (x *intoNetwork) end(k decode.FlowKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.flows, k)
}

// run sends packets of all flows until ctx ends.
func (x *intoNetwork) run(ctx context.Context) {
	profile, _ := demux.Lookup("auto")
	d := demux.New(profile)
	for ctx.Err() == nil {
		x.mu.Lock()
		x.round++
		for k, f := range x.flows {
			x.send(d, k, f)
		}
		x.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
	}
}

// send sends a packet of a flow. Of packets without ordinary INT it notes what is reported.
func (x *intoNetwork) send(d *demux.Decoder, k decode.FlowKey, f *intoFlow) {
	payload := binary.BigEndian.AppendUint64(make([]byte, 0, 300), uint64(x.round))[:300]
	b := headers.AppendEthernet(nil, headers.MAC{5: 1}, headers.MAC{5: 2}, headers.EtherIPv4)
	b = headers.AppendIPv4(b, &headers.IPv4{TTL: 64, Proto: k.Proto, ID: uint16(x.round), Src: [4]byte(k.Src[12:]), Dst: [4]byte(k.Dst[12:])}, 8+len(payload))
	b = append(headers.AppendUDP(b, k.SrcPort, k.DstPort, len(payload)), payload...)
	left, err := x.fabric.Send(f.from, programs.Frame{Port: intoHostPort, Bytes: b})
	if err != nil {
		x.t.Error(err)
		return
	}
	var carried []string
	reports, ordinary, arrived := 0, false, false
	for _, a := range left {
		if a.Port != intoReportPort {
			arrived = arrived || a.Port == intoHostPort
			continue
		}
		if _, err := x.reports.Write(a.Bytes[42:]); err != nil && !strings.Contains(err.Error(), "refused") {
			x.t.Error(err)
		}
		var batch decode.Batch
		d.Datagram(&batch, decode.Addr{}, a.Bytes[42:], 1)
		r := batch.Reports[0]
		if r.Err.Reason != 0 || r.Flags&decode.MTU != 0 {
			x.t.Errorf("a report of flow %v: %+v", k, r)
		}
		if ordinary = ordinary || r.Flags&decode.Transit == 0; ordinary {
			continue
		}
		reports++
		for _, h := range r.Hops {
			carried = append(carried, fmt.Sprintf("%s:%d", x.graph.NodeName(int(h.NodeID)-1), h.EgressIf))
		}
	}
	if !ordinary && arrived {
		f.carried, f.reports, f.round = carried, reports, x.round
	}
}

// differs returns in what the reports of all flows differ from a plan, "" if in nothing. A packet of a flow has one
// report if something is assigned to it, with the assigned interfaces and no others.
func (x *intoNetwork) differs(p *orchestrate.Plan) string {
	want := map[string]map[string]bool{}
	for _, t := range p.Tables {
		for _, e := range t.Entries {
			if want[e.Flow] == nil {
				want[e.Flow] = map[string]bool{}
			}
			want[e.Flow][t.Interface] = true
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	covered, items, hops := map[string]bool{}, 0, 0
	for k, f := range x.flows {
		name := k.String()
		list := slices.DeleteFunc(slices.Clone(f.path), func(i string) bool { return !want[name][i] })
		if !slices.Equal(list, f.carried) || f.reports != min(len(list), 1) {
			return fmt.Sprintf("flow %s carries %v in %d reports, want %v", name, f.carried, f.reports, list)
		}
		for _, i := range f.carried {
			covered[i] = true
			items++
			hops += slices.Index(f.path, f.carried[len(f.carried)-1]) - slices.Index(f.path, i)
		}
		if room := 1500 - 1000 - 16; 4*intoWords*len(f.carried) > room {
			return fmt.Sprintf("flow %s carries %d words", name, intoWords*len(f.carried))
		}
		delete(want, name)
	}
	if len(want) > 0 {
		return fmt.Sprintf("the plan has flows that ended: %v", slices.Collect(maps.Keys(want)))
	}
	if len(covered) != len(p.Tables) {
		return fmt.Sprintf("%d interfaces are reported, want %d", len(covered), len(p.Tables))
	}
	if got := float64(hops) / float64(max(items, 1)); math.Abs(got-p.Stats.Freshness.Mean) > 1e-9 {
		return fmt.Sprintf("freshness %v, the plan has %v", got, p.Stats.Freshness.Mean)
	}
	return ""
}

// updates counts the updates of assignments in requests to switches since it was last called.
func (x *intoNetwork) updates() (n int) {
	id := uint32(0)
	for _, t := range x.config.Config().GetP4Info().GetTables() {
		if t.GetPreamble().GetName() == tables.AssignedName {
			id = t.GetPreamble().GetId()
		}
	}
	for _, s := range x.servers {
		for _, w := range s.Writes() {
			for _, u := range w.GetUpdates() {
				if u.GetEntity().GetTableEntry().GetTableId() == id {
					n++
				}
			}
		}
	}
	return n
}

// assigned are the entries of assignments that a switch holds.
func (x *intoNetwork) assigned(n int) (list []string) {
	x.servers[n].Inspect(func(s p4rttest.Tables) {
		for _, e := range s.Read(tables.AssignedName) {
			if !e.Default() {
				list = append(list, e.String()+" of "+e.Owner)
			}
		}
	})
	slices.Sort(list)
	return list
}

// TestControlInto carries out which flows carry which interfaces. A collector knows flows from ordinary INT in some of
// their packets, control assigns interfaces to them over P4Runtime, and switches do what was assigned: every packet has
// the values of assigned interfaces and of no others, and one report of it leaves behind the last one. It stays so when
// flows begin and end, a switch restarts, and the control is killed, at rest and in the middle of a change.
func TestControlInto(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	reports, page := testkit.FreeAddr(t), testkit.FreeAddr(t)
	dir, config, listen, admin := controlSettings(t, "http://"+page)
	at := func(name string) string { return filepath.Join(dir, name) }
	collector := program("collect", "--config", writeFile(t, fmt.Sprintf("window: 1s\nudp: {listen: [\"%s\"]}\nweb: {listen: \"%s\"}\n", reports, page)))
	if err := collector.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = collector.Process.Kill(); _ = collector.Wait() })

	x := newIntoNetwork(t, dir, at("lab.yaml"), reports)
	var switches []string
	for n, s := range x.servers {
		address, stop, err := s.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		name := x.graph.NodeName(n)
		switches = append(switches, fmt.Sprintf("{name: %s, address: \"%s\", plaintext: true, program: into, entries: %s}", name, address, at(name+"-entries.json")))
	}
	text := string(mustRead(t, config))
	before, _, _ := strings.Cut(text, "switches: ")
	_, after, _ := strings.Cut(text, "admin: ")
	text = fmt.Sprintf("%sswitches: [%s]\norchestrate: {file: %s, every: 1s}\nadmin: %s", before, strings.Join(switches, ", "), at("into.json"), after)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	var flows []decode.FlowKey
	for k := range uint16(4) { // by both spines, in both directions
		flows = append(flows, x.begin("leaf-1", "leaf-2", 2+k, 1000+k), x.begin("leaf-2", "leaf-1", 2+k, 1000+k))
	}
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
	plan := func() (p orchestrate.Plan) {
		b, err := os.ReadFile(at("into.json"))
		if err == nil {
			err = json.Unmarshal(b, &p)
		}
		if err != nil {
			return orchestrate.Plan{}
		}
		return p
	}
	const interfaces = 10 // a port of a switch in every direction, and two to hosts
	settled := func(what string, ok func(p *orchestrate.Plan) bool) (s loop.Status) {
		t.Helper()
		var p orchestrate.Plan
		s = l.until(what, func(s *loop.Status, _ int) bool {
			o := s.Orchestration
			if o == nil || !o.InForce || o.Assigned != interfaces || o.Reported != interfaces {
				return false
			}
			p = plan()
			return len(p.Tables) == interfaces && ok(&p) && x.differs(&p) == ""
		})
		if p.Stats.Coverage != 1 || s.Orchestration.Freshness != p.Stats.Freshness.Mean || s.Orchestration.FlowsUsed != p.Stats.FlowsUsed {
			t.Errorf("%s: %+v, and the plan has %+v", what, s.Orchestration, p.Stats)
		}
		return s
	}
	uses := func(p *orchestrate.Plan, k decode.FlowKey) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(p.Assignment)), func(f string) bool { return f == k.String() })
	}
	every := func(*orchestrate.Plan) bool { return true }

	settled("all interfaces are assigned", every)
	x.updates()

	// A flow that carries interfaces ends, and another one begins.
	first := plan()
	gone := flows[slices.IndexFunc(flows, func(k decode.FlowKey) bool { return uses(&first, k) })]
	x.end(gone)
	x.begin("leaf-1", "leaf-2", 6, 2000)
	s := settled("without the flow that ended", func(p *orchestrate.Plan) bool { return !uses(p, gone) })
	if n := x.updates(); n == 0 || n >= 2*interfaces || s.Orchestration.Changed >= interfaces {
		t.Errorf("%d interfaces changed, and %d updates were sent for %d entries", s.Orchestration.Changed, n, s.Orchestration.Entries)
	}

	// A switch restarts with empty tables.
	leaf, _ := x.graph.Lookup("leaf-1")
	held := x.assigned(leaf)
	if err := x.servers[leaf].Boot(x.config.Config()); err != nil {
		t.Fatal(err)
	}
	settled("after the restart of a switch", func(*orchestrate.Plan) bool { return slices.Equal(x.assigned(leaf), held) })

	// The control is killed, and nothing changes: not while it is gone, and not when it is back.
	now := plan()
	x.updates()
	_ = l.end(os.Kill)
	if d := x.differs(&now); d != "" {
		t.Errorf("without a control: %s", d)
	}
	l.start()
	settled("after a kill", every)
	if n := x.updates(); n > 0 {
		t.Errorf("%d updates were sent after a kill, though no flow has changed", n)
	}

	// It is killed while a plan is on its way.
	second := plan()
	for _, k := range flows {
		if uses(&second, k) {
			gone = k
			x.end(k)
			break
		}
	}
	within(t, "another plan is written", func() bool { p := plan(); return len(p.Tables) > 0 && !uses(&p, gone) })
	_ = l.end(os.Kill)
	l.start()
	settled("after a kill in the middle", func(p *orchestrate.Plan) bool { return !uses(p, gone) })
	for n := range x.servers {
		for _, e := range x.assigned(n) {
			if !strings.HasSuffix(e, " of hopscope") {
				t.Errorf("switch %s holds %s", x.graph.NodeName(n), e)
			}
		}
	}
	out, err := program("control", "status", "--url", admin).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "10 of 10 interfaces") {
		t.Errorf("status: %v\n%s", err, out)
	}
	if err := l.end(os.Interrupt); err != nil {
		t.Errorf("control ends with %v\n%s", err, l.log)
	}
}
