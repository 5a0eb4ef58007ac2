//go:build torture

// Package torture breaks the dependencies of a collector and counts what is lost. It uses the program as users run
// it, real stores, real datagrams, real files and kill -9. Each row of its table has the number of reports sent,
// stored by the store's own count, and counted as lost, with the place. The rest is unaccounted, and reports stored
// twice are doubled. Both have to be 0.
//
// It is a test behind the build tag torture, because it takes minutes and the machine: make torture. With
// HOPSCOPE_TORTURE=full it runs longer. HOPSCOPE_TORTURE_TABLE names a file for the table in Markdown, or a page that
// has a place for it, such as bench/RESULTS.md; HOPSCOPE_TORTURE_JSON names one for the figures.
// HOPSCOPE_TORTURE_PROGRAM names a build of the program to torture instead of this one.
package torture

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is the build of hopscope that is tortured.
var program string

// long asks for the long form.
var long = os.Getenv("HOPSCOPE_TORTURE") == "full"

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	os.Exit(func() int {
		program = os.Getenv("HOPSCOPE_TORTURE_PROGRAM")
		if program == "" {
			dir, err := os.MkdirTemp("", "hopscope-torture-")
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			defer os.RemoveAll(dir)
			program = filepath.Join(dir, "hopscope")
			build := exec.Command("go", "build", "-o", program, "../../cmd/hopscope")
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
				return 1
			}
		}
		if err := order.receive(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// result is one row of the table.
type result struct {
	Row         string           `json:"row"`
	Sent        int64            `json:"sent"`
	Unit        string           `json:"unit"`   // reports, points, or empty in a row that counts nothing
	Stored      int64            `json:"stored"` // by the store's own count
	Lost        map[string]int64 `json:"lost"`   // counted by the collector, by place
	Unaccounted int64            `json:"unaccounted"`
	Doubled     int64            `json:"doubled"`
	Seconds     float64          `json:"seconds"`
	Remark      string           `json:"remark,omitempty"`
	Failed      bool             `json:"failed"`

	ran bool
}

// settle computes the rest.
func (r *result) settle() {
	rest := r.Sent - r.Stored
	for _, n := range r.Lost {
		rest -= n
	}
	r.Unaccounted, r.Doubled = max(r.Unaccounted, rest, 0), max(r.Doubled, -rest, 0)
}

func (r *result) lostText() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(r.Lost)) {
		if r.Lost[k] != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", k, r.Lost[k]))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "0")
}

// row is one way to torture.
type row struct {
	name  string
	run   func(t *testing.T, r *result)
	alone bool // needs the machine for itself
	first bool // lasts longest, and begins first, so that none of the others is left to wait for it
}

// rank is the order in which rows begin: those of a fleet last longer than others.
func (w *row) rank() int {
	switch {
	case w.first:
		return 0
	case strings.HasPrefix(w.name, "fleet: "):
		return 1
	}
	return 2
}

// turns lets parallel rows begin by their rank, as many at a time as -parallel says. The package testing lets them
// begin in any order, so that the longest could be the last.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting []turn
}

type turn struct {
	rank  int
	begin chan struct{}
}

// order is that of the table.
var order turns

// receive takes the order over from the package testing, which then lets all rows wait for their turn at the same time.
func (o *turns) receive() (err error) {
	flag.Parse()
	at := flag.Lookup("test.parallel")
	if o.free, err = strconv.Atoi(at.Value.String()); err != nil {
		return err
	}
	return at.Value.Set("1000")
}

// enter returns a function that waits for the turn of a row. All rows enter before the first one waits.
func (o *turns) enter(rank int) (wait func()) {
	x := turn{rank, make(chan struct{})}
	o.waiting = append(o.waiting, x)
	return func() {
		o.next(0)
		<-x.begin
	}
}

// next lets rows begin where so many have ended.
func (o *turns) next(ended int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.free += ended
	slices.SortStableFunc(o.waiting, func(a, b turn) int { return cmp.Compare(a.rank, b.rank) })
	for ; o.free > 0 && len(o.waiting) > 0; o.free-- {
		close(o.waiting[0].begin)
		o.waiting = o.waiting[1:]
	}
}

