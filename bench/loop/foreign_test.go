package loop

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/internal/testkit"
)

// The example suspects a link that fails, and no other; a program that gives no suspects finds nothing, and the table
// says why.
func TestForeign(t *testing.T) {
	testkit.Long(t)
	python := testkit.Python(t)
	detect := func(script string) *Table {
		t.Helper()
		o := DefaultOptions()
		o.Seed, o.Faults, o.Quiet, o.pause = 3, []string{"link-down"}, 75*time.Second, 5*time.Second
		algorithm, err := harness.NewProgram(python+" "+script, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		o.Algorithm = algorithm
		table, err := runDetection(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	table := detect("../../docs/examples/suspects.py")
	if c := table.Rows[0].Methods[theirs]; len(table.Failed) > 0 || c.Method != "theirs" || c.Soon != 1 || c.SoonRight != 2 || c.SoonWrong != 0 {
		t.Errorf("%+v, %q", c, table.Failed)
	}
	none := filepath.Join(t.TempDir(), "none.py")
	if err := os.WriteFile(none, []byte("print('{\"cycles\":[[0]]}')\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	table = detect(none)
	var text bytes.Buffer
	if err := table.Print(&text); err != nil || !strings.Contains(text.String(), "theirs, seed 3: no suspects: cycles: 1 lists, want one for each of") {
		t.Errorf("%v: %s", err, &text)
	}
	if c := table.Rows[0].Methods[theirs]; c.Found != 0 || table.Rows[0].Methods[oursAll].Soon != 1 {
		t.Errorf("%+v", table.Rows[0])
	}
}

func TestSuspectsText(t *testing.T) {
	for want, cycles := range map[string][][]int32{
		"cycles: 0 lists, want one for each of 2 cycles": nil,
		"cycles[1]: link 5 is not there":                 {nil, {1, 5}},
		"cycles[0]: link -1 is not there":                {{-1}, nil},
		"cycles[1]: link 2 is not there, or a second":    {nil, {2, 1, 2}},
	} {
		if err := (&suspectsText{cycles}).check(2, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", cycles, err, want)
		}
	}
}

// Questions are written with the faults beside, and have a cycle for each second.
func TestWriteQuestions(t *testing.T) {
	o := DefaultOptions()
	o.Seed, o.Faults, o.Quiet, o.pause = 3, []string{"link-down"}, 20*time.Second, 5*time.Second
	dir := t.TempDir()
	if err := WriteQuestions(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	truth, err := os.ReadFile(filepath.Join(dir, "01-loop.truth.json"))
	if err != nil || !strings.Contains(string(truth), `"fault":"link-down","from_seconds":20,`) {
		t.Errorf("%s, %v", truth, err)
	}
	q, err := os.ReadFile(filepath.Join(dir, "01-loop.json"))
	if err != nil || !strings.Contains(string(q), `"cycle_seconds":1,"links":[{"from":`) {
		t.Errorf("%.200s, %v", q, err)
	}
}
