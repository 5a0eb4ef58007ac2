package servertest

import (
	"os/exec"
	"syscall"
)

// endWithUs makes a test that is killed take its server with it.
func endWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
