package inventory

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference/names"
)

// TestKeeper changes an inventory under a running program. A good or repaired file is taken. A broken or missing one
// leaves the names as they were, and is logged once for each of its states.
func TestKeeper(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inventory.yaml")
	at := time.Unix(1_800_000_000, 0)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Second) // file systems may have coarse times
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var k Keeper
	check := func(step, want string, failures uint64, problem, reported string) {
		t.Helper()
		if got := k.Names().Node(1); got != want || k.Failures() != failures || (k.Problem() == "") != (problem == "") || !strings.Contains(k.Problem(), problem) {
			t.Errorf("%s: node %q, %d failures, problem %q; want %q, %d, %q", step, got, k.Failures(), k.Problem(), want, failures, problem)
		}
		if text := out.String(); (reported == "") != (text == "") || !strings.Contains(text, reported) {
			t.Errorf("%s: the log says %q, want %q", step, text, reported)
		}
		out.Reset()
	}
	if err := k.Open(path, nil, nil, nil); err == nil {
		t.Error("a missing file opens")
	}
	write("nodes: [{id: 1, name: a}]\n")
	if err := k.Open(path, nil, map[uint8]string{7: "full"}, nil); err != nil {
		t.Fatal(err)
	}
	check("opened", "a (1)", 0, "", "")
	first := k.Names()
	k.Refresh(log)
	check("unchanged", "a (1)", 0, "", "")
	write("nodes: [{id: 1, name: a}]\n# the same names\n")
	k.Refresh(log)
	check("the same names", "a (1)", 0, "", "")
	if k.Names() != first {
		t.Error("the same names count as a change")
	}
	write("nodes: [{id: 1, name: b}]\n")
	k.Refresh(log)
	check("another name", "b (1)", 0, "", "inventory reloaded")
	write("nodes: [{id: 1, name: c}, {id: 1}]\n")
	k.Refresh(log)
	check("broken", "b (1)", 1, "inventory.yaml:1: node 1 is listed in line 1, too", "not reloaded")
	k.Refresh(log)
	check("still broken", "b (1)", 1, "listed in line 1", "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	k.Refresh(log)
	check("missing", "b (1)", 2, "inventory.yaml", "not reloaded")
	k.Refresh(log)
	check("still missing", "b (1)", 2, "inventory.yaml", "")
	write("nodes: [{id: 1, name: d}]\n")
	k.Refresh(log)
	check("repaired", "d (1)", 2, "", "inventory reloaded")
	if got := k.Names().Reason(7); got != "full (7)" {
		t.Errorf("reason %q", got)
	}
	k.Reload("", log)
	check("no file any more", "1", 2, "", "inventory reloaded")
	k.Learn([]names.Node{{ID: 1, Name: "10.0.0.1"}})
	check("what the device reports", "10.0.0.1 (1)", 2, "", "")
	k.Draw([]names.Node{{ID: 1, Name: "core-1"}})
	check("what the map has", "core-1 (1)", 2, "", "")
	k.Reload(path, log)
	check("the file again", "d (1)", 2, "", "inventory reloaded")
}

func TestTeller(t *testing.T) {
	const day = int64(24 * time.Hour)
	a, b := names.New([]names.Node{{ID: 1, Name: "a"}}, nil, nil), names.New([]names.Node{{ID: 1, Name: "b"}}, nil, nil)
	var emit RowSchedule
	for i, c := range []struct {
		n    *names.Names
		end  int64
		want string
	}{
		{nil, 3*day + 1, ""}, {a, 3*day + 2, "a"}, {a, 3*day + 3, ""}, {a, 4*day - 1, ""}, {a, 4 * day, "a"}, {a, 4*day + 1, ""}, {b, 4*day + 2, "b"}, {nil, 4*day + 3, ""},
	} {
		got := ""
		for _, r := range emit.Rows(c.n, c.end) {
			got += r.Name
		}
		if got != c.want {
			t.Errorf("window %d: %q, want %q", i, got, c.want)
		}
	}
}
