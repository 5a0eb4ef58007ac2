package pcapfile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// capture is a capture of frames with these bytes.
func capture(data ...string) []byte {
	var records []frame
	for _, d := range data {
		records = append(records, frame{Data: d, Time: 1e9, Length: 3})
	}
	return pcapBytes(binary.LittleEndian, magicNano, 1, records...)
}

// records returns the part after the header of a capture of frames with these bytes.
func records(data ...string) []byte { return capture(data...)[fileHeaderLen:] }

func follow(t *testing.T, files ...string) *Follow {
	t.Helper()
	c := DefaultFollowConfig()
	c.Files = files
	s, err := NewFollow(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t *testing.T, path string, flag int, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|flag, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// followed is a source that runs in a bubble, whose clock goes on when all goroutines wait.
type followed struct {
	*Follow
	t    *testing.T
	got  []string // of each worker, in order
	stop context.CancelFunc
	done chan error
}

func startFollow(t *testing.T, files ...string) *followed {
	f := &followed{Follow: follow(t, files...), t: t, got: make([]string, len(files)), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	f.stop = cancel
	go func() {
		f.done <- f.Run(ctx, func(worker int, b *ingest.Batch) {
			for i := range b.Frames {
				f.got[worker] += string(b.Frames[i].Data) + " "
				if b.Frames[i].Time != time.Now().UnixNano() {
					t.Errorf("a frame of %d, handed over at %d", b.Frames[i].Time, time.Now().UnixNano())
				}
			}
		})
	}()
	return f
}

// expect lets the source look at its files, and checks what it has handed over since it began.
func (f *followed) expect(worker int, want, problem string) {
	f.t.Helper()
	time.Sleep(2 * f.cfg.Poll)
	synctest.Wait()
	if f.got[worker] != want {
		f.t.Errorf("worker %d handed over %q, want %q", worker, f.got[worker], want)
	}
	in := f.Inputs()[worker]
	if in.Name != f.cfg.Files[worker] || in.Frames != uint64(len(strings.Fields(want))) {
		f.t.Errorf("input %+v, want %s with the frames %q", in, f.cfg.Files[worker], want)
	}
	if (problem == "") != (in.Problem == "") || !strings.Contains(in.Problem, problem) {
		f.t.Errorf("problem %q, want %q", in.Problem, problem)
	}
}

func (f *followed) end(want ingest.Stats) {
	f.t.Helper()
	f.stop()
	if err := <-f.done; err != nil {
		f.t.Errorf("Run: %v", err)
	}
	if got := f.Stats(); got != want {
		f.t.Errorf("Stats() = %+v, want %+v", got, want)
	}
}

// A capture is read from its start and then as it grows, in whatever pieces.
func TestFollowGrowing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcap")
	put(t, path, os.O_CREATE, nil)
	synctest.Test(t, func(t *testing.T) {
		f := startFollow(t, path)
		f.expect(0, "", "")
		all := capture("a", "bb", "ccc", "dddd")
		want := map[int]string{ // bytes at which a frame is whole
			24 + 17: "a ", 24 + 17 + 18: "a bb ", 24 + 17 + 18 + 19: "a bb ccc ", 24 + 17 + 18 + 19 + 20: "a bb ccc dddd ",
		}
		now := ""
		for i := range all {
			put(t, path, os.O_APPEND, all[i:i+1])
			if w, ok := want[i+1]; ok {
				now = w
			}
			f.expect(0, now, "")
		}
		f.end(ingest.Stats{Frames: 4, Bytes: 10, Truncated: 2})
	})
}

// The next capture is read when the path names another file, and when the file was cut.
func TestFollowRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.pcap")
	put(t, path, os.O_CREATE, capture("a", "b"))
	synctest.Test(t, func(t *testing.T) {
		f := startFollow(t, path)
		f.expect(0, "a b ", "")
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		put(t, path+".1", os.O_APPEND, records("c"))
		f.expect(0, "a b c ", "") // there is no next one yet
		put(t, path+".1", os.O_APPEND, records("d"))
		put(t, path, os.O_CREATE, capture("e"))
		f.expect(0, "a b c d e ", "")
		put(t, path, os.O_TRUNC, nil)
		f.expect(0, "a b c d e ", "")
		put(t, path, os.O_APPEND, capture("f"))
		f.expect(0, "a b c d e f ", "")

		// Its writer was killed inside of a record.
		put(t, path, os.O_APPEND, records("gone")[:18])
		f.expect(0, "a b c d e f ", "")
		put(t, path+".new", os.O_CREATE, nil)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		f.expect(0, "a b c d e f ", "record 2 at byte 41: file ends after 18 of 20 bytes")
		put(t, path, os.O_APPEND, capture("g"))
		f.expect(0, "a b c d e f g ", "")
		f.end(ingest.Stats{Frames: 7, Bytes: 7, Truncated: 7, Damaged: 1})
	})
}

// A file that was seen to be cut is read again, also when it has become longer than before until its next capture is
// opened.
func TestFollowCutAndGrown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcap")
	put(t, path, os.O_CREATE, capture("a"))
	synctest.Test(t, func(t *testing.T) {
		in := &input{path: path, name: path, poll: time.Second}
		if err := in.open(); err != nil {
			t.Fatal(err)
		}
		defer in.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		end := &tail{in: in, ctx: ctx}
		b := make([]byte, 1<<10)
		if n, err := end.Read(b); n == 0 || err != nil {
			t.Fatalf("Read = %d, %v", n, err)
		}
		put(t, path, os.O_TRUNC, nil)
		if n, err := end.Read(b); n != 0 || err != io.EOF {
			t.Fatalf("Read of a file that was cut = %d, %v", n, err)
		}
		put(t, path, 0, capture("a", "b"))
		if !end.next() {
			t.Error("the next capture is waited for, although it is there")
		}
	})
}

