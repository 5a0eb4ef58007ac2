//go:build unix

package flock

import (
	"errors"
	"syscall"
)

// Lock locks f for as long as it is open, and returns [ErrLocked] where another process has.
func Lock(f interface{ Fd() uintptr }) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
