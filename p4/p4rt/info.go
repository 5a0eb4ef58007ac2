package p4rt

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/hopscope/hopscope/p4"
)

// cloneTable is the name of a table that programs for v1model and PSA have beside their own: the clone sessions of the
// packet replication engine. Its key is a session. Its action "clone" has the port by which clones leave, and the bytes
// that they are cut to, 0 for whole packets.
const cloneTable = "clone_sessions"

// cloneSessions is that table, with the ids that BMv2 has.
var cloneSessions = p4.Table{Name: cloneTable, Size: 32767, Key: []p4.Field{{Name: "session", Bits: 15}},
	Actions: []p4.Action{{Name: "clone", Params: []p4.Param{{Name: "port", Bits: 32}, {Name: "most", Bits: 16}}}}}

const (
	maxInfo   = 16 << 20 // bytes of a p4info
	maxFields = 256      // of a key, and parameters of an action
	maxBits   = 4096     // of a number
)

// Info is a controller's description of a program: its p4info.
type Info struct {
	proto    *configpb.P4Info
	tables   []*tableInfo
	byName   map[string]*tableInfo
	byID     map[uint32]*tableInfo
	counters map[string]*configpb.Counter
	digests  map[string]uint32
	order    map[string]int
}

type tableInfo struct {
	p4.Table
	id      uint32
	fields  []uint32   // ids
	actions []actionID // as Table.Actions
}

type actionID struct {
	id     uint32
	params []uint32
}

// parseInfo reads a p4info as compilers write it, in the text format of protocol buffers. Actions have their last name: what
// p4info calls ingress.forward.no_route is the action no_route of its tables.
func parseInfo(text []byte) (*Info, error) {
	if len(text) > maxInfo {
		return nil, fmt.Errorf("p4info: more than %d bytes", maxInfo)
	}
	var p configpb.P4Info
	if err := prototext.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("p4info: %w", err)
	}
	x, err := compile(&p)
	if err != nil {
		return nil, fmt.Errorf("p4info: %w", err)
	}
	return x, nil
}

// NewInfo makes a p4info for a program that was never compiled, such as an emulated one.
func NewInfo(tables []p4.Table) (*Info, error) {
	p := &configpb.P4Info{PkgInfo: &configpb.PkgInfo{Name: "emulated"}}
	describe(p, tables)
	return compile(p)
}

// describe appends tables to a p4info, with their actions.
func describe(p *configpb.P4Info, tables []p4.Table) {
	for i := range tables {
		t := &tables[i]
		made := &configpb.Table{Preamble: &configpb.Preamble{Id: 0x02000001 + uint32(len(p.Tables)), Name: t.Name}, Size: int64(t.Size)}
		for k, f := range t.Key {
			kind := [...]configpb.MatchField_MatchType{configpb.MatchField_EXACT, configpb.MatchField_LPM, configpb.MatchField_TERNARY, configpb.MatchField_RANGE}[f.Kind]
			made.MatchFields = append(made.MatchFields, &configpb.MatchField{Id: uint32(k + 1), Name: f.Name, Bitwidth: int32(f.Bits),
				Match: &configpb.MatchField_MatchType_{MatchType: kind}})
		}
		for _, a := range t.Actions {
			action := &configpb.Action{Preamble: &configpb.Preamble{Id: 0x01000001 + uint32(len(p.Actions)), Name: t.Name + "." + a.Name}}
			for k, q := range a.Params {
				action.Params = append(action.Params, &configpb.Action_Param{Id: uint32(k + 1), Name: q.Name, Bitwidth: int32(q.Bits)})
			}
			p.Actions = append(p.Actions, action)
			made.ActionRefs = append(made.ActionRefs, &configpb.ActionRef{Id: action.Preamble.Id})
		}
		p.Tables = append(p.Tables, made)
	}
}

// ordered returns an Info with another order of writing tables. Unnamed tables come first, in any order, then the named
// ones, one after the other. The last ones make the rest take effect.
func (x *Info) ordered(names ...string) (*Info, error) {
	y := *x
	y.order = map[string]int{cloneTable: -1}
	for i, name := range names {
		if y.byName[name] == nil {
			return nil, fmt.Errorf("order of tables: the program has no table %s", name)
		}
		if _, twice := y.order[name]; twice {
			return nil, fmt.Errorf("order of tables: %s is there twice", name)
		}
		y.order[name] = i + 1
	}
	return &y, nil
}

// Tables are the tables that can be written to, with that of clone sessions where the program has such.
func (x *Info) Tables() []p4.Table {
	list := make([]p4.Table, len(x.tables))
	for i, t := range x.tables {
		list[i] = t.Table
	}
	return list
}

