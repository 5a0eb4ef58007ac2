package flock

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Replace writes a file durably: a crash of the program or of the machine leaves the old file or the new one, whole.
// If it returns nil, the new one survives. Until the rename, the new one lies beside the old under a name that ends in
// ".tmp". If the sync of the folder fails, the new file has the name but may not survive. That is an error too, after
// which the caller writes again.
func Replace(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = errors.Join(f.Chmod(mode), syncFile(f))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// unfinishedFor is how old a file is that no [Replace] writes any more.
const unfinishedFor = time.Minute

// RemoveUnfinished removes the temporary files that killed programs left beside a file while they replaced it. It
// keeps files that were written to within a minute before now, since another program may be writing them.
func RemoveUnfinished(path string, now time.Time) error {
	list, err := os.ReadDir(filepath.Dir(path))
	for _, e := range list {
		rest, is := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		number, unfinished := strings.CutSuffix(rest, ".tmp")
		if _, e := strconv.ParseUint(number, 10, 64); !is || !unfinished || e != nil {
			continue
		}
		if f, e := e.Info(); e == nil && now.Sub(f.ModTime()) > unfinishedFor {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), f.Name())))
		}
	}
	return err
}

// ReplaceBytes is [Replace] with b, for the owner alone.
func ReplaceBytes(path string, b []byte) error {
	return Replace(path, 0o600, func(w io.Writer) error { _, err := io.Copy(w, bytes.NewReader(b)); return err })
}

// They are replaced by tests of a disk that fails.
var (
	syncFile = (*os.File).Sync
	syncDir  = SyncDir
)
