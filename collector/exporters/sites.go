package exporters

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/names"
)

// Site is a part of the network whose nodes have numbers of their own, with the exporters that report about it.
type Site struct {
	ID        uint8    `yaml:"id" doc:"Number of the site in node numbers of series. It is the same in a fleet, and never changes." range:"1..255"`
	Name      string   `yaml:"name" doc:"Its name, as site in the inventory."`
	Exporters []string `yaml:"exporters" doc:"Source addresses of its exporters, as 10.1.0.0/16; the longest prefix of all sites wins."`
	Addresses []string `yaml:"addresses" doc:"IPv4 addresses that other sites have too, as 10.0.0.0/8: flows from or to them belong to the site."`
}

// maxSitePrefixes bounds the prefixes of all sites, which are gone through for an address not seen lately.
const maxSitePrefixes = 4096

// Validate checks one site. What several have in common is checked by the list.
func (s *Site) Validate() error {
	var errs []error
	if s.Name == "" || s.Name != names.Clean(s.Name) {
		errs = append(errs, fmt.Errorf("name: %q is no name of 1 to %d printable characters", s.Name, names.MaxName))
	}
	for i, p := range s.Exporters {
		if _, err := netip.ParsePrefix(p); err != nil {
			errs = append(errs, fmt.Errorf("exporters[%d]: %q is not a prefix such as 10.1.0.0/16", i, p))
		}
	}
	for i, p := range s.Addresses {
		if p, err := netip.ParsePrefix(p); err != nil || !p.Addr().Is4() {
			errs = append(errs, fmt.Errorf("addresses[%d]: %q is no prefix of IPv4 such as 10.0.0.0/8", i, s.Addresses[i]))
		}
	}
	return errors.Join(errs...)
}

// SiteNames returns the sites in the form of package names.
func (e *Config) SiteNames() names.Sites {
	var list []names.Site
	for i := range e.Sites {
		list = append(list, names.Site{ID: e.Sites[i].ID, Name: e.Sites[i].Name})
	}
	return names.SortSites(list)
}

// validSites checks sites against each other: an id, a name and a prefix belong to one of them.
func (e *Config) validSites() (errs []error) {
	if err := e.SiteNames().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("sites: %w", err))
	}
	of, count := map[netip.Prefix]string{}, 0
	for i := range e.Sites {
		s := &e.Sites[i]
		count += len(s.Addresses)
		for k, text := range s.Exporters {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				continue // known by the site
			}
			p = plainPrefix(p)
			if other, ok := of[p]; ok {
				errs = append(errs, fmt.Errorf("sites[%d].exporters[%d]: %s belongs to site %s already", i, k, p, other))
			}
			of[p] = s.Name
			count++
		}
	}
	if count > maxSitePrefixes {
		errs = append(errs, fmt.Errorf("sites: have %d prefixes, more than %d", count, maxSitePrefixes))
	}
	return errs
}

// plainPrefix returns IPv4 within IPv6 as IPv4, without host bits.
func plainPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// Sites finds the site of an exporter, and keeps nodes of different sites apart. It never changes; workers share it.
type Sites struct {
	list     names.Sites
	prefixes []sitePrefix       // longest first
	local    [256][]localPrefix // addresses that are a site's own
	refused  atomic.Uint64
}

// localPrefix is IPv4 addresses, as numbers.
type localPrefix struct{ addr, mask uint32 }

type sitePrefix struct {
	prefix netip.Prefix // of IPv6, also for IPv4
	id     uint8
}

// NewSites returns nil where the settings have no sites.
func NewSites(e *Config) (*Sites, error) {
	if len(e.Sites) == 0 {
		return nil, nil
	}
	if errs := e.validSites(); len(errs) > 0 {
		return nil, fmt.Errorf("exporters.%w", errors.Join(errs...))
	}
	s := &Sites{list: e.SiteNames()}
	for i := range e.Sites {
		for k, text := range e.Sites[i].Exporters {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("exporters.sites[%d].exporters[%d]: %w", i, k, err)
			}
			bits := p.Bits()
			if p.Addr().Is4() {
				bits += 96
			}
			p = netip.PrefixFrom(netip.AddrFrom16(p.Addr().As16()), bits).Masked()
			s.prefixes = append(s.prefixes, sitePrefix{p, e.Sites[i].ID})
		}
		for k, text := range e.Sites[i].Addresses {
			p, err := netip.ParsePrefix(text)
			if err != nil || !p.Addr().Is4() {
				return nil, fmt.Errorf("exporters.sites[%d].addresses[%d]: %q is no prefix of IPv4", i, k, text)
			}
			a, mask := p.Addr().As4(), uint32(uint64(0xffffffff)<<(32-p.Bits()))
			local := &s.local[e.Sites[i].ID]
			*local = append(*local, localPrefix{binary.BigEndian.Uint32(a[:]) & mask, mask})
		}
	}
	slices.SortStableFunc(s.prefixes, func(a, b sitePrefix) int { return cmp.Compare(b.prefix.Bits(), a.prefix.Bits()) })
	return s, nil
}

// find returns the site of an exporter, 0 for none.
func (s *Sites) find(a *decode.Addr) uint8 {
	addr := netip.AddrFrom16(*a)
	for i := range s.prefixes {
		if s.prefixes[i].prefix.Contains(addr) {
			return s.prefixes[i].id
		}
	}
	return 0
}

// NodeOf returns the number of a node of an exporter within the program, and whether it has one. It works with nil.
func (s *Sites) NodeOf(exporter *decode.Addr, node uint32) (id uint32, ok bool) {
	if s == nil {
		return node, true
	}
	return s.list.Join(s.find(exporter), node)
}

