package pcapfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/retry"
)

// FollowConfig names the captures that a running collector reads.
type FollowConfig struct {
	Files       []string      `yaml:"files" doc:"Captures: a file, read from its start and followed as it grows; a FIFO of a capture program (tcpdump -w FIFO); \"-\", with its quotes, for standard input."`
	Poll        time.Duration `yaml:"poll" doc:"Interval of checks whether a file has grown." range:"10ms..1m"`
	BatchFrames int           `yaml:"batch_frames" doc:"Most frames that are handed over at once." range:"1..4096"`
}

// DefaultFollowConfig reads nothing.
func DefaultFollowConfig() FollowConfig {
	return FollowConfig{Poll: 200 * time.Millisecond, BatchFrames: DefaultConfig().BatchFrames}
}

// SetDefaults makes c the default settings.
func (c *FollowConfig) SetDefaults() { *c = DefaultFollowConfig() }

// Validate returns the errors in c that the ranges of single values do not show.
func (c *FollowConfig) Validate() error {
	var errs []error
	for i, path := range c.Files {
		switch same := func(p string) bool { return filepath.Clean(p) == filepath.Clean(path) }; {
		case path == "":
			errs = append(errs, errors.New("files: one has no name"))
		case slices.ContainsFunc(c.Files[:i], same):
			errs = append(errs, fmt.Errorf("files: %s is listed twice", path))
		}
	}
	return errors.Join(errs...)
}

