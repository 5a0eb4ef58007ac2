package p4rt

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu"
)

// infos are the programs that there are.
func infos(t testing.TB) map[string]*Info {
	t.Helper()
	x, err := NewInfo(emu.Tables())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*Info{"emulated": x}
	for _, name := range p4.Programs {
		all[name] = pipeline(t, name).Info
	}
	return all
}

// draw makes a number of so many bits, often with few of them.
func draw(r *rand.Rand, bits int) p4.Value {
	b := make([]byte, (bits+7)/8)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	keep := r.IntN(bits + 1)
	for i := range 8 * len(b) {
		if i >= keep {
			b[len(b)-1-i/8] &^= 1 << (i % 8)
		}
	}
	return p4.Bytes(b)
}

// drawEntry makes an entry that fits its table.
func drawEntry(r *rand.Rand, t *p4.Table) p4.Entry {
	a := &t.Actions[r.IntN(len(t.Actions))]
	e := p4.Entry{Table: t.Name, Action: a.Name, Owner: []string{"", "us"}[r.IntN(2)]}
	for _, p := range a.Params {
		e.Params = append(e.Params, draw(r, p.Bits))
	}
	for _, f := range t.Key {
		m := p4.Match{Value: draw(r, f.Bits)}
		switch f.Kind {
		case p4.Longest:
			m.Prefix = r.IntN(f.Bits + 1)
			b := m.Value.Append(nil, (f.Bits+7)/8)
			for i := range f.Bits - m.Prefix {
				b[len(b)-1-i/8] &^= 1 << (i % 8)
			}
			m.Value = p4.Bytes(b)
		case p4.Ternary:
			m.To = draw(r, f.Bits)
			mask, v := m.To.Append(nil, (f.Bits+7)/8), m.Value.Append(nil, (f.Bits+7)/8)
			for i := range v {
				v[i] &= mask[i]
			}
			m.Value = p4.Bytes(v)
		case p4.Range:
			if m.To = draw(r, f.Bits); len(m.Value) > len(m.To) || len(m.Value) == len(m.To) && m.Value > m.To {
				m.Value, m.To = m.To, m.Value
			}
		}
		if f.Kind >= p4.Ternary {
			e.Priority = int32(1 + r.IntN(1000))
		}
		e.Match = append(e.Match, m)
	}
	if t.Name == cloneTable {
		e.Owner = ""
		if e.Match[0].Value == p4.Uint(0) {
			e.Match[0].Value = p4.Uint(1)
		}
	}
	return e
}

// What is encoded is decoded, whatever it is; padded numbers are the same numbers.
func TestEntries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, x := range infos(t) {
		for _, tt := range x.Tables() {
			for range 200 {
				e := drawEntry(r, &tt)
				m, err := x.encode(&e, true)
				if err != nil {
					t.Fatalf("%s: %v: %v", name, &e, err)
				}
				for _, padded := range []bool{false, true} {
					if padded {
						pad(m)
					}
					got, err := x.decode(m)
					if err != nil || !reflect.DeepEqual(got, e) {
						t.Fatalf("%s: %+v, %v\nwant %+v", name, got, err, e)
					}
				}
			}
		}
	}
}

// pad puts zeros in front of all numbers.
func pad(m *p4pb.Entity) {
	longer := func(b *[]byte) { *b = append([]byte{0, 0}, *b...) }
	e := m.GetTableEntry()
	for _, f := range e.GetMatch() {
		switch u := f.FieldMatchType.(type) {
		case *p4pb.FieldMatch_Exact_:
			longer(&u.Exact.Value)
		case *p4pb.FieldMatch_Lpm:
			longer(&u.Lpm.Value)
		case *p4pb.FieldMatch_Ternary_:
			longer(&u.Ternary.Value)
			longer(&u.Ternary.Mask)
		case *p4pb.FieldMatch_Range_:
			longer(&u.Range.Low)
			longer(&u.Range.High)
		}
	}
	for _, p := range e.GetAction().GetAction().GetParams() {
		longer(&p.Value)
	}
	for _, s := range m.GetPacketReplicationEngineEntry().GetCloneSessionEntry().GetReplicas() {
		if u, ok := s.PortKind.(*p4pb.Replica_Port); ok {
			longer(&u.Port)
		}
	}
}

