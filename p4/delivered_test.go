package p4_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/delivery"
)

func assignedPath(point, server string, tag int, rate float64, way string, ports ...int) delivery.Assignment {
	return delivery.Assignment{ID: point + "/" + string(rune('0'+tag)), Point: point, Server: server, Tag: tag, Rate: rate, Path: strings.Fields(way), Ports: ports}
}

var deliverySettings = p4.Delivery{First: 128, Most: 100, Sources: map[string]netip.Addr{"m": netip.MustParseAddr("10.255.0.1"), "n": netip.MustParseAddr("10.255.0.2")},
	Servers: []p4.DeliveryServer{{Name: "s", At: netip.MustParseAddrPort("10.0.0.1:32766"), MAC: [6]byte{2}}, {Name: "t", At: netip.MustParseAddrPort("10.0.0.2:32766"), MAC: [6]byte{4}}}}

var deliverySwitches = map[string]bool{"m": true, "n": true, "v": true, "w": true}

// TestDelivered reads the tables as a switch does: every lot has a path, as many as its share says, and every path leads by
// its ports to its server. Reports without a path are refused.
func TestDelivered(t *testing.T) {
	plan := &delivery.Plan{Assignment: []delivery.Assignment{assignedPath("m", "s", 1, 3e-5, "m v s", 3, 2), assignedPath("m", "t", 2, 1e-5, "m w t", 4, 5), assignedPath("m", "s", 4, 1e-6, "m w v s", 4, 1, 2)}}
	d, err := deliverySettings.Entries(plan, deliverySwitches)
	if err != nil {
		t.Fatal(err)
	}
	stores := map[string]*p4.Store{}
	collector := p4.Table{Name: "egress.envelope.collector", Size: 256, Key: []p4.Field{{Name: "to", Bits: 8}}, Actions: []p4.Action{{Name: "send", Params: []p4.Param{
		{Bits: 48}, {Bits: 48}, {Bits: 32}, {Bits: 32}, {Bits: 16}, {Bits: 16}, {Bits: 16}}}}}
	for sw := range deliverySwitches {
		s := p4.NewStore(append(p4.DeliveryTables(), collector))
		for _, e := range slices.Concat(d.Rules[sw], d.Shares[sw]) {
			if err := s.Insert(e); err != nil {
				t.Fatalf("%s: %v: %v", sw, e.String(), err)
			}
		}
		stores[sw] = s
	}
	count := map[uint64]int{}
	for lot := range uint64(1 << 16) {
		e := stores["m"].Find(p4.ShareName, p4.Uint(lot))
		if e == nil || e.Action != p4.TagAction {
			t.Fatalf("lot %d: %v", lot, e)
		}
		count[e.Params[1].Uint64()-p4.TagPort]++
		if to := stores["m"].Find(collector.Name, e.Params[0]); to == nil || to.Params[2] != "\x0a\xff\x00\x01" {
			t.Fatalf("lot %d: no headers for %v", lot, e)
		}
		if e := stores["n"].Find(p4.ShareName, p4.Uint(lot)); e == nil || e.Action != p4.WithholdAction {
			t.Fatalf("a point without a path: %v", e)
		}
	}
	sum := 0.0
	for _, a := range plan.Assignment {
		sum += a.Rate
	}
	for _, a := range plan.Assignment {
		if want := a.Rate / sum * (1 << 16); float64(count[uint64(a.Tag)]) < want-1 || float64(count[uint64(a.Tag)]) > want+1 {
			t.Errorf("path %s has %d lots, want %.1f", a.ID, count[uint64(a.Tag)], want)
		}
		for k, port := range a.Ports {
			e := stores[a.Path[k]].Find(p4.PathsName, "\x0a\xff\x00\x01", p4.Uint(uint64(p4.TagPort+a.Tag)))
			if e == nil || e.Params[0].Uint64() != uint64(port) || (e.Action == p4.ChargeAction) != (k == 0) {
				t.Errorf("path %s at %s: %v", a.ID, a.Path[k], e)
			}
			if k > 0 {
				continue
			}
			bytes := float64(1<<24) / float64(e.Params[2].Uint64()) // in a microsecond
			if rate := bytes / 125; rate < a.Rate || rate > a.Rate*1.001 {
				t.Errorf("path %s may send %v Gbit/s, want %v", a.ID, rate, a.Rate)
			}
		}
	}
	for sw := range deliverySwitches {
		if e := stores[sw].Find(p4.PathsName, "\x0a\xff\x00\x02", p4.Uint(p4.TagPort+9)); e == nil || e.Action != p4.RefuseAction {
			t.Errorf("%s: a report with an unknown tag: %v", sw, e)
		}
		if e := stores[sw].Find(p4.PathsName, "\x0a\xff\x00\x03", p4.Uint(p4.TagPort+1)); e != nil {
			t.Errorf("%s: a packet of another address: %v", sw, e)
		}
	}
}

