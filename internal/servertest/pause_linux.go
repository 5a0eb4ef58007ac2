package servertest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// pause stops a process and waits until all its threads stand still: until then, those that the signal has not reached
// still answer.
func pause(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(time.Millisecond) {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid))
		if err != nil {
			return err
		}
		still := len(tasks) > 0
		for _, name := range tasks {
			stat, err := os.ReadFile(name)
			if err != nil {
				continue // the thread has ended
			}
			// The state comes behind the name of the thread, which is in brackets.
			_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
			still = still && (bytes.HasPrefix(state, []byte("T")) || bytes.HasPrefix(state, []byte("Z")))
		}
		if still {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stand still", p.Pid)
		}
	}
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
