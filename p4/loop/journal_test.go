package loop

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/control"
)

// someRecords are a journal that knows an epoch, probes in detail and a suspected link.
func someRecords() []control.Record {
	return []control.Record{
		{Time: 1, What: control.Planned, Epoch: 7, On: []string{"p1", "p2"}, Why: "the first plan"},
		{Time: 2, What: control.Pushed, Device: "agent a", Request: 1, Epoch: 7, Count: 2},
		{Time: 3, What: control.Answered, Device: "agent a", Request: 1},
		{Time: 4, What: control.Suspected, On: []string{"a:1--b:1"}, Why: "20 of 20 rounds got lost"},
		{Time: 5, What: control.Suspected, On: []string{"a:2--c:1"}, Why: "a queue"},
		{Time: 6, What: control.Cleared, Off: []string{"a:2--c:1"}},
	}
}

func writeJournal(t *testing.T, records []control.Record) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(path, 1<<20, 1)
	if err == nil {
		err = j.Append(records)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// TestJournalFlips flips every single bit of a journal: the line that has it is named with its place and not believed, and all others are.
func TestJournalFlips(t *testing.T) {
	path, whole := writeJournal(t, someRecords())
	every := 5 // of eight, so that it comes to each bit of a byte
	if testkit.Night() {
		every = 1
	}
	for bit := 0; bit < 8*len(whole); bit += every {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := OpenJournal(path, 1<<20, 1)
		if err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		line, offset := 1+bytes.Count(whole[:bit/8], []byte("\n")), int64(1+bytes.LastIndexByte(whole[:bit/8], '\n'))
		left := len(j.Last(100))
		switch d := j.Damage(); {
		case whole[bit/8] == '\n' && line == len(someRecords()): // a last line without its end is one that was not written whole
		case line == 1 && left == len(someRecords()): // what the first line says is right, and the name of its sum is not
			if !j.Last(100)[0].Unchecked {
				t.Fatalf("bit %d: the first line is believed to be checked", bit)
			}
		case len(d) == 0 || d[0].Line != line || d[0].Offset != offset || left < len(someRecords())-2:
			t.Fatalf("bit %d, of line %d at %d: %v, and %d records", bit, line, offset, d, left)
		case bit/8 < int(offset)+bytes.IndexByte(whole[offset:], '\n')-sumLen+1 && b[bit/8] != '\n' && !strings.Contains(d[0].Error(), "is flipped"):
			t.Fatalf("bit %d: the bit is not named: %v", bit, &d[0])
		}
		if e := j.Seed().Epoch; e != 7 && e != 0 {
			t.Fatalf("bit %d: epoch %d is believed", bit, e)
		}
		j.Close()
	}
}

// TestJournalUnchecked reads a journal of a version before, without checksums, and goes on with them.
func TestJournalUnchecked(t *testing.T) {
	var old []byte
	for _, r := range someRecords() {
		old = append(appendRecord(old, &r), '\n')
	}
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	for life := range 2 {
		j, err := OpenJournal(path, 1<<20, 1)
		if err != nil {
			t.Fatal(err)
		}
		list := j.Last(100)
		if len(j.Damage()) > 0 || len(list) != len(someRecords())+life || !list[0].Unchecked || life == 1 && list[len(list)-1].Unchecked {
			t.Fatalf("life %d: %+v, damage %v", life, list, j.Damage())
		}
		want := []control.Suspect{{Link: "a:1--b:1", Why: "20 of 20 rounds got lost", Since: 4}}
		if s := j.Seed(); s.Epoch != 7 || !slices.Equal(s.Suspects, want) {
			t.Errorf("life %d: %+v", life, s)
		}
		if err := j.Append([]control.Record{{Time: 9, What: control.Settled}}); err != nil {
			t.Fatal(err)
		}
		j.Close()
	}
	if err := os.WriteFile(path, slices.Concat(old, appendLine(nil, &control.Record{What: control.Settled}), old), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := OpenJournal(path, 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if n := len(j.Damage()); n != len(someRecords()) {
		t.Errorf("lines without a checksum behind one that has it: %d are named", n)
	}
}

// TestJournalCarriesSuspects keeps what is suspected when a file is full.
func TestJournalCarriesSuspects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(path, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 100 {
		if err := j.Append([]control.Record{someRecords()[min(3, k)]}); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		if err := j.Append([]control.Record{{What: control.Asked}}); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	if j, err = OpenJournal(path, 1000, 1); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if s := j.Seed(); len(s.Suspects) != 1 || s.Suspects[0].Since != 4 {
		t.Errorf("after the files were full: %+v", s)
	}
}

// TestJournalRemoves: a journal that is full ten times over counts the records of the files that it does not keep.
func TestJournalRemoves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(path, 1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	const appended = 300
	for n := range uint32(appended) {
		if err := j.Append([]control.Record{{What: control.Pushed, Epoch: n + 1, Device: "agent a", Time: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	left, begun := uint64(0), uint64(0)
	for _, name := range []string{path, j.name(1), j.name(2)} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		left += uint64(bytes.Count(b, []byte("\n")))
		begun++
	}
	files, records := j.Removed()
	begun += files - 1 // those after the first begin with a record of what was in force
	if files < 10 || records+left != appended+begun {
		t.Errorf("%d files with %d records are removed, %d records are left, of %d", files, records, left, appended+begun)
	}
}

// TestJournalFails: while the journal cannot be written, no device is blamed, and nothing that no agent confirmed is in
// force. The log has the end once, when a record was written.
func TestJournalFails(t *testing.T) {
	var log bytes.Buffer
	x := newEmulated(t, 4, nil)
	j, err := OpenJournal(filepath.Join(t.TempDir(), "journal"), 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	x.start(t, control.Config{Cycle: int64(cycle), Timeout: int64(300 * time.Millisecond)}, j)
	x.loop.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	x.run(3 * cycle)
	was := x.loop.StatusNow()
	if was.InForce == 0 {
		t.Fatalf("no plan is in force: %+v", was)
	}
	x.suspects.list = []control.Suspect{{Link: x.network.Probes[0].Links[0], Weight: 1}}
	whole := j.file
	if j.file, err = os.Open(j.path); err != nil { // which cannot be written
		t.Fatal(err)
	}
	x.run(8 * cycle)
	s := x.loop.StatusNow()
	if s.InForce != was.InForce || s.Loop.Journal == "" {
		t.Errorf("in force is %d, and was %d; %q", s.InForce, was.InForce, s.Loop.Journal)
	}
	for _, d := range s.Devices {
		if d.State != "ready" && d.State != "behind" || d.Why != "" {
			t.Errorf("%v is blamed: %+v", d.Device, d)
		}
	}
	if text := log.String(); strings.Count(text, "cannot be written") != 1 || strings.Contains(text, "can be written again") {
		t.Errorf("the log: %s", text)
	}
	j.file.Close()
	j.file = whole
	x.run(5 * cycle)
	if s := x.loop.StatusNow(); s.InForce <= was.InForce || s.Loop.Journal != "" || s.Detailed == 0 {
		t.Errorf("afterwards: %+v", s)
	}
	if text := log.String(); strings.Count(text, "can be written again") != 1 {
		t.Errorf("the log reports the end %d times: %s", strings.Count(text, "can be written again"), text)
	}
	if !slices.ContainsFunc(j.Last(1000), func(r control.Record) bool { return r.What == control.Gap }) {
		t.Error("the journal does not say that records are missing")
	}
}

// TestJournalEpoch: an epoch of a journal that no life can have come to does not end pushing.
func TestJournalEpoch(t *testing.T) {
	x := newEmulated(t, 4, nil)
	path, _ := writeJournal(t, []control.Record{{What: control.Planned, Epoch: 4294967290}})
	j, err := OpenJournal(path, 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	x.start(t, control.Config{Cycle: int64(cycle), Timeout: int64(300 * time.Millisecond)}, j)
	x.run(4 * cycle)
	if e := x.loop.StatusNow().InForce; e == 0 || e > 3600+2 {
		t.Errorf("epoch %d is in force, want one within an hour of cycles of what agents had", e)
	}
}