// Refusals returns the number of reports whose node had no number.
func (s *Sites) Refusals() uint64 {
	if s == nil {
		return 0
	}
	return s.refused.Load()
}

// PlaceReports returns a function that does with the nodes in reports what a collector does, or nil where there are no sites.
func (e *Config) PlaceReports() (func([]*decode.Report), error) {
	s, err := NewSites(e)
	if s == nil || err != nil {
		return nil, err
	}
	p := s.Placer()
	return func(reports []*decode.Report) { p.Place(reports) }, nil
}

// Placer keeps the nodes of sites apart in the reports of one worker. It remembers the last answers, so that a known exporter
// costs one comparison.
type Placer struct {
	sites  *Sites
	recent [256]struct {
		addr  decode.Addr
		known bool
		site  uint8
	}
	logged bool
}

// Placer makes one; nil where there are no sites.
func (s *Sites) Placer() *Placer {
	if s == nil {
		return nil
	}
	return &Placer{sites: s}
}

// find returns the site of an exporter.
func (w *Placer) find(a *decode.Addr) uint8 {
	slot := &w.recent[(a[15]^a[7])+31*a[14]]
	if !slot.known || slot.addr != *a {
		slot.addr, slot.known, slot.site = *a, true, w.sites.find(a)
	}
	return slot.site
}

// Place sets the nodes in reports to their numbers within the program. A report with a node without a number becomes
// malformed. It returns the first such report of this worker, for the log.
func (w *Placer) Place(reports []*decode.Report) (first *decode.Report) {
	for _, r := range reports {
		site := uint8(0)
		if r.Has&decode.HasExporter != 0 {
			site = w.find(&r.Exporter)
		}
		if w.sites.placeOne(site, r) {
			continue
		}
		w.sites.refused.Add(1)
		r.Fail(r.Format, "node_id", 0, decode.Unsupported)
		if !w.logged {
			w.logged, first = true, r
		}
	}
	return first
}

func (s *Sites) placeOne(site uint8, r *decode.Report) (ok bool) {
	ok = true
	if local := s.local[site]; local != nil && r.Has&decode.HasFlow != 0 && r.Flow.IPVersion == 4 {
		r.Flow.Src, r.Flow.Dst = within(local, site, r.Flow.Src), within(local, site, r.Flow.Dst)
	}
	if r.Has&decode.HasNodeID != 0 {
		if id, fits := s.list.Join(site, r.NodeID); fits {
			r.NodeID = id
		} else { // the exporter's statistics must not name a node of another site
			r.NodeID, r.Has, ok = 0, r.Has&^decode.HasNodeID, false
		}
	}
	for i := range r.Hops {
		h := &r.Hops[i]
		if h.Has&decode.HopNodeID == 0 {
			continue
		}
		id, fits := s.list.Join(site, h.NodeID)
		if !fits {
			return false
		}
		h.NodeID = id
	}
	return ok
}

// within puts an address of a site into that site, if the address means other hosts elsewhere.
func within(local []localPrefix, site uint8, a decode.Addr) decode.Addr {
	v4 := binary.BigEndian.Uint32(a[12:])
	for i := range local {
		if v4&local[i].mask == local[i].addr {
			return a.InSite(site)
		}
	}
	return a
}

// OfMap returns the site whose nodes the map of digests names, 0 for none. It refuses a map with a node that would be taken for one
// of another site.
func (s *Sites) OfMap(site string, nodes []uint32) (uint8, error) {
	x := names.Site{}
	list := names.Sites(nil)
	if s != nil {
		list = s.list
	}
	if site != "" {
		var ok bool
		if x, ok = list.Named(site); !ok {
			return 0, fmt.Errorf("pint.site: %s is none of exporters.sites", site)
		}
	}
	for _, n := range nodes {
		if _, ok := list.Join(x.ID, n); ok {
			continue
		}
		if x.ID != 0 {
			return 0, fmt.Errorf("pint: node %d of site %s: numbers of nodes in a site are below %d", n, x.Name, 1<<names.NodeBits)
		}
		of, own := list.Split(n)
		return 0, fmt.Errorf("pint: node %d would be taken for node %d of site %s: give the site another id", n, own, of.Name)
	}
	return x.ID, nil
}

// Digests returns a constructor, called once per shard, of a function on reports. That function reports whether the
// digests of a report are of the site of the map. Digests in packets that the collector captured itself have no
// exporter, and count as of that site.
func (s *Sites) Digests(mapped uint8, log *slog.Logger) func() func(*decode.Report) bool {
	if s == nil {
		return nil
	}
	var logged sync.Once
	return func() func(*decode.Report) bool {
		w := s.Placer()
		return func(r *decode.Report) bool {
			if r.Has&decode.HasExporter == 0 || w.find(&r.Exporter) == mapped {
				return true
			}
			if log != nil {
				logged.Do(func() { s.logElsewhere(mapped, r, log) })
			}
			return false
		}
	}
}

func (s *Sites) logElsewhere(mapped uint8, r *decode.Report, log *slog.Logger) {
	called := func(id uint8) string {
		for _, x := range s.list {
			if x.ID == id {
				return x.Name
			}
		}
		return "none"
	}
	log.Warn("digests are not read: their exporter is in another site than the nodes of pint.topology, which pint.site says; more of these are only counted",
		"exporter", r.Exporter.String(), "site", called(s.find(&r.Exporter)), "pint.site", called(mapped))
}
