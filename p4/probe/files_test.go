package probe

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// planFiles writes plans as "hopscope plan" does.
func planFiles(t *testing.T) (dir string) {
	dir = t.TempDir()
	for name, text := range map[string]string{
		"cover.json": `{"kind":"cover","version":1,"algorithm":"x","topology":"t","probes":[
			{"id":"p1","nodes":["a","b"],"links":["a--b"],"ports":[3],"agent":"a","collector":"b","agent_port":9,"collector_port":2,"route":"070000060003000207010000"},
			{"id":"p2","nodes":["b","c"],"links":["b--c"],"ports":[1],"agent":"b","collector":"c","agent_host":"b-host","collector_host":"c-host","route":"07000004000507010000"}],"stats":{}}`,
		"schedule.json": `{"kind":"schedule","version":1,"algorithm":"x","slot_ms":10,"hyperperiod_ms":1000,"probes":[
			{"id":"p1","interval_ms":1000,"phase_ms":12.5,"bytes_per_second":1,"class":"default"}],"not_sent":["p2"],"stats":{}}`,
		"attention.json": `{"kind":"attention","version":1,"algorithm":"x","probes":[{"id":"p2","cost":1,"suspicious":["b--c"]}],
			"instructions":{"basic":"0xA000","detailed":"0xBC00","basic_bytes":8,"detailed_bytes":28},"stats":{}}`,
		"path.json": `{"kind":"cover","version":1,"algorithm":"x","topology":"t","probes":[{"id":"p1","nodes":["a"],"route":"` + strings.Repeat("00", 64) + `"}],"stats":{}}`,
		"long.json": `{"kind":"cover","version":1,"algorithm":"x","topology":"t","probes":[{"id":"p1","nodes":["a"],"route":"07000006000300020701000000000000"}],"stats":{}}`,
		"none.json": `{"kind":"cover","version":1,"algorithm":"x","topology":"t","probes":[{"id":"p1","nodes":["a"]}],"stats":{}}`,
		"void.json": `{"kind":"cover","version":1,"algorithm":"x","topology":"t","probes":[],"stats":{}}`,
		"bad.json":  `{"kind":"cover","probes":[{"id":"p1","nodes":["a"],"rout":"00"}]}`,
		"alien.json": `{"kind":"schedule","version":1,"algorithm":"x","slot_ms":10,"hyperperiod_ms":1000,"probes":[
			{"id":"p9","interval_ms":1000,"phase_ms":0,"bytes_per_second":1,"class":"default"}],"stats":{}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFiles(t *testing.T) {
	dir := planFiles(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	f := Files{Probes: []string{at("cover.json")}, Interval: time.Second, Dialect: "int-2.1"}
	p, err := f.Read(9)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Probes) != 2 || p.Epoch != 9 || p.Basic != 0xf000 || p.Detailed != 0xff80 {
		t.Fatalf("%+v", p)
	}
	if x := p.Probes[0]; !slices.Equal(x.Route, []int{3, 2}) || x.Interval != time.Second || x.Phase != 0 || x.Agent != "a" || x.Collector != "b" || x.Detailed {
		t.Errorf("%+v", x)
	}
	if x := p.Probes[1]; !slices.Equal(x.Route, []int{5}) || x.Phase != time.Second/2 || x.Agent != "b-host" || x.Collector != "c-host" {
		t.Errorf("%+v", x)
	}
	f.Schedule, f.Attention = at("schedule.json"), at("attention.json")
	if p, err = f.Read(9); err != nil || len(p.Probes) != 1 || p.Probes[0].Phase != 12500*time.Microsecond || p.Basic != 0xa000 || p.Detailed != 0xbc00 || p.Probes[0].Detailed {
		t.Fatalf("%+v, %v", p, err)
	}
	f.Schedule, f.Basic = "", "0xf800"
	if p, err = f.Read(9); err != nil || len(p.Probes) != 2 || p.Probes[0].Detailed || !p.Probes[1].Detailed || p.Basic != 0xf800 || p.Detailed != 0xbc00 {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, c := range []struct {
		want  string
		files Files
	}{
		{"has no route; plan with --sr=int-probe", Files{Probes: []string{at("none.json")}}},
		{"a route of INT-path has no place for an INT header", Files{Probes: []string{at("path.json")}}},
		{"probe p1: its route of 16 bytes is none of INT-Probe", Files{Probes: []string{at("long.json")}}},
		{"no probes", Files{Probes: []string{at("void.json")}}},
		{`unknown key "rout"`, Files{Probes: []string{at("bad.json")}}},
		{`this is a plan of kind "schedule"`, Files{Probes: []string{at("schedule.json")}}},
		{"no such file", Files{Probes: []string{at("nowhere.json")}}},
		{"probe p9 is sent, and no plan of probes has it", Files{Probes: []string{at("cover.json")}, Schedule: at("alien.json")}},
		{"probe p2 looks closer, and no plan", Files{Probes: []string{at("cover.json"), at("cover.json")}, Attention: at("attention.json")}},
	} {
		c.files.Dialect, c.files.Interval = "int-2.1", time.Second
		if _, err := c.files.Read(1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	refusals(t, dir)
	two := Files{Probes: []string{at("cover.json"), at("cover.json")}, Interval: time.Second, Dialect: "int-2.1"}
	if p, err := two.Read(1); err != nil || len(p.Probes) != 4 || p.Probes[2].ID != "2/p1" {
		t.Errorf("%+v, %v", p, err)
	}
}

// refusals holds that numbers of plan files which cannot be are named with file, probe, field and remedy.
func refusals(t *testing.T, dir string) {
	t.Helper()
	const good = `"ports":[3],"agent":"a","collector":"b","agent_port":9,"collector_port":2,"route":"070000060003000207010000"`
	long := "07000024" + strings.Repeat("0001", 17) + "07010000"
	for _, c := range []struct{ from, to, want string }{
		{`[3]`, `[256]`, "port 256 in its field ports[0] is outside 1..255; plan again"},
		{`[3]`, `[0]`, "port 0 in its field ports[0] is outside 1..255; plan again"},
		{`[3]`, `[-1]`, "port -1 in its field ports[0] is outside 1..255; plan again"},
		{`[3]`, `[]`, "its field ports has 0 entries, and it leaves 1 nodes"},
		{`[3]`, `[` + strings.Repeat("1,", 16) + `1]`, "its field ports has 17 entries, at most 16"},
		{`[3]`, `[4]`, "its field route leads by ports [3 2], and the fields ports [4] and collector_port 2 contradict that"},
		{`"collector_port":2`, `"collector_port":7`, "collector_port 7 contradict that"},
		{`"collector_port":2`, `"collector_port":256`, "port 256 in its field collector_port is outside 0..255"},
		{`"agent_port":9`, `"agent_port":-9`, "port -9 in its field agent_port"},
		{`0003000207010000`, `0000000207010000`, "port 0 in its field route[0]"},
		{`070000060003000207010000`, long, "its field route has 17 entries, at most 16"},
	} {
		path := filepath.Join(dir, "numbers.json")
		text := `{"kind":"cover","version":1,"algorithm":"x","topology":"t","probes":[{"id":"p1","nodes":["a","b"],` + strings.Replace(good, c.from, c.to, 1) + `}],"stats":{}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := Files{Probes: []string{path}, Dialect: "int-2.1", Interval: time.Second}
		if _, err := f.Read(1); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path+": probe p1: ") {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
	for _, c := range []struct{ timed, want string }{
		{`{"id":"p1","interval_ms":0.001,"phase_ms":0}`, "interval of 1µs, outside 10µs..24h0m0s (interval_ms 0.001"},
		{`{"id":"p1","interval_ms":-1,"phase_ms":0}`, "has an interval of"},
		{`{"id":"p1","interval_ms":1e300,"phase_ms":0}`, "has an interval of"},
		{`{"id":"p1","interval_ms":10,"phase_ms":10}`, "has a phase of 10ms"},
		{`{"id":"p1","interval_ms":10,"phase_ms":-1}`, "has a phase of"},
		{`{"id":"p1","interval_ms":10,"phase_ms":1},{"id":"p1","interval_ms":20,"phase_ms":1}`, "probe p1 is there twice"},
	} {
		path := filepath.Join(dir, "times.json")
		text := `{"kind":"schedule","version":1,"algorithm":"x","slot_ms":10,"hyperperiod_ms":1000,"probes":[` + c.timed + `],"stats":{}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := Files{Probes: []string{filepath.Join(dir, "cover.json")}, Schedule: path, Dialect: "int-2.1", Interval: time.Second}
		if _, err := f.Read(1); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "plan the schedule anew") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", c.timed, err, c.want)
		}
	}
}
