package harness

import "golang.org/x/sys/unix"

// bound limits the data of a process. Its children inherit the limit. A process that has ended already needs no
// limit.
func bound(pid int, bytes uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil)
}
