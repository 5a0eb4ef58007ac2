package p4

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/delivery"
)

// DeliveryConfig holds the settings of the delivery of reports, which switches with the program rft carry out.
type DeliveryConfig struct {
	File        string          `yaml:"file" doc:"Plan of \"hopscope plan delivery --format json\" that switches with the program rft carry out; written here with every. Empty carries out none."`
	Every       time.Duration   `yaml:"every" range:"0s..24h" doc:"Interval of plans for the rates that the servers measure. 0 keeps that of the file."`
	Instance    string          `yaml:"instance" doc:"Instance of \"hopscope plan delivery\": points, switches, servers and links with ports. Needed by every."`
	Margin      float64         `yaml:"margin" range:"1..100" doc:"Rate that a plan reserves for a point, as a multiple of the measured one."`
	ReportBytes int             `yaml:"report_bytes" range:"64..9000" doc:"Bytes of a report with its headers, by which rates follow from numbers of reports."`
	PacketBytes int             `yaml:"packet_bytes" range:"0..900" doc:"Most bytes of a packet in a report."`
	Collector   int             `yaml:"collector" range:"0..255" doc:"Entry of the table collector for the first server; the others follow. Entries from here on belong to the plan."`
	Quiet       time.Duration   `yaml:"quiet" range:"0s..24h" doc:"Time without a report after which a point keeps a path at the lowest rate, so that its server can be switched off; 0 keeps its rate. Needs every."`
	Avoid       float64         `yaml:"avoid_weight" range:"0..1000" doc:"Weight from which suspicious links are left out of plans; 0 leaves out none."`
	Servers     []DeliveryHost  `yaml:"servers" doc:"Collectors that reports can go to."`
	Points      []DeliveryPoint `yaml:"points" doc:"Switches that send reports."`
}

// DeliveryHost are settings of a collector that reports can go to.
type DeliveryHost struct {
	Name    string `yaml:"name" doc:"Name of the server in the instance."`
	Address string `yaml:"address" doc:"IPV4:PORT that reports are sent to."`
	MAC     string `yaml:"mac" doc:"Its MAC address."`
	Page    string `yaml:"page" doc:"Page of the collector there, with the token of collector: the source of rates, and of whether the server is up. Empty takes it for up."`
}

// DeliveryPoint are settings of a switch that sends reports.
type DeliveryPoint struct {
	Name    string `yaml:"name" doc:"Name of the point in the instance, which is that of the switch."`
	Address string `yaml:"address" doc:"IPv4 address that its reports come from, and nothing else does."`
}

// leastDelivery is the shortest interval of plans.
const leastDelivery = time.Second

// DefaultDeliveryConfig carries out nothing.
func DefaultDeliveryConfig() DeliveryConfig {
	return DeliveryConfig{Margin: 1.25, ReportBytes: 200, PacketBytes: 128, Collector: 128, Quiet: 15 * time.Minute, Avoid: 2}
}

