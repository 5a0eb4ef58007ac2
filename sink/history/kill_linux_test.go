package history

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sink"
)

const childEnv = "HOPSCOPE_HISTORY_TEST_DIR"

// TestMain is the child of TestKill when the environment variable is set. It adds minutes as fast as they are written, and prints the
// number of each that is on disk.
func TestMain(m *testing.M) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := Open(DefaultConfig(), Options{Dir: dir, Hops: 64})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	go func() { _ = s.Serve(context.Background()) }()
	for {
		n := s.Stats().Newest
		if n == 0 {
			n = noon
		}
		var p window.Partial
		p.Hop(inference.HopKey{Node: 1}).Latency.AddValue(uint64(n))
		w := inference.Window{Start: n, End: n + 60*second, Reports: 1}
		if err := s.AddPartial(context.Background(), &sink.Window{Window: &w, Partial: &p}); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		for s.Stats().Newest == n || s.Stats().Newest == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		fmt.Println("written", (s.Stats().Newest-noon)/(60*second))
	}
}

// A process is killed in the middle of its work, again and again. Every minute that was written is there, and at most one more.
func TestKill(t *testing.T) {
	dir, written := t.TempDir(), uint64(0)
	for round := range 6 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childEnv+"="+dir)
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines, said := bufio.NewScanner(out), 0
		for lines.Scan() {
			if said++; said == 20+7*round {
				_ = child.Process.Signal(syscall.SIGKILL)
			}
			word, number, _ := strings.Cut(lines.Text(), " ")
			n, err := strconv.ParseUint(number, 10, 64)
			switch {
			case word == "error":
				t.Fatal(lines.Text())
			case word == "written" && err == nil:
				written = max(written, n)
			}
		}
		_ = child.Wait() // it was killed
		s := open(t, dir, nil)
		_, c := seen(t, s, noon, 600)
		if got := c.Merged(); got != written && got != written+1 {
			t.Fatalf("round %d: %d minutes were written, and %d are there", round, written, got)
		}
		if st := s.Stats(); st.Damaged > 1 { // the record that the kill cut off
			t.Fatalf("round %d: %d damaged: %s", round, st.Damaged, st.LastDamage)
		}
		closed(t, s)
	}
}

// A real file system that is full, where there is the right to mount one.
func TestFullDiskTmpfs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("no right to mount a small file system (%v); TestFullDisk does it in memory", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	s := open(t, dir, nil)
	minutesOf(t, s, noon, 600)
	st := s.Stats()
	if st.LostMinutes == 0 || !strings.Contains(s.Problem(), syscall.ENOSPC.Error()) {
		t.Fatalf("%d minutes lost: %q", st.LostMinutes, s.Problem())
	}
	s.cfg.MaxBytes = 64 << 10 // less than the disk has: room is made
	minutesOf(t, s, noon+600*60*second, 60)
	if got := s.Stats(); s.Problem() != "" || got.Deleted == 0 {
		t.Errorf("%q, %d files deleted", s.Problem(), got.Deleted)
	}
	_, c := seen(t, s, noon, 660)
	closed(t, s)
	s = open(t, dir, nil)
	if _, again := seen(t, s, noon, 660); again.Merged() != c.Merged() || s.Stats().Damaged != 0 {
		t.Errorf("after a restart there are %d windows, before %d; %d damaged", again.Merged(), c.Merged(), s.Stats().Damaged)
	}
	closed(t, s)
}
