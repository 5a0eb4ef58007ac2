package p4rt

import (
	"bytes"
	"fmt"
	"slices"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/hopscope/hopscope/p4"
)

// maxValue bounds a number of a switch, padding included.
const maxValue = 2 * maxBits / 8

// encode makes what P4Runtime has for an entry, with its action and owner or without. An entry that does not fit its table is refused
// with [p4.ErrInvalid]. Fields that match everything are left out, as P4Runtime wants it.
func (x *Info) encode(e *p4.Entry, action bool) (*p4pb.Entity, error) {
	t := x.byName[e.Table]
	if t == nil {
		return nil, fmt.Errorf("table %s: the program has none: %w", e.Table, p4.ErrInvalid)
	}
	if err := t.Check(e); err != nil {
		return nil, err
	}
	if e.Table == cloneTable {
		return encodeSession(e)
	}
	if len(t.Key) == 0 && !e.Default() {
		return nil, fmt.Errorf("table %s: it has no key, and so nothing but a default action: %w", e.Table, p4.ErrInvalid)
	}
	made := &encoded{}
	m := &made.m
	m.TableId, m.IsDefaultAction, m.Priority, m.Metadata = t.id, e.Default(), e.Priority, []byte(e.Owner)
	if len(e.Match) > 0 {
		m.Match = make([]*p4pb.FieldMatch, 0, len(e.Match))
	}
	for i := range e.Match {
		if match := encodeMatch(&t.Key[i], &e.Match[i]); match != nil {
			match.FieldId = t.fields[i]
			m.Match = append(m.Match, match)
		}
	}
	if action {
		k := slices.IndexFunc(t.Actions, func(a p4.Action) bool { return a.Name == e.Action })
		made.act.ActionId = t.actions[k].id
		if len(e.Params) > 0 {
			params := make([]p4pb.Action_Param, len(e.Params))
			made.act.Params = make([]*p4pb.Action_Param, len(e.Params))
			for i, v := range e.Params {
				params[i].ParamId, params[i].Value = t.actions[k].params[i], []byte(v)
				made.act.Params[i] = &params[i]
			}
		}
		made.what.Action, made.action.Type, m.Action = &made.act, &made.what, &made.action
	} else {
		m.Metadata = nil
	}
	made.table.TableEntry, made.entity.Entity = m, &made.table
	return &made.entity, nil
}

// encoded is all of an entry that each has one of: thousands of them are made at once.
type encoded struct {
	entity p4pb.Entity
	table  p4pb.Entity_TableEntry
	m      p4pb.TableEntry
	action p4pb.TableAction
	what   p4pb.TableAction_Action
	act    p4pb.Action
}

func encodeMatch(f *p4.Field, m *p4.Match) *p4pb.FieldMatch {
	const zero = p4.Value("\x00")
	switch f.Kind {
	case p4.Exact:
		x := &struct {
			m  p4pb.FieldMatch
			of p4pb.FieldMatch_Exact_
			v  p4pb.FieldMatch_Exact
		}{}
		x.v.Value = []byte(m.Value)
		x.of.Exact, x.m.FieldMatchType = &x.v, &x.of
		return &x.m
	case p4.Longest:
		if m.Prefix > 0 {
			x := &struct {
				m  p4pb.FieldMatch
				of p4pb.FieldMatch_Lpm
				v  p4pb.FieldMatch_LPM
			}{}
			x.v.Value, x.v.PrefixLen = []byte(m.Value), int32(m.Prefix)
			x.of.Lpm, x.m.FieldMatchType = &x.v, &x.of
			return &x.m
		}
	case p4.Ternary:
		if m.To != zero {
			x := &struct {
				m  p4pb.FieldMatch
				of p4pb.FieldMatch_Ternary_
				v  p4pb.FieldMatch_Ternary
			}{}
			x.v.Value, x.v.Mask = []byte(m.Value), []byte(m.To)
			x.of.Ternary, x.m.FieldMatchType = &x.v, &x.of
			return &x.m
		}
	case p4.Range:
		if m.Value != zero || !allOnes(m.To, f.Bits) {
			x := &struct {
				m  p4pb.FieldMatch
				of p4pb.FieldMatch_Range_
				v  p4pb.FieldMatch_Range
			}{}
			x.v.Low, x.v.High = []byte(m.Value), []byte(m.To)
			x.of.Range, x.m.FieldMatchType = &x.v, &x.of
			return &x.m
		}
	}
	return nil
}