// Validate returns what is wrong beyond single ranges. Fleet is set if other controls stand by.
func (c *DeliveryConfig) Validate(fleet bool) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("delivery."+format, args...)) }
	switch {
	case c.File == "" && c.Every > 0:
		wrong("every: needs file, which keeps the plan over a restart")
	case c.Every > 0 && c.Every < leastDelivery:
		wrong("every: %v is below %v", c.Every, leastDelivery)
	case c.Every > 0 && c.Instance == "":
		wrong("every: needs instance, the network that is planned for")
	case c.File != "" && (len(c.Servers) == 0 || len(c.Points) == 0):
		wrong("file: needs servers and points, by which switches know where reports go and come from")
	case c.File != "" && fleet:
		wrong("file: does not go with fleet.enabled, since the plan is in a file of one control")
	case c.Collector+len(c.Servers) > 256:
		wrong("servers: %d, from entry %d on, are beyond 255", len(c.Servers), c.Collector)
	}
	names, addresses, pages := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, s := range c.Servers {
		at, err := netip.ParseAddrPort(s.Address)
		_, mac := net.ParseMAC(s.MAC)
		u, page := url.Parse(s.Page)
		switch {
		case s.Name == "" || names[s.Name]:
			wrong("servers[%d].name: %q is missing, or that of another one", i, s.Name)
		case err != nil || !at.Addr().Is4() || at.Port() == 0:
			wrong("servers[%d].address: %q is not IPV4:PORT", i, s.Address)
		case mac != nil || len(s.MAC) != 17:
			wrong("servers[%d].mac: %q is not a MAC address, such as 02:00:00:00:00:01", i, s.MAC)
		case s.Page != "" && (page != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https"):
			wrong("servers[%d].page: %q is not http://HOST:PORT or https://HOST:PORT", i, s.Page)
		case s.Page != "" && pages[s.Page]:
			wrong("servers[%d].page: %q is that of another server, and its reports would count twice", i, s.Page)
		}
		names[s.Name], pages[s.Page] = true, true
	}
	for i, p := range c.Points {
		a, err := netip.ParseAddr(p.Address)
		switch {
		case p.Name == "" || names[p.Name]:
			wrong("points[%d].name: %q is missing, or that of another one", i, p.Name)
		case err != nil || !a.Is4() || addresses[a.String()]:
			wrong("points[%d].address: %q is no IPv4 address, or that of another point", i, p.Address)
		}
		names[p.Name], addresses[a.String()] = true, true
	}
	return errs
}

// Tables is what switches need beside a plan. Validate has checked the settings.
func (c *DeliveryConfig) Tables() *Delivery {
	d := &Delivery{Sources: map[string]netip.Addr{}, First: c.Collector, Most: c.PacketBytes}
	for _, s := range c.Servers {
		x := DeliveryServer{Name: s.Name, At: netip.MustParseAddrPort(s.Address)}
		mac, _ := net.ParseMAC(s.MAC)
		copy(x.MAC[:], mac)
		d.Servers = append(d.Servers, x)
	}
	for _, p := range c.Points {
		d.Sources[p.Name] = netip.MustParseAddr(p.Address)
	}
	return d
}

// Read reads instance and plan of the settings. The plan is nil if control has not written one yet.
func (c *DeliveryConfig) Read() (p *delivery.Problem, plan *delivery.Plan, err error) {
	if c.Instance != "" {
		f, err := os.Open(c.Instance)
		if err == nil {
			p, err = delivery.Read(f)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return nil, nil, fmt.Errorf("delivery.instance: %s: %w", c.Instance, err)
		}
	}
	f, err := os.Open(c.File)
	if errors.Is(err, fs.ErrNotExist) && c.Every > 0 {
		return p, nil, nil
	}
	if err == nil {
		plan = &delivery.Plan{}
		err = errors.Join(planner.ReadPlan(f, "delivery", plan), f.Close())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("delivery.file: %s: %w", c.File, err)
	}
	return p, plan, nil
}

// Fits returns why the settings do not go with an instance, nil for none, and with the switches that run rft.p4.
func (c *DeliveryConfig) Fits(p *delivery.Problem, switches map[string]bool) error {
	known := map[string]delivery.NodeKind{}
	for i, x := range c.Points {
		if known[x.Name] = delivery.PointNode; !switches[x.Name] {
			return fmt.Errorf("delivery.points[%d]: %q is no switch of the settings with the program rft", i, x.Name)
		}
	}
	for _, x := range c.Servers {
		known[x.Name] = delivery.ServerNode
	}
	if p == nil {
		return nil
	}
	there := map[string]bool{}
	for _, n := range p.Nodes {
		there[n.ID] = true
	}
	for i, x := range c.Points {
		if !there[x.Name] {
			return fmt.Errorf("delivery.points[%d]: the instance has no point %q, whose reports no plan would serve", i, x.Name)
		}
	}
	for i, x := range c.Servers {
		if !there[x.Name] {
			return fmt.Errorf("delivery.servers[%d]: the instance has no server %q", i, x.Name)
		}
	}
	for _, n := range p.Nodes {
		if known[n.ID] != n.Kind && !(n.Kind == delivery.SwitchNode && switches[n.ID]) {
			return fmt.Errorf("delivery.instance: the settings have no %s %q", n.Kind, n.ID)
		}
	}
	return nil
}