// TestDeliveredRefuses plans that no switch can carry out.
func TestDeliveredRefuses(t *testing.T) {
	good := assignedPath("m", "s", 1, 1e-5, "m v s", 3, 2)
	for want, change := range map[string]func(*delivery.Assignment){
		"have no address of point": func(a *delivery.Assignment) { a.Point = "v" },
		"have no server":           func(a *delivery.Assignment) { a.Server = "u" },
		"outside 1 to 1023":        func(a *delivery.Assignment) { a.Tag = 1024 },
		"does not lead":            func(a *delivery.Assignment) { a.Ports = a.Ports[:1] },
		"its rate":                 func(a *delivery.Assignment) { a.Rate = 0 },
		"is no switch":             func(a *delivery.Assignment) { a.Path = []string{"m", "x", "s"} },
		"outside 1 to 510":         func(a *delivery.Assignment) { a.Ports = []int{3, 511} },
	} {
		a := good
		change(&a)
		if _, err := deliverySettings.Entries(&delivery.Plan{Assignment: []delivery.Assignment{a}}, deliverySwitches); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestDeliveredSteps follows a change: at every step, each path that a point may take has rules at all its switches.
func TestDeliveredSteps(t *testing.T) {
	entries := func(list ...delivery.Assignment) *p4.Delivered {
		t.Helper()
		d, err := deliverySettings.Entries(&delivery.Plan{Assignment: list}, deliverySwitches)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := entries(assignedPath("m", "s", 1, 2e-5, "m v s", 3, 2), assignedPath("n", "s", 1, 2e-5, "n v s", 3, 2))
	after := entries(assignedPath("m", "s", 1, 1e-5, "m v s", 3, 2), assignedPath("m", "t", 2, 1e-5, "m w t", 4, 2), assignedPath("n", "t", 2, 2e-5, "n w t", 4, 2))
	steps := after.Steps(before, &planner.Transition{Steps: []planner.Step{{Op: planner.OpChange, ID: "n"}, {Op: planner.OpChange, ID: "m"}}})
	if len(steps) != 3 || steps[2] != after {
		t.Fatalf("%d steps", len(steps))
	}
	moved := func(d *p4.Delivered, point string) bool {
		return slices.ContainsFunc(d.Shares[point], func(e p4.Entry) bool { return e.Action == p4.TagAction && e.Params[1].Uint64() == p4.TagPort+2 })
	}
	for i, want := range []string{"", "n", "mn"} {
		for _, point := range []string{"m", "n"} {
			if moved(steps[i], point) != strings.Contains(want, point) {
				t.Errorf("step %d: point %s", i, point)
			}
		}
		for point, shares := range steps[i].Shares {
			for _, share := range shares {
				src := p4.Bytes(deliverySettings.Sources[point].AsSlice())
				for _, sw := range []string{point, map[uint64]string{p4.TagPort + 1: "v", p4.TagPort + 2: "w"}[share.Params[1].Uint64()]} {
					if !slices.ContainsFunc(steps[i].Rules[sw], func(e p4.Entry) bool {
						return e.Table == p4.PathsName && e.Match[0].Value == src && e.Match[1].Value == share.Params[1]
					}) {
						t.Errorf("step %d: %s has no rule for %s", i, sw, share.String())
					}
				}
			}
		}
	}
	if first := after.Steps(nil, nil); len(first) != 2 || len(first[0].Shares) != 0 || len(first[0].Rules) == 0 {
		t.Errorf("a first plan: %+v", first)
	}
}
