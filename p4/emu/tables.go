package emu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/sim"
	"github.com/hopscope/hopscope/p4/pintplan"
)

// Names of the tables of a switch, beside those of PINT's plans.
const (
	watchTable  = "int_watch"      // packets over IPv4 that the INT source marks, and what it asks for
	watch6Table = "int_watch_ipv6" // the same over IPv6
	RouteTable  = "ipv4_route"
	route6Table = "ipv6_route"
	probeTable  = "probe_route" // the way of probes, by where they come from and go to
)

// Tables are the tables of an emulated switch.
func Tables() []p4.Table {
	type (
		field  = p4.Field
		param  = p4.Param
		action = p4.Action
	)
	watch := []action{{Name: "watch", Params: []param{{Name: "instructions", Bits: 16}, {Name: "max_hops", Bits: 8}}}, {Name: "pass"}}
	flow := func(bits int) []field {
		return []field{
			{Name: "src", Bits: bits, Kind: p4.Ternary}, {Name: "dst", Bits: bits, Kind: p4.Ternary},
			{Name: "protocol", Bits: 8, Kind: p4.Ternary}, {Name: "src_port", Bits: 16, Kind: p4.Range}, {Name: "dst_port", Bits: 16, Kind: p4.Range},
		}
	}
	forward := []action{{Name: "forward", Params: []param{{Name: "port", Bits: 9}}}}
	return append(pintplan.Tables(),
		p4.Table{Name: watchTable, Key: flow(32), Actions: watch, Size: 1024},
		p4.Table{Name: watch6Table, Key: flow(128), Actions: watch, Size: 1024},
		p4.Table{Name: RouteTable, Key: []field{{Name: "dst", Bits: 32, Kind: p4.Longest}}, Actions: forward, Size: 4096},
		p4.Table{Name: route6Table, Key: []field{{Name: "dst", Bits: 128, Kind: p4.Longest}}, Actions: forward, Size: 4096},
		p4.Table{Name: probeTable, Key: []field{{Name: "src", Bits: 32}, {Name: "dst", Bits: 32}},
			Actions: []action{{Name: "route", Params: []param{{Name: "ports", Bits: 8 * probeList}}}}, Size: 1024},
		policyTable(),
	)
}

// TableOrder names the tables that are written after all others, one after the other: what they hold makes the entries of the
// others take effect.
func TableOrder() []string {
	return []string{pintplan.PlanTable, pintplan.SourceTable, watchTable, watch6Table}
}

// written is the state that the control plane has written to a switch, as far as packets need it.
type written struct {
	sim.Called
	watches, routes, probes, policies bool // its tables have entries that packets are looked up in
}

// openTables makes the tables of a switch on demand.
func (n *Network) openTables(d *device) {
	if d.tables == nil {
		d.tables, _ = n.ownTables(&d.plans) // there is room: that was checked when the switch got them
	}
}

// ownTables are the tables of a switch with its initial behaviour. They hold the plans that it was built with, as far
// as tables can hold them, and the watch list that all switches share.
func (n *Network) ownTables(x *pintplan.HeldPlans) (*p4.Store, error) {
	tables := p4.NewStore(Tables())
	var errs []error
	put := func(e p4.Entry) {
		if _, err := tables.Put(e); err != nil && errs == nil {
			errs = []error{err}
		}
	}
	for _, e := range x.Entries() {
		put(e)
	}
	for _, name := range []string{watchTable, watch6Table} {
		put(p4.Entry{Table: name, Action: "watch", Params: []p4.Value{p4.Uint(uint64(n.cfg.Instructions)), p4.Uint(uint64(n.cfg.MaxHops))}})
	}
	return tables, errors.Join(errs...)
}

