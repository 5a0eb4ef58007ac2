package steer

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/orchestrate"
)

// assigning are the programs of switches that carry out assignments.
const assigning = "into, rft or hopscope"

// OrchestrateConfig holds the settings of the assignment of flows to interfaces, which switches with the program
// into, rft or hopscope carry out.
type OrchestrateConfig struct {
	File        string        `yaml:"file" doc:"Plan of \"hopscope plan orchestrate --format json\" that switches with the program into, rft or hopscope carry out; written here with every. Empty carries out none."`
	Every       time.Duration `yaml:"every" range:"0s..24h" doc:"Interval of plans for the flows that the collector lists. 0 keeps that of the file."`
	Objective   string        `yaml:"objective" oneof:"concentrate|balance" doc:"Fewest flows, or smallest largest load of a flow."`
	Redundancy  int           `yaml:"redundancy" range:"1..64" doc:"Flows that carry each interface, all different."`
	Churn       int           `yaml:"max_changes" range:"0..1000000" doc:"Interfaces whose flow changes in a plan, beside those that have to."`
	Bitmap      string        `yaml:"bitmap" doc:"Instruction bitmap of the values that an interface adds. Node id and interfaces (0xc000) have to be among them."`
	PacketBytes int           `yaml:"packet_bytes" range:"64..65535" doc:"Largest IP packet of flows. The capacity of a flow is what mtu leaves beside it."`
	MTU         int           `yaml:"mtu" range:"576..65535" doc:"Largest IP packet of lines."`
	Session     int           `yaml:"session" range:"1..32767" doc:"Clone session of reports, which leads to the collector's port."`
	Collector   int           `yaml:"collector" range:"0..255" doc:"Entry of the table collector with the headers of reports."`
}

// DefaultOrchestrateConfig carries out nothing.
func DefaultOrchestrateConfig() OrchestrateConfig {
	return OrchestrateConfig{Objective: orchestrate.Concentrate, Redundancy: 1, Bitmap: "0xf000", PacketBytes: 1000, MTU: 1500, Session: 1, Collector: 1}
}

const (
	named       = 0xc000 // bits of node id and interfaces, by which a collector knows an interface
	intoHeaders = 16     // bytes of shim and header
	mostWords   = 252    // that the shim counts behind them
	leastEvery  = time.Second
	mostPort    = 1<<9 - 1 // that the key of the table assigned takes
)

// bits is the bitmap.
func (c *OrchestrateConfig) bits() (uint16, error) {
	n, err := strconv.ParseUint(c.Bitmap, 0, 16)
	switch w := probe.INT21.HopBytes(uint16(n)) / 4; {
	case err != nil:
		return 0, fmt.Errorf("orchestrate.bitmap: %q is not a number of 16 bits, such as 0xf000", c.Bitmap)
	case n&named != named || n&^0xff80 != 0 || w > 31:
		return 0, fmt.Errorf("orchestrate.bitmap: %#04x does not have node id and interfaces (0xc000), or bits beyond 0xff80", n)
	}
	return uint16(n), nil
}

// words is the demand of an interface, in items of 4 bytes.
func (c *OrchestrateConfig) words() int64 {
	bits, _ := c.bits() // Validate has checked it
	return int64(probe.INT21.HopBytes(bits) / 4)
}

// capacity is that of a flow, in items.
func (c *OrchestrateConfig) capacity() int64 {
	s := orchestrate.Sizing{MTU: int64(c.MTU), Percentile: 100, HeaderBytes: intoHeaders, ItemBytes: 4}
	return min(s.Capacity([]int64{int64(c.PacketBytes)}), mostWords)
}

// Validate returns what is wrong beyond single ranges. Fleet is set if other controls stand by.
func (c *OrchestrateConfig) Validate(collector string, fleet bool) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("orchestrate."+format, args...)) }
	if _, err := c.bits(); err != nil {
		errs = append(errs, err)
	}
	switch {
	case c.File == "" && c.Every > 0:
		wrong("every: needs file, which keeps the plan over a restart")
	case c.Every > 0 && c.Every < leastEvery:
		wrong("every: %v is below %v", c.Every, leastEvery)
	case c.Every > 0 && collector == "":
		wrong("every: needs collector.url, whose flows are assigned")
	case c.File != "" && fleet:
		wrong("file: does not go with fleet.enabled, since the plan is in a file of one control")
	}
	if len(errs) == 0 && c.capacity() < c.words() {
		wrong("packet_bytes: packets of %d bytes have room for %d items of 4 bytes at an MTU of %d, and an interface has %d", c.PacketBytes, c.capacity(), c.MTU, c.words())
	}
	return errs
}

// readAssignment reads the plan of the settings. It is nil if control has not written one yet.
func (c *OrchestrateConfig) readAssignment() (*orchestrate.Plan, error) {
	f, err := os.Open(c.File)
	if errors.Is(err, fs.ErrNotExist) && c.Every > 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("orchestrate.file: %w", err)
	}
	var p orchestrate.Plan
	if err := errors.Join(planner.ReadPlan(f, "orchestrate", &p), f.Close()); err != nil {
		return nil, fmt.Errorf("orchestrate.file: %s: %w", c.File, err)
	}
	return &p, nil
}

