package p4rt

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/p4"
)

func newFiles(t *testing.T, name string) *Files {
	t.Helper()
	f, err := OpenFiles(filepath.Join(t.TempDir(), "leaf-1.json"), pipeline(t, name).Info, "us")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A file has what was written, in a form that people read.
func TestFiles(t *testing.T) {
	f := newFiles(t, "intmd")
	if got, err := f.Read(within(t)); err != nil || len(got) != 0 {
		t.Fatalf("%v, %v", got, err)
	}
	device := p4.Entry{Table: "egress.device", Action: "set_device", Params: []p4.Value{p4.Uint(7), p4.Uint(0)}}
	if errs, err := f.Write(within(t), inserts(device, route(0, 1))); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	const want = `{
 "entries": [
  {
   "table": "ingress.forward.forwarding4",
   "match": [
    {
     "value": "0x0a000000",
     "prefix": 24
    }
   ],
   "action": "forward",
   "params": [
    "0x01",
    "0x020000000001",
    "0x020000000002"
   ],
   "owner": "us"
  },
  {
   "table": "egress.device",
   "default": true,
   "action": "set_device",
   "params": [
    "0x07",
    "0x00"
   ],
   "owner": "us"
  }
 ]
}
`
	if b, err := os.ReadFile(f.path); err != nil || string(b) != want {
		t.Errorf("%v\n%s", err, b)
	}
	errs, err := f.Write(within(t), append(inserts(route(0, 2), route(1, 1)), Update{Delete, route(9, 9)}, Update{Delete, device}))
	if err != nil || !errors.Is(errs[0], p4.ErrExists) || errs[1] != nil || !errors.Is(errs[2], ErrSkipped) || !errors.Is(errs[3], ErrSkipped) {
		t.Errorf("%v, %v", errs, err)
	}
	again, err := OpenFiles(f.path, f.info, "us")
	if err != nil {
		t.Fatal(err)
	}
	if errs, err := again.Write(within(t), []Update{{Modify, route(0, 2)}, {Delete, route(1, 1)}, {Delete, device}}); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	one := route(0, 2)
	one.Owner = "us"
	for range 2 {
		if got, err := f.Read(within(t)); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], one) {
			t.Errorf("%v, %v", got, err)
		}
		if errs, err := f.Write(within(t), []Update{{Delete, device}}); errs != nil || err != nil { // it is the program's already
			t.Error(errs, err)
		}
	}
	if got, err := f.Read(within(t), "egress.device"); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for what, err := range map[string]error{"read": second(f.Read(ctx)), "write": second(f.Write(ctx, inserts(route(4, 4)))),
		"table": second(f.Read(within(t), "nowhere")), "owner": second(f.Write(within(t), []Update{{Insert, p4.Entry{Owner: "\xff"}}}))} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	files, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

// A file that cannot be written leaves the old one, and one that was changed to nonsense is not overwritten.
func TestFilesFail(t *testing.T) {
	f := newFiles(t, "intmd")
	if errs, err := f.Write(within(t), inserts(route(0, 1))); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	before, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	gone := &Files{path: filepath.Join(f.path, "below a file"), info: f.info}
	if _, err := gone.Write(within(t), inserts(route(1, 1))); err == nil {
		t.Error("written into a file")
	}
	if after, err := os.ReadFile(f.path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("%s, %v", after, err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{"forwarding4", "forwarding5", "the program has none"},
		{`"0x01"`, `"0xffff"`, "no number of 9 bits"},
		{`"0x01"`, `"1"`, `"1" is no number such as`},
		{`"0x01"`, `"0x"`, "is no number such as"},
		{`"0x01"`, `"0xzz"`, "is no number such as"},
		{`"value": "0x0a000000"`, `"value": ""`, "is no number such as"},
		{`"action"`, `"wings": 4, "action"`, "unknown field"},
		{`"match"`, `"default": true, "match"`, "either a key or default"},
		{`"prefix": 24`, `"prefix": 33`, "in another way"},
		{"}\n", "}\n{}", "behind the document"},
		{"{", "", "cannot unmarshal"},
	} {
		changed := strings.Replace(string(before), tt.old, tt.new, 1)
		if tt.old == "}\n" {
			changed = string(before) + "{}"
		}
		if err := os.WriteFile(f.path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFiles(f.path, f.info, ""); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), f.path) {
			t.Errorf("%s: %v, want %q", tt.new, err, tt.want)
		}
		if _, err := f.Write(within(t), inserts(route(1, 1))); err == nil {
			t.Errorf("%s: written over", tt.new)
		}
		if b, err := os.ReadFile(f.path); err != nil || string(b) != changed {
			t.Errorf("%s: %v", tt.new, err)
		}
	}
	twice := strings.Replace(string(before), "[\n  {", `[{"table": "ingress.forward.forwarding4", "match": [{"value": "0x0a000000", "prefix": 24}], "action": "no_route"}, {`, 1)
	if err := os.WriteFile(f.path, []byte(twice), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFiles(f.path, f.info, ""); err == nil || !strings.Contains(err.Error(), "is there twice") {
		t.Errorf("%v", err)
	}
	if _, err := OpenFiles(f.path, f.info, strings.Repeat("x", 100)); err == nil {
		t.Error("an owner of 100 bytes")
	}
}

// Whatever a file holds: it is refused, or entries that are written as they were read.
func FuzzReadJSON(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, name := range []string{"srint", "intmd"} {
		var list []p4.Entry
		for _, tt := range pipeline(f, name).Info.Tables() {
			list = append(list, drawEntry(r, &tt))
		}
		for i := range list {
			if len(list[i].Match) == 0 {
				list[i].Match = nil
			}
		}
		var b bytes.Buffer
		if err := WriteJSON(&b, list); err != nil {
			f.Fatal(err)
		}
		got, err := ReadJSON(b.Bytes())
		if err != nil || !reflect.DeepEqual(got, list) {
			f.Fatalf("%v\n got %+v\nwant %+v", err, got, list)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"entries":[{"table":"t","default":true,"action":"a","params":["0x00"]}]}`))
	f.Add([]byte(`{"entries":[{"table":"t","match":[{"value":"0x0000","to":"0x01","prefix":-1}],"priority":-1,"action":"a"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ReadJSON(b)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := WriteJSON(&again, list); err != nil {
			t.Fatal(err)
		}
		got, err := ReadJSON(again.Bytes())
		if err != nil || !reflect.DeepEqual(got, list) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, got, list)
		}
	})
}
