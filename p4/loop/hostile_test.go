package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hopscope/hopscope/planner/control"
)

// openJournal opens one of 500 bytes a file, with two files beside it.
func openJournal(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := OpenJournal(path, 500, 2)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// What an operator says is no epoch that was used: a typing error would use up all there are.
func TestJournalOfCommands(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "journal"))
	defer j.Close()
	if err := j.Append([]control.Record{{What: control.Planned, Epoch: 4}, {What: control.Commanded, Epoch: 4294967295, Why: "approve: no plan waits"}}); err != nil {
		t.Fatal(err)
	}
	if s := j.Seed(); s.Epoch != 4 {
		t.Errorf("seed %+v", s)
	}
}

// Records of which it is unknown how much was written, because they could not be synced, are not in the way of later ones.
func TestJournalAfterFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 200)+"\n"+strings.Repeat("y", 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := j.Append([]control.Record{{What: control.Planned, Epoch: 4}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openJournal(t, path)
	defer j.Close()
	if l := j.Last(10); len(l) != 1 || l[0].Epoch != 4 {
		t.Errorf("%+v", l)
	}
}

// A journal that cannot begin a new file keeps those that it has, and goes on when it can.
func TestJournalCannotRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	write := func() error {
		return j.Append([]control.Record{{What: control.Planned, Epoch: 4, Why: strings.Repeat("z", 300)}})
	}
	for range 3 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	before := map[string]string{}
	for _, name := range []string{path, path + ".1", path + ".2"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		before[name] = string(b)
	}
	if err := os.Mkdir(path+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if write() == nil {
			t.Fatal("a record was written beyond what a file holds")
		}
	}
	for name, want := range before {
		if b, err := os.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("%s: %v, %q", name, err, b)
		}
	}
	if err := os.Remove(path + ".new"); err != nil {
		t.Fatal(err)
	}
	if err := write(); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j = openJournal(t, path); j.Seed().Epoch != 4 {
		t.Errorf("seed %+v", j.Seed())
	}
	j.Close()
}

// A journal is open once at a time, also after its file has got another name, and whatever the file of its lock says.
func TestJournalHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	for k, c := range []struct {
		lock    string
		process int
	}{{fmt.Sprintln(os.Getpid()), os.Getpid()}, {"", 0}, {strings.Repeat("9", 100), 0}, {"nobody", 0}, {"-3", 0}} {
		if k > 0 {
			if err := os.WriteFile(path+".lock", []byte(c.lock), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Append([]control.Record{{What: control.Planned, Epoch: 4, Why: strings.Repeat("z", 300)}}); err != nil {
			t.Fatal(err)
		}
		_, err := OpenJournal(path, 500, 2)
		if x := (*HeldError)(nil); !errors.As(err, &x) || x.Journal != path || x.Process != c.process || strings.Contains(err.Error(), "(process") != (c.process > 0) {
			t.Errorf("lock %q: %v", c.lock, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	openJournal(t, path).Close()
	// What could not be opened is not held.
	if err := os.WriteFile(path, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := OpenJournal(path, 500, 2); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("nonsense: %v", err)
		}
	}
}

// A caller that gives up waiting for a status gets one that the loop does not write to later. The race detector sees it if not.
func TestStatusGivenUp(t *testing.T) {
	x := newEmulated(t, 6, nil)
	x.loop.o.Now = func() int64 { return 1 }
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var asking sync.WaitGroup
	asking.Go(func() {
		for range 300 {
			if s, err := x.loop.Status(ctx); err != nil && s.Epoch != 0 {
				t.Errorf("%v: %+v", err, s)
			}
		}
	})
	for range 300 {
		x.loop.Step(1)
	}
	asking.Wait()
}

// Names of operators are kept to what a terminal shows as it is.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"me at desk-1": "me at desk-1", "a\x1b[2Jb": "a[2Jb", "a\u009b2Jb": "a2Jb", "a\u202eb": "ab", "a\nb": "ab"} {
		if got := printable(in); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}
