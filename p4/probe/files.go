package probe

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/schedule"
)

// Files are the plans that "hopscope plan" wrote.
type Files struct {
	Probes    []string      `yaml:"probes" doc:"Plans of \"hopscope plan cover --sr=int-probe --format json\". Of several, ids become 1/p1, 2/p1 and so on."`
	Schedule  string        `yaml:"schedule" doc:"Plan of \"hopscope plan schedule\" with the times of probes. Without it all start every interval."`
	Attention string        `yaml:"attention" doc:"Plan of \"hopscope plan attention\" with the probes that look closer, and their bitmaps."`
	Interval  time.Duration `yaml:"interval" range:"10us..24h" doc:"Time between two starts of a probe without a schedule, spread over all probes."`
	Dialect   string        `yaml:"dialect" oneof:"int-2.1|fant" doc:"Widths of the metadata that switches add."`
	Basic     string        `yaml:"basic" doc:"Instruction bitmap of probes, such as 0xf000. Empty is the attention plan's, or the dialect's."`
	Detailed  string        `yaml:"detailed" doc:"Instruction bitmap of probes that look closer."`
}

// Named reports whether a file is named.
func (f *Files) Named() bool { return len(f.Probes) > 0 || f.Schedule != "" || f.Attention != "" }

// Validate finds what is wrong beyond the ranges of single values. It reads no file.
func (f *Files) Validate() error {
	var errs []error
	if len(f.Probes) == 0 && f.Named() {
		errs = append(errs, errors.New("probes: are missing; schedule and attention only name them"))
	}
	for _, b := range []struct{ key, value string }{{"basic", f.Basic}, {"detailed", f.Detailed}} {
		if _, err := parseBitmap(b.value); b.value != "" && err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", b.key, err))
		}
	}
	return errors.Join(errs...)
}

// maxFile bounds what is read of a plan.
const maxFile = 256 << 20

// Read makes a plan of the files that "hopscope plan" wrote: the routes of probes, their times, and which of them
// measure in detail.
func (f *Files) Read(epoch uint32) (*Plan, error) {
	p := &Plan{Epoch: epoch, Dialect: Dialect(f.Dialect)}
	var probes []planner.Probe
	for i, path := range f.Probes {
		var c cover.Plan
		if err := readPlan(path, "cover", &c); err != nil {
			return nil, err
		}
		list := append(c.Probes, c.Second...)
		if len(list) == 0 {
			return nil, fmt.Errorf("plan %s: no probes", path)
		}
		for k := range list {
			if len(f.Probes) > 1 {
				list[k].ID = fmt.Sprintf("%d/%s", i+1, list[k].ID) // as plan schedule and plan attention name them
			}
			if err := checkListed(&list[k]); err != nil {
				return nil, fmt.Errorf("plan %s: probe %s: %w", path, list[k].ID, err)
			}
		}
		probes = append(probes, list...)
	}
	times, err := f.times(probes)
	if err != nil {
		return nil, err
	}
	detailed, err := f.attention(p, probes)
	if err != nil {
		return nil, err
	}
	for k := range probes {
		x := &probes[k]
		slot, ok := times[x.ID]
		if !ok {
			continue // the schedule does not send it
		}
		next, err := New(x, slot)
		if err != nil {
			return nil, err
		}
		next.Detailed = detailed[x.ID]
		p.Probes = append(p.Probes, next)
	}
	return p, nil
}

// New is a probe as a planner made it, with a route of INT-Probe, sent at the times of a slot.
func New(x *planner.Probe, s Slot) (Probe, error) {
	route, err := readRoute(x.Route)
	if err != nil {
		return Probe{}, fmt.Errorf("probe %s: %w", x.ID, err)
	}
	return Probe{ID: x.ID, Route: route, Interval: s.Interval, Phase: s.Phase, Agent: host(x.AgentHost, x.Agent), Collector: host(x.CollectorHost, x.Collector)}, nil
}

// host is the name of an agent: that of the host where several are at one node.
func host(host, node string) string {
	if host != "" {
		return host
	}
	return node
}

// times are the slots of the probes that are sent, by id.
func (f *Files) times(probes []planner.Probe) (map[string]Slot, error) {
	slots := make(map[string]Slot, len(probes))
	if f.Schedule == "" {
		for k := range probes { // spread over the interval
			slots[probes[k].ID] = Slot{Interval: f.Interval, Phase: f.Interval / time.Duration(len(probes)) * time.Duration(k)}
		}
		return slots, nil
	}
	var s schedule.Plan
	if err := readPlan(f.Schedule, "schedule", &s); err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(probes))
	for k := range probes {
		known[probes[k].ID] = true
	}
	for k := range s.Probes {
		x := &s.Probes[k]
		if !known[x.ID] {
			return nil, fmt.Errorf("plan %s: probe %s is sent, and no plan of probes has it", f.Schedule, x.ID)
		}
		slot := Slot{Interval: duration(x.Interval), Phase: duration(x.Phase)}
		if _, twice := slots[x.ID]; twice {
			return nil, fmt.Errorf("plan %s: probe %s is there twice; plan the schedule anew", f.Schedule, x.ID)
		}
		if err := slot.Check(); err != nil {
			return nil, fmt.Errorf("plan %s: probe %s %w (interval_ms %v, phase_ms %v); plan the schedule anew", f.Schedule, x.ID, err, x.Interval, x.Phase)
		}
		slots[x.ID] = slot
	}
	return slots, nil
}

