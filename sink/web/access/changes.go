package access

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hopscope/hopscope/sink/flock"
)

// Change is a record of the log of changes.
type Change struct {
	Number uint64 `json:"number"` // from 1, without a gap
	AtMS   int64  `json:"at_ms"`
	User   string `json:"user"`           // the user or the token, or "" where no login is configured
	Role   Role   `json:"role"`           // viewer, operator or admin
	Login  string `json:"login"`          // open, token, api-token, proxy or oidc
	From   string `json:"from,omitempty"` // the client's address, which a trusted proxy forwards
	Action string `json:"action"`         // the change, as the path of the API: findings/ack
	Target string `json:"target,omitempty"`
	Text   string `json:"text,omitempty"`   // note or comment
	Failed string `json:"failed,omitempty"` // why the change before was not made
}

const (
	mostKept   = 1000     // changes in memory
	mostNumber = 1 << 62  // of a change that a log can have
	maxLine    = 16 << 10 // bytes of a record
	maxNote    = 1000     // bytes of a note or a comment
	maxTarget  = 256
	maxReason  = 300
	changeMode = 0o600
)

// journal is the log of changes: a file and the one before it, each at most half of the bytes that are allowed.
type journal struct {
	path string
	half int64

	mu   sync.Mutex
	f    *os.File
	size int64
	last uint64   // number of the last record
	kept []Change // the newest, oldest first
	odd  uint64   // lines that are no records
}

// openJournal reads the log, and cuts off what a killed process left half written.
func openJournal(path string, most int64) (*journal, error) {
	j := &journal{path: path, half: most / 2}
	if _, err := j.read(path + ".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole, err := j.read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := j.open(whole); err != nil {
		return nil, err
	}
	return j, nil
}

// open opens the file for appending behind its whole records.
func (j *journal) open(whole int64) error {
	f, err := os.OpenFile(j.path, os.O_CREATE|os.O_WRONLY, changeMode)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(whole), flock.SyncDir(filepath.Dir(j.path))); err != nil {
		return errors.Join(err, f.Close())
	}
	j.f, j.size = f, whole
	return nil
}

// read reads the records of a file, and returns where the last whole one ends.
func (j *journal) read(path string) (whole int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, maxLine)
	var begun int64 // bytes of the line before its last piece: above 0 in a line that is too long
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return whole, nil
		case errors.Is(err, bufio.ErrBufferFull):
			begun += int64(len(line))
			continue
		case err != nil:
			return whole, err
		}
		c, ok := parseChange(line)
		if begun > 0 || !ok || c.Number <= j.last {
			j.odd++
		} else {
			j.keep(c)
		}
		whole, begun = whole+begun+int64(len(line)), 0
	}
}

// parseChange reads a line of the log.
func parseChange(line []byte) (c Change, ok bool) {
	err := json.Unmarshal(line, &c)
	return c, err == nil && c.Number > 0 && c.Number < mostNumber && c.Action != ""
}

func (j *journal) keep(c Change) {
	if len(j.kept) == mostKept {
		copy(j.kept, j.kept[1:])
		j.kept = j.kept[:mostKept-1]
	}
	j.kept, j.last = append(j.kept, c), c.Number
}

// append adds a record, and returns when it is on the disk.
func (j *journal) append(c Change) error {
	c.Target, c.Text, c.Failed = cut(c.Target, maxTarget), cut(c.Text, maxNote), cut(c.Failed, maxReason)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return errors.New("the log of changes is closed")
	}
	c.Number = j.last + 1
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return err
	}
	if line.Len() > maxLine {
		return fmt.Errorf("the record has more than %d bytes", maxLine)
	}
	if j.size > 0 && j.size+int64(line.Len()) > j.half {
		if err := j.rotate(); err != nil {
			return err
		}
	}
	_, err := j.f.WriteAt(line.Bytes(), j.size)
	if err == nil {
		err = syncFile(j.f)
	}
	if err != nil { // a later record must not follow half a one
		return errors.Join(err, j.f.Truncate(j.size))
	}
	j.size += int64(line.Len())
	j.keep(c)
	return nil
}

// syncFile is replaced by tests of a disk that fails.
var syncFile = (*os.File).Sync

// rotate begins a new file. The one before takes the place of an older one.
func (j *journal) rotate() error {
	if err := os.Rename(j.path, j.path+".1"); err != nil {
		return err
	}
	old := j.f
	if err := j.open(0); err != nil {
		return errors.Join(err, os.Rename(j.path+".1", j.path)) // the open file is still that of the name
	}
	return old.Close()
}

// list returns changes below a number, the newest first, of an action or below it, and of a target where these are not empty. more
// reports whether the memory has others.
func (j *journal) list(before uint64, action, target string, most int) (out []Change, more bool) {
	out = []Change{}
	if j == nil {
		return out, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := len(j.kept) - 1; i >= 0; i-- {
		c := &j.kept[i]
		if before > 0 && c.Number >= before || action != "" && c.Action != action && !strings.HasPrefix(c.Action, action+"/") || target != "" && c.Target != target {
			continue
		}
		if len(out) == most {
			return out, true
		}
		out = append(out, *c)
	}
	return out, false
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return nil
	}
	err := j.f.Close()
	j.f = nil
	return err
}
