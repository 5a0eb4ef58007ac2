package spool

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks f and reports whether another process has the lock.
func lockFile(f *os.File) (busy bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION), err
}

// syncDir does nothing: Windows has no way to force the entries of a directory, and NTFS keeps them in its journal.
func syncDir(string) error { return nil }
