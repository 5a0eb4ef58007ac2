// Command mutate measures how sharp tests are. It breaks single expressions and statements of named functions, one at a
// time. It counts how many of these mutants a fast subset of the package's tests kills.
//
//	go run ./internal/mutate [-min 0.9] [-cache DIR] [PACKAGE...]
//
// All mutants of a package are compiled into one test binary, in which an environment variable selects the one that is
// in force (mutant schemata: Untch, Offutt, Harrold, ISSTA 1993). A package is compiled once, however many mutants it
// has. The table of targets is in targets.go.
//
// Every test first runs alone without any mutant, which gives its time and the mutants whose place it reaches. A mutant
// then meets the tests that reach it, the quickest first, until one fails. A test fails if it takes five seconds more
// than five times its time alone, or if its heap grows beyond 2 GB. A mutant that no test reaches survives without a
// run.
//
// A target that has run to its end with the same code is not run again. Its outcome is in the cache, and its time is
// that of the run.
//
// The exit status is 1 if fewer than the share -min of the mutants of any target are killed. It is also 1 if a test
// fails without any mutant. Survivors are printed to be read. Some compute the same as the original, so that no test
// can kill them:
//
//   - comparisons with and without equality, where both ways give the same, where equality does not occur, or of sums of floating-point
//     numbers;
//   - ways out and short ways that save work: an early return, a look at what alone has changed, what is kept of the last time;
//   - what asks for memory or gives it back: capacities, records of spare lists, fields that nothing reads any more;
//   - the order of what comes in order, or of what has none;
//   - errors of packages below that the input cannot bring about.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	min := flag.Float64("min", 0.9, "share of a target's mutants that must be killed")
	workers := flag.Int("workers", 2, "runs at the same time")
	kept := flag.String("cache", ".cache/mutate", "directory that keeps the outcomes of finished targets; empty for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed := false
	var table strings.Builder
	for _, t := range targets {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), t.pkg) {
			continue
		}
		o, err := t.measure(ctx, *workers, cache(*kept))
		if ctx.Err() != nil {
			fmt.Fprintf(os.Stderr, "mutate: stopped in %s; the next run begins with it\n", t.pkg)
			os.Exit(1)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutate: %s: %v\n", t.pkg, err)
			fmt.Fprintf(&table, "%-24s failed\n", t.pkg)
			failed = true
			continue
		}
		unreached := 0
		for _, s := range o.Alive {
			if strings.HasPrefix(s, notReached) {
				unreached++
			}
			fmt.Println(s)
		}
		killed := o.Total - len(o.Alive)
		share := float64(killed) / float64(o.Total)
		row := fmt.Sprintf("%-24s %5d mutants, %5d killed (%.1f %%), %3d not reached, in %s\n", t.pkg, o.Total, killed, 100*share, unreached,
			o.Took.Round(time.Second))
		fmt.Print(row)
		table.WriteString(row)
		failed = failed || share < *min
	}
	fmt.Printf("\n%s", &table)
	if failed {
		os.Exit(1)
	}
}

// The prefixes of the label of a mutant that is alive: its place was reached, or was not.
const (
	survives   = "survives:    "
	notReached = "not reached: "
)