// Fields that match everything are not sent, numbers are as short as they can be, and a default action has no key.
func TestEncode(t *testing.T) {
	x := pipeline(t, "intmd").Info
	flow := func(proto p4.Match) []p4.Match {
		any128 := p4.Masked(0, 0)
		return []p4.Match{any128, any128, proto, p4.Masked(0, 0), p4.Masked(0, 0)}
	}
	for _, tt := range []struct {
		e    p4.Entry
		want string
	}{
		{p4.Entry{Table: "ingress.watch", Match: flow(p4.Masked(17, 255)), Priority: 5, Action: "track", Owner: "us",
			Params: []p4.Value{p4.Uint(1 << 20), p4.Uint(0xfc00), p4.Uint(0), p4.Uint(8), p4.Uint(0)}},
			`table_entry:{table_id:44689665 match:{field_id:3 ternary:{value:"\x11" mask:"\xff"}} priority:5 metadata:"us" action:{action:{action_id:24888450 params:{param_id:1 value:"\x10\x00\x00"} params:{param_id:2 value:"\xfc\x00"} params:{param_id:3 value:"\x00"} params:{param_id:4 value:"\x08"} params:{param_id:5 value:"\x00"}}}}`},
		{p4.Entry{Table: "ingress.forward.forwarding4", Match: []p4.Match{{Value: p4.Uint(0)}}, Action: "no_route"},
			`table_entry:{table_id:41259479 action:{action:{action_id:21656819}}}`},
		{p4.Entry{Table: "egress.device", Action: "set_device", Params: []p4.Value{p4.Uint(7), p4.Uint(0)}},
			`table_entry:{table_id:38134625 is_default_action:true action:{action:{action_id:19434336 params:{param_id:1 value:"\x07"} params:{param_id:2 value:"\x00"}}}}`},
		{p4.Entry{Table: cloneTable, Match: []p4.Match{p4.Number(100)}, Action: "clone", Params: []p4.Value{p4.Uint(5), p4.Uint(128)}},
			`packet_replication_engine_entry:{clone_session_entry:{session_id:100 replicas:{port:"\x05" instance:1} packet_length_bytes:128}}`},
	} {
		m, err := x.encode(&tt.e, true)
		if err != nil {
			t.Fatal(err)
		}
		var want p4pb.Entity
		if err := prototext.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(m, &want) {
			t.Errorf("%v\n got %v\nwant %v", &tt.e, m, &want)
		}
	}
	for _, e := range []p4.Entry{
		{Table: "nowhere"}, {Table: "egress.device", Match: []p4.Match{}, Action: "set_device", Params: []p4.Value{p4.Uint(7), p4.Uint(0)}},
		{Table: cloneTable, Action: "clone", Params: []p4.Value{p4.Uint(5), p4.Uint(128)}},
		{Table: cloneTable, Match: []p4.Match{p4.Number(0)}, Action: "clone", Params: []p4.Value{p4.Uint(5), p4.Uint(128)}},
		{Table: "ingress.watch", Match: flow(p4.Masked(17, 255)), Action: "NoAction"},
	} {
		if _, err := x.encode(&e, true); !errors.Is(err, p4.ErrInvalid) {
			t.Errorf("%v: %v", &e, err)
		}
	}
}

// garbage is what a switch may not say, and what is said of it.
var garbage = []struct{ text, want string }{
	{``, "no entry of a table"},
	{`counter_entry:{counter_id:4}`, "no entry of a table"},
	{`table_entry:{table_id:1}`, "table 1, which the program does not have"},
	{`table_entry:{table_id:41259479 action:{action:{action_id:7}}}`, "action 7, which it does not have"},
	{`table_entry:{table_id:41259479}`, "action 0, which it does not have"},
	{`table_entry:{table_id:41259479 action:{action_profile_member_id:7}}`, "action 0, which"},
	{`table_entry:{table_id:41259479 action:{action:{action_id:19953433}}}`, "with 0 parameters, want 3"},
	{`table_entry:{table_id:41259479 action:{action:{action_id:21656819 params:{param_id:1 value:"a"}}}}`, "with 1 parameters, want 0"},
	{`table_entry:{table_id:41259479 action:{action:{action_id:19953433 params:{param_id:1 value:"a"} params:{param_id:1 value:"a"} params:{param_id:3 value:"a"}}}}`, "parameter 1 is not known, or twice"},
	{`table_entry:{table_id:41259479 action:{action:{action_id:19953433 params:{param_id:1 value:""} params:{param_id:2 value:"a"} params:{param_id:3 value:"a"}}}}`, "a number of 0 bytes"},
	{`table_entry:{table_id:41259479 action:{action:{action_id:19953433 params:{param_id:1 value:"aaa"} params:{param_id:2 value:"a"} params:{param_id:3 value:"a"}}}}`, "no number of 9 bits"},
	{`table_entry:{table_id:41259479 is_default_action:true match:{field_id:1 lpm:{value:"a" prefix_len:32}} action:{action:{action_id:21656819}}}`, "a default action with a key"},
	{`table_entry:{table_id:41259479 match:{field_id:2 lpm:{value:"a" prefix_len:32}} action:{action:{action_id:21656819}}}`, "field 2 is not in its key"},
	{`table_entry:{table_id:41259479 match:{field_id:1 lpm:{value:"a" prefix_len:32}} match:{field_id:1 lpm:{value:"b" prefix_len:32}} action:{action:{action_id:21656819}}}`, "or twice"},
	{`table_entry:{table_id:41259479 match:{field_id:1 lpm:{value:"a" prefix_len:-3}} action:{action:{action_id:21656819}}}`, "matched in another way"},
	{`table_entry:{table_id:41259479 match:{field_id:1 lpm:{value:"a" prefix_len:2000000000}} action:{action:{action_id:21656819}}}`, "matched in another way"},
	{`table_entry:{table_id:41259479 match:{field_id:1 exact:{value:"a"}} action:{action:{action_id:21656819}}}`, "matched in another way"},
	{`table_entry:{table_id:41259479 match:{field_id:1} action:{action:{action_id:21656819}}}`, "in a way that is not known"},
	{`table_entry:{table_id:41259479 match:{field_id:1 lpm:{value:"" prefix_len:32}} action:{action:{action_id:21656819}}}`, "a number of 0 bytes"},
	{`table_entry:{table_id:41259479 match:{field_id:1 lpm:{value:"abcde" prefix_len:32}} action:{action:{action_id:21656819}}}`, "no number of 32 bits"},
	{`table_entry:{table_id:34255570 action:{action:{action_id:18472527 params:{param_id:1 value:"\001"}}}}`, "field sm.ingress_port is missing"},
	{`table_entry:{table_id:44689665 action:{action:{action_id:21257015}}}`, "priority 0"},
	{`table_entry:{table_id:44689665 priority:-1 action:{action:{action_id:21257015}}}`, "priority -1"},
	{`table_entry:{table_id:44689665 priority:1 match:{field_id:3 ternary:{value:"\x11" mask:"\x01"}} action:{action:{action_id:21257015}}}`, "bits that are not compared"},
	{`table_entry:{table_id:38134625 action:{action:{action_id:19434336 params:{param_id:1 value:"\x07"} params:{param_id:2 value:"\x00"}}}}`, "an entry with a key"},
	{`packet_replication_engine_entry:{multicast_group_entry:{multicast_group_id:4}}`, "no entry of a table"},
	{`packet_replication_engine_entry:{clone_session_entry:{session_id:4}}`, "clone session 4 to 0 ports"},
	{`packet_replication_engine_entry:{clone_session_entry:{session_id:0 replicas:{port:"a"}}}`, "clone session 0"},
	{`packet_replication_engine_entry:{clone_session_entry:{session_id:4000000000 replicas:{port:"a"}}}`, "no number of 15 bits"},
	{`packet_replication_engine_entry:{clone_session_entry:{session_id:4 replicas:{port:"abcde"}}}`, "no number of 32 bits"},
	{`packet_replication_engine_entry:{clone_session_entry:{session_id:4 replicas:{}}}`, "is no number"},
	{`packet_replication_engine_entry:{clone_session_entry:{session_id:4 packet_length_bytes:-1 replicas:{port:"a"}}}`, "cut to -1 bytes"},
	{`packet_replication_engine_entry:{clone_session_entry:{session_id:4 packet_length_bytes:70000 replicas:{port:"a"}}}`, "no number of 16 bits"},
}

