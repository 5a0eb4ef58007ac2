package p4

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/delivery"
)

// Names of rft.p4, whose reports leave over assigned paths at assigned rates. Counters of paths count reports, by the number of
// the path at the switch that makes them, and in cell 0 at others.
const (
	ShareName      = "egress.spread.share"
	TagAction      = "take"
	WithholdAction = "withhold"
	PathsName      = "ingress.deliver.paths"
	PassAction     = "pass"
	ChargeAction   = "charge"
	RefuseAction   = "refuse"

	SentName     = "ingress.deliver.sent"
	RefusedName  = "ingress.deliver.refused"
	WithheldName = "egress.spread.unassigned"
)

// DeliveryTables are the tables of rft.p4 that into.p4 lacks. A switch draws a lot for every report that it makes. The table
// share has the collector and the tag for it. A tag is the UDP source port of reports; paths has the port by which reports
// leave, by source address and tag. The action charge holds them to a rate: a byte costs cost 2^-24 us, and reports come
// earlier by at most burst us.
func DeliveryTables() []Table {
	param := func(name string, bits int) Param { return Param{Name: name, Bits: bits} }
	none := Action{Name: "NoAction"}
	return []Table{
		{
			Name: ShareName, Size: 1024, Key: []Field{{Name: "lot", Bits: 16, Kind: Longest}},
			Actions: []Action{{Name: TagAction, Params: []Param{param("to", 8), param("path", 16)}}, {Name: WithholdAction}, none},
		},
		{
			Name: PathsName, Size: 4096, Key: []Field{{Name: "hdr.ipv4.src", Bits: 32}, {Name: "hdr.udp.src", Bits: 16, Kind: Ternary}},
			Actions: []Action{
				{Name: PassAction, Params: []Param{param("port", 9)}},
				{Name: ChargeAction, Params: []Param{param("port", 9), param("index", 10), param("cost", 40), param("burst", 32)}},
				{Name: RefuseAction}, none,
			},
		},
	}
}

// Delivery is what switches need beside a plan of delivery.
type Delivery struct {
	Sources map[string]netip.Addr // by point: the IPv4 address of its reports
	Servers []DeliveryServer      // in the order of their entries in the table collector
	First   int                   // entry of the first one there
	Most    int                   // bytes of a packet in a report
}

// DeliveryServer is a collector of reports.
type DeliveryServer struct {
	Name string
	At   netip.AddrPort // IPv4
	MAC  [6]byte
}

const (
	// TagPort is the UDP source port of reports with tag 0.
	TagPort       = 0xc000
	collectorName = "egress.envelope.collector"
	mostTag       = 1<<10 - 1
	lots          = 1 << 16
	// A path may be ahead of its rate by burstTime, and by burstBytes at least: reports share it unevenly.
	burstTime  = 100_000 // us
	burstBytes = 8 * 1500
)

// Delivered is the entries of a plan of delivery, by switch.
type Delivered struct {
	Rules  map[string][]Entry // where reports go on, by switch
	Shares map[string][]Entry // which paths reports get, by point
}

// Entries returns the entries of a plan. Points of d that the plan lacks withhold their reports. Switches are those that can
// carry out the plan.
func (d *Delivery) Entries(p *delivery.Plan, switches map[string]bool) (*Delivered, error) {
	var bad planner.Errors
	out := &Delivered{Rules: map[string][]Entry{}, Shares: map[string][]Entry{}}
	servers := map[string]int{}
	for i, s := range d.Servers {
		servers[s.Name] = d.First + i
	}
	paths := map[string][]*delivery.Assignment{}
	used := map[string]map[string]bool{} // servers of a point
	for i := range p.Assignment {
		a := &p.Assignment[i]
		if err := d.check(a, switches, servers); err != nil {
			bad.Add("path %s: %w", a.ID, err)
			continue
		}
		if used[a.Point] == nil {
			used[a.Point] = map[string]bool{}
		}
		paths[a.Point], used[a.Point][a.Server] = append(paths[a.Point], a), true
		src := Match{Value: Bytes(d.Sources[a.Point].AsSlice())}
		for k, port := range a.Ports {
			e := Entry{Table: PathsName, Priority: 2, Match: []Match{src, Masked(uint64(TagPort+a.Tag), 0xffff)}, Action: PassAction, Params: Uints(uint64(port))}
			if k == 0 {
				cost, burst := charge(a.Rate)
				e.Action, e.Params = ChargeAction, Uints(uint64(port), uint64(a.Tag), cost, burst)
			}
			out.Rules[a.Path[k]] = append(out.Rules[a.Path[k]], e)
		}
	}
	if err := bad.Join(); err != nil {
		return nil, err
	}
	for point, from := range d.Sources {
		out.Shares[point] = shares(paths[point], servers)
		for _, s := range d.Servers {
			if used[point][s.Name] {
				out.Rules[point] = append(out.Rules[point], d.collector(from, &s, servers[s.Name]))
			}
		}
		for sw := range switches { // reports whose path is not assigned
			out.Rules[sw] = append(out.Rules[sw], Entry{Table: PathsName, Priority: 1, Match: []Match{{Value: Bytes(from.AsSlice())}, Masked(0, 0)}, Action: RefuseAction})
		}
	}
	for sw, list := range out.Rules {
		slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Key(), b.Key()) })
		if n := len(list) + len(out.Shares[sw]); n > 1024 {
			bad.Add("switch %s: %d entries, and its tables take 1024", sw, n)
		}
	}
	return out, bad.Join()
}