// compile reads a p4info, and refuses impossible values.
func compile(p *configpb.P4Info) (*Info, error) {
	x := &Info{proto: p, byName: map[string]*tableInfo{}, byID: map[uint32]*tableInfo{}, counters: map[string]*configpb.Counter{},
		digests: map[string]uint32{}, order: map[string]int{cloneTable: -1}}
	var errs []error
	actions := map[uint32]*configpb.Action{}
	for _, a := range p.GetActions() {
		id := a.GetPreamble().GetId()
		if id == 0 || actions[id] != nil {
			errs = append(errs, fmt.Errorf("action %s: its id %d is 0, or that of another one", a.GetPreamble().GetName(), id))
		}
		actions[id] = a
	}
	for _, t := range p.GetTables() {
		if t.GetIsConstTable() {
			continue // no controller can write to it
		}
		made, err := newTable(t, actions)
		if err == nil && (x.byName[made.Name] != nil || x.byID[made.id] != nil || made.Name == cloneTable) {
			err = errors.New("its name or id is that of another one")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("table %s: %w", t.GetPreamble().GetName(), err))
			continue
		}
		x.tables, x.byName[made.Name], x.byID[made.id] = append(x.tables, made), made, made
	}
	if arch := p.GetPkgInfo().GetArch(); arch == "v1model" || arch == "psa" {
		made := &tableInfo{Table: cloneSessions}
		x.tables, x.byName[cloneTable] = append(x.tables, made), made
	}
	for _, c := range p.GetCounters() {
		x.counters[c.GetPreamble().GetName()] = c
	}
	for _, d := range p.GetDigests() {
		x.digests[d.GetPreamble().GetName()] = d.GetPreamble().GetId()
	}
	return x, errors.Join(errs...)
}

var kinds = map[configpb.MatchField_MatchType]p4.Kind{
	configpb.MatchField_EXACT: p4.Exact, configpb.MatchField_LPM: p4.Longest, configpb.MatchField_TERNARY: p4.Ternary, configpb.MatchField_RANGE: p4.Range,
}

func newTable(t *configpb.Table, actions map[uint32]*configpb.Action) (*tableInfo, error) {
	made := &tableInfo{Table: p4.Table{Name: t.GetPreamble().GetName(), Size: int(t.GetSize())}, id: t.GetPreamble().GetId()}
	switch {
	case made.Name == "" || made.id == 0:
		return nil, errors.New("it has no name or no id")
	case t.GetSize() < 0 || t.GetSize() > math.MaxInt32:
		return nil, fmt.Errorf("size %d", t.GetSize())
	case t.GetImplementationId() != 0:
		return nil, errors.New("action profiles are not supported")
	case len(t.GetMatchFields()) > maxFields:
		return nil, fmt.Errorf("more than %d fields", maxFields)
	}
	for _, f := range t.GetMatchFields() {
		kind, ok := kinds[f.GetMatchType()]
		if !ok || f.GetBitwidth() < 1 || f.GetBitwidth() > maxBits || f.GetId() == 0 || slices.Contains(made.fields, f.GetId()) {
			return nil, fmt.Errorf("field %s: id %d of %d bits, matched as %v, is not supported", f.GetName(), f.GetId(), f.GetBitwidth(), f.GetMatchType())
		}
		made.Key = append(made.Key, p4.Field{Name: f.GetName(), Bits: int(f.GetBitwidth()), Kind: kind})
		made.fields = append(made.fields, f.GetId())
	}
	for _, r := range t.GetActionRefs() {
		a := actions[r.GetId()]
		if a == nil {
			return nil, fmt.Errorf("action %d is not there", r.GetId())
		}
		name := a.GetPreamble().GetName()
		name = name[strings.LastIndexByte(name, '.')+1:]
		if slices.ContainsFunc(made.Actions, func(b p4.Action) bool { return b.Name == name }) {
			return nil, fmt.Errorf("two actions are called %s", name)
		}
		if len(a.GetParams()) > maxFields {
			return nil, fmt.Errorf("action %s: more than %d parameters", name, maxFields)
		}
		action, id := p4.Action{Name: name}, actionID{id: r.GetId()}
		for _, q := range a.GetParams() {
			if q.GetBitwidth() < 1 || q.GetBitwidth() > maxBits || q.GetId() == 0 || slices.Contains(id.params, q.GetId()) {
				return nil, fmt.Errorf("action %s: parameter %s: id %d of %d bits is not supported", name, q.GetName(), q.GetId(), q.GetBitwidth())
			}
			action.Params = append(action.Params, p4.Param{Name: q.GetName(), Bits: int(q.GetBitwidth())})
			id.params = append(id.params, q.GetId())
		}
		made.Actions, made.actions = append(made.Actions, action), append(made.actions, id)
	}
	return made, nil
}
