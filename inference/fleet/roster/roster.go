// Package roster holds the topic of a fleet that describes its members. It has the settings that all members have in
// common, the list of members, and the counts of each. It is pure. Records go in, in the order of their offsets, and
// members and the ledger of the fleet come out.
package roster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/state"
)

// Roster is the content of the topic roster: what all members have in common, and the members. It is fed with all
// records in their order; the last one of a key counts.
type Roster struct {
	params  *Params
	members map[string]*Member // by key
	redraws map[string]uint64  // by collector
}

// Add takes a record. A refused record changes nothing. An empty value removes the entry of the key. Unknown keys, of a
// later version, are passed over.
func (r *Roster) Add(key string, value []byte) error {
	role, name, member := strings.Cut(key, "/")
	switch collector, order := strings.CutSuffix(name, redraw); {
	case key == ParamsKey:
		if len(value) == 0 {
			r.params = nil
			return nil
		}
		p, err := readParams(value)
		if err != nil {
			return err
		}
		r.params = p
	case !member || role != Collector && role != Consumer:
	case order:
		if len(value) == 0 {
			delete(r.redraws, collector)
			return nil
		}
		var order Redraw
		if err := readJSON(value, &order); err != nil || role != Collector || CheckName(collector) != nil {
			return &memberError{key, "value", -1, errJSON}
		}
		if _, known := r.redraws[collector]; !known && len(r.redraws) >= fleet.MaxMembers {
			return &memberError{key, "redraw", -1, errLong}
		}
		if r.redraws == nil {
			r.redraws = map[string]uint64{}
		}
		r.redraws[collector] = order.Boot
	case len(value) == 0:
		delete(r.members, key)
	default:
		m, err := ReadMember(key, value)
		if err != nil {
			return err
		}
		if _, known := r.members[key]; !known && len(r.members) >= fleet.MaxMembers {
			return &memberError{key, "members", -1, errLong}
		}
		if r.members == nil {
			r.members = map[string]*Member{}
		}
		r.members[key] = m
	}
	return nil
}

// Params returns the parameters that all members have in common; nil before a member has published them. They are not
// to be changed.
func (r *Roster) Params() *Params { return r.params }

// Members are all there are, collectors before consumers, ordered by name. They are not to be changed.
func (r *Roster) Members() []*Member {
	return slices.SortedFunc(maps.Values(r.members), func(a, b *Member) int {
		return cmp.Or(strings.Compare(a.Role, b.Role), strings.Compare(a.Name, b.Name))
	})
}

// Member returns one of them, nil if it is not there.
func (r *Roster) Member(role, name string) *Member { return r.members[MemberKey(role, name)] }

// Expected returns the collectors, for the members that close windows.
func (r *Roster) Expected() (list []fleet.Expected) {
	for _, m := range r.Members() {
		if m.Role != Collector {
			continue
		}
		e := fleet.Expected{Name: m.Name, Boot: m.Boot, Since: m.Since, Windows: m.Windows, Reports: m.Reports}
		if m.Left {
			e.Until = max(m.Window, 1)
		}
		list = append(list, e)
	}
	return list
}

// redraw returns the boot that a collector is asked to go on without, 0 if there is none.
func (r *Roster) redraw(collector string) uint64 { return r.redraws[collector] }

// readParams reads the value under [ParamsKey].
func readParams(value []byte) (*Params, error) {
	fail := func(field string, offset int64, err error) (*Params, error) {
		return nil, &memberError{ParamsKey, field, offset, err}
	}
	if len(value) > MaxMember {
		return fail("value", MaxMember, errLong)
	}
	p := &Params{}
	if err := readJSON(value, p); err != nil {
		return fail("value", err.offset, err.err)
	}
	switch {
	case checkText(p.Name) != nil:
		return fail("name", -1, errLong)
	case p.Slices < 1 || p.Slices > fleet.MaxSlices:
		return fail("slices", -1, fmt.Errorf("%d %w 1..%d", p.Slices, state.ErrRange, fleet.MaxSlices))
	case p.Window <= 0:
		return fail("window_ns", -1, state.ErrRange)
	case checkText(p.Seed) != nil:
		return fail("seed", -1, errLong)
	}
	return p, nil
}
