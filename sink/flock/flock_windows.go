package flock

import (
	"errors"

	"golang.org/x/sys/windows"
)

// Lock locks f for as long as it is open, and returns [ErrLocked] where another process has. A lock of Windows keeps others
// from reading what it covers, so it covers a byte behind everything.
func Lock(f interface{ Fd() uintptr }) error {
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}
