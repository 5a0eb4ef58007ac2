package harness

import "golang.org/x/sys/unix"

// bound limits the data of a process, which what it starts inherits. A process that has ended already needs no limit.
func bound(pid int, bytes uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil)
}