// check returns why a path cannot be carried out.
func (d *Delivery) check(a *delivery.Assignment, switches map[string]bool, servers map[string]int) error {
	_, from := d.Sources[a.Point]
	_, to := servers[a.Server]
	switch {
	case !from:
		return fmt.Errorf("the settings have no address of point %q", a.Point)
	case !to:
		return fmt.Errorf("the settings have no server %q", a.Server)
	case a.Tag < 1 || a.Tag > mostTag:
		return fmt.Errorf("tag %d is outside 1 to %d", a.Tag, mostTag)
	case len(a.Path) < 2 || len(a.Ports) != len(a.Path)-1 || a.Path[0] != a.Point || a.Path[len(a.Path)-1] != a.Server:
		return fmt.Errorf("%v by ports %v does not lead from %s to %s", a.Path, a.Ports, a.Point, a.Server)
	case !(a.Rate > 0):
		return fmt.Errorf("its rate is %v", a.Rate)
	}
	for k, port := range a.Ports {
		if !switches[a.Path[k]] {
			return fmt.Errorf("%s is no switch of the settings with the program rft", a.Path[k])
		}
		if port < 1 || port >= 511 {
			return fmt.Errorf("port %d of %s is outside 1 to 510", port, a.Path[k])
		}
	}
	return nil
}

// charge is what a byte costs at a rate in Gbit/s, in 2^-24 us, and by how many us reports may be early. It is rounded to the
// advantage of the path.
func charge(rate float64) (cost, burst uint64) {
	us := 1 / (rate * 125) // a byte
	return uint64(min(us*(1<<24), 1<<40-1)), uint64(min(math.Ceil(max(burstTime, us*burstBytes)), math.MaxUint32))
}

// shares divides the lots among the paths of a point, by their rates.
func shares(paths []*delivery.Assignment, servers map[string]int) (list []Entry) {
	if len(paths) == 0 {
		return []Entry{{Table: ShareName, Match: []Match{{Value: Uint(0)}}, Action: WithholdAction}}
	}
	slices.SortFunc(paths, func(a, b *delivery.Assignment) int { return cmp.Compare(a.Tag, b.Tag) })
	all, sum := 0.0, 0.0
	for _, a := range paths {
		all += a.Rate
	}
	for k, lo := 0, 0; k < len(paths); k++ {
		a := paths[k]
		sum += a.Rate
		hi := int(math.Round(sum / all * lots))
		if k == len(paths)-1 {
			hi = lots
		}
		for lo < hi { // the largest block of lots that begins here
			n := 16
			for lo%(1<<n) != 0 || lo+(1<<n) > hi {
				n--
			}
			list = append(list, Entry{Table: ShareName, Match: []Match{{Value: Uint(uint64(lo)), Prefix: 16 - n}}, Action: TagAction, Params: Uints(uint64(servers[a.Server]), uint64(TagPort+a.Tag))})
			lo += 1 << n
		}
	}
	return list
}

// collector is the entry with the headers of reports from an address to a server.
func (d *Delivery) collector(from netip.Addr, s *DeliveryServer, index int) Entry {
	v4 := s.At.Addr().As4()
	src := from.As4()
	return Entry{Table: collectorName, Match: []Match{Number(uint64(index))}, Action: "send", Params: []Value{
		Bytes(s.MAC[:]), Uint(0x020000000001), Bytes(src[:]), Bytes(v4[:]), Uint(uint64(s.At.Port())), Uint(uint64(s.At.Port())), Uint(uint64(d.Most))}}
}
