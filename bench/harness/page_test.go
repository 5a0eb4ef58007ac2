package harness

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write bench/RESULTS.md or docs/papers.md anew")

func readFile(name string) (*Result, error) {
	f, err := os.Open(filepath.Join("..", "results", name+".json"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := Read(f)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// The page of results has what the files of results say, and every file is on it or one of those of docs/papers.md.
func TestResultsPage(t *testing.T) {
	const path = "../RESULTS.md"
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	now, err := Page(string(was), readFile)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != string(was) {
		t.Errorf("%s is not what bench/results has (-update writes it)", path)
	}
	files, err := filepath.Glob("../results/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		if !strings.Contains(now, "<!-- result "+name+" ") && !strings.Contains("\n"+PaperCommands, "\n"+name+" ") {
			t.Errorf("no block of %s is written from %s, and no item of the papers needs it", path, f)
		}
	}
}

// A block is written anew from its file, with the columns that it names, and the rest of the page stays.
func TestPage(t *testing.T) {
	seed := uint64(3)
	r := &Result{Bench: "hopscope-bench x", Version: "v1", Machine: Machine{Cores: 2, System: "linux/amd64", Go: "go1"}, Seed: &seed,
		Tables: []Table{{Columns: []string{"a", "b", "c"}, Rows: [][]any{{"x|y", 1.5, "z"}, {"short"}}}}}
	read := func(name string) (*Result, error) {
		if name != "x" {
			return nil, errors.New("no such file")
		}
		return r, nil
	}
	page, err := Page("before\n<!-- result x 1 columns c | a -->\nold\n<!-- end of result -->\nbehind", read)
	want := "before\n<!-- result x 1 columns c | a -->\n\n    hopscope-bench x\n\n| c | a |\n| --- | --- |\n| z | x\\|y |\n|  | short |\n\nVersion v1, seed 3; 2 cores, linux/amd64, go1.\n\n<!-- end of result -->\nbehind"
	if err != nil || page != want {
		t.Errorf("%v\n%s\nwant\n%s", err, page, want)
	}
	if second, err := Page(page, read); err != nil || second != page {
		t.Errorf("%v\n%s", err, second)
	}
	for want, directive := range map[string]string{"no such file": "y 1", "table 2 of 1": "x 2", `no column "d"`: "x 1 columns d"} {
		if _, err := Page("<!-- result "+directive+" -->\n<!-- end of result -->", read); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", directive, err, want)
		}
	}
}