// allOnes reports whether v is the largest number of that many bits.
func allOnes(v p4.Value, bits int) bool { return v.Width() == bits && v == ones(bits) }

// ones is the largest number of that many bits.
func ones(bits int) p4.Value {
	b := bytes.Repeat([]byte{0xff}, (bits+7)/8)
	b[0] >>= (8 - bits%8) % 8
	return p4.Bytes(b)
}

// number reads a number in the forms of servers: canonical, or padded to its width.
func number(b []byte) (p4.Value, error) {
	if len(b) == 0 || len(b) > maxValue {
		return "", badAnswer("a number of %d bytes", len(b))
	}
	return p4.Bytes(b), nil
}

// decode reads an entry that a switch gave. It fits its table.
func (x *Info) decode(m *p4pb.Entity) (e p4.Entry, err error) {
	if s := m.GetPacketReplicationEngineEntry().GetCloneSessionEntry(); s != nil {
		return x.decodeSession(s)
	}
	in := m.GetTableEntry()
	if in == nil {
		return e, badAnswer("something that is no entry of a table")
	}
	t := x.byID[in.GetTableId()]
	if t == nil {
		return e, badAnswer("an entry of table %d, which the program does not have", in.GetTableId())
	}
	e = p4.Entry{Table: t.Name, Priority: in.GetPriority(), Owner: string(in.GetMetadata())}
	if len(e.Owner) > maxOwner { // and so of no known owner
		e.Owner = e.Owner[:maxOwner+1]
	}
	if !in.GetIsDefaultAction() {
		if len(t.Key) == 0 {
			return e, badAnswer("table %s: an entry with a key", t.Name)
		}
		if e.Match, err = t.match(in.GetMatch()); err != nil {
			return e, err
		}
	} else if len(in.GetMatch()) > 0 {
		return e, badAnswer("table %s: a default action with a key", t.Name)
	}
	if err := t.act(&e, in.GetAction().GetAction()); err != nil {
		return e, err
	}
	if err := t.Check(&e); err != nil {
		return e, badAnswer("%s", cut(err.Error()))
	}
	return e, nil
}

// match reads a key. Fields that are not in it match everything.
func (t *tableInfo) match(in []*p4pb.FieldMatch) ([]p4.Match, error) {
	list, seen := make([]p4.Match, len(t.Key)), make([]bool, len(t.Key))
	for i, f := range t.Key {
		switch list[i].Value = p4.Uint(0); f.Kind {
		case p4.Ternary:
			list[i].To = p4.Uint(0)
		case p4.Range:
			list[i].To = ones(f.Bits)
		}
	}
	for _, m := range in {
		i := slices.Index(t.fields, m.GetFieldId())
		if i < 0 || seen[i] {
			return nil, badAnswer("table %s: field %d is not in its key, or twice", t.Name, m.GetFieldId())
		}
		seen[i] = true
		kind, second := p4.Exact, []byte(nil)
		var first []byte
		switch u := m.GetFieldMatchType().(type) {
		case *p4pb.FieldMatch_Exact_:
			first = u.Exact.GetValue()
		case *p4pb.FieldMatch_Lpm:
			kind, first, list[i].Prefix = p4.Longest, u.Lpm.GetValue(), int(u.Lpm.GetPrefixLen())
		case *p4pb.FieldMatch_Ternary_:
			kind, first, second = p4.Ternary, u.Ternary.GetValue(), u.Ternary.GetMask()
		case *p4pb.FieldMatch_Range_:
			kind, first, second = p4.Range, u.Range.GetLow(), u.Range.GetHigh()
		default:
			return nil, badAnswer("table %s: field %s is matched in a way that is not known", t.Name, t.Key[i].Name)
		}
		if kind != t.Key[i].Kind {
			return nil, badAnswer("table %s: field %s is matched in another way", t.Name, t.Key[i].Name)
		}
		var err error
		if list[i].Value, err = number(first); err == nil && kind >= p4.Ternary {
			list[i].To, err = number(second)
		}
		if err != nil {
			return nil, err
		}
	}
	for i, f := range t.Key {
		if f.Kind == p4.Exact && !seen[i] {
			return nil, badAnswer("table %s: field %s is missing", t.Name, f.Name)
		}
	}
	return list, nil
}

