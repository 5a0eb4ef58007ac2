// Package flock locks a file for one process. The system drops the lock when the process ends, however it ends.
package flock

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// ErrLocked is the error of a file that another process has locked.
var ErrLocked = errors.New("is in use by another process")

// SyncDir makes a new or changed name in dir survive a crash of the machine, where the system can do that.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" { // it flushes no directories
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	// Not every file system can do it, and none that cannot is made worse by it.
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		d.Close()
		return err
	}
	return d.Close()
}