// CheckFiles checks that the captures exist and are readable. It does not open a FIFO, because its writer would notice
// that.
func (c *FollowConfig) CheckFiles() error {
	var errs []error
	for i, path := range c.Files {
		if path == "" || path == "-" {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			err = fmt.Errorf("%s is a directory", path)
		case info.Mode().IsRegular():
			var f *os.File
			if f, err = os.Open(path); err == nil {
				f.Close()
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("files[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// Open opens the captures of these settings. It returns nil when there are none.
func (c FollowConfig) Open() (ingest.Source, error) {
	if len(c.Files) == 0 {
		return nil, nil
	}
	s, err := NewFollow(c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Metrics are the numbers that are published about this kind of source.
func (c FollowConfig) Metrics() []ingest.Metric {
	return []ingest.Metric{
		{Name: "frames_total", Help: "Frames read from captures.", Value: func(s *ingest.Stats) uint64 { return s.Frames }},
		{Name: "bytes_total", Help: "Bytes of frames read from captures.", Value: func(s *ingest.Stats) uint64 { return s.Bytes }},
		{Name: "truncated_total", Help: "Frames that the capture cut.", Value: func(s *ingest.Stats) uint64 { return s.Truncated }},
		{Name: "damaged_total", Help: "Captures that are not readable to their end.", Value: func(s *ingest.Stats) uint64 { return s.Damaged }},
	}
}

// Follow reads captures as they grow, one worker each. It loses nothing: a slow handler makes it wait.
type Follow struct {
	cfg     FollowConfig
	inputs  []*input
	started atomic.Bool
}

var _ ingest.Source = (*Follow)(nil)

// NewFollow opens all captures, or none when one of them fails; the error then names every one that failed. Nothing is
// read before Run. A source that will not run needs Close.
func NewFollow(cfg FollowConfig) (*Follow, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Follow{cfg: cfg}
	var errs []error
	for _, path := range cfg.Files {
		in := &input{path: path, name: path, poll: max(cfg.Poll, time.Millisecond), batch: max(cfg.BatchFrames, 1)}
		if path == "-" {
			in.name = "standard input"
		}
		if err := in.open(); err != nil {
			errs = append(errs, err)
			continue
		}
		s.inputs = append(s.inputs, in)
	}
	if len(errs) > 0 {
		s.Close()
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// Run reads until ctx ends or no input can give anything any more, which only standard input shows.
func (s *Follow) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	if s.started.Swap(true) {
		return errors.New("pcapfile: a source runs only once")
	}
	var wg sync.WaitGroup
	for i, in := range s.inputs {
		wg.Go(func() { in.run(ctx, func(b *ingest.Batch) { handle(i, b) }) })
	}
	wg.Wait()
	return nil
}

// Close closes the files. Run does so itself.
func (s *Follow) Close() error {
	if s.started.Swap(true) {
		return nil
	}
	var errs []error
	for _, in := range s.inputs {
		errs = append(errs, in.close())
	}
	return errors.Join(errs...)
}

// Workers is the number of captures.
func (s *Follow) Workers() int { return len(s.inputs) }

// Waits returns true: a file keeps its content.
func (s *Follow) Waits() bool { return true }

// Stats adds up all captures. Damaged counts those that could not be read to their end.
func (s *Follow) Stats() ingest.Stats {
	var t ingest.Stats
	for _, in := range s.inputs {
		st := in.stats()
		t.Frames += st.Frames
		t.Bytes += st.Bytes
		t.Truncated += st.Truncated
		t.Damaged += st.Damaged
	}
	return t
}

// Inputs describes every capture.
func (s *Follow) Inputs() []ingest.Input {
	out := make([]ingest.Input, len(s.inputs))
	for i, in := range s.inputs {
		out[i] = ingest.Input{Name: in.name, Frames: in.frames.Load()}
		if p := in.problem.Load(); p != nil {
			out[i].Problem = *p
		}
	}
	return out
}

// input is one path, which names one capture after the other.
type input struct {
	path, name string
	poll       time.Duration
	batch      int

	f      *os.File
	info   os.FileInfo
	opened func() // called when the next capture is open; only tests need it

	counts
	problem atomic.Pointer[string] // nil as long as it works
}

// open opens the file at the path without waiting, and then closes the former one. In this order a writer that has
// opened a FIFO in the meantime keeps a reader.
func (in *input) open() error {
	f, _, _, err := openFile(in.path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	err = in.close()
	in.f, in.info = f, info
	return err
}

func (in *input) close() error {
	if in.f == nil || in.f == os.Stdin {
		return nil
	}
	err := in.f.Close()
	in.f = nil
	return err
}

// run reads one capture after the other.
func (in *input) run(ctx context.Context, hand func(*ingest.Batch)) {
	defer func() { in.close() }() // files that were only read
	for {
		t := &tail{in: in, ctx: ctx}
		err := in.read(ctx, t, hand)
		if ctx.Err() != nil {
			return
		}
		switch {
		case t.anew:
			in.damage(fmt.Errorf("%s: cut and written anew before it was read to its end; it is read from its start", in.name))
		case err == io.EOF, t.read == 0 && errors.Is(err, ErrTruncated): // an empty one is none
		case errors.Is(err, ErrTruncated), in.isFile(): // another capture may take its place
			in.damage(err)
		default:
			in.damage(err)
			in.close() // a writer to a FIFO gets an error
			<-ctx.Done()
			return
		}
		if !in.isFile() && !in.isFIFO() {
			return
		}
		if !t.next() {
			return
		}
	}
}

func (in *input) isFile() bool { return in.path != "-" && in.info.Mode().IsRegular() }
func (in *input) isFIFO() bool { return in.path != "-" && in.info.Mode()&fs.ModeNamedPipe != 0 }

// replaced reports whether the path names another file than the one that is open.
func (in *input) replaced() bool {
	now, err := os.Stat(in.path)
	return err == nil && !os.SameFile(now, in.info)
}

// damage takes note that a capture could not be read to its end.
func (in *input) damage(err error) {
	in.damaged.Add(1)
	in.trouble(err)
}

func (in *input) trouble(err error) {
	text := err.Error()
	in.problem.Store(&text)
}

// read hands over the frames of one capture. It returns io.EOF at its end.
func (in *input) read(ctx context.Context, src io.Reader, hand func(*ingest.Batch)) error {
	r, err := newReader(src, in.name)
	if err != nil {
		return err
	}
	defer r.Close()
	in.problem.Store(nil)
	var b ingest.Batch
	for ctx.Err() == nil {
		if err := r.ReadBatch(&b, in.batch); err != nil {
			return err
		}
		now := time.Now().UnixNano()
		for i := range b.Frames {
			b.Frames[i].Time = now
		}
		in.add(&b)
		hand(&b)
	}
	return context.Cause(ctx)
}

// tail reads what an input has open now. The end of a file that may grow is waited at.
type tail struct {
	in       *input
	ctx      context.Context
	read     int64
	replaced bool // the file has another successor; what is left of it is still read
	cut      bool // the file was seen to be shorter than what was read of it, whatever came to it since
	anew     bool // the file is longer than what was read of it, and holds other bytes there

	head, last []byte // the first and the last bytes that were read of a file
}

// markBytes is how many bytes are compared with those that were read before. They are at the start of a file and
// before the place where reading continues. They hold the header of a capture and that of its first record, with its
// time.
const markBytes = 64

func (t *tail) Read(b []byte) (int, error) {
	n, err := t.some(b)
	t.read += int64(n)
	if n > 0 && t.in.isFile() {
		t.mark(b[:n])
	}
	return n, err
}

// mark remembers the first and the last bytes that were read, of which b are the latest.
func (t *tail) mark(b []byte) {
	t.head = append(t.head, b[:min(len(b), markBytes-len(t.head))]...)
	t.last = append(t.last, b[max(0, len(b)-markBytes):]...)
	t.last = append(t.last[:0], t.last[max(0, len(t.last)-markBytes):]...)
}

func (t *tail) some(b []byte) (int, error) {
	in := t.in
	switch {
	case in.isFile():
	case in.isFIFO():
		w := waiting{ctx: t.ctx, f: in.f, gone: in.replaced}
		return w.Read(b)
	case in.info.Mode().IsRegular():
		return in.f.Read(b)
	default:
		w := waiting{ctx: t.ctx, f: in.f}
		return w.Read(b)
	}
	for {
		n, err := in.f.Read(b)
		switch {
		case n > 0 && t.rewritten():
			t.anew = true // b holds the middle of another capture
			return 0, io.EOF
		case n > 0 || err != io.EOF:
			return n, err
		case t.replaced || t.compressed():
			return 0, io.EOF
		}
		over, err := t.shrunk()
		if err != nil {
			return 0, err
		}
		if over {
			return 0, io.EOF
		}
		// Its writer may have written to the file between the read and the check of the path, so it is read once
		// more.
		if t.replaced = in.replaced(); !t.replaced && !retry.Sleep(t.ctx, in.poll) {
			return 0, context.Cause(t.ctx)
		}
	}
}

// compressed reports whether the file is compressed. Its end is then an end: the decompressor would hold back the last frames while
// it waits for more.
func (t *tail) compressed() bool {
	var first [packingBytes]byte
	n, _ := t.in.f.ReadAt(first[:], 0)
	return packingOf(first[:n]) != plain
}

// shrunk reports whether the file is or was seen to be shorter than what was read of it.
func (t *tail) shrunk() (bool, error) {
	info, err := t.in.f.Stat()
	t.cut = t.cut || err == nil && info.Size() < t.read
	return t.cut, err
}

// rewritten reports whether the file holds other bytes than those that were read of it.
func (t *tail) rewritten() bool {
	holds := func(at int64, want []byte) bool {
		var space [markBytes]byte
		n, _ := t.in.f.ReadAt(space[:len(want)], at)
		return bytes.Equal(space[:n], want)
	}
	return !holds(0, t.head) || !holds(t.read-int64(len(t.last)), t.last)
}

// next opens the capture that follows the one that was read. It reports false when ctx ended before.
func (t *tail) next() bool {
	in := t.in
	for in.isFile() && !in.replaced() {
		if over, err := t.shrunk(); over || err != nil || t.rewritten() {
			break
		}
		if !retry.Sleep(t.ctx, in.poll) {
			return false
		}
	}
	for {
		err := in.open()
		if err == nil {
			if in.opened != nil {
				in.opened()
			}
			return true
		}
		in.trouble(err)
		if !retry.Sleep(t.ctx, in.poll) {
			return false
		}
	}
}
