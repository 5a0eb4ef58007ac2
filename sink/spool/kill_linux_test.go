package spool

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const childEnv = "HOPSCOPE_SPOOL_TEST_DIR"

// TestMain is the child of TestKill when the environment variable is set. It appends, reads and commits as fast as it
// can, and prints the number of each record that Append took.
func TestMain(m *testing.M) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	c := testConfig(dir)
	c.SegmentBytes, c.MaxBytes = 64<<10, 64<<20
	s, err := Open(c)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	next := 1
	if b, err := os.ReadFile(dir + "/next"); err == nil {
		next, _ = strconv.Atoi(string(b))
	}
	for ; ; next++ {
		if err := s.Append(uint64(next), 1, payload(next, next%3000)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("appended", next)
		if next%3 == 0 {
			r, err := s.Read(nil)
			if err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			fmt.Println("committing", r.Reports)
			s.Commit(r.End)
		}
	}
}

// A process is killed in the middle of its work, again and again. Every record whose Append returned is there, whole
// and in order, up to what was committed.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	c := testConfig(dir)
	c.SegmentBytes, c.MaxBytes = 64<<10, 64<<20
	first, next := uint64(1), uint64(1) // what may be in the spool: first to next-1, and next if its Append was cut off
	for round := range 12 {
		if err := os.WriteFile(dir+"/next", fmt.Append(nil, next), 0o600); err != nil {
			t.Fatal(err)
		}
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
		lines := bufio.NewScanner(out)
		committing := first - 1
		said := 0
		for lines.Scan() {
			if said++; said == 40+25*round { // it is in the middle of its work, however slow the machine is
				child.Process.Signal(syscall.SIGKILL)
			}
			word, number, ok := strings.Cut(lines.Text(), " ")
			if !ok {
				continue // cut off
			}
			n, err := strconv.ParseUint(number, 10, 64)
			switch {
			case err == nil && word == "appended":
				next = n + 1
			case err == nil && word == "committing":
				committing = n
			default:
				t.Fatalf("child: %s", lines.Text())
			}
		}
		child.Wait()
		if said < 40+25*round {
			t.Fatalf("the child said only %d lines", said)
		}

		s := mustOpen(t, c, nil)
		records := drain(t, s)
		if len(records) == 0 && committing == next-1 { // it was killed when everything was committed
			first = next
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if len(records) == 0 {
			t.Fatalf("round %d: nothing is there, next is %d", round, next)
		}
		from, to := records[0].Reports, records[len(records)-1].Reports
		// The last commit and the last append may or may not have happened.
		if from < first || from > committing+1 || from < committing || to != next-1 && to != next {
			t.Fatalf("round %d: %d to %d are there; first %d, committing %d, next %d", round, from, to, first, committing, next)
		}
		for i, r := range records {
			if n := from + uint64(i); r.Reports != n || !bytes.Equal(r.Payload, payload(int(n), int(n)%3000)) {
				t.Fatalf("round %d: record %d is %d %.40q", round, n, r.Reports, r.Payload)
			}
		}
		if st := s.Stats(); st.damagedBytes != 0 || st.EvictedRecords != 0 {
			t.Fatalf("round %d: %+v", round, st)
		}
		first, next = from, to+1
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if next < 100 {
		t.Errorf("only %d records were appended", next)
	}
}
