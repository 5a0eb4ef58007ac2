//go:build unix && !solaris && !aix

package spool

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks f and reports whether another process has the lock.
func lockFile(f *os.File) (busy bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err
}

// syncDir forces the entries of a directory to the disk.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
