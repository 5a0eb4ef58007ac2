package history

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/sink/flock"
)

// output is a file that records are written to. Tests replace it by one of a disk that is full.
type output interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

func openOutput(path string) (output, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// file is one file of records.
type file struct {
	name   string
	first  int64 // time in its name, ns
	size   int64 // up to the end of its last record
	newest int64 // end of its newest record; that of the name where it has none
	whole  bool  // its head is right: records can be appended
}

const (
	suffix     = ".hist"
	timeLayout = "20060102T150405Z"
)

func fileName(t int, first int64, number int) string {
	return fmt.Sprintf("%s-%s-%04d%s", steps[t].name, time.Unix(0, first).UTC().Format(timeLayout), number, suffix)
}

// parseName returns step, time and number of the file that is called name, and false for others.
func parseName(name string) (t int, first int64, number int, ok bool) {
	base, is := strings.CutSuffix(name, suffix)
	parts := strings.Split(base, "-")
	if !is || len(parts) != 3 {
		return 0, 0, 0, false
	}
	t = slices.IndexFunc(steps[:], func(s step) bool { return s.name == parts[0] })
	at, err := time.Parse(timeLayout, parts[1])
	if _, scan := fmt.Sscanf(parts[2], "%d", &number); t < 0 || err != nil || scan != nil {
		return 0, 0, 0, false
	}
	return t, at.UnixNano(), number, fileName(t, at.UnixNano(), number) == name
}

// load reads which records there are.
func (s *Store) load() error {
	entries, err := os.ReadDir(s.opt.Dir)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	for _, e := range entries { // by name, and so by time
		t, first, _, ok := parseName(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		f := &file{name: e.Name(), first: first, newest: first}
		if err := s.loadFile(t, f); err != nil {
			return fmt.Errorf("history: %w", err)
		}
		k := &s.kept[t]
		k.files, k.bytes = append(k.files, f), k.bytes+f.size
	}
	for t := range steps[:len(steps)-1] {
		for i := range s.kept[t].records {
			next := &steps[t+1]
			s.pending[t+1][s.kept[t].records[i].bucket/next.length*next.length] = true
		}
	}
	return nil
}

// loadFile reads the heads of the records of a file. The parts are checked when they are read, and those of the last record now: a
// machine that crashed may not have written all of them.
func (s *Store) loadFile(t int, f *file) error {
	in, err := os.Open(filepath.Join(s.opt.Dir, f.name))
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	length := info.Size()
	f.size = length
	var b [fileHead]byte
	if n, err := in.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if err := checkFileHead(b[:n], steps[t].length); err != nil {
		s.damage(f, "head", 0, length, err)
		return nil
	}
	f.whole = true
	list, at := []record(nil), int64(fileHead)
	for at < length {
		h, err := headAt(in, at, length, steps[t].length)
		if err == nil {
			list = append(list, record{h, t, f, at})
			at += h.size()
			continue
		}
		if !isDamage(err) {
			return err
		}
		next, ferr := nextRecord(in, at+1, length, steps[t].length)
		if ferr != nil {
			return ferr
		}
		s.damage(f, "record", at, next-at, err)
		if next == length { // nothing follows: a record that was not finished, which the next one takes the place of
			break
		}
		at = next
	}
	if n := len(list); n > 0 {
		last := &list[n-1]
		if ok, err := complete(in, last); err != nil {
			return err
		} else if !ok {
			s.damage(f, "record", last.at, last.size(), ErrCorrupt)
			if at == last.at+last.size() {
				at = last.at
			}
			list = list[:n-1]
		}
	}
	f.size = at
	for _, r := range list {
		s.insert(r)
	}
	return nil
}

// isDamage reports whether an error is one of stored bytes, and not of the disk.
func isDamage(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTruncated) || errors.Is(err, ErrVersion)
}

// headAt reads the head of a record that lies before the end of the file.
func headAt(in io.ReaderAt, at, length, step int64) (head, error) {
	var b [recordHead]byte
	n, err := in.ReadAt(b[:min(recordHead, length-at)], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return head{}, err
	}
	h, err := readHead(b[:n], step)
	if err == nil && h.size() > length-at {
		err = ErrTruncated
	}
	return h, err
}

// nextRecord looks for a record from a place on, and returns the end of the file where there is none.
func nextRecord(in io.ReaderAt, at, length, step int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for at < length {
		n, err := in.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n < len(recordMagic) {
			break
		}
		i := bytes.Index(buf[:n], []byte(recordMagic))
		if i < 0 {
			at += int64(n - len(recordMagic) + 1)
			continue
		}
		at += int64(i)
		if _, err := headAt(in, at, length, step); err == nil {
			return at, nil
		} else if !isDamage(err) {
			return 0, err
		}
		at++
	}
	return length, nil
}

// complete reports whether the parts of a record agree with its head.
func complete(in io.ReaderAt, r *record) (bool, error) {
	for part := range numParts {
		sum := crc32.New(castagnoli)
		if _, err := io.Copy(sum, io.NewSectionReader(in, r.at+r.offset(part), int64(r.length[part]))); err != nil {
			return false, err
		}
		if sum.Sum32() != r.sum[part] {
			return false, nil
		}
	}
	return true, nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// damage counts bytes that cannot be read.
func (s *Store) damage(f *file, field string, at, n int64, err error) {
	s.stats.Damaged++
	s.stats.DamagedBytes += uint64(n)
	s.stats.LastDamage = (&Error{f.name, field, at, err}).Error()
}

// find returns the index of the first record of a bucket or of a later one.
func (k *kept) find(bucket int64) int {
	i, _ := slices.BinarySearchFunc(k.records, bucket, func(r record, bucket int64) int {
		if r.bucket < bucket {
			return -1
		}
		return 1
	})
	return i
}

// insert adds a record to the index. Of steps that are made of others it takes the place of the one before.
func (s *Store) insert(r record) {
	k := &s.kept[r.step]
	r.file.newest = max(r.file.newest, r.end)
	i := k.find(r.bucket)
	if r.step > 0 && i < len(k.records) && k.records[i].bucket == r.bucket {
		k.records[i] = r
		return
	}
	k.records = slices.Insert(k.records, k.find(r.bucket+1), r)
}

// forget takes a record that cannot be read out of the index.
func (s *Store) forget(r *record, part int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.kept[r.step]
	i := slices.IndexFunc(k.records, func(x record) bool { return x.file == r.file && x.at == r.at })
	if i < 0 {
		return // it was deleted meanwhile
	}
	k.records = slices.Delete(k.records, i, i+1)
	s.damage(r.file, partNames[part], r.at+r.offset(part), r.size(), err)
}

// append writes a record to the newest file of its step, or begins another.
func (s *Store) append(t int, h *head, b []byte) (err error) {
	k := &s.kept[t]
	var f *file
	if n := len(k.files); n > 0 {
		f = k.files[n-1]
	}
	begin := f == nil || !f.whole || h.bucket >= f.first+steps[t].file || f.size > s.cfg.share(t)/8
	at := int64(0)
	if begin {
		number := 1
		for _, x := range k.files {
			if _, first, n, _ := parseName(x.name); first == h.bucket {
				number = max(number, n+1)
			}
		}
		f = &file{name: fileName(t, h.bucket, number), first: h.bucket, newest: h.bucket, whole: true}
		b = append(appendFileHead(nil, steps[t].length), b...)
	} else {
		at = f.size
	}
	path := filepath.Join(s.opt.Dir, f.name)
	out, err := s.create(path)
	if err != nil {
		return err
	}
	// What an unfinished record left behind the last one goes first, so that its remains are not found behind a shorter one.
	if err = out.Truncate(at); err == nil {
		_, err = out.WriteAt(b, at)
	}
	if err == nil {
		err = out.Sync()
	}
	if err != nil && !begin {
		err = errors.Join(err, out.Truncate(at))
	}
	err = errors.Join(err, out.Close())
	if err == nil && begin {
		err = flock.SyncDir(s.opt.Dir)
	}
	if err != nil {
		if begin {
			_ = os.Remove(path) // it holds nothing that is in the index; if it stays, it is counted as damaged when it is next opened
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if begin {
		k.files = append(k.files, f)
	}
	f.size = at + int64(len(b))
	k.bytes += int64(len(b))
	s.stats.Written++
	s.stats.WrittenBytes += uint64(len(b))
	s.insert(record{*h, t, f, f.size - h.size()})
	return nil
}

// evict deletes what is too old, and then the oldest files of steps that take more than their share.
func (s *Store) evict() {
	until := s.until()
	for t := range s.kept {
		k := &s.kept[t]
		keep := int64(s.cfg.keep(t))
		for len(k.files) > 0 {
			old := k.files[0]
			if old.newest >= until-keep && (k.bytes <= s.cfg.share(t) || len(k.files) == 1) {
				break
			}
			if err := os.Remove(filepath.Join(s.opt.Dir, old.name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				s.mu.Lock()
				s.stats.LastRemoval = err.Error()
				s.mu.Unlock()
				return
			}
			s.mu.Lock()
			k.files, k.bytes = slices.Delete(k.files, 0, 1), k.bytes-old.size
			k.records = slices.DeleteFunc(k.records, func(r record) bool { return r.file == old })
			s.stats.Deleted++
			s.stats.LastRemoval = ""
			s.mu.Unlock()
		}
	}
}

func mapKeys(m map[int64]bool) iter.Seq[int64] { return maps.Keys(m) }