// egressOf is an interface by its name NODE:PORT. The node is a name of the topology, or its number in reports.
func (d *Links) egressOf(name string) (node string, port int, err error) {
	at := strings.LastIndexByte(name, ':')
	number, perr := strconv.ParseUint(name[at+1:], 10, 31)
	if at < 0 || perr != nil {
		return "", 0, fmt.Errorf("interface %q is not NODE:PORT", name)
	}
	n, ok := d.graph.Lookup(name[:at])
	if !ok {
		if id, err := strconv.ParseUint(name[:at], 10, 32); err == nil {
			n, ok = d.nodes[uint32(id)]
		}
	}
	if !ok {
		return "", 0, fmt.Errorf("interface %q: the topology has no node %q", name, name[:at])
	}
	return d.graph.NodeName(n), int(number), nil
}

// assignable returns the key of a flow that tables can match: TCP or UDP of plain addresses, and no probe.
func assignable(text string) (k decode.FlowKey, err error) {
	if k, err = decode.ParseFlow(text); err != nil {
		return k, err
	}
	_, from := k.Src.Site()
	_, to := k.Dst.Site()
	const tcp, udp = 6, 17
	switch {
	case k.Proto != tcp && k.Proto != udp:
		return k, fmt.Errorf("flow %q is neither TCP nor UDP", text)
	case likeIPv4(k.SrcAddr()) || likeIPv4(k.DstAddr()):
		return k, fmt.Errorf("flow %q has an address in ::/96, which tables do not distinguish from one of IPv4", text)
	case from != 0 || to != 0:
		return k, fmt.Errorf("flow %q is of a site; switches know addresses without sites", text)
	case inference.IsProbe(&k) || inference.IsSTAMP(&k):
		return k, fmt.Errorf("flow %q is of probes", text)
	}
	return k, nil
}

// likeIPv4 reports whether an address of IPv6 is in ::/96: in a key of 128 bits it is the same as one of IPv4.
func likeIPv4(a netip.Addr) bool {
	return a.Is6() && netip.PrefixFrom(netip.IPv6Unspecified(), 96).Contains(a)
}

// Entries returns the entries of switches that carry out an assignment, by switch. The switches serves are those that can.
func (c *OrchestrateConfig) Entries(p *orchestrate.Plan, links *Links, serves map[string]bool) (map[string][]p4.Entry, error) {
	bits, err := c.bits()
	if err != nil {
		return nil, err
	}
	if len(p.Tables) == 0 && len(p.Assignment)+len(p.Shares) > 0 {
		return nil, errors.New("the plan has no tables: write it with \"hopscope plan orchestrate --format json\"")
	}
	var bad planner.Errors
	table := p4.AssignedTable()
	type key struct {
		node string
		port int
		flow decode.FlowKey
	}
	list, load, seen := map[string][]p4.Entry{}, map[decode.FlowKey]int64{}, map[key]bool{}
	for _, t := range p.Tables {
		node, port, err := links.egressOf(t.Interface)
		if err == nil && !serves[node] {
			err = fmt.Errorf("interface %q: %s is no switch of the settings with the program %s", t.Interface, node, assigning)
		}
		if err != nil {
			bad.Add("%w", err)
			continue
		}
		for _, e := range t.Entries {
			k, err := assignable(e.Flow)
			at := key{node, port, k}
			switch load[k] += e.Items; {
			case err != nil:
			case seen[at]:
				err = fmt.Errorf("interface %q: flow %q is assigned to it twice", t.Interface, e.Flow)
			case e.First != 0:
				err = fmt.Errorf("interface %q: its items are split among flows, and a switch adds all of them", t.Interface)
			case e.Items != c.words():
				err = fmt.Errorf("interface %q: %d items are assigned, and the bitmap %s adds %d: plan with --items %d", t.Interface, e.Items, c.Bitmap, c.words(), c.words())
			case load[k] > mostWords:
				err = fmt.Errorf("flow %q: %d items do not fit into the header of INT, which counts %d", e.Flow, load[k], mostWords)
			}
			seen[at] = true
			x := c.entry(&k, port, bits, e.Sink)
			if err == nil {
				err = table.Check(&x)
			}
			if err != nil {
				bad.Add("%w", err)
				continue
			}
			list[node] = append(list[node], x)
		}
	}
	for node, l := range list {
		if len(l) > table.Size {
			bad.Add("switch %s: %d entries, and its table %s takes %d", node, len(l), table.Name, table.Size)
		}
	}
	return list, bad.Join()
}

// entry is the entry of a port for packets of a flow.
func (c *OrchestrateConfig) entry(k *decode.FlowKey, port int, bits uint16, sink bool) p4.Entry {
	e := p4.Entry{Table: p4.AssignedName, Action: p4.CarryAction, Params: []p4.Value{p4.Uint(uint64(bits))}, Match: []p4.Match{
		{Value: p4.Bytes(k.SrcAddr().AsSlice())}, {Value: p4.Bytes(k.DstAddr().AsSlice())}, p4.Number(uint64(k.Proto)),
		p4.Number(uint64(k.SrcPort)), p4.Number(uint64(k.DstPort)), p4.Number(uint64(port))}}
	if sink {
		e.Action = p4.ExtractAction
		e.Params = append(e.Params, p4.Uint(uint64(c.Session)), p4.Uint(uint64(c.Collector)))
	}
	return e
}
