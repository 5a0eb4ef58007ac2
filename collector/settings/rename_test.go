package settings

import (
	"strings"
	"testing"
)

// moved is a file of which almost every key was called otherwise before.
type moved struct {
	outer `yaml:""`
	Disk  struct {
		Dir   string `yaml:"dir" doc:"Where."`
		Bytes int    `yaml:"bytes" doc:"How much." range:"1..100"`
	} `yaml:"disk" doc:"The disk."`
	Senders []struct {
		Address string `yaml:"address" doc:"Who."`
	} `yaml:"who" doc:"Who is who."`
}

func (*moved) Renames() []Rename {
	return []Rename{
		{"threads", "workers", "0.4"},
		{"spool.path", "disk.dir", "0.4"},
		{"disk.size", "disk.bytes", "1.9"},
		{"people", "who", "0.5"},
		{"who[].ip", "who[].address", "0.5"},
	}
}

func read(text string) (*moved, *File, error) {
	m := &moved{outer: defaults()}
	m.Disk.Bytes = 7
	f, err := Read("old.yaml", []byte(text), m)
	return m, f, err
}

// Old names are read as the new ones, with a warning that names both and the last version.
func TestRenamed(t *testing.T) {
	m, f, err := read(`threads: 3
spool:
  path: /var/x
disk:
  size: 9
people:
  - {ip: a}
  - {address: b}
`)
	if err != nil {
		t.Fatal(err)
	}
	if m.Workers != 3 || m.Disk.Dir != "/var/x" || m.Disk.Bytes != 9 || len(m.Senders) != 2 || m.Senders[0].Address != "a" || m.Senders[1].Address != "b" {
		t.Errorf("read as %+v", m)
	}
	var got []string
	for _, w := range f.Warnings {
		got = append(got, w.String())
	}
	want := []string{
		"line 1: threads: is called workers since version 0.4; the old name is read until 0.6",
		"line 3: spool.path: is called disk.dir since version 0.4; the old name is read until 0.6",
		"line 5: disk.size: is called disk.bytes since version 1.9; the old name is read until 1.11",
		"line 6: people: is called who since version 0.5; the old name is read until 0.7",
		"line 7: who[0].ip: is called who[0].address since version 0.5; the old name is read until 0.7",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, f, err := read("workers: 3\nwho: [{address: a}]\n"); err != nil || len(f.Warnings) != 0 {
		t.Errorf("new names: %v, %v", err, f.Warnings)
	}
}

// Both names at once are a problem. So is a bad value under its old name, which is reported under the new one.
func TestRenamedBad(t *testing.T) {
	for text, want := range map[string]string{
		"threads: 3\nworkers: 4\n":                    "line 2: workers: given twice: threads is its old name, in line 1",
		"workers: 4\nthreads: 3\n":                    "line 2: threads: given twice: it is the old name of workers, which is in line 1",
		"disk: {size: 1}\nspool: {path: a, other: 1}": "line 2: spool.other: unknown key",
		"disk:\n  bytes: 1\n  size: 2\n":              "line 3: disk.size: given twice: it is the old name of disk.bytes, which is in line 2",
		"disk:\n  size: 101\n":                        "line 2: disk.bytes: 101 is outside 1..100",
		"threads: many\n":                             `line 1: workers: "many" is not a whole number`,
		"spool: 7\n":                                  `line 1: spool: want keys and values, got "7"`,
	} {
		_, _, err := read(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ": 1 problem\n") {
			t.Errorf("%q gives %v\nwant %s", text, err, want)
		}
	}
}

type ofRenames struct {
	outer `yaml:""`
	list  []Rename
}

func (o *ofRenames) Renames() []Rename { return o.list }

// A rename that cannot be, or that was kept for long enough, is found before a release.
func TestCheckRenames(t *testing.T) {
	for _, tt := range []struct {
		r             Rename
		version, want string
	}{
		{Rename{"threads", "workers", "0.4"}, "0.5.3", ""},
		{Rename{"threads", "workers", "0.4"}, "v0.4", ""},
		{Rename{"threads", "workers", "0.4"}, "0.6.0", "take the rename away"},
		{Rename{"threads", "workers", "0.4"}, "1.0", "take the rename away"},
		{Rename{"list[].who", "list[].prefix", "0.4"}, "0.5", ""},
		{Rename{"low", "high", "0.4"}, "0.5", "low: the old name is a key"},
		{Rename{"threads", "nothing", "0.4"}, "0.5", "nothing: the new name is no key"},
		{Rename{"threads", "list[].nothing", "0.4"}, "0.5", "list[].nothing: the new name is no key"},
		{Rename{"who[].name", "list[].prefix", "0.4"}, "0.5", "moves elsewhere"},
		{Rename{"threads", "workers", "soon"}, "0.5", "is no version"},
		{Rename{"threads", "workers", "0.4"}, "next", "is no version"},
	} {
		problems := strings.Join(CheckRenames(&ofRenames{list: []Rename{tt.r}}, tt.version), "; ")
		if tt.want == "" && problems != "" || !strings.Contains(problems, tt.want) {
			t.Errorf("%+v at %s: %q, want %q", tt.r, tt.version, problems, tt.want)
		}
	}
}
