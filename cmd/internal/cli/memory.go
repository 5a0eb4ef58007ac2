package cli

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MachineMemory is the memory that this process may take: that of the machine, or of its control groups if they allow
// less. It is the largest number where neither is known.
func MachineMemory() int64 {
	most := int64(math.MaxInt64)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
				if kb, err := strconv.ParseInt(f[1], 10, 52); err == nil {
					most = kb << 10
				}
			}
		}
	}
	groups, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		// "0::/system.slice/hopscope.service" (version 2), "7:memory:/docker/..." (version 1)
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		root, file := "/sys/fs/cgroup", "memory.max"
		switch f[1] {
		case "":
		case "memory":
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := f[2]; ; dir = filepath.Dir(dir) { // a group has the limits of those around it
			if b, err := os.ReadFile(filepath.Join(root, dir, file)); err == nil {
				if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 {
					most = min(most, n)
				}
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return most
}
