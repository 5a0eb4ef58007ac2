package names

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Site is a part of the network with node numbers of its own, so that its node 17 is not node 17 of another site.
type Site struct {
	ID   uint8  `json:"id"` // from 1 to 255
	Name string `json:"name"`
}

// Sites are those that the settings know, by their ids. Where there are several, a node has one number within the program
// and in series. The upper eight bits are the id of its site, and the lower 24 its own number. Nodes of no site keep the
// numbers that they have. The mapping depends on nothing but the ids, so that all members of a fleet agree.
type Sites []Site

// NodeBits is the number of bits that nodes of a site have for their numbers.
const NodeBits = 24

// SortSites brings sites into their order.
func SortSites(list []Site) Sites {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Site) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Join returns the program's number of a node of a site; site 0 is none. It refuses a number that has no room beside
// its site. It refuses one without a site that would be taken for a node of one.
func (s Sites) Join(site uint8, node uint32) (id uint32, ok bool) {
	if site != 0 {
		return uint32(site)<<NodeBits | node, node>>NodeBits == 0
	}
	_, taken := s.find(uint8(node >> NodeBits))
	return node, !taken
}

// Split returns the site of a node, and its number there. A node of no site has the site 0.
func (s Sites) Split(id uint32) (site Site, node uint32) {
	if found, ok := s.find(uint8(id >> NodeBits)); ok {
		return found, id & (1<<NodeBits - 1)
	}
	return Site{}, id
}

// Named returns the site with a name.
func (s Sites) Named(name string) (Site, bool) {
	for _, x := range s {
		if x.Name == name {
			return x, true
		}
	}
	return Site{}, false
}

func (s Sites) find(id uint8) (Site, bool) {
	if id == 0 {
		return Site{}, false
	}
	i, ok := slices.BinarySearchFunc(s, id, func(x Site, id uint8) int { return cmp.Compare(x.ID, id) })
	if !ok {
		return Site{}, false
	}
	return s[i], true
}

// Identify returns the program's number of a node that an inventory lists, with the name of its site. A site that is
// not in the settings is only a label.
func (s Sites) Identify(site string, node uint32) (uint32, error) {
	x, _ := s.Named(site)
	id, ok := s.Join(x.ID, node)
	switch {
	case ok:
		return id, nil
	case x.ID != 0:
		return 0, fmt.Errorf("node %d of site %s: numbers of nodes in a site are below %d", node, x.Name, 1<<NodeBits)
	}
	return 0, fmt.Errorf("node %d is in no site of the settings, and would be taken for node %d of site %s", node, node&(1<<NodeBits-1), s.name(node))
}

func (s Sites) name(id uint32) string {
	x, _ := s.Split(id)
	return x.Name
}

// errNoSite is the error of documents that other programs wrote.
var errNoSite = errors.New("a site has no id or no name")

// Validate refuses sites that could not be distinguished.
func (s Sites) Validate() error {
	for i, x := range s {
		if x.ID == 0 || x.Name == "" {
			return errNoSite
		}
		for _, y := range s[:i] {
			if x.ID == y.ID {
				return fmt.Errorf("%s and %s have the same id %d", y.Name, x.Name, x.ID)
			}
			if x.Name == y.Name {
				return fmt.Errorf("two sites are called %s", x.Name)
			}
		}
	}
	return nil
}

// WithSites returns n for a network with sites. The nodes that n lists have the numbers of [Sites.Join].
func (n *Names) WithSites(s Sites) *Names {
	if len(s) == 0 {
		return n
	}
	out := &Names{}
	if n != nil {
		*out = *n
	}
	out.sites = nil
	for _, x := range s {
		out.sites = append(out.sites, Site{x.ID, Clean(x.Name)})
	}
	out.sites = SortSites(out.sites)
	return out
}

// Sites returns the sites of n. They are not to be changed.
func (n *Names) Sites() Sites {
	if n == nil {
		return nil
	}
	return n.sites
}

// number is a node without its name: "17", or "berlin/17" where it is in a site.
func (n *Names) number(id uint32) string {
	site, node := n.Sites().Split(id)
	text := strconv.FormatUint(uint64(node), 10)
	if site.ID != 0 {
		return site.Name + "/" + text
	}
	return text
}
