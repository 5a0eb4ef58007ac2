package loop

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/sink/flock"
)

// Journal keeps the records of a controller as lines of JSON, each with a checksum ([appendLine]). A full file is
// renamed to FILE.1, and the former FILE.1 to FILE.2, up to the number that is kept. No record holds secrets. Reasons
// come from devices, and may name an address or an entry.
type Journal struct {
	path   string
	most   int64 // bytes of a file
	keep   int   // files beside the current one
	file   *os.File
	lock   *os.File
	size   int64
	line   []byte // buffer of appended text
	seed   seedOf
	damage []Damage

	mu      sync.Mutex // what is below
	last    []control.Record
	removed [2]uint64 // files and records that rotation removed
}

const (
	lastRecords = 10_000
	maxRecord   = 16 << 20 // of a line
)

// OpenJournal opens a journal for appending, and reads its records. An incomplete last line, as after a crash of the
// machine, is cut off. A journal that is open already, here or in another process, is a [*HeldError]; FILE.lock beside
// it marks it.
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
	if err = errors.Join(err, flock.SyncDir(filepath.Dir(j.path))); err != nil {
		return errors.Join(err, j.file.Close())
	}
	j.size = whole
	return nil
}

func (j *Journal) name(n int) string { return fmt.Sprintf("%s.%d", j.path, n) }

// read reads the records of a file. It returns where the last whole one ends.
func (j *Journal) read(path string) (whole int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	checked := false // a line had a checksum: the file is a journal
	var bad []Damage
	for line := 1; ; line++ {
		b, err := readLine(r)
		if err == io.EOF { // the last line is incomplete
			if bad != nil && !checked {
				return whole, fmt.Errorf("journal %w; move the file away to begin anew: what devices have is read back in any case", &bad[0])
			}
			j.damage = append(j.damage, bad...)
			return whole, nil
		}
		if err != nil {
			return whole, fmt.Errorf("journal %s, line %d: %w", path, line, err)
		}
		at := whole
		whole += int64(len(b))
		x, sum, err := parseLine(b)
		checked = checked || sum != noSum
		switch {
		case err == nil && (sum == checkedLine || !checked):
			j.seed.add(&x)
			j.remember(x)
			continue
		case err == nil: // lines before it have checksums
			err = errNoSum
		}
		bad = append(bad, Damage{path, line, at, err})
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

// seedOf collects the state of an earlier life from a journal.
type seedOf struct {
	epoch    uint32
	on       map[string]bool
	suspects map[string]control.Suspect // by link
}

func (s *seedOf) add(r *control.Record) {
	if r.What != control.Commanded { // that is text of an operator
		s.epoch = max(s.epoch, r.Epoch)
	}
	switch r.What {
	case control.Suspected:
		if s.suspects == nil {
			s.suspects = map[string]control.Suspect{}
		}
		for _, link := range r.On {
			s.suspects[link] = control.Suspect{Link: link, Why: r.Why, Since: r.Time}
		}
	case control.Cleared:
		for _, link := range r.Off {
			delete(s.suspects, link)
		}
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

// Seed returns what a controller needs of an earlier life.
func (j *Journal) Seed() control.Seed {
	if j == nil {
		return control.Seed{}
	}
	s := control.Seed{Epoch: j.seed.epoch}
	for id := range j.seed.on {
		s.Detailed = append(s.Detailed, id)
	}
	slices.Sort(s.Detailed)
	s.Suspects = slices.SortedFunc(maps.Values(j.seed.suspects), func(a, b control.Suspect) int { return cmp.Compare(a.Link, b.Link) })
	return s
}

// Damage are the lines that were not believed, the oldest first.
func (j *Journal) Damage() []Damage {
	if j == nil {
		return nil
	}
	return j.damage
}

// Append writes records and syncs them.
func (j *Journal) Append(records []control.Record) error {
	if j == nil || len(records) == 0 {
		return nil
	}
	b := j.line[:0]
	for k := range records {
		b = appendLine(b, &records[k])
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

// rotate begins a new file. Its first records summarise the earlier ones, so that these are no longer needed. They are
// written before any file is renamed, so that a failed write loses none of these.
func (j *Journal) rotate() error {
	seed := j.Seed()
	line := appendLine(nil, &control.Record{What: control.Planned, Epoch: seed.Epoch, On: seed.Detailed, Why: "the journal begins anew: what was in force before"})
	for _, x := range seed.Suspects {
		line = appendLine(line, &control.Record{What: control.Suspected, Time: x.Since, On: []string{x.Link}, Why: x.Why})
	}
	fresh := j.path + ".new"
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(line, 0); err == nil {
		err = f.Sync()
	}
	gone := flock.Lines(j.name(j.keep)) // records
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
		err = flock.SyncDir(filepath.Dir(j.path))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if gone > 0 {
		j.mu.Lock()
		j.removed[0]++
		j.removed[1] += gone
		j.mu.Unlock()
	}
	old := j.file
	j.file, j.size = f, int64(len(line))
	return old.Close()
}

// Removed counts the files, and the records in them, that gave way to newer ones since the start. It may be called from anywhere.
func (j *Journal) Removed() (files, records uint64) {
	if j == nil {
		return 0, 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.removed[0], j.removed[1]
}

func (j *Journal) remember(r control.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.last) >= 2*lastRecords {
		j.last = j.last[:copy(j.last, j.last[len(j.last)-lastRecords:])]
	}
	j.last = append(j.last, r)
}

// Last returns up to n of the last records, the oldest first. It may be called from anywhere.
func (j *Journal) Last(n int) []control.Record {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.last[max(0, len(j.last)-max(n, 0)):])
}

// Close closes the files.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	return errors.Join(j.file.Close(), j.lock.Close())
}