// measure compiles the mutants of t, and runs its tests for each of them, unless the cache has the outcome. An error
// when ctx ends has no meaning for the tests.
func (t *target) measure(ctx context.Context, workers int, kept cache) (o outcome, err error) {
	began := time.Now()
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	p, err := load(t.pkg)
	if err != nil {
		return o, err
	}
	mutants, files := p.mutate(t.funcs)
	if len(mutants) == 0 {
		return o, fmt.Errorf("no function matches %s", t.funcs)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, name := range slices.Sorted(maps.Keys(files)) {
		copied := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(copied, files[name], 0o644); err != nil {
			return o, err
		}
		overlay.Replace[name] = copied
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		return o, err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, data, 0o644); err != nil {
		return o, err
	}
	var suites []*suite
	for i, pkg := range append(strings.Fields(t.others), t.pkg) {
		out, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
		if err != nil {
			return o, fmt.Errorf("%s: %w", pkg, err)
		}
		s := &suite{dir: strings.TrimSpace(string(out)), binary: filepath.Join(dir, fmt.Sprintf("tests%d", i)), reached: filepath.Join(dir, "reached")}
		build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", s.binary, pkg)
		if out, err := build.CombinedOutput(); err != nil {
			return o, fmt.Errorf("%w\n%s", err, out)
		}
		suites = append(suites, s)
	}
	file, err := kept.file(t, suites)
	if err != nil {
		return o, err
	}
	if o, ok := kept.load(file); ok {
		return o, nil
	}
	var tests []*test
	for _, s := range suites {
		more, err := s.tests(ctx, t.run)
		if err != nil {
			return o, err
		}
		tests = append(tests, more...)
	}
	slices.SortStableFunc(tests, func(a, b *test) int { return int(a.duration - b.duration) })
	o.Total = len(mutants)
	for i, how := range fates(ctx, t.pkg, tests, len(mutants), workers) {
		if how != "" {
			o.Alive = append(o.Alive, how+mutants[i])
		}
	}
	if err := ctx.Err(); err != nil {
		return o, err
	}
	o.Took = time.Since(began)
	return o, kept.save(file, o)
}

// fates are those of n mutants. Every quarter of a minute a line on standard error shows how far they are.
func fates(ctx context.Context, pkg string, tests []*test, n, workers int) []string {
	results := make([]string, n)
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				results[i] = fate(ctx, tests, i+1)
			}
		})
	}
	began := time.Now()
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for i := 0; i < n && ctx.Err() == nil; i++ {
		for sent := false; !sent; {
			select {
			case next <- i:
				sent = true
			case <-tick.C:
				fmt.Fprintf(os.Stderr, "mutate: %s: %d of %d mutants in %s\n", pkg, i, n, time.Since(began).Round(time.Second))
			}
		}
	}
	close(next)
	group.Wait()
	return results
}

// fate runs the tests that reach a mutant, and returns how it is alive, or "" if a test fails.
func fate(ctx context.Context, tests []*test, mutant int) string {
	how := notReached
	for _, x := range tests {
		if x.reaches[mutant] {
			how = survives
			if out := x.run(ctx, mutant, 5*x.duration+5*time.Second); out != nil {
				return ""
			}
		}
	}
	return how
}

// suite is the test binary of a package that holds all mutants.
type suite struct{ dir, binary, reached string }

// test is a test of a suite, with what a run without any mutant shows.
type test struct {
	*suite
	pattern  string // of -test.run
	duration time.Duration
	reaches  map[int]bool
}

// tests runs the tests that some patterns of -test.run name, which spaces separate. A pattern with a slash names parts
// of one test.
func (s *suite) tests(ctx context.Context, patterns string) (list []*test, err error) {
	for _, pattern := range strings.Fields(patterns) {
		names := []string{pattern}
		if !strings.Contains(pattern, "/") {
			out, err := exec.Command(s.binary, "-test.list", pattern).Output()
			if err != nil {
				return nil, fmt.Errorf("-test.list %s: %w", pattern, err)
			}
			names = nil
			for _, name := range strings.Fields(string(out)) {
				if !strings.HasPrefix(name, "Benchmark") {
					names = append(names, "^"+regexp.QuoteMeta(name)+"$")
				}
			}
		}
		for _, name := range names {
			x := &test{suite: s, pattern: name, reaches: map[int]bool{}}
			if err := os.WriteFile(s.reached, nil, 0o644); err != nil {
				return nil, err
			}
			began := time.Now()
			if out := x.run(ctx, 0, 10*time.Minute); out != nil {
				return nil, fmt.Errorf("%s fails without any mutant:\n%s", name, out)
			}
			x.duration = time.Since(began)
			reached, err := os.ReadFile(s.reached)
			if err != nil {
				return nil, err
			}
			for ; len(reached) > 0; reached = reached[4:] {
				x.reaches[int(binary.LittleEndian.Uint32(reached))] = true
			}
			list = append(list, x)
		}
	}
	return list, nil
}

// run runs the test with a mutant in force, 0 for none, and returns what it prints if it fails, nil otherwise.
func (x *test) run(ctx context.Context, mutant int, limit time.Duration) []byte {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, x.binary, "-test.run", x.pattern, "-test.failfast", "-test.timeout", "0")
	c.Dir, c.Env = x.dir, append(os.Environ(), fmt.Sprintf("%s=%d", inForce, mutant))
	if mutant == 0 {
		c.Env = append(c.Env, reachedFile+"="+x.reached)
	}
	c.WaitDelay = time.Second // of what a test has started
	out, err := c.CombinedOutput()
	if err == nil {
		return nil
	}
	return append(out, err.Error()...)
}
