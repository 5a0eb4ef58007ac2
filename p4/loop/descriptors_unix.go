//go:build unix

package loop

import "syscall"

// descriptors is how many files and connections the process may have open.
func descriptors() uint64 {
	var x syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &x); err != nil {
		return mostAgents
	}
	return uint64(x.Cur)
}
