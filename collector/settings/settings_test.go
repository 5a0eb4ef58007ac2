package settings

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

type inner struct {
	Prefix  string `yaml:"prefix" doc:"Source prefix."`
	Profile string `yaml:"profile" doc:"Profile." oneof:"auto|geant"`
}

func (i *inner) Validate() error {
	if i.Prefix == "" {
		return errors.New("prefix: is missing")
	}
	return nil
}

type outer struct {
	Window  time.Duration `yaml:"window" doc:"Length of a window." range:"100ms..1h"`
	Workers int           `yaml:"workers" doc:"Workers." range:"1..64"`
	Ratio   float64       `yaml:"ratio" doc:"A share." range:"0..1"`
	Listen  []string      `yaml:"listen" doc:"Addresses."`
	Ports   []uint16      `yaml:"ports" doc:"Ports." range:"1..65535"`
	On      bool          `yaml:"on" doc:"Whether."`
	Name    string        `yaml:"name" doc:"A name."`
	List    []inner       `yaml:"list" doc:"Who is who."`
	Store   *inner        `yaml:"store" doc:"Where; empty for nowhere."`
	Low     int           `yaml:"low" doc:"Below high."`
	High    int           `yaml:"high" doc:"Above low."`
}

func (o *outer) Validate() error {
	if o.Low > o.High {
		return errors.Join(fmt.Errorf("low: %d is above high", o.Low))
	}
	return nil
}

func defaults() outer {
	return outer{Window: 10 * time.Second, Workers: 2, Ratio: .5, Listen: []string{"127.0.0.1:32766"}, Ports: []uint16{32766}, High: 5}
}

func TestLoadGood(t *testing.T) {
	o := defaults()
	err := Load("good.yaml", []byte(`
window: 1m30s
workers: 0x10
listen: [ "[::1]:1", 127.0.0.1:2 ]
ports: [1_000]
on: true
name: "a: b"
list:
  - {prefix: 10.0.0.0/8, profile: geant}
  - prefix: ::/0
    profile: auto
store: {prefix: x, profile: auto}
`), &o)
	if err != nil {
		t.Fatal(err)
	}
	want := outer{Window: 90 * time.Second, Workers: 16, Ratio: .5, Listen: []string{"[::1]:1", "127.0.0.1:2"}, Ports: []uint16{1000}, On: true,
		Name: "a: b", List: []inner{{"10.0.0.0/8", "geant"}, {"::/0", "auto"}}, Store: &inner{"x", "auto"}, High: 5}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got %+v, want %+v", o, want)
	}
}

// TestLoadBad reads every testdata/*.bad.yaml: the problems that must be found stand in its comments, "# line 2: window: ...".
func TestLoadBad(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(data)) {
				if rest, ok := strings.CutPrefix(line, "# want "); ok {
					want = append(want, strings.TrimSpace(rest))
				}
			}
			o := defaults()
			var p *Problems
			if err := Load(file, data, &o); !errors.As(err, &p) {
				t.Fatalf("Load = %v, want problems", err)
			}
			var got []string
			for _, q := range p.List {
				got = append(got, q.String())
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
			}
		})
	}
}

// TestPrintLoads reads back the output of Print as the same settings, whatever they are.
func TestPrintLoads(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	word := func() string {
		const letters = "ab :#-'\"{}[]&*!|>%@`,\\0~"
		b := make([]byte, 1+r.IntN(8))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	for range 500 {
		o := defaults()
		o.Window = time.Duration(1+r.IntN(3600)) * time.Second
		o.Workers, o.Ratio, o.On, o.Name = 1+r.IntN(64), r.Float64(), r.IntN(2) == 0, word()
		for range r.IntN(3) {
			o.List = append(o.List, inner{word(), "auto"})
			o.Listen = append(o.Listen, word())
		}
		if r.IntN(2) == 0 {
			o.Store = &inner{word(), "geant"}
		}
		var b bytes.Buffer
		if err := Print(&b, &o); err != nil {
			t.Fatal(err)
		}
		var back outer
		if err := Load("printed", b.Bytes(), &back); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, b.String())
		}
		if !reflect.DeepEqual(back, o) {
			t.Fatalf("seed %d: printed\n%s\ngot  %+v\nwant %+v", seed, b.String(), back, o)
		}
	}
}

