package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/collector"
)

// limitMemory tells the garbage collector what the settings allow, unless the environment says something else, so that it
// works harder before it takes more.
func limitMemory(cfg *config) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(cfg.memory())
	}
}

// memory is the most memory that a collector with these settings takes, in bytes.
func (c *config) memory() int64 {
	return collector.TotalMemory(collector.Memory(&c.Config, &c.Analysis, c))
}

// checkMemory warns of settings that allow more memory than there is. What they allow is seldom needed, and another machine
// may have it, so that it is no problem that nothing runs with, unless the flows alone do not fit.
func checkMemory(cfg *config, v *verdict) {
	if len(v.problems) > 0 {
		return // numbers that cannot be say nothing about memory
	}
	machine := machineMemory()
	if cfg.Flows.MemoryBytes > machine && !v.dry {
		v.problem("flows.memory_bytes", "%s are more than the %s of this machine", mebibytes(cfg.Flows.MemoryBytes), mebibytes(machine))
		return
	}
	if text := memoryProblem(cfg, machine); text != "" {
		v.warn("flows.memory_bytes", "%s", text)
	}
}

// memoryProblem says that the settings allow more memory than there is, or gives "".
func memoryProblem(cfg *config, machine int64) string {
	need := cfg.memory()
	if need <= machine {
		return ""
	}
	return fmt.Sprintf("the settings allow %s of memory (%s), and there are %s: the system may kill the collector when it is busiest",
		mebibytes(need), memoryParts(cfg), mebibytes(machine))
}

// memoryParts names the largest parts, largest first.
func memoryParts(cfg *config) string {
	needs := collector.Memory(&cfg.Config, &cfg.Analysis, cfg)
	slices.SortStableFunc(needs, func(a, b collector.Need) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var parts []string
	for _, n := range needs[:min(4, len(needs))] {
		parts = append(parts, n.Part+" "+mebibytes(n.Bytes))
	}
	return strings.Join(parts, ", ")
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

// machineMemory is the memory that this process may take: that of the machine, or of its control groups if they allow
// less. It is the largest number where neither is known.
func machineMemory() int64 {
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
		for dir := f[2]; ; dir = filepath.Dir(dir) { // a group may take what those around it may
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
