package p4rttest

import (
	"fmt"
	"slices"
	"strings"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/p4"
)

// codec holds the ids of a program.
type codec struct {
	info    *configpb.P4Info
	tables  map[uint32]*configpb.Table
	byName  map[string]*configpb.Table
	actions map[uint32]*configpb.Action
}

func newCodec(p *configpb.P4Info) (*codec, error) {
	c := &codec{p, map[uint32]*configpb.Table{}, map[string]*configpb.Table{}, map[uint32]*configpb.Action{}}
	for _, t := range p.GetTables() {
		c.tables[t.GetPreamble().GetId()], c.byName[t.GetPreamble().GetName()] = t, t
	}
	for _, a := range p.GetActions() {
		c.actions[a.GetPreamble().GetId()] = a
	}
	for _, t := range p.GetTables() {
		for _, r := range t.GetActionRefs() {
			if c.actions[r.GetId()] == nil {
				return nil, fmt.Errorf("table %s: no action %d", t.GetPreamble().GetName(), r.GetId())
			}
		}
	}
	return c, nil
}

func bad(format string, args ...any) error { return errBad{fmt.Errorf(format, args...)} }

// canonical refuses what is longer than it needs to be.
func canonical(b []byte) (p4.Value, error) {
	if v := p4.Bytes(b); len(b) == 0 || string(v) != string(b) {
		return "", bad("%x is not in canonical form", b)
	}
	return p4.Value(b), nil
}

