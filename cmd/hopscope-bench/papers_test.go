package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/bench/harness"
)

// Some items of docs/papers.md are measured anew: what is no time is what the file has, and what is reproduced there is reproduced here.
func TestPapers(t *testing.T) {
	for file, quick := range map[string]struct {
		args []string
		same bool // as the file to the digit: the same draws
	}{
		"int-path": {[]string{"planner", "cover", "--table", "figure 16", "--table", "figure 8", "--table", "figure 9", "--table", "figure 10", "--table", "figure 11"}, true},
		"pint-5":   {[]string{"pint", "--figure", "5", "--runs", "1000"}, false},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			of := readResult(t, file)
			var out bytes.Buffer
			c := rootCommand()
			c.SetArgs(append(quick.args, "--format", "json"))
			c.SetOut(&out)
			if err := c.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			list, err := harness.Read(&out)
			if err != nil {
				t.Fatal(err)
			}
			now := list[0]
			compared := 0
			for _, text := range harness.Papers {
				for k := range text.Items {
					i := &text.Items[k]
					state, was, err := i.Judge(func(name string) (*harness.Result, error) {
						if name != file {
							return nil, fs.ErrNotExist
						}
						return of, nil
					})
					if err != nil {
						t.Fatal(err)
					}
					for n := range i.Values {
						v := &i.Values[n]
						if v.At.File != file || !has(now, v.At.Table) {
							continue
						}
						got, err := v.At.Ours(func(string) (*harness.Result, error) { return now, nil })
						if err != nil {
							t.Errorf("%s, %s: %v", text.Name, i.Place, err)
							continue
						}
						compared++
						if quick.same && got != was[n] {
							t.Errorf("%s, %s, %s %s: %g, and %g in the file", text.Name, i.Place, i.What, v.What, got, was[n])
						}
						if state == harness.Reproduced && !quick.same && (got < v.Low*.95 || got > v.High*1.05) {
							t.Errorf("%s, %s, %s %s: %g, published %s", text.Name, i.Place, i.What, v.What, got, v.Published)
						}
					}
				}
			}
			if compared < 7 {
				t.Errorf("%d figures are compared", compared)
			}
		})
	}
}

func has(r *harness.Result, table string) bool {
	for _, t := range r.Tables {
		if strings.Contains(t.Title, table) {
			return true
		}
	}
	return false
}

func readResult(t *testing.T, name string) *harness.Result {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "bench", "results", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := harness.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// Each command of the list is one of this program.
func TestPapersCommands(t *testing.T) {
	for line := range strings.Lines(harness.PaperCommands) {
		name, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		path := filepath.Join("..", "..", "bench", "results", name+".json")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// Of a command line words are compared, since flags are written in the order of their names.
		was := strings.Fields(strings.NewReplacer("'", "", `"`, "", "=", " ").Replace(strings.TrimPrefix(readResult(t, name).Bench, "hopscope-bench ")))
		want := strings.Fields(strings.NewReplacer("'", "", `"`, "", "=", " ").Replace(command))
		for _, w := range want {
			if !strings.Contains(" "+strings.Join(was, " ")+" ", " "+w+" ") {
				t.Errorf("%s.json was written by %q, and the list has %q", name, strings.Join(was, " "), command)
			}
		}
	}
}
