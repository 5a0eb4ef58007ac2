package loop

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/planner/control"
)

// Journal keeps the records of a controller as lines of JSON. A file that has grown full is renamed to FILE.1, and the one that
// had this name to FILE.2, up to the number that is kept. No record holds anything secret; reasons are what devices said, and may
// name an address or an entry.
type Journal struct {
	path string
	most int64 // bytes of a file
	keep int   // files beside the current one
	file *os.File
	lock *os.File
	size int64
	line []byte // room for what is appended
	seed seedOf

	mu   sync.Mutex // what is below
	last []control.Record
}

const (
	lastRecords = 10_000
	maxRecord   = 16 << 20 // of a line
)

// OpenJournal opens a journal for appending, and reads what it has. A last line that was not written whole, as by a machine
// that went down, is cut off. A journal that is open already, here or in another process, gives a [*HeldError]; FILE.lock beside
// it says so to others.
func OpenJournal(path string, most int64, keep int) (*Journal, error) {
	lock, err := lockJournal(path)
	if err != nil {
		return nil, err
	}
	j := &Journal{path: path, most: most, keep: keep, lock: lock}
	if err := j.open(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return j, nil
}

// open reads the files, and opens the current one.
func (j *Journal) open() error {
	for n := j.keep; n >= 1; n-- {
		if _, err := j.read(j.name(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	whole, err := j.read(j.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if j.file, err = os.OpenFile(j.path, os.O_WRONLY|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err = j.file.Truncate(whole); err == nil {
		_, err = j.file.Seek(whole, io.SeekStart)
	}
	if err = errors.Join(err, syncDir(j.path)); err != nil {
		return errors.Join(err, j.file.Close())
	}
	j.size = whole
	return nil
}

func (j *Journal) name(n int) string { return fmt.Sprintf("%s.%d", j.path, n) }

// read takes the records of a file. It gives where the last whole one ends.
func (j *Journal) read(path string) (whole int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	for line := 1; ; line++ {
		b, err := readLine(r)
		if err == io.EOF { // what is there has no end
			return whole, nil
		}
		if err != nil {
			return whole, fmt.Errorf("journal %s, line %d: %w", path, line, err)
		}
		var x control.Record
		if err := json.Unmarshal(b, &x); err != nil {
			return whole, fmt.Errorf("journal %s, line %d: %w; move the file away to begin anew: what devices have is read back in any case", path, line, err)
		}
		whole += int64(len(b))
		j.seed.add(&x)
		j.remember(x)
	}
}

// readLine reads up to a line's end, with it.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		b, err := r.ReadSlice('\n')
		line = append(line, b...)
		switch {
		case err == nil:
			return line, nil
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(line) > maxRecord:
			return nil, errors.New("it is too long")
		}
	}
}

// seedOf gathers what a journal knows of an earlier life.
type seedOf struct {
	epoch uint32
	on    map[string]bool
}

func (s *seedOf) add(r *control.Record) {
	if r.What != control.Told { // that is what an operator said
		s.epoch = max(s.epoch, r.Epoch)
	}
	if r.What != control.Planned {
		return
	}
	if s.on == nil {
		s.on = map[string]bool{}
	}
	for _, id := range r.On {
		s.on[id] = true
	}
	for _, id := range r.Off {
		delete(s.on, id)
	}
}

// Seed is what a controller is told of an earlier life.
func (j *Journal) Seed() control.Seed {
	if j == nil {
		return control.Seed{}
	}
	s := control.Seed{Epoch: j.seed.epoch}
	for id := range j.seed.on {
		s.Detailed = append(s.Detailed, id)
	}
	slices.Sort(s.Detailed)
	return s
}

// Append writes records and syncs them.
func (j *Journal) Append(records []control.Record) error {
	if j == nil || len(records) == 0 {
		return nil
	}
	b := j.line[:0]
	for k := range records {
		b = append(appendRecord(b, &records[k]), '\n')
	}
	j.line = b[:0]
	if j.size > 0 && j.size+int64(len(b)) > j.most {
		if err := j.rotate(); err != nil {
			return err
		}
	}
	if err := j.file.Truncate(j.size); err != nil { // of records that could not be written, or synced, nothing stays
		return err
	}
	if _, err := j.file.WriteAt(b, j.size); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.size += int64(len(b))
	for k := range records {
		j.seed.add(&records[k])
		j.remember(records[k])
	}
	return nil
}

// rotate begins a new file. Its first record says what the earlier ones amount to, so that it can do without them. It is written
// before any file gets another name, so that one that cannot be written costs none of these.
func (j *Journal) rotate() error {
	seed := j.Seed()
	line := appendRecord(nil, &control.Record{What: control.Planned, Epoch: seed.Epoch, On: seed.Detailed, Why: "the journal begins anew: what was in force before"})
	line = append(line, '\n')
	fresh := j.path + ".new"
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(line, 0); err == nil {
		err = f.Sync()
	}
	for n := j.keep; n >= 1 && err == nil; n-- {
		from := j.path
		if n > 1 {
			from = j.name(n - 1)
		}
		if err = os.Rename(from, j.name(n)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(fresh, j.path)
	}
	if err == nil {
		err = syncDir(j.path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	old := j.file
	j.file, j.size = f, int64(len(line))
	return old.Close()
}

// syncDir makes sure that a file of a new name is there after a power failure.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (j *Journal) remember(r control.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.last) >= 2*lastRecords {
		j.last = j.last[:copy(j.last, j.last[len(j.last)-lastRecords:])]
	}
	j.last = append(j.last, r)
}

// Last gives up to n of the last records, the oldest first. It may be called from anywhere.
func (j *Journal) Last(n int) []control.Record {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.last[max(0, len(j.last)-max(n, 0)):])
}

// Close gives the files back.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	return errors.Join(j.file.Close(), j.lock.Close())
}