func TestReference(t *testing.T) {
	o := defaults()
	var b bytes.Buffer
	if err := Reference(&b, &o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"- `window` (`10s`; 100ms..1h): Length of a window.\n", "## `list[]`", "- `profile` (auto, geant): Profile.\n",
		"- `ports` (`32766`; list of 1..65535): Ports.\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestReferenceShared holds that a part that two sections hold has one list, and each section its own defaults and meanings.
func TestReferenceShared(t *testing.T) {
	type security struct {
		Key string `yaml:"key" doc:"Its key."`
	}
	type store struct {
		Security security `yaml:",inline" shared:"Security"`
		Room     inner    `yaml:"room" doc:"Its room." shared:"Room"`
	}
	o := struct {
		A store `yaml:"a"`
		B store `yaml:"b"`
	}{A: store{Room: inner{Prefix: "x", Profile: "auto"}}, B: store{Room: inner{Prefix: "z", Profile: "auto"}}}
	var b bytes.Buffer
	if err := Reference(&b, &o); err != nil {
		t.Fatal(err)
	}
	const want = "## `a`\n\n" + "- `key`: [Security](#security).\n- `room`: [Room](#room), `prefix` is `x`.\n\n" +
		"## `b`\n\n" + "- `key`: [Security](#security).\n- `room`: [Room](#room), `prefix` is `z`.\n\n" +
		"## Security\n\nKeys of `a`, `b`.\n\n" + "- `key`: Its key.\n\n" +
		"## Room\n\nIts room. Keys of `a.room`, `b.room`.\n\n" + "- `prefix` (by section): Source prefix.\n- `profile` (`auto`; auto, geant): Profile.\n\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
	var keys []string
	for name := range Keys(&o) {
		keys = append(keys, name)
	}
	if want := []string{"a.key", "a.room.prefix", "a.room.profile", "b.key", "b.room.prefix", "b.room.profile"}; !reflect.DeepEqual(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
}

// TestReferenceSame holds that a section links to an earlier one, or to another page, for the keys that are the same there.
func TestReferenceSame(t *testing.T) {
	type section struct {
		One   string `yaml:"one" doc:"First."`
		Two   string `yaml:"two" doc:"Second."`
		Three int    `yaml:"three" range:"0..9" doc:"Third."`
	}
	type wider struct {
		Section section `yaml:",inline"`
		Own     string  `yaml:"own" doc:"Its own."`
	}
	type page struct {
		A section `yaml:"a"`
		B wider   `yaml:"b"`
	}
	o := page{A: section{Three: 3}, B: wider{Section: section{Three: 3}}}
	const first = "## `a`\n\n- `one`: First.\n- `two`: Second.\n- `three` (`3`; 0..9): Third.\n\n"
	const want = first + "## `b`\n\n- `one`, `two`, `three`: as in [`a`](#a).\n- `own`: Its own.\n\n"
	var b bytes.Buffer
	if err := Reference(&b, &o); err != nil || b.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, &b, want)
	}
	o.B.Section.Three = 4 // two keys that are the same are listed
	b.Reset()
	if err := Reference(&b, &o); err != nil || !strings.HasPrefix(b.String(), first+"## `b`\n\n- `one`: First.\n- `two`: Second.\n- `three` (`4`") {
		t.Errorf("%v, got\n%s", err, &b)
	}
	other := struct {
		C section `yaml:"c"`
	}{section{Three: 3}}
	b.Reset()
	if err := Reference(&b, &other, Page{"page.md", &o}); err != nil || b.String() != "## `c`\n\n- `one`, `two`, `three`: as in [`a`](page.md#a).\n\n" {
		t.Errorf("%v, got\n%s", err, &b)
	}
}

func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: 1\n---")) // a second document without anything in it
	f.Fuzz(func(t *testing.T, data []byte) {
		o := defaults()
		if err := Load("fuzz", data, &o); err == nil && Check(&o) != nil {
			t.Fatalf("Load accepts %q, Check says %v", data, Check(&o))
		}
	})
}

func TestDiff(t *testing.T) {
	a, b := defaults(), defaults()
	if d := Diff(&a, &b); d != nil {
		t.Errorf("Diff of equals = %v", d)
	}
	b.Window, b.Listen, b.Store = time.Second, nil, &inner{}
	if d, want := Diff(&a, &b), []string{"window", "listen", "store"}; !reflect.DeepEqual(d, want) {
		t.Errorf("Diff = %v, want %v", d, want)
	}
	if !Below("exporters.profiles", "exporters") || Below("exporters2", "exporters") {
		t.Error("Below mistakes a prefix for a parent")
	}
}

// A value that is quoted in an error is not cut within a character.
func TestLongValueInError(t *testing.T) {
	for pad := range 4 {
		var v struct {
			List []string `yaml:"list"`
		}
		long := strings.Repeat("x", pad) + strings.Repeat("漢", 100)
		err := Load("settings.yaml", []byte("list: "+long+"\n"), &v)
		if err == nil || !strings.Contains(err.Error(), "漢...") || strings.ContainsAny(err.Error(), "\\\ufffd") {
			t.Errorf("with %d bytes before: %v", pad, err)
		}
	}
}
