package jsonl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/sink"
)

const childEnv = "HOPSCOPE_JSONL_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	os.Exit(m.Run())
}

// child writes one batch to standard output on request, and the result to standard error.
func child() int {
	w, err := New(DefaultConfig())
	if err != nil {
		return 1
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		err := w.Write(context.Background(), batch(1))
		re, ok := errors.AsType[*sink.RetryError](err)
		switch {
		case err == nil:
			io.WriteString(os.Stderr, "stored\n")
		case ok && re.Config:
			io.WriteString(os.Stderr, err.Error()+"\n")
		default:
			return 2
		}
	}
	return 0
}

// A process whose reader goes away gets an error, and lives.
func TestReaderGone(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(said)
	write := func() string {
		io.WriteString(in, "write\n")
		s, err := answers.ReadString('\n')
		if err != nil {
			t.Fatalf("the child said %q, %v", s, err)
		}
		return s
	}
	if s := write(); s != "stored\n" {
		t.Fatalf("first write: %s", s)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != lines(1) {
		t.Errorf("read %q, %v", line, err)
	}
	out.Close()
	for range 2 {
		if s := write(); !strings.Contains(s, "standard output: its reader has gone (broken pipe)") {
			t.Errorf("a write without a reader: %q", s)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the child: %v", err)
	}
}

// pipeWriter returns a writer to a pipe, and the end that is read.
func pipeWriter(t *testing.T) (*writer, *os.File) {
	t.Helper()
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	s, err := newStream(p, "pipe")
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	return &writer{out: s}, r
}

// fill writes a batch that the pipe cannot hold until ctx ends, and returns what it holds.
func fill(t *testing.T, w *writer, r *os.File, big *sink.Batch) []byte {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Write(ctx, big) }()
	waitFull(t, w)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("Write to a full pipe = %v", err)
	}
	b := make([]byte, w.out.(*stream).done)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// waitFull waits until nothing more goes into the pipe.
func waitFull(t *testing.T, w *writer) {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(w.out.(*stream).fd), Events: unix.POLLOUT}}
	for t.Context().Err() == nil {
		if n, err := unix.Poll(fds, 0); n == 0 && err == nil {
			return
		}
	}
	t.Fatal("the pipe does not fill up")
}

func bigBatch() *sink.Batch {
	b := &sink.Batch{}
	for i := range 1000 {
		b.Points = append(b.Points, hopPoint(i))
	}
	// A line of its own that is longer than a pipe takes at once, and is torn in the middle.
	b.Points[100].Fields = append(b.Points[100].Fields, sink.StringField("long", strings.Repeat("x", 100_000)))
	return b
}

// A write that a full pipe interrupts continues where it ended when it is tried again.
func TestInterruptedWriteGoesOn(t *testing.T) {
	w, r := pipeWriter(t)
	big := bigBatch()
	got := fill(t, w, r, big)
	if len(got) == 0 || got[len(got)-1] == '\n' {
		t.Fatalf("%d bytes went through, which do not end inside of a line", len(got))
	}
	done := make(chan error)
	go func() { done <- errors.Join(w.Write(t.Context(), big), w.Write(t.Context(), batch(1)), w.Close()) }()
	rest, err := io.ReadAll(r)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	want := append(encoded(big), lines(1)...)
	if got = append(got, rest...); !bytes.Equal(got, want) {
		t.Errorf("%d bytes came through, want the %d of both batches, once", len(got), len(want))
	}
	if st := w.Stats(); st.Lines != 1001 || st.Bytes != uint64(len(want)) {
		t.Errorf("Stats() = %+v", st)
	}
}

// When another batch comes instead, the torn line is finished before it.
func TestOtherBatchAfterTornLine(t *testing.T) {
	w, r := pipeWriter(t)
	big := bigBatch()
	got := fill(t, w, r, big)
	torn := bytes.Count(got, []byte{'\n'}) + 1
	done := make(chan error)
	go func() { done <- errors.Join(w.Write(t.Context(), batch(1)), w.Close()) }()
	rest, err := io.ReadAll(r)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	want := append(encoded(&sink.Batch{Points: big.Points[:torn]}), lines(1)...)
	if got = append(got, rest...); !bytes.Equal(got, want) {
		t.Errorf("%d bytes came through, want %d: %d lines and one more", len(got), len(want), torn)
	}
}

// Standard output that is a file gets everything as well.
func TestStreamToFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := newStream(f, "file")
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{out: s}
	if err := errors.Join(w.Write(t.Context(), bigBatch()), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, encoded(bigBatch())) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
