//go:build unix

package harness

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// gone reports whether a process has ended, also where its parent has not asked yet how.
func gone(p *os.Process) bool {
	if p.Signal(syscall.Signal(0)) != nil {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && strings.HasPrefix(state, "Z")
}
