package notify

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/flock"
)

func TestRulesThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"mutes: [{element: spine}]": "no element such as",
		"mutes: [{kind: slow}]":     "no kind of finding",
		"mutes: [{from: tomorrow}]": "no time such as",
		"mutes: [{from: 2026-11-22T12:00:00Z, until: 2026-11-22T12:00:00Z}]": "is not behind from",
		"mutes: [{every: 24h}]": "needs from and until",
		"mutes: [{from: 2026-11-22T12:00:00Z, until: 2026-11-24T12:00:00Z, every: 24h}]": "shorter than the time",
		"acknowledged: [{alert: drops}]":                                                 "needs alert and at",
		"acknowleged: []":                                                                "unknown field",
		"mutes: 7":                                                                       "",
		"mutes: [" + strings.Repeat("{},", maxRules+1) + "]":                             "at most",
		strings.Repeat("#", maxRulesFile+1):                                              "is longer than",
	} {
		if r, err := parseRules("rules.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "rules.yaml") {
			t.Errorf("%.80s: %v, %v", text, r, err)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, x := range []struct {
		mute, found string
		want        bool
	}{
		{"", "node 7", true}, {"node 7", "node 7", true}, {"node 7", "node 8", false}, {"node 7", "interface 7:3", true}, {"node 7", "link 3-7", true},
		{"node 7", "link 3-8", false}, {"node 7", "exporter 10.0.0.1 node 7 hardware 0", true}, {"interface 7:3", "node 7", false},
		{"link 7-9", "link 9:1-7:3", true}, {"link 7:3-9:1", "link 7-9", false}, {"link 7:3-9:1", "interface 9:1", true}, {"link 7:3-9:1", "interface 9:2", false},
		{"exporter 10.0.0.1", "exporter 10.0.0.1 node 7 hardware 0", true}, {"exporter 10.0.0.1", "exporter 10.0.0.2", false},
		{"route 10.1.0.0/16", "flow 10.0.0.1:80 > 10.1.0.2:5001 tcp", true}, {"route 10.1.0.0/16", "flow 10.1.0.1:80 > 10.0.0.2:5001 tcp", false},
		{"route 10.0.0.0/8", "route 10.1.0.0/16", true}, {"route 10.1.0.0/16", "route 10.0.0.0/8", false}, {"route 1 to 2", "route 1 to 2", true},
	} {
		e, err := inference.ParseElement(x.mute)
		of, err2 := inference.ParseElement(x.found)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if got := within(e, of); got != x.want {
			t.Errorf("%q within %q: %v", x.found, x.mute, got)
		}
	}
}

func TestChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alerts.yaml")
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	want := &Rules{
		Acknowledged: []Acknowledgement{{Alert: "high-latency link 7–9", By: "x: y", Note: "- #\n'\"", At: at}},
		Mutes:        []Mute{{Element: "node 7", Kind: "drops", From: "2026-11-22T12:00:00Z", Until: "2026-11-22T13:00:00Z", Every: 24 * time.Hour}},
	}
	if err := Change(path, func(r *Rules) error { *r = *want; return nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRules(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	before, _ := os.ReadFile(path)
	for _, change := range []func(*Rules) error{
		func(r *Rules) error { r.Mutes = nil; return errors.New("no") },
		func(r *Rules) error { r.Mutes[0].Kind = "nonsense"; return nil },
	} {
		if err := Change(path, change); err == nil {
			t.Error("no error")
		}
	}
	if after, _ := os.ReadFile(path); string(before) != string(after) {
		t.Errorf("changed to %s", after)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := Change(link, func(r *Rules) error { r.Mutes = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRules(path); err != nil || len(got.Mutes) != 0 || len(got.Acknowledged) != 1 {
		t.Errorf("behind a link: %+v, %v", got, err)
	}
}

// TestChangedByMany lets many change the file at the same time, while others read it: no change is lost, and every reader
// sees a whole file.
func TestChangedByMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alerts.yaml")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 5 {
				if err := Change(path, func(r *Rules) error {
					r.Mutes = append(r.Mutes, Mute{Element: fmt.Sprint("node ", 10*i+n)})
					return nil
				}); err != nil {
					t.Error(err)
				}
				if _, err := ReadRules(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if r, err := ReadRules(path); err != nil || len(r.Mutes) != 40 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDrop(t *testing.T) {
	r := &Rules{
		Acknowledged: []Acknowledgement{{Alert: "a", At: utc(epoch)}, {Alert: "b", At: utc(epoch + 100*second)}},
		Mutes:        []Mute{{Until: utc(epoch).Format(time.RFC3339)}, {Note: "lasts"}, {From: utc(epoch - second).Format(time.RFC3339), Until: utc(epoch).Format(time.RFC3339), Every: time.Hour}},
	}
	r.Drop(utc(epoch+second), utc(epoch+second))
	if len(r.Acknowledged) != 1 || r.Acknowledged[0].Alert != "b" || len(r.Mutes) != 2 {
		t.Errorf("%+v", r)
	}
}

// The decoder sees no YAML that it is not up to, and all of the longest that is read.
func TestGuard(t *testing.T) {
	for text, want := range map[string]string{
		"mutes: !x\n1":                "x: line 1: anchors",
		"mutes: &a [*a]":              "x: line 1: anchors",
		"mutes:\n- <<: {note: a}":     "x: line 2: anchors",
		strings.Repeat("[", 1<<16):    "in one another",
		strings.Repeat("- ", 1<<16):   "in one another",
		strings.Repeat("a:\n", 1<<16): "words and signs",
	} {
		if _, err := parseRules("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	long := "mutes: [" + strings.Repeat(`{element: node 7, kind: drops, from: "2026-11-22T22:00:00Z", until: "2026-11-22T23:00:00Z", every: 24h, by: a, note: "!b"}, `, maxRules) + "]"
	if r, err := parseRules("x", []byte(long)); err != nil || len(r.Mutes) != maxRules {
		t.Errorf("%d mutes, %v", len(r.Mutes), err)
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add([]byte("acknowledged:\n- alert: drops node 7\n  at: 2026-11-22T12:00:00Z\nmutes:\n- element: node 7\n  until: 2026-11-22T12:00:00Z\n  every: 24h\n"))
	f.Add([]byte("mutes: [{element: link 7-9, kind: drops}]"))
	f.Add([]byte("mutes: !x\n1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRules("x", b)
		if err != nil {
			return
		}
		c := newCenter(t, nil)
		if err := c.Follow(r); err != nil {
			t.Fatal(err)
		}
		c.Step(epoch, []inference.Finding{slow(1, 7)})
		path := filepath.Join(t.TempDir(), "r")
		if err := Change(path, func(x *Rules) error { *x = *r; return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRules(path); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

// A change whose file name is not known to be on the disk is an error.
func TestChangeSyncFails(t *testing.T) {
	replace = func(path string, mode fs.FileMode, write func(io.Writer) error) error {
		return errors.Join(flock.Replace(path, mode, write), syscall.EIO)
	}
	defer func() { replace = flock.Replace }()
	path := filepath.Join(t.TempDir(), "alerts.yaml")
	if err := Change(path, func(*Rules) error { return nil }); !errors.Is(err, syscall.EIO) {
		t.Errorf("Change = %v, want %v", err, syscall.EIO)
	}
}
