package loop

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/hopscope/hopscope/sink/flock"
)

// HeldError is that of a journal that another control has open.
type HeldError struct {
	Journal string
	Process int // its id, 0 where it is not known
}

func (e *HeldError) Error() string {
	holder := ""
	if e.Process > 0 {
		holder = fmt.Sprintf(" (process %d)", e.Process)
	}
	return fmt.Sprintf("%s: another control holds this journal%s; each needs one of its own", e.Journal, holder)
}

// lockJournal makes the journal's folder, and locks the journal until the file is closed or its process ends in any
// way. The lock is on a file beside the journal, since a full journal is renamed. That file stays: a process that
// removed it could remove a lock that another process has just obtained.
func lockJournal(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := flock.Lock(f); {
	case errors.Is(err, flock.ErrLocked):
		return nil, errors.Join(&HeldError{path, holder(f)}, f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0) // for operators alone: the lock is what counts
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// holder is the process that has locked a file, from its content; 0 if it has none.
func holder(f *os.File) int {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0) // up to its end
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