// A file that was cut, and is longer than before at the next look, is read from its start. It counts as one that was
// not read to its end. A file that was rewritten with the same bytes goes on.
func TestFollowWrittenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcap")
	put(t, path, os.O_CREATE, capture("a", "b"))
	synctest.Test(t, func(t *testing.T) {
		f := startFollow(t, path)
		f.expect(0, "a b ", "")
		put(t, path, os.O_TRUNC, capture("c", "d", "e"))
		f.expect(0, "a b c d e ", "")
		if got := f.Stats().Damaged; got != 1 {
			t.Errorf("%d captures count as not read to their end, want 1", got)
		}
		put(t, path, os.O_TRUNC, capture("c", "d", "e", "f"))
		f.expect(0, "a b c d e f ", "")
		if got := f.Stats().Damaged; got != 1 {
			t.Errorf("%d captures count as not read to their end, want 1", got)
		}
		put(t, path, os.O_TRUNC, capture("c", "d", "e", "g", "h")) // the same beginning, and another end
		f.expect(0, "a b c d e f c d e g h ", "")
		put(t, path, os.O_APPEND, records("gone")[:18])
		f.expect(0, "a b c d e f c d e g h ", "")
		put(t, path, os.O_TRUNC, capture("i", "j", "k", "l", "m", "n", "o")) // inside of a record, which counts once
		f.expect(0, "a b c d e f c d e g h i j k l m n o ", "")
		f.end(ingest.Stats{Frames: 18, Bytes: 18, Truncated: 18, Damaged: 3})
	})
}

// Garbage is a problem until a capture takes its place, in the same file or in another one, without a new start.
func TestFollowGarbageReplaced(t *testing.T) {
	const garbage = "this is no capture, but a text that has got into its place"
	for name, replace := range map[string]func(t *testing.T, path string, b []byte){
		"renamed": func(t *testing.T, path string, b []byte) {
			put(t, path+".new", os.O_CREATE, b)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
		"in place": func(t *testing.T, path string, b []byte) { put(t, path, os.O_TRUNC, b) },
		"over it":  func(t *testing.T, path string, b []byte) { put(t, path, 0, b) },
		"removed": func(t *testing.T, path string, b []byte) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			put(t, path, os.O_CREATE, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.pcap")
			put(t, path, os.O_CREATE, []byte(garbage))
			synctest.Test(t, func(t *testing.T) {
				f := startFollow(t, path)
				f.expect(0, "", "neither pcap nor pcapng")
				put(t, path, os.O_APPEND, []byte(garbage)) // the same damage, which counts once
				f.expect(0, "", "neither pcap nor pcapng")
				replace(t, path, []byte("other "+garbage))
				f.expect(0, "", "neither pcap nor pcapng")
				replace(t, path, capture("a", "b", "c", "d", "e", "f", "g", "h"))
				f.expect(0, "a b c d e f g h ", "")
				put(t, path, os.O_APPEND, records("i"))
				f.expect(0, "a b c d e f g h i ", "")
				f.end(ingest.Stats{Frames: 9, Bytes: 9, Truncated: 9, Damaged: 2})
			})
		})
	}
}

