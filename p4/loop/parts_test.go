package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/control"
)

// A journal gives back what was written, in any number of lives. A truncated line is no record. Rotation forgets
// neither the epoch nor the detailed probes. A line that makes no sense is an error that says what to do.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	open := func() *Journal {
		j, err := OpenJournal(path, 2000, 2)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	j := open()
	for k := range 200 {
		r := control.Record{Time: int64(k), What: control.Answered, Device: "agent a"}
		switch k {
		case 3:
			r = control.Record{What: control.Planned, Epoch: 9, On: []string{"p1", "p2"}}
		case 5:
			r = control.Record{What: control.Planned, Epoch: 8, On: []string{"p3"}, Off: []string{"p1"}}
		}
		if err := j.Append([]control.Record{r, {What: control.Asked}}); err != nil {
			t.Fatal(err)
		}
	}
	want := control.Seed{Epoch: 9, Detailed: []string{"p2", "p3"}}
	if got := j.Seed(); !reflect.DeepEqual(got, want) {
		t.Fatalf("seed %+v", got)
	}
	if l := j.Last(3); len(l) != 3 || l[1].Time != 199 || l[2].What != control.Asked {
		t.Errorf("last ones: %+v", l)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for n, name := range []string{path, path + ".1", path + ".2", path + ".3"} {
		info, err := os.Stat(name)
		if (err == nil) != (n < 3) || err == nil && (info.Size() > 2500 || info.Mode().Perm() != 0o600) {
			t.Errorf("%s: %v, %v", name, err, info)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"what":"planned","epo`)
	f.Close()
	j = open()
	if got := j.Seed(); !reflect.DeepEqual(got, want) {
		t.Errorf("seed of a second life %+v", got)
	}
	if err := j.Append([]control.Record{{What: control.Planned, Epoch: 10}}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	if j = open(); j.Seed().Epoch != 10 {
		t.Errorf("seed of a third life %+v", j.Seed())
	}
	j.Close()
	if err := os.WriteFile(path, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path, 2000, 2); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("nonsense: %v", err)
	}
}

// Nothing is pushed that the journal could not take.
func TestJournalFirst(t *testing.T) {
	x := newEmulated(t, 4, nil)
	j, err := OpenJournal(filepath.Join(t.TempDir(), "journal"), 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	x.start(t, control.Config{Cycle: int64(cycle), Timeout: int64(300 * time.Millisecond)}, j)
	j.Close()
	x.run(3 * cycle)
	if _, epochs := x.detailed(); epochs[0] != len(x.names) || x.loop.State().Journal == "" || x.loop.State().Dropped == 0 {
		t.Errorf("epochs %v, %+v", epochs, x.loop.State())
	}
}

// Entries of tables become those of the controller and back.
func TestEntries(t *testing.T) {
	for _, e := range []p4.Entry{
		{Table: "a", Match: []p4.Match{}, Action: "b"},
		{Table: "a", Action: "set", Params: []p4.Value{p4.Uint(0), p4.Bytes([]byte{0xff, 0x80})}},
		{Table: "a|b", Match: []p4.Match{p4.Number(1), p4.Number(2)}, Action: `c|"d"`, Params: []p4.Value{p4.Uint(3)}},
		{Table: "", Match: []p4.Match{{}}, Action: "", Params: []p4.Value{""}},
		{Table: `"`, Action: `"`},
		{Table: "default", Priority: -1, Match: []p4.Match{{Prefix: -1}}, Action: "default"},
		{Table: "acl", Priority: 7, Match: []p4.Match{p4.Masked(0xff00, 0xff00), p4.Between(1, 9), {Value: p4.Uint(10), Prefix: 8}}, Action: "x"},
	} {
		for _, epoch := range []uint32{0, 1, 1 << 31} {
			c := EntryOf(&e, epoch)
			got, err := tableEntry(&c, Owner("own").name(epoch))
			want := e
			want.Owner = Owner("own").name(epoch)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v: %v, want %v: %v", epoch, &got, &want, err)
			}
			if back, ok := Owner("own").epoch(got.Owner); !ok || back != epoch {
				t.Errorf("owner %q: %d, %v", got.Owner, back, ok)
			}
		}
	}
	for _, x := range []control.Entry{
		{}, {Key: "t"}, {Key: "t|"}, {Key: "t|x"}, {Key: "t|0|0"}, {Key: "t|0|zz"}, {Key: "t|0|01-z"}, {Key: "t|0|01/x"}, {Key: `"t`}, {Key: `"t"x|0`},
		{Key: "t|0", Value: "a|0"}, {Key: "t|0", Value: `"a`}, {Key: "t|4294967296"}, {Key: `{"t":"ports"}`, Value: `{"a":"set"}`},
	} {
		if e, err := tableEntry(&x, "own"); err == nil {
			t.Errorf("%+v is %v", x, &e)
		}
	}
	for _, s := range []string{"", "other", "ownx", "own@", "own@0", "own@01", "own@x", "own@4294967296"} {
		if _, ok := Owner("own").epoch(s); ok {
			t.Errorf("%q is ours", s)
		}
	}
}

// Entries of switches are written to a file and read from it. Entries of others stay, and are in the way; ours are read
// back by epoch.
func TestInstallers(t *testing.T) {
	info, err := p4rt.NewInfo(emu.Tables())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "switch.json")
	other, err := p4rt.OpenFiles(path, info, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	route := func(dst, port uint64) p4.Entry {
		return p4.Entry{Table: emu.RouteTable, Match: []p4.Match{{Value: p4.Uint(dst), Prefix: 32}}, Action: "forward", Params: []p4.Value{p4.Uint(port)}}
	}
	if _, err := other.Write(context.Background(), []p4rt.Update{{Op: p4rt.Insert, Entry: route(1, 1)}}); err != nil {
		t.Fatal(err)
	}
	events := make(chan control.Event, 10)
	file, err := p4rt.OpenFiles(path, info, string(DefaultOwner))
	if err != nil {
		t.Fatal(err)
	}
	s := NewInstallers(DefaultOwner, 10*time.Second, func(e control.Event) { events <- e }, map[string]p4rt.Installer{"s": file})
	defer s.Close()
	entry := func(dst, port uint64, epoch uint32) control.Entry {
		e := route(dst, port)
		return EntryOf(&e, epoch)
	}
	d := control.Device{Kind: control.Switch, Name: "s"}
	s.Install("s", 1, []control.Entry{entry(2, 1, 0), entry(3, 1, 7), entry(4, 1, 7)})
	s.Install("s", 2, []control.Entry{entry(3, 2, 7), entry(4, 1, 7)})
	s.Remove("s", 3, []control.Entry{entry(4, 1, 7), entry(1, 1, 7), entry(9, 1, 7)})
	s.ReadEntries("s", 4)
	s.Install("s", 5, []control.Entry{entry(1, 2, 7)})
	s.Install("nobody", 6, nil)
	got := map[control.Request]control.Event{}
	for range 6 {
		switch e := (<-events).(type) {
		case control.Acked:
			got[e.Request] = e
		case control.Refused:
			got[e.Request] = e
		case control.ReadBack:
			got[e.Request] = e
		}
	}
	for r := control.Request(1); r <= 3; r++ {
		if got[r] != (control.Acked{Request: r, Device: d}) {
			t.Errorf("%+v", got[r])
		}
	}
	want := map[control.Entry]bool{entry(2, 1, 0): true, entry(3, 2, 7): true}
	if back := got[4].(control.ReadBack); len(back.Entries) != 2 || !want[back.Entries[0]] || !want[back.Entries[1]] {
		t.Errorf("%+v", back)
	}
	if e, ok := got[5].(control.Refused); !ok || !strings.Contains(e.Why, "another controller has an entry") {
		t.Errorf("%+v", got[5])
	}
	if _, ok := got[6].(control.Refused); !ok {
		t.Errorf("%+v", got[6])
	}
	if list, err := other.Read(context.Background(), emu.RouteTable); err != nil || len(list) != 3 {
		t.Errorf("%v, %v", list, err)
	}
}

// The admin answers this machine alone, takes commands with their header alone, and returns why one was refused.
func TestAdmin(t *testing.T) {
	x := newEmulated(t, 5, nil)
	now := time.Now()
	x.loop.o.Now = func() int64 { return int64(time.Since(now)) }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- x.loop.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	h := Admin(x.loop, nil, nil)
	do := func(method, url, host, sender string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, url, nil)
		r.Host = host
		if sender != "" {
			r.Header.Set("Hopscope-Control", sender)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, c := range []struct {
		method, url, host, sender string
		want                      int
	}{
		{"GET", "/status", "127.0.0.1:9465", "", 200}, {"GET", "/status", "localhost", "", 200}, {"GET", "/status", "[::1]:9465", "", 200},
		{"GET", "/status", "evil.example", "", http.StatusMisdirectedRequest}, {"POST", "/pause", "evil.example", "x", http.StatusMisdirectedRequest},
		{"POST", "/pause", "localhost", "", http.StatusForbidden}, {"GET", "/pause", "localhost", "x", http.StatusMethodNotAllowed},
		{"POST", "/pause", "localhost", "x", 200}, {"POST", "/approve?epoch=x", "localhost", "x", 400}, {"GET", "/log?n=0", "localhost", "", 400}, {"GET", "/log", "localhost", "", 200},
		{"GET", "/readyz", "localhost", "", 503}, {"GET", "/healthz", "localhost", "", 200}, {"POST", "/nothing", "localhost", "x", 404},
	} {
		if w := do(c.method, c.url, c.host, c.sender); w.Code != c.want {
			t.Errorf("%s %s of %s by %q: %d %s", c.method, c.url, c.host, c.sender, w.Code, w.Body)
		}
	}
	var said Reply
	w := do("POST", "/approve", "localhost", "me")
	if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || said.Obeyed || said.Error != "no plan waits" || !said.Status.Paused {
		t.Errorf("%v: %s", err, w.Body)
	}
	w = do("POST", "/resume", "localhost", "me")
	said = Reply{}
	if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || !said.Obeyed || said.Status.Paused {
		t.Errorf("%v: %s", err, w.Body)
	}
	for _, a := range []string{"0.0.0.0:1", "192.0.2.1:1", ":1", "unix:", "nothing", "example.com:1"} {
		if CheckAdmin(a) == nil {
			t.Errorf("%s may be listened at", a)
		}
	}
	path := "unix:" + filepath.Join(t.TempDir(), "s")
	l, err := ListenAdmin(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ListenAdmin(path); err == nil {
		t.Error("a socket is taken from who serves it")
	}
	file := strings.TrimPrefix(path, "unix:")
	if info, err := os.Lstat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	if list, err := os.ReadDir(filepath.Dir(file)); err != nil || len(list) != 1 {
		t.Errorf("beside the socket there is something: %v, %v", list, err)
	}
	l.Close()
	if _, err := os.Lstat(file); !os.IsNotExist(err) {
		t.Errorf("a socket that is closed has left its name: %v", err)
	}
}

// What others say is not cut within a character, wherever that falls.
func TestCuts(t *testing.T) {
	for pad := range 4 {
		text := strings.Repeat("x", pad) + strings.Repeat("漢", 400)
		for name, got := range map[string]string{"cut": strings.TrimSuffix(cut(text), "..."), "printable": printable(text)} {
			if !utf8.ValidString(got) || !strings.HasPrefix(text, got) || len(got) < mostAuthor-3 {
				t.Errorf("%s with %d bytes before: %q", name, pad, got)
			}
		}
	}
}
