package kafka

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/inference/fleet/roster"
)

// ThisProcess is the one that asks.
func ThisProcess() *roster.Process {
	host, _ := os.Hostname()
	p := &roster.Process{PID: os.Getpid(), Host: host}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, serr := os.Readlink("/proc/self/ns/pid")
	if err == nil && serr == nil {
		p.Space = strings.TrimSpace(string(boot)) + " " + space
	}
	return p
}

// ended reports whether the process is known to have ended. It never is for one on another machine, or for nil.
func ended(p *roster.Process) bool {
	if p == nil || p.Space == "" || p.PID <= 0 || p.Space != ThisProcess().Space {
		return false
	}
	_, err := os.Stat("/proc/" + strconv.Itoa(p.PID))
	return errors.Is(err, fs.ErrNotExist)
}