func TestGarbage(t *testing.T) {
	x := pipeline(t, "intmd").Info
	for _, tt := range garbage {
		var m p4pb.Entity
		if err := prototext.Unmarshal([]byte(tt.text), &m); err != nil {
			t.Fatal(err)
		}
		var answer *answerError
		if e, err := x.decode(&m); !errors.As(err, &answer) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v, want %q", tt.text, &e, err, tt.want)
		}
	}
	//lint:ignore SA1019 as servers say it that are older than the field port
	old := &p4pb.CloneSessionEntry{SessionId: 4, Replicas: []*p4pb.Replica{{PortKind: &p4pb.Replica_EgressPort{EgressPort: 300}}}}
	if e, err := x.decodeSession(old); err != nil || e.Params[0] != p4.Uint(300) {
		t.Errorf("%v, %v", &e, err)
	}
	long := &p4pb.TableEntry{TableId: 41259479, Metadata: make([]byte, 1<<20),
		Action: &p4pb.TableAction{Type: &p4pb.TableAction_Action{Action: &p4pb.Action{ActionId: 21656819}}}}
	if e, err := x.decode(&p4pb.Entity{Entity: &p4pb.Entity_TableEntry{TableEntry: long}}); err != nil || len(e.Owner) != maxOwner+1 {
		t.Errorf("an owner of %d bytes, %v", len(e.Owner), err)
	}
}

// Any answer of a switch is refused, or is an entry that fits its table and can be written again.
func FuzzDecode(f *testing.F) {
	var all []*Info
	for _, name := range p4.Programs {
		all = append(all, pipeline(f, name).Info)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, x := range all {
		for _, tt := range x.Tables() {
			e := drawEntry(r, &tt)
			m, err := x.encode(&e, true)
			if err != nil {
				f.Fatal(err)
			}
			b, err := proto.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	for _, tt := range garbage {
		var m p4pb.Entity
		if err := prototext.Unmarshal([]byte(tt.text), &m); err != nil {
			f.Fatal(err)
		}
		b, err := proto.Marshal(&m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m p4pb.Entity
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		for _, x := range all {
			e, err := x.decode(&m)
			if err != nil {
				var answer *answerError
				if !errors.As(err, &answer) || len(err.Error()) > 1000 {
					t.Errorf("%T %v", err, err)
				}
				continue
			}
			second, err := x.encode(&e, true)
			if err != nil {
				t.Fatalf("%v cannot be written: %v", &e, err)
			}
			if got, err := x.decode(second); err != nil || !reflect.DeepEqual(got, e) {
				t.Fatalf("%v, %v, want %v", &got, err, &e)
			}
		}
	})
}
