package parquet

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/spool"
)

const childEnv = "HOPSCOPE_PARQUET_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := child(dir); err != nil {
			fmt.Println("error", err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func queueIn(dir string) (*sink.Queue, *spool.Spool, error) {
	sc := spool.DefaultConfig()
	sc.Dir = dir + "/spool"
	s, err := spool.Open(sc)
	if err != nil {
		return nil, nil, err
	}
	c := testConfig(dir + "/data")
	c.RotateInterval = 50 * time.Millisecond
	w, err := New(c)
	if err != nil {
		return nil, nil, err
	}
	return sink.NewQueue(w, sink.DefaultQueueConfig(), sink.QueueOptions{Spool: s}), s, nil
}

// child writes one batch after the other and prints the number of each that is in the spool.
func child(dir string) error {
	q, s, err := queueIn(dir)
	if err != nil {
		return err
	}
	q.Start()
	first, err := strconv.Atoi(os.Getenv(childEnv + "_FIRST"))
	if err != nil {
		return err
	}
	var put uint64
	for i := first; ; i++ {
		var b sink.Batch
		for j := range 20 {
			p := hopPoint(j, base+int64(i))
			b.Points = append(b.Points, p)
		}
		if err := q.Put(context.Background(), &b); err != nil {
			return err
		}
		put++
		for s.Stats().Appended < put {
			time.Sleep(50 * time.Microsecond) // the child is a process of its own, and waits for its spool
		}
		fmt.Println(i)
	}
}

// A collector that is killed again and again loses no row of what reached its spool.
func TestKill(t *testing.T) {
	testkit.Long(t)
	dir := t.TempDir()
	next, kills := 0, testkit.Rounds(8, 20)
	for round := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir, fmt.Sprintf("%s_FIRST=%d", childEnv, next))
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		said, last := 0, 60+20*(round%8) // a part a line, which takes a third of a second under the race detector
		for lines.Scan() {
			if said++; said == last { // it is in the middle of its work, however slow the machine is
				cmd.Process.Signal(syscall.SIGKILL)
			}
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatalf("child: %s", lines.Text())
			}
			next = n + 1
		}
		cmd.Wait()
		if said < last {
			t.Fatalf("the child said only %d lines", said)
		}
		next += 2 // one batch may be there that was not printed
	}
	q, _, err := queueIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	q.Start()
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	count := map[int64]int{}
	total := 0
	for _, r := range readAll(t, dir+"/data", "hop") {
		count[r["time"].(int64)-base]++
		total++
	}
	gaps := 0
	for i := range int64(next) {
		switch n := count[i]; {
		case n == 0:
			gaps++ // a number that was skipped above, or the child was killed before it
		case n%20 != 0:
			t.Errorf("batch %d has %d rows", i, n)
		}
	}
	if gaps > 2*kills {
		t.Errorf("%d of %d batches are missing", gaps, next)
	}
	if next < 100 {
		t.Errorf("only %d batches were written", next)
	}
	t.Logf("%d batches, %d rows, of them %d twice", next, total, total-20*(next-gaps))
}
