package harness

import (
	"os/exec"
	"syscall"
)

// endWithParent lets the kernel end the program when the thread that starts it ends, also by a kill that no code of ours
// can answer. It is called after group.
func endWithParent(c *exec.Cmd) { c.SysProcAttr.Pdeathsig = syscall.SIGKILL }
