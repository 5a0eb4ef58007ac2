package p4rt

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/program"
)

func pipeline(t testing.TB, name string) *Pipeline {
	t.Helper()
	p, err := BMv2(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What the compiler wrote down of a program and its twin in Go have the same tables. Names of fields and parameters are each
// one's own.
func TestTwins(t *testing.T) {
	strip := func(list []p4.Table) map[string]p4.Table {
		byName := map[string]p4.Table{}
		for _, x := range list {
			if x.Name == cloneTable {
				continue
			}
			for i := range x.Key {
				x.Key[i].Name = ""
			}
			for i := range x.Actions {
				for k := range x.Actions[i].Params {
					x.Actions[i].Params[k].Name = ""
				}
				if len(x.Actions[i].Params) == 0 {
					x.Actions[i].Params = nil
				}
			}
			byName[x.Name] = x
		}
		return byName
	}
	for _, name := range p4.Programs {
		s, err := program.New(name)
		if err != nil {
			t.Fatal(err)
		}
		compiled, twin := strip(pipeline(t, name).Info.Tables()), strip(s.Tables())
		if len(compiled) < 3 {
			t.Errorf("%s: %d tables", name, len(compiled))
		}
		for table, want := range compiled {
			if got := twin[table]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s, table %s:\n in Go %+v\n want  %+v", name, table, got, want)
			}
			delete(twin, table)
		}
		for table := range twin {
			t.Errorf("%s: only the twin has the table %s", name, table)
		}
	}
}

func TestPipelines(t *testing.T) {
	cookies := map[uint64]string{}
	for _, name := range p4.Programs {
		p := pipeline(t, name)
		if old := cookies[p.Cookie]; old != "" || p.Cookie == 0 {
			t.Errorf("%s has the cookie %#x, as %s", name, p.Cookie, old)
		}
		cookies[p.Cookie] = name
		if second := pipeline(t, name); second.Cookie != p.Cookie {
			t.Errorf("%s: cookies %#x and %#x", name, p.Cookie, second.Cookie)
		}
		read, err := readPipeline("../bmv2/"+name+".p4info.txtpb", "../bmv2/"+name+".json")
		if err != nil || read.Cookie != p.Cookie {
			t.Errorf("%s from files: %v", name, err)
		}
		changed, err := NewPipeline(p.Info, append([]byte(" "), p.device...))
		if err != nil || changed.Cookie == p.Cookie {
			t.Errorf("%s: another program has the same cookie: %v", name, err)
		}
	}
	if _, err := BMv2("fly"); err == nil || !strings.Contains(err.Error(), "srint intmd into pint rft hopscope") {
		t.Error(err)
	}
	if _, err := readPipeline("nowhere", ""); err == nil {
		t.Error("read nothing")
	}
	if _, err := readPipeline("../bmv2/intmd.json", ""); err == nil || !strings.Contains(err.Error(), "intmd.json") {
		t.Error(err)
	}
}

// An emulated switch has the tables that it was made with.
func TestNewInfo(t *testing.T) {
	x, err := NewInfo(emu.Tables())
	if err != nil {
		t.Fatal(err)
	}
	got := x.Tables()
	for i, want := range emu.Tables() {
		for k, a := range want.Actions {
			if len(a.Params) == 0 {
				want.Actions[k].Params = nil
			}
		}
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("table %d:\n got %+v\nwant %+v", i, got[i], want)
		}
	}
	for _, names := range [][]string{{"nowhere"}, {emu.RouteTable, emu.RouteTable}} {
		if _, err := x.ordered(names...); err == nil {
			t.Errorf("an order of %v", names)
		}
	}
}

func TestParseInfoRefuses(t *testing.T) {
	const action = `actions { preamble { id: 5 name: "a" } params { id: 1 name: "x" bitwidth: 9 } } `
	const good = action + `tables { preamble { id: 7 name: "t" } match_fields { id: 1 name: "f" bitwidth: 8 match_type: EXACT } action_refs { id: 5 } size: 4 }`
	if x, err := parseInfo([]byte(good)); err != nil || len(x.Tables()) != 1 {
		t.Fatal(err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{`size: 4`, `size: -1`, "size -1"},
		{`size: 4`, `size: 99999999999`, "size 99999999999"},
		{`size: 4`, `wings: 4`, "wings"},
		{`size: 4`, `implementation_id: 4`, "action profiles"},
		{`bitwidth: 8`, `bitwidth: 0`, "field f: id 1 of 0 bits"},
		{`bitwidth: 8`, `bitwidth: 2000000000`, "field f"},
		{`EXACT`, `OPTIONAL`, "matched as OPTIONAL"},
		{`bitwidth: 9`, `bitwidth: -9`, "parameter x: id 1 of -9 bits"},
		{`action_refs { id: 5 }`, `action_refs { id: 6 }`, "action 6 is not there"},
		{`action_refs { id: 5 }`, `action_refs { id: 5 } action_refs { id: 5 }`, "two actions are called a"},
		{`id: 7`, ``, "no name or no id"},
		{`id: 5 name`, `id: 0 name`, "its id 0"},
		{`tables`, action + `tables`, "that of another one"},
		{`"t"`, `"clone_sessions"`, "that of another one"},
		{`id: 1 name: "f"`, `id: 0 name: "f"`, "field f: id 0"},
	} {
		if _, err := parseInfo([]byte(strings.Replace(good, tt.old, tt.new, 1))); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.new, err, tt.want)
		}
	}
	if _, err := parseInfo(make([]byte, maxInfo+1)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}

// Whatever is in a p4info, tables that come of it can be written to.
func FuzzParseInfo(f *testing.F) {
	text, _, err := p4.Compiled("srint")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`tables { preamble { id: 7 name: "t" } match_fields { id: 1 name: "f" bitwidth: 8 match_type: EXACT } size: 4 }`))
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := parseInfo(text)
		if err != nil {
			return
		}
		p, err := NewPipeline(x, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, made := range p.Info.Tables() {
			if made.Size < 0 || made.Name == "" {
				t.Errorf("%+v", made)
			}
			if len(made.Actions) == 0 || made.Name == cloneTable {
				continue
			}
			e := drawEntry(rand.New(rand.NewPCG(1, 1)), &made)
			if len(made.Key) == 0 {
				e.Match = nil
			}
			m, err := x.encode(&e, true)
			if err != nil {
				t.Fatalf("%+v: %v", &made, err)
			}
			if got, err := x.decode(m); err != nil || got.Key() != e.Key() || !got.SameAction(&e) {
				t.Errorf("%v, %v, want %v", &got, err, &e)
			}
		}
	})
}