// A damaged capture stops its input until another one takes its place, and nothing else.
func TestFollowDamage(t *testing.T) {
	dir := t.TempDir()
	good, bad, none := filepath.Join(dir, "good.pcap"), filepath.Join(dir, "bad.pcap"), filepath.Join(dir, "none.txt")
	put(t, good, os.O_CREATE, capture("a"))
	put(t, bad, os.O_CREATE, capture("a"))
	put(t, none, os.O_CREATE, []byte("no capture at all, but a text"))
	synctest.Test(t, func(t *testing.T) {
		f := startFollow(t, bad, good, none)
		put(t, bad, os.O_APPEND, slices.Concat(bytes.Repeat([]byte{0xff}, recordHeaderLen), records("b")))
		put(t, good, os.O_APPEND, records("b"))
		f.expect(0, "a ", "bad.pcap: record 2 at byte 41: capture length")
		f.expect(1, "a b ", "")
		f.expect(2, "", "neither pcap nor pcapng")
		put(t, bad, os.O_TRUNC, capture("c"))
		put(t, good, os.O_APPEND, records("c"))
		f.expect(0, "a c ", "")
		f.expect(1, "a b c ", "")
		f.expect(2, "", "neither pcap nor pcapng")
		f.end(ingest.Stats{Frames: 5, Bytes: 5, Truncated: 5, Damaged: 2})
	})
}

// The frames of a compressed capture do not wait for more of it. The next file is read.
func TestFollowCompressed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcap.gz")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(capture("a", "b"))
	w.Close()
	put(t, path, os.O_CREATE, z.Bytes())
	synctest.Test(t, func(t *testing.T) {
		f := startFollow(t, path)
		f.expect(0, "a b ", "")
		f.expect(0, "a b ", "")
		put(t, path+".new", os.O_CREATE, capture("c"))
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		f.expect(0, "a b c ", "")
		f.end(ingest.Stats{Frames: 3, Bytes: 3, Truncated: 3})
	})
}

// A path that names nothing readable for a while is a problem for that while.
func TestFollowUnreadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcap")
	put(t, path, os.O_CREATE, capture("a"))
	synctest.Test(t, func(t *testing.T) {
		f := startFollow(t, path)
		f.expect(0, "a ", "")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		f.expect(0, "a ", "is a directory")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		put(t, path, os.O_CREATE, capture("b"))
		f.expect(0, "a b ", "")
		f.end(ingest.Stats{Frames: 2, Bytes: 2, Truncated: 2})
	})
}