// TestTorture runs all rows and writes the table. Rows wait most of their time, so that some run at once.
func TestTorture(t *testing.T) {
	t.Logf("seed %d", rng.seed)
	brokers.t = t
	rows := slices.Concat(killRows(), damageRows(), diskRows(), storeRows(), refusalRows(), partialRows(), clockRows(), instanceRows(), fleetRows(), moreFleetRows(), floodRows())
	results := make([]result, len(rows))
	one := func(i int) func(t *testing.T) {
		return func(t *testing.T) {
			w, r := rows[i], &results[i]
			if !w.alone {
				wait := order.enter(w.rank())
				t.Parallel()
				wait()
				defer order.next(1)
			}
			*r = result{Row: w.name, Unit: "reports", Lost: map[string]int64{}, Failed: true, ran: true}
			start := time.Now()
			defer func() {
				r.Seconds, r.Failed = time.Since(start).Seconds(), t.Failed()
			}()
			w.run(t, r)
			if r.Sent == 0 && r.Unit != "" {
				t.Error("nothing was sent, so nothing was tested")
			}
			if r.Unaccounted != 0 || r.Doubled != 0 {
				t.Errorf("%d sent, %d stored, lost %s: %d unaccounted, %d doubled", r.Sent, r.Stored, r.lostText(), r.Unaccounted, r.Doubled)
			}
		}
	}
	for _, alone := range []bool{false, true} {
		t.Run(map[bool]string{false: "together", true: "alone"}[alone], func(t *testing.T) {
			for i := range rows {
				if rows[i].alone == alone {
					t.Run(rows[i].name, one(i))
				}
			}
		})
	}
	results = slices.DeleteFunc(results, func(r result) bool { return !r.ran }) // -run asks for other rows
	table := markdown(results)
	fmt.Print("\n", table, "\n")
	write := func(env string, data []byte) {
		if name := os.Getenv(env); name != "" {
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
	if name := os.Getenv("HOPSCOPE_TORTURE_TABLE"); name != "" {
		page, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		write("HOPSCOPE_TORTURE_TABLE", []byte(intoPage(string(page), table)))
	}
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	write("HOPSCOPE_TORTURE_JSON", append(data, '\n'))
}

// intoPage puts the table where a page has one, or gives the table if there is no such page.
func intoPage(page, table string) string {
	const begin, end = "<!-- torture -->\n", "<!-- /torture -->"
	before, rest, ok := strings.Cut(page, begin)
	if _, after, closed := strings.Cut(rest, end); ok && closed {
		return before + begin + "\n" + table + "\n" + end + after
	}
	return table
}

func markdown(results []result) string {
	var b strings.Builder
	b.WriteString("| row | sent | stored | counted as lost | unaccounted | doubled | seconds | remark |\n")
	b.WriteString("| --- | ---: | ---: | --- | ---: | ---: | ---: | --- |\n")
	for _, r := range results {
		remark := r.Remark
		if r.Failed {
			remark = strings.TrimPrefix(remark+"; FAILED", "; ")
		}
		if r.Unit == "" {
			fmt.Fprintf(&b, "| %s | – | – | – | – | – | %.1f | %s |\n", r.Row, r.Seconds, remark)
			continue
		}
		if r.Unit != "reports" {
			remark = strings.TrimPrefix(remark+"; in "+r.Unit, "; ")
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %d | %d | %.1f | %s |\n", r.Row, r.Sent, r.Stored, r.lostText(), r.Unaccounted, r.Doubled, r.Seconds, remark)
	}
	return b.String()
}

// random picks moments and places, for all rows.
type random struct {
	seed uint64
	mu   sync.Mutex
	rand *rand.Rand
}

var rng = func() *random {
	seed := rand.Uint64()
	return &random{seed: seed, rand: rand.New(rand.NewPCG(seed, 0))}
}()

func (r *random) Int64N(n int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rand.Int64N(n)
}

func (r *random) IntN(n int) int { return int(r.Int64N(int64(n))) }

// short chooses between the two forms.
func short[T any](brief, full T) T {
	if long {
		return full
	}
	return brief
}

// moment is a random time between lo and hi.
func moment(lo, hi time.Duration) time.Duration { return lo + time.Duration(rng.Int64N(int64(hi-lo))) }

// waitFor waits until ok, at most so long.
func waitFor(t *testing.T, most time.Duration, what string, ok func() bool) bool {
	t.Helper()
	for end := time.Now().Add(most); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("waited %v in vain for %s", most, what)
			return false
		}
	}
	return true
}
