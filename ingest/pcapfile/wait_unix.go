//go:build unix

package pcapfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// nonBlocking opens a FIFO that has no writer yet without waiting for one.
const nonBlocking = unix.O_NONBLOCK

// readable waits a moment for something to read, and reports whether there is.
func readable(f *os.File) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, pollMillis)
	if err != nil && err != unix.EINTR {
		return false, os.NewSyscallError("poll", err)
	}
	return err == nil && n > 0, nil
}
