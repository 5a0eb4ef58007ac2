// Command mutate measures how sharp tests are: it breaks single expressions and statements of named functions, one at a time, and
// counts how many of these mutants a fast subset of the package's tests notices.
//
//	go run ./internal/mutate [-min 0.9] [PACKAGE...]
//
// All mutants of a package are compiled into one test binary, in which an environment variable selects the one that is in force
// (mutant schemata: Untch, Offutt, Harrold, ISSTA 1993). A package is compiled once, however many mutants it has. The table of
// targets is in targets.go. The exit status is 1 if fewer than the share -min of all mutants are killed, or if a package fails
// without any mutant. Some mutants compute the same as the original, so that no test can kill them; survivors are printed to be read.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	min := flag.Float64("min", 0.9, "share of mutants that must be killed")
	limit := flag.Duration("timeout", time.Minute, "a run of tests that takes longer counts as killed")
	workers := flag.Int("workers", 2, "runs at the same time")
	flag.Parse()
	alive, total := 0, 0
	failed := false
	for _, t := range targets {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), t.pkg) {
			continue
		}
		survivors, n, err := t.measure(*workers, *limit)
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutate: %s: %v\n", t.pkg, err)
			failed = true
			continue
		}
		for _, s := range survivors {
			fmt.Printf("survives: %s\n", s)
		}
		row(t.pkg, n, len(survivors))
		alive, total = alive+len(survivors), total+n
	}
	row("all", total, alive)
	if failed || float64(alive) > (1-*min)*float64(total) {
		os.Exit(1)
	}
}

func row(name string, total, alive int) {
	fmt.Printf("%-28s %5d mutants, %5d killed (%.0f %%)\n", name, total, total-alive, 100*float64(total-alive)/float64(max(total, 1)))
}

// measure compiles the mutants of t, runs its tests once for each of them, and lists the mutants that survive.
func (t *target) measure(workers int, limit time.Duration) (alive []string, total int, err error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(dir)
	p, err := load(t.pkg)
	if err != nil {
		return nil, 0, err
	}
	mutants, files := p.mutate(t.funcs)
	if len(mutants) == 0 {
		return nil, 0, fmt.Errorf("no function matches %s", t.funcs)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, name := range slices.Sorted(maps.Keys(files)) {
		copied := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(copied, files[name], 0o644); err != nil {
			return nil, 0, err
		}
		overlay.Replace[name] = copied
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		return nil, 0, err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, data, 0o644); err != nil {
		return nil, 0, err
	}
	var suites []suite
	for i, tests := range append(strings.Fields(t.others), t.pkg) {
		out, err := exec.Command("go", "list", "-f", "{{.Dir}}", tests).Output()
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", tests, err)
		}
		x := suite{dir: strings.TrimSpace(string(out)), binary: filepath.Join(dir, fmt.Sprintf("tests%d", i)), limit: limit}
		build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", x.binary, tests)
		if out, err := build.CombinedOutput(); err != nil {
			return nil, 0, fmt.Errorf("%w\n%s", err, out)
		}
		suites = append(suites, x)
	}
	survives := func(mutant int) bool {
		for i := range suites {
			if out := suites[i].run(t.run, mutant); out != nil {
				return false
			}
		}
		return true
	}
	for i := range suites {
		if out := suites[i].run(t.run, 0); out != nil {
			return nil, 0, fmt.Errorf("its tests fail without any mutant:\n%s", out)
		}
	}
	results := make([]bool, len(mutants))
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				results[i] = survives(i + 1)
			}
		})
	}
	for i := range mutants {
		next <- i
	}
	close(next)
	group.Wait()
	for i, survived := range results {
		if survived {
			alive = append(alive, mutants[i])
		}
	}
	return alive, len(mutants), nil
}

// suite is the test binary of a package that holds all mutants.
type suite struct {
	dir, binary string
	limit       time.Duration
}

// run runs the tests with a mutant in force, and returns what they print if they fail, nil otherwise.
func (s *suite) run(tests string, mutant int) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), s.limit)
	defer cancel()
	c := exec.CommandContext(ctx, s.binary, "-test.run", tests, "-test.failfast", "-test.timeout", s.limit.String())
	c.Dir, c.Env = s.dir, append(os.Environ(), fmt.Sprintf("%s=%d", variable, mutant))
	out, err := c.CombinedOutput()
	if err == nil {
		return nil
	}
	return append(out, err.Error()...)
}