// A FIFO is read on when its writer has gone and another one comes, also when it was made anew.
func TestFollowFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	mkfifo := func() {
		t.Helper()
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mkfifo()
	s := follow(t, path)
	opened, got, done := make(chan bool), make(chan string), make(chan error)
	s.inputs[0].opened = func() { opened <- true }
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		done <- s.Run(ctx, func(_ int, b *ingest.Batch) {
			for i := range b.Frames {
				got <- string(b.Frames[i].Data)
			}
		})
	}()
	write := func(b []byte, want ...string) {
		t.Helper()
		put(t, path, 0, b)
		for _, w := range want {
			if g := <-got; g != w {
				t.Errorf("frame %q, want %q", g, w)
			}
		}
		<-opened
	}
	write(capture("a", "b"), "a", "b")
	write(slices.Concat(capture("j"), capture("k"), pcapBytes(binary.LittleEndian, magicMicro, 101, frame{Data: "l", Time: 1e9, Length: 3})),
		"j", "k", "l") // writers of which one came before the end of the other was seen
	write(nil) // a writer that said nothing
	write(capture("c"), "c")
	write(capture("d", "gone")[:24+17+18], "d") // one that was killed
	if in := s.Inputs()[0]; !strings.Contains(in.Problem, "file ends after 18 of 20 bytes") || in.Frames != 7 {
		t.Errorf("input %+v", in)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	mkfifo()
	<-opened
	write(capture("e"), "e")
	if in := s.Inputs()[0]; in != (ingest.Input{Name: path, Frames: 8}) {
		t.Errorf("input %+v", in)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if got, want := s.Stats(), (ingest.Stats{Frames: 8, Bytes: 8, Truncated: 8, Damaged: 1}); got != want {
		t.Errorf("Stats() = %+v, want %+v", got, want)
	}
}

// A damaged FIFO is closed, so that its writer gets an error.
func TestFollowDamagedFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	s := follow(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx, func(int, *ingest.Batch) { t.Error("a batch") }) }()
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for err == nil && t.Context().Err() == nil {
		_, err = w.WriteString("this is no capture, and there is a lot of it")
	}
	if !errors.Is(err, unix.EPIPE) {
		t.Errorf("the writer got %v, want EPIPE", err)
	}
	if in := s.Inputs()[0]; !strings.Contains(in.Problem, "neither pcap nor pcapng") {
		t.Errorf("input %+v", in)
	}
	select {
	case err := <-done:
		t.Errorf("Run ended with its input: %v", err)
	default:
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// Standard input ends, whether it is a pipe or a file.
func TestFollowStandardInput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	path := filepath.Join(t.TempDir(), "a.pcap")
	put(t, path, os.O_CREATE, capture("a", "b"))
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	go func() {
		w.Write(capture("a", "b"))
		w.Close()
	}()
	defer func(f *os.File) { os.Stdin = f }(os.Stdin)
	for _, os.Stdin = range []*os.File{r, file} {
		s := follow(t, "-")
		if err := s.Run(t.Context(), func(int, *ingest.Batch) {}); err != nil {
			t.Errorf("Run: %v", err)
		}
		if got, want := s.Inputs()[0], (ingest.Input{Name: "standard input", Frames: 2}); got != want {
			t.Errorf("input %+v, want %+v", got, want)
		}
		if err := s.Run(t.Context(), nil); err == nil {
			t.Error("a second Run gives no error")
		}
	}
}

func TestFollowConfig(t *testing.T) {
	var c FollowConfig
	c.SetDefaults()
	if err := c.Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	if s, err := c.Open(); s != nil || err != nil {
		t.Errorf("Open() without files = %v, %v", s, err)
	}
	for _, tt := range []struct {
		files []string
		want  string
	}{
		{[]string{"a", "b", "-"}, ""},
		{[]string{"a", ""}, "files: one has no name"},
		{[]string{"a", "./a"}, "files: ./a is listed twice"},
		{[]string{"-", "-"}, "files: - is listed twice"},
	} {
		c.Files = tt.files
		if err := c.Validate(); tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want) {
			t.Errorf("Validate() of %q = %v, want %q", tt.files, err, tt.want)
		}
	}

	dir := t.TempDir()
	there := filepath.Join(dir, "there.pcap")
	put(t, there, os.O_CREATE, capture("a"))
	c.Files = []string{filepath.Join(dir, "one.pcap"), there, filepath.Join(dir, "two.pcap"), dir}
	s, err := c.Open()
	if s != nil || !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, unix.EISDIR) {
		t.Fatalf("Open() = %v, %v", s, err)
	}
	for _, name := range []string{"one.pcap", "two.pcap", dir} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("Open() = %q, which does not name %s", err, name)
		}
	}
	c.Files = []string{there}
	s, err = c.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.(*Follow).Close()
	if s.Workers() != 1 || !s.(ingest.Waiter).Waits() || len(s.(ingest.Describer).Inputs()) != 1 {
		t.Errorf("Open() gives %d workers", s.Workers())
	}

	st := ingest.Stats{Frames: 1, Bytes: 2, KernelDropped: 3, Truncated: 4, Refused: 5, Damaged: 6}
	got := map[string]uint64{}
	for _, m := range c.Metrics() {
		got[m.Name] = m.Value(&st)
	}
	if want := map[string]uint64{"frames_total": 1, "bytes_total": 2, "truncated_total": 4, "damaged_total": 6}; !maps.Equal(got, want) {
		t.Errorf("Metrics() give %v, want %v", got, want)
	}
}
