package findings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/internal/testkit"
)

// An answer is followed window by window as a detector is.
func TestRecorded(t *testing.T) {
	a := spansText{[][]span{{{1, 3}, {3, 4}, {6, 7}}}}
	w := a.detector().New(false)
	text := ""
	for range 8 {
		begun, open := w.Step(detect.Window{})
		text += map[[2]bool]string{{true, true}: "B", {false, true}: "o", {false, false}: "."}[[2]bool{begun, open}]
	}
	if text != ".BoB..B." {
		t.Errorf("%s", text)
	}
}

func TestSpans(t *testing.T) {
	for want, list := range map[string][][]span{
		"hops: 1 lists, want one for each of 2 hops": {{}},
		"hops[1][0]: from 3 to 3;":                   {nil, {{3, 3}}},
		"hops[0][1]: from 2 to 9;":                   {{{0, 3}, {2, 9}}, nil},
		"hops[0][0]: from 5 to 11;":                  {{{5, 11}}, nil},
		"hops[0][0]: from -1 to 1;":                  {{{-1, 1}}, nil},
	} {
		if err := (&spansText{list}).check(2, 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", list, err, want)
		}
	}
	if err := (&spansText{[][]span{{{0, 1}, {1, 10}}, nil}}).check(2, 10); err != nil {
		t.Error(err)
	}
}

// The example finds a jump at once, and a program that looks ahead is refused.
func TestForeign(t *testing.T) {
	python := testkit.Python(t)
	ask := func(script string) (*question, spansText, error) {
		t.Helper()
		p, err := harness.NewProgram(python+" "+script, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var q *question
		for q = range questions(options{Seed: 4, Hops: 2}, 1) {
			if q.fault.Name == "× 4" {
				break
			}
		}
		answer, _, err := q.ask(t.Context(), p)
		return q, answer, err
	}
	q, answer, err := ask("../../docs/examples/detector.py")
	if err != nil || q.fault.Name != "× 4" {
		t.Fatalf("%s: %v", q.Name, err)
	}
	scores, err := found(t.Context(), q.background, q.fault, []detector{answer.detector()}, options{Seed: 4, Hops: 2})
	if err != nil || len(scores[0].delays) != 2 || scores[0].delays[0] != 1 {
		t.Errorf("%+v, %v", scores, err)
	}
	of := filepath.Join(t.TempDir(), "of.py")
	for span, want := range map[string]string{"0, 'to': len(w)": "", "len(w) // 3, 'to': len(w)": "depends on later ones"} {
		script := "import json, sys\np = json.load(sys.stdin)['problem']\nprint(json.dumps({'hops': [[{'from': " + span + "}] for w in p['hops']]}))\n"
		if err := os.WriteFile(of, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ask(of); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a finding from %s: %v, want %q", span, err, want)
		}
	}
}