func short(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// largest is the largest number of so many bits.
func largest(bits int32) p4.Value {
	b := make([]byte, (bits+7)/8)
	for i := range bits {
		b[len(b)-1-int(i/8)] |= 1 << (i % 8)
	}
	return p4.Bytes(b)
}

// entry reads what a controller wrote. Deletions need no action.
func (c *codec) entry(m *p4pb.TableEntry, action bool) (e p4.Entry, err error) {
	t := c.tables[m.GetTableId()]
	if t == nil {
		return e, bad("no table %d", m.GetTableId())
	}
	e = p4.Entry{Table: t.GetPreamble().GetName(), Priority: m.GetPriority(), Owner: string(m.GetMetadata())}
	if m.GetIsDefaultAction() && len(m.GetMatch()) > 0 {
		return e, bad("a default action with a key")
	}
	if !m.GetIsDefaultAction() {
		e.Match = []p4.Match{}
		for _, f := range t.GetMatchFields() {
			k := slices.IndexFunc(m.GetMatch(), func(x *p4pb.FieldMatch) bool { return x.GetFieldId() == f.GetId() })
			var in *p4pb.FieldMatch
			if k >= 0 {
				in = m.GetMatch()[k]
			}
			match, err := c.match(f, in)
			if err != nil {
				return e, err
			}
			e.Match = append(e.Match, match)
		}
		if len(m.GetMatch()) > len(t.GetMatchFields()) {
			return e, bad("too many fields")
		}
	}
	if !action {
		return e, nil
	}
	a := c.actions[m.GetAction().GetAction().GetActionId()]
	if a == nil {
		return e, bad("no action %d", m.GetAction().GetAction().GetActionId())
	}
	e.Action = short(a.GetPreamble().GetName())
	for _, p := range a.GetParams() {
		k := slices.IndexFunc(m.GetAction().GetAction().GetParams(), func(x *p4pb.Action_Param) bool { return x.GetParamId() == p.GetId() })
		if k < 0 {
			return e, bad("parameter %s is missing", p.GetName())
		}
		v, err := canonical(m.GetAction().GetAction().GetParams()[k].GetValue())
		if err != nil {
			return e, err
		}
		e.Params = append(e.Params, v)
	}
	return e, nil
}

// match reads a field; in is nil where a controller left it out because it matches everything.
func (c *codec) match(f *configpb.MatchField, in *p4pb.FieldMatch) (m p4.Match, err error) {
	zero := p4.Uint(0)
	switch f.GetMatchType() {
	case configpb.MatchField_EXACT:
		if in.GetExact() == nil {
			return m, bad("field %s is missing", f.GetName())
		}
		m.Value, err = canonical(in.GetExact().GetValue())
	case configpb.MatchField_LPM:
		if m.Value = zero; in != nil {
			if m.Prefix = int(in.GetLpm().GetPrefixLen()); m.Prefix == 0 {
				return m, bad("field %s: a prefix of no bits has to be left out", f.GetName())
			}
			m.Value, err = canonical(in.GetLpm().GetValue())
		}
	case configpb.MatchField_TERNARY:
		if m.Value, m.To = zero, zero; in != nil {
			if m.Value, err = canonical(in.GetTernary().GetValue()); err == nil {
				m.To, err = canonical(in.GetTernary().GetMask())
			}
			if m.To == zero {
				return m, bad("field %s: a mask of 0 has to be left out", f.GetName())
			}
		}
	case configpb.MatchField_RANGE:
		if m.Value, m.To = zero, largest(f.GetBitwidth()); in != nil {
			if m.Value, err = canonical(in.GetRange().GetLow()); err == nil {
				m.To, err = canonical(in.GetRange().GetHigh())
			}
			if m.Value == zero && m.To == largest(f.GetBitwidth()) {
				return m, bad("field %s: a range of all numbers has to be left out", f.GetName())
			}
		}
	}
	return m, err
}

// entity makes what a controller reads.
func (c *codec) entity(e *p4.Entry, padded bool) *p4pb.Entity {
	t := c.byName[e.Table]
	m := &p4pb.TableEntry{TableId: t.GetPreamble().GetId(), Priority: e.Priority, IsDefaultAction: e.Default(), Metadata: []byte(e.Owner)}
	pad := func(v p4.Value, bits int32) []byte {
		if padded {
			return v.Append(nil, int(bits+7)/8)
		}
		return []byte(v)
	}
	for i, x := range e.Match {
		f := t.GetMatchFields()[i]
		bits := f.GetBitwidth()
		out := &p4pb.FieldMatch{FieldId: f.GetId()}
		switch f.GetMatchType() {
		case configpb.MatchField_EXACT:
			out.FieldMatchType = &p4pb.FieldMatch_Exact_{Exact: &p4pb.FieldMatch_Exact{Value: pad(x.Value, bits)}}
		case configpb.MatchField_LPM:
			if x.Prefix == 0 {
				continue
			}
			out.FieldMatchType = &p4pb.FieldMatch_Lpm{Lpm: &p4pb.FieldMatch_LPM{Value: pad(x.Value, bits), PrefixLen: int32(x.Prefix)}}
		case configpb.MatchField_TERNARY:
			if x.To == p4.Uint(0) {
				continue
			}
			out.FieldMatchType = &p4pb.FieldMatch_Ternary_{Ternary: &p4pb.FieldMatch_Ternary{Value: pad(x.Value, bits), Mask: pad(x.To, bits)}}
		case configpb.MatchField_RANGE:
			if x.Value == p4.Uint(0) && x.To == largest(bits) {
				continue
			}
			out.FieldMatchType = &p4pb.FieldMatch_Range_{Range: &p4pb.FieldMatch_Range{Low: pad(x.Value, bits), High: pad(x.To, bits)}}
		}
		m.Match = append(m.Match, out)
	}
	for _, r := range t.GetActionRefs() {
		a := c.actions[r.GetId()]
		if short(a.GetPreamble().GetName()) != e.Action {
			continue
		}
		out := &p4pb.Action{ActionId: r.GetId()}
		for i, p := range a.GetParams() {
			out.Params = append(out.Params, &p4pb.Action_Param{ParamId: p.GetId(), Value: pad(e.Params[i], p.GetBitwidth())})
		}
		m.Action = &p4pb.TableAction{Type: &p4pb.TableAction_Action{Action: out}}
	}
	return &p4pb.Entity{Entity: &p4pb.Entity_TableEntry{TableEntry: m}}
}

// update carries out an update.
func (s *Server) update(u *p4pb.Update) error {
	if d := u.GetEntity().GetDigestEntry(); d != nil {
		s.digests[d.GetDigestId()] = d.GetConfig()
		return nil
	}
	if x := u.GetEntity().GetPacketReplicationEngineEntry().GetCloneSessionEntry(); x != nil {
		return s.session(u.GetType(), x)
	}
	m := u.GetEntity().GetTableEntry()
	if m == nil {
		return bad("no entry of a table")
	}
	if m.GetIsDefaultAction() {
		if u.GetType() != p4pb.Update_MODIFY {
			return bad("a default action can be modified, and nothing else")
		}
		t := s.codec.tables[m.GetTableId()]
		if t == nil {
			return bad("no table %d", m.GetTableId())
		}
		if m.GetAction() == nil {
			old, ok := s.initial[t.GetPreamble().GetName()]
			if ok {
				_, err := s.tables.Put(old)
				return err
			}
			_ = s.tables.Delete(&p4.Entry{Table: t.GetPreamble().GetName()}) // there may be none
			return nil
		}
	}
	e, err := s.codec.entry(m, u.GetType() != p4pb.Update_DELETE)
	if err != nil {
		return err
	}
	switch {
	case m.GetIsDefaultAction():
		_, err := s.tables.Put(e)
		return err
	case len(e.Match) == 0:
		return bad("table %s has no key", e.Table)
	}
	switch u.GetType() {
	case p4pb.Update_INSERT:
		return s.tables.Insert(e)
	case p4pb.Update_MODIFY:
		return s.tables.Modify(e)
	case p4pb.Update_DELETE:
		return s.tables.Delete(&e)
	}
	return bad("%v", u.GetType())
}

func (s *Server) session(op p4pb.Update_Type, x *p4pb.CloneSessionEntry) error {
	there := s.sessions[x.GetSessionId()] != nil
	switch {
	case x.GetSessionId() == 0 || x.GetSessionId() >= 1<<15 || len(x.GetReplicas()) != 1:
		return bad("Clone session id out-of-range")
	case op == p4pb.Update_INSERT && there:
		return p4.ErrExists
	case op != p4pb.Update_INSERT && !there:
		return p4.ErrNotFound
	case op == p4pb.Update_DELETE:
		delete(s.sessions, x.GetSessionId())
		return nil
	}
	s.sessions[x.GetSessionId()] = proto.Clone(x).(*p4pb.CloneSessionEntry)
	return nil
}

// entities returns what is asked for.
func (s *Server) entities(m *p4pb.ReadRequest, padded bool) (list []*p4pb.Entity, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.GetDeviceId() != s.device {
		return nil, status.Error(codes.NotFound, "no such device")
	}
	if s.tables == nil {
		return nil, errNoPipeline
	}
	for _, ask := range m.GetEntities() {
		switch x := ask.GetEntity().(type) {
		case *p4pb.Entity_TableEntry:
			t := s.codec.tables[x.TableEntry.GetTableId()]
			if t == nil {
				return nil, status.Errorf(codes.NotFound, "no table %d", x.TableEntry.GetTableId())
			}
			for _, e := range s.tables.Read(t.GetPreamble().GetName()) {
				if e.Default() == x.TableEntry.GetIsDefaultAction() {
					list = append(list, s.codec.entity(&e, padded))
				}
			}
		case *p4pb.Entity_PacketReplicationEngineEntry:
			for id := range uint32(1 << 15) {
				if old := s.sessions[id]; old != nil {
					list = append(list, &p4pb.Entity{Entity: &p4pb.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &p4pb.PacketReplicationEngineEntry{
						Type: &p4pb.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: proto.Clone(old).(*p4pb.CloneSessionEntry)}}}})
				}
			}
		case *p4pb.Entity_CounterEntry:
			counted, _ := s.tables.(Counted)
			name := s.counterName(x.CounterEntry.GetCounterId())
			for i, d := range s.counters[x.CounterEntry.GetCounterId()] {
				if counted != nil {
					d.PacketCount = int64(counted.Count(name, i))
				}
				list = append(list, &p4pb.Entity{Entity: &p4pb.Entity_CounterEntry{CounterEntry: &p4pb.CounterEntry{
					CounterId: x.CounterEntry.GetCounterId(), Index: &p4pb.Index{Index: int64(i)}, Data: proto.Clone(d).(*p4pb.CounterData)}}})
			}
		default:
			return nil, status.Error(codes.Unimplemented, "that cannot be read")
		}
	}
	return list, nil
}