// act reads an action.
func (t *tableInfo) act(e *p4.Entry, in *p4pb.Action) error {
	k := slices.IndexFunc(t.actions, func(a actionID) bool { return a.id == in.GetActionId() })
	if in == nil || k < 0 {
		return badAnswer("table %s: action %d, which it does not have", t.Name, in.GetActionId())
	}
	e.Action = t.Actions[k].Name
	ids := t.actions[k].params
	if len(in.GetParams()) != len(ids) {
		return badAnswer("table %s: action %s with %d parameters, want %d", t.Name, e.Action, len(in.GetParams()), len(ids))
	}
	if len(ids) == 0 {
		return nil
	}
	e.Params = make([]p4.Value, len(ids))
	for _, p := range in.GetParams() {
		i := slices.Index(ids, p.GetParamId())
		if i < 0 || e.Params[i] != "" {
			return badAnswer("table %s: action %s: parameter %d is not known, or twice", t.Name, e.Action, p.GetParamId())
		}
		v, err := number(p.GetValue())
		if err != nil {
			return err
		}
		e.Params[i] = v
	}
	return nil
}

func encodeSession(e *p4.Entry) (*p4pb.Entity, error) {
	if e.Default() || e.Match[0].Value.Uint64() == 0 {
		return nil, fmt.Errorf("table %s: session 0, or a default action, cannot be: %w", e.Table, p4.ErrInvalid)
	}
	s := &p4pb.CloneSessionEntry{SessionId: uint32(e.Match[0].Value.Uint64()), PacketLengthBytes: int32(e.Params[1].Uint64()),
		Replicas: []*p4pb.Replica{{PortKind: &p4pb.Replica_Port{Port: []byte(e.Params[0])}, Instance: 1}}}
	return cloneEntity(s), nil
}

func cloneEntity(s *p4pb.CloneSessionEntry) *p4pb.Entity {
	return &p4pb.Entity{Entity: &p4pb.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &p4pb.PacketReplicationEngineEntry{
		Type: &p4pb.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: s}}}}
}

func (x *Info) decodeSession(s *p4pb.CloneSessionEntry) (p4.Entry, error) {
	e := p4.Entry{Table: cloneTable, Match: []p4.Match{p4.Number(uint64(s.GetSessionId()))}, Action: "clone"}
	t := x.byName[cloneTable]
	if t == nil || len(s.GetReplicas()) != 1 || s.GetSessionId() == 0 || s.GetPacketLengthBytes() < 0 {
		return e, badAnswer("clone session %d to %d ports, cut to %d bytes", s.GetSessionId(), len(s.GetReplicas()), s.GetPacketLengthBytes())
	}
	var port p4.Value
	switch r := s.GetReplicas()[0].GetPortKind().(type) {
	case *p4pb.Replica_Port:
		var err error
		if port, err = number(r.Port); err != nil {
			return e, err
		}
	case *p4pb.Replica_EgressPort:
		//lint:ignore SA1019 servers that are older than the field port have no other
		port = p4.Uint(uint64(r.EgressPort))
	}
	e.Params = []p4.Value{port, p4.Uint(uint64(s.GetPacketLengthBytes()))}
	if err := t.Check(&e); err != nil {
		return e, badAnswer("%s", cut(err.Error()))
	}
	return e, nil
}