// replanAdvice is the advice for an invalid file.
const replanAdvice = "plan again with --sr=int-probe"

// checkListed checks that x in a plan of probes is consistent. The sender writes the route; the ports are those of the
// same way.
func checkListed(x *planner.Probe) error {
	if x.Route == "" {
		return errors.New("it has no route; plan with --sr=int-probe")
	}
	route, err := readRoute(x.Route)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name    string
		ports   []int
		lowest  int
		longest int
	}{
		{"route", route, 1, srint.MaxProbeHops}, {"ports", x.Ports, 1, srint.MaxProbeHops},
		{"agent_port", []int{x.AgentPort}, 0, 1}, {"collector_port", []int{x.CollectorPort}, 0, 1},
	} {
		if len(f.ports) > f.longest {
			return fmt.Errorf("its field %s has %d entries, at most %d; "+replanAdvice, f.name, len(f.ports), f.longest)
		}
		for k, port := range f.ports {
			if port >= f.lowest && port <= srint.MaxProbePort {
				continue
			}
			if f.longest > 1 {
				f.name = fmt.Sprintf("%s[%d]", f.name, k)
			}
			return fmt.Errorf("port %d in its field %s is outside %d..%d; "+replanAdvice, port, f.name, f.lowest, srint.MaxProbePort)
		}
	}
	if x.Ports == nil {
		return nil
	}
	if n := max(len(x.Nodes)-1, 0); len(x.Ports) != n {
		return fmt.Errorf("its field ports has %d entries, and it leaves %d nodes for a next one; "+replanAdvice, len(x.Ports), n)
	}
	if !leads(route, x.Ports, x.CollectorPort) && (len(x.Ports) == 0 || !leads(route, x.Ports[1:], x.CollectorPort)) { // the first node may be a host
		return fmt.Errorf("its field route leads by ports %v, and the fields ports %v and collector_port %d contradict that; "+replanAdvice, route, x.Ports, x.CollectorPort)
	}
	return nil
}

// leads reports whether a route goes by these ports. One more entry may follow, the port of the host; a host of 0
// allows any port there.
func leads(route, ports []int, host int) bool {
	n := len(ports)
	if len(route) < n || !slices.Equal(route[:n], ports) {
		return false
	}
	return len(route) == n || len(route) == n+1 && (host == 0 || route[n] == host)
}

// duration turns the milliseconds of a plan into nanoseconds. A value out of range stays so, for Check to refuse.
func duration(ms float64) time.Duration {
	const most = float64(1 << 62)
	ns := ms*1e6 + 0.5
	if !(ns >= 0 && ns < most) {
		return -1
	}
	return time.Duration(ns)
}

// attention returns the probes that measure in detail, and sets the bitmaps of p.
func (f *Files) attention(p *Plan, probes []planner.Probe) (map[string]bool, error) {
	p.Basic, p.Detailed = p.Dialect.Bitmaps()
	detailed := map[string]bool{}
	if f.Attention != "" {
		var a attention.Plan
		if err := readPlan(f.Attention, "attention", &a); err != nil {
			return nil, err
		}
		known := make(map[string]bool, len(probes))
		for k := range probes {
			known[probes[k].ID] = true
		}
		for k := range a.Probes {
			if !known[a.Probes[k].ID] {
				return nil, fmt.Errorf("plan %s: probe %s looks closer, and no plan of probes has it", f.Attention, a.Probes[k].ID)
			}
			detailed[a.Probes[k].ID] = true
		}
		if in := a.Instructions; in != nil {
			if err := setBitmaps(p, in.Basic, in.Detailed); err != nil {
				return nil, fmt.Errorf("plan %s: %w", f.Attention, err)
			}
		}
	}
	return detailed, setBitmaps(p, f.Basic, f.Detailed)
}

// setBitmaps sets those that are named.
func setBitmaps(p *Plan, basic, detailed string) (err error) {
	if basic != "" {
		if p.Basic, err = parseBitmap(basic); err != nil {
			return err
		}
	}
	if detailed != "" {
		p.Detailed, err = parseBitmap(detailed)
	}
	return err
}

// readRoute reads the route that a plan has for the sender: an INT-Probe frame from its EtherType on.
func readRoute(text string) (ports []int, err error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("its route is no hex: %w", err)
	}
	if len(b) < 8 || binary.BigEndian.Uint16(b) != srint.TypeRoute || len(b) != 2+int(b[3])+probeINTLen || b[3]%2 != 0 {
		return nil, fmt.Errorf("its route of %d bytes is none of INT-Probe; a route of INT-path has no place for an INT header: plan with --sr=int-probe", len(b))
	}
	for k := 4; k < 2+int(b[3]); k += 2 {
		ports = append(ports, int(b[k+1]))
	}
	return ports, nil
}

// readPlan reads the JSON of a plan of a kind.
func readPlan(path, kind string, plan any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := planner.ReadPlan(io.LimitReader(f, maxFile), kind, plan); err != nil {
		return fmt.Errorf("plan %s: %w", path, err)
	}
	return nil
}

// parseBitmap reads an instruction bitmap, as plans of attention write it.
func parseBitmap(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 0, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no bitmap of 16 bits, such as 0xf000", s)
	}
	return uint16(n), nil
}