// fits refuses what the tables would take and the switch could not carry out.
func (n *Network) fits(e *p4.Entry, node int) error {
	if len(e.Params) == 0 {
		return nil
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("table %s: %s: %w", e.Table, fmt.Sprintf(format, args...), p4.ErrInvalid)
	}
	switch e.Table {
	case watchTable, watch6Table:
		d := n.switches[node].dialect
		if len(e.Params) != 2 || !d.Embeds() {
			return nil
		}
		c := n.cfg
		c.Instructions, c.MaxHops = uint16(e.Params[0].Uint64()), int(e.Params[1].Uint64())
		switch w := c.hopWords(d); {
		case d != FANT && c.Instructions&insReserved != 0, d == md10 && c.Instructions&insBuffer != 0:
			return bad("instructions %#04x: the switch does not know all of them", c.Instructions)
		case d.Stacks() && (w == 0 || w > 31 || c.MaxHops == 0 || 3+w*c.MaxHops > 255):
			return bad("instructions %#04x for %d hops: %d words each", c.Instructions, c.MaxHops, w)
		}
	case PolicyTable:
		if port := int(e.Params[0].Append(nil, mostSegments)[0]); n.graph.ByPort(node, port) < 0 {
			return bad("switch %s has no port %d", n.graph.NodeName(node), port)
		}
	case RouteTable, route6Table:
		if n.graph.ByPort(node, int(e.Params[0].Uint64())) < 0 {
			return bad("switch %s has no port %d", n.graph.NodeName(node), e.Params[0].Uint64())
		}
	}
	return nil
}

// apply makes the switch follow its tables, as far as they may have changed with these entries.
func (d *device) apply(entries []p4.Entry) {
	d.written.routes = d.tables.Len(RouteTable)+d.tables.Len(route6Table) > 0
	d.written.probes = d.tables.Len(probeTable) > 0
	d.written.policies = d.tables.Len(PolicyTable) > 0
	var epochs []uint8
	for i := range entries {
		e := &entries[i]
		switch e.Table {
		case watchTable, watch6Table:
			d.written.watches = true
		case pintplan.SourceTable:
			d.plans.Stamp = nil
			if now := d.tables.Find(e.Table); now != nil && now.Action == "stamp" {
				epoch := uint8(now.Params[0].Uint64())
				d.plans.Stamp = &epoch
			}
		case pintplan.PlanTable, pintplan.SetTable, pintplan.SlotTable, pintplan.QueryTable, pintplan.SaltTable, pintplan.LayerTable, pintplan.CodeTable:
			if len(e.Match) == 0 {
				continue
			}
			if epoch := uint8(e.Match[0].Value.Uint64()); !slices.Contains(epochs, epoch) {
				epochs = append(epochs, epoch)
			}
		}
	}
	if len(epochs) == 0 {
		return
	}
	var all []p4.Entry
	for _, t := range pintplan.Tables() {
		all = append(all, d.tables.Read(t.Name)...)
	}
	for _, epoch := range epochs {
		p, err := pintplan.Compile(epoch, all)
		d.plans.Hold(epoch, p, err == nil)
	}
}

// watched returns the instructions of the watch list for packet p, nothing if it is not on it.
func (n *Network) watched(p *packet, d *device) (instructions uint16, most uint8) {
	name, addresses, size := watchTable, p.L3+12, 4
	if p.V6 {
		name, addresses, size = watch6Table, p.L3+8, 16
	}
	a := p.Buf[addresses:]
	e := d.tables.Find(name, p4.Bytes(a[:size]), p4.Bytes(a[size:2*size]), p4.Uint(uint64(p.Proto)),
		p4.Bytes(p.Buf[p.L4:p.L4+2]), p4.Bytes(p.Buf[p.L4+2:p.L4+4]))
	if e == nil || e.Action != "watch" {
		return 0, 0
	}
	return uint16(e.Params[0].Uint64()), uint8(e.Params[1].Uint64())
}

// controlRoute returns the interface by which packets to a host leave as the control plane set it, or -1. A line that is down is no
// route.
func (n *Network) controlRoute(d *device, at int32, dst *host, v6 bool) int32 {
	name, address := RouteTable, dst.v4[:]
	if v6 {
		name, address = route6Table, dst.v6[:]
	}
	e := d.tables.Find(name, p4.Bytes(address))
	if e == nil {
		return -1
	}
	out := int32(n.graph.ByPort(int(at), int(e.Params[0].Uint64())))
	if out < 0 || !n.queues[out].Up {
		return -1
	}
	return out
}

// rewriteRoute is the work of the first switch on a probe whose way the control plane has changed.
func rewriteRoute(p *packet, d *device) {
	a := p.Buf[p.L3+12:]
	if e := d.tables.Find(probeTable, p4.Bytes(a[:4]), p4.Bytes(a[4:8])); e != nil && e.Action == "route" {
		e.Params[0].Append(p.Buf[:probeHeaders], probeList)
	}
}
