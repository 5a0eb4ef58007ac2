//go:build torture

package torture

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/servertest"
)

// files are those of a spool.
type files struct {
	t        *testing.T
	dir      string
	segments []string // oldest first
	state    string
	// Where things are in a segment.
	segmentHeader, recordHeader int64
}

func spoolFiles(t *testing.T, dir string) *files {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if len(names) < 4 {
		t.Fatalf("the spool has %d segments, too few to damage one: %v", len(names), names)
	}
	f := &files{t: t, dir: dir, segments: names, state: filepath.Join(dir, "state"), segmentHeader: 44, recordHeader: 64}
	if !strings.HasSuffix(names[0], ".v2.seg") {
		f.state, f.segmentHeader, f.recordHeader = filepath.Join(dir, "head"), 8, 24
	}
	return f
}

// flip turns one bit of a file.
func (f *files) flip(name string, at int64) {
	f.t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		f.t.Fatal(err)
	}
	if at >= int64(len(b)) {
		f.t.Fatalf("%s has %d bytes, and byte %d was to be damaged", name, len(b), at)
	}
	b[at] ^= 1 << rng.IntN(8)
	f.write(name, b)
}

func (f *files) write(name string, b []byte) {
	f.t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// some returns a segment that is neither the first nor the last.
func (f *files) some() string { return f.segments[1+rng.IntN(len(f.segments)-2)] }

func (f *files) truncate(name string, by int64) {
	f.t.Helper()
	in, err := os.Stat(name)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.Truncate(name, max(0, in.Size()-by)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *files) rename(from, to string) {
	f.t.Helper()
	if err := os.Rename(from, to); err != nil {
		f.t.Fatal(err)
	}
}

func (f *files) remove(name string) {
	f.t.Helper()
	if err := os.Remove(name); err != nil {
		f.t.Fatal(err)
	}
}

// damages are the classes of bytes and of files. A class is quiet if it costs nothing that the log has to report.
var damages = []struct {
	name  string
	quiet bool
	do    func(f *files)
}{
	{"a bit in the magic of a segment", false, func(f *files) { f.flip(f.some(), rng.Int64N(8)) }},
	{"a bit in the header of a segment", false, func(f *files) { f.flip(f.some(), rng.Int64N(f.segmentHeader)) }},
	{"a bit in the marker or length of a record", false, func(f *files) { f.flip(f.some(), f.segmentHeader+rng.Int64N(8)) }},
	{"a bit in the header of a record", false, func(f *files) { f.flip(f.some(), f.segmentHeader+rng.Int64N(f.recordHeader)) }},
	{"a bit in the payload of a record", false, func(f *files) { f.flip(f.some(), f.segmentHeader+f.recordHeader+rng.Int64N(256)) }},
	{"a bit in the first segment", false, func(f *files) { f.flip(f.segments[0], f.segmentHeader+rng.Int64N(f.recordHeader)) }},
	{"a bit in the last segment", false, func(f *files) { f.flip(f.segments[len(f.segments)-1], f.segmentHeader+rng.Int64N(f.recordHeader)) }},
	{"a bit in the file of the state", true, func(f *files) { f.flip(f.state, rng.Int64N(40)) }},
	{"the file of the state emptied", true, func(f *files) { f.write(f.state, nil) }},
	{"the file of the state removed", true, func(f *files) { f.remove(f.state) }},
	{"a segment cut in the middle", false, func(f *files) { f.truncate(f.some(), 1+rng.Int64N(2000)) }},
	{"the last segment cut", false, func(f *files) { f.truncate(f.segments[len(f.segments)-1], 1+rng.Int64N(200)) }},
	{"a segment emptied", false, func(f *files) { f.write(f.some(), nil) }},
	{"a segment of zeros", false, func(f *files) {
		name := f.some()
		in, err := os.Stat(name)
		if err != nil {
			f.t.Fatal(err)
		}
		f.write(name, make([]byte, in.Size()))
	}},
	{"a segment removed", false, func(f *files) { f.remove(f.some()) }},
	{"the first segment removed", false, func(f *files) { f.remove(f.segments[0]) }},
	{"the last segment removed", false, func(f *files) { f.remove(f.segments[len(f.segments)-1]) }},
	{"twenty bits anywhere", false, func(f *files) {
		for range 20 {
			name := f.segments[rng.IntN(len(f.segments))]
			in, err := os.Stat(name)
			if err != nil {
				f.t.Fatal(err)
			}
			f.flip(name, rng.Int64N(in.Size()))
		}
	}},
	{"a page of zeros over two records", false, func(f *files) {
		name := f.some()
		b, err := os.ReadFile(name)
		if err != nil {
			f.t.Fatal(err)
		}
		at := rng.IntN(len(b) - 4096)
		clear(b[at : at+4096])
		f.write(name, b)
	}},
	{"the state and a segment removed", false, func(f *files) {
		f.remove(f.state)
		f.remove(f.some())
	}},
	{"the state cut, and the first segment removed", false, func(f *files) {
		b, err := os.ReadFile(f.state)
		if err != nil {
			f.t.Fatal(err)
		}
		f.remove(f.segments[0])
		f.write(f.state, b[:len(b)/2])
	}},
	{"two segments swapped", false, func(f *files) {
		a, b := f.segments[1], f.segments[2]
		f.rename(a, a+".swap")
		f.rename(b, a)
		f.rename(a+".swap", b)
	}},
	{"a segment copied behind the last", false, func(f *files) {
		b, err := os.ReadFile(f.segments[1])
		if err != nil {
			f.t.Fatal(err)
		}
		name := strings.Replace(filepath.Base(f.segments[0]), "0000", "0009", 1)
		f.write(filepath.Join(f.dir, name), b)
	}},
}

// damageRows damage the spool between two runs, while it holds what the first one could not store.
func damageRows() []row {
	var rows []row
	for _, d := range damages {
		rows = append(rows, row{name: "spool: " + d.name, run: func(t *testing.T, r *result) {
			server := startStore(t, servertest.Influx2)
			for range short(1, 5) {
				one := result{Lost: map[string]int64{}}
				server.Stop()
				p := newPlace(t, placeOptions{server: server, window: "100ms", spool: "    segment_bytes: 16384\n"})
				c := p.start()
				s := newSenderOf(t, p.udp, 8) // so few that a window is one record, and is there or is not
				waitFor(t, time.Minute, "the spool to have some segments", func() bool {
					s.send(200, 1000)
					names, _ := filepath.Glob(filepath.Join(p.spoolDir(), "*.seg"))
					return len(names) >= short(6, 12)
				})
				c.stop()
				d.do(spoolFiles(t, p.spoolDir()))
				server.Start()
				before := count(t, server)
				c = p.start()
				c.drained()
				c.stop()
				log := p.logged()
				p.balance(&one, s.sent.Load(), false)
				// What rounds before this one stored is in the same bucket.
				one.Stored -= before.hops / hops
				one.Unaccounted, one.Doubled = 0, 0
				one.settle()
				if !d.quiet && !strings.Contains(log, "spool") {
					t.Errorf("no line of the log reports the damage\n%s", log)
				}
				r.Sent, r.Stored = r.Sent+one.Sent, r.Stored+one.Stored
				for k, n := range one.Lost {
					r.Lost[k] += n
				}
				r.Unaccounted, r.Doubled = r.Unaccounted+one.Unaccounted, r.Doubled+one.Doubled
			}
		}})
	}
	return rows
}
