package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector"
)

// limitMemory sets the limit of the garbage collector to what the settings allow, so that it works harder before it
// takes more. GOMEMLIMIT in the environment takes precedence.
func limitMemory(cfg *config) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(cfg.memory())
	}
}

// collectSoon bounds the garbage of a collector whose tables are made. GOGC in the environment takes precedence.
func collectSoon(cfg *config) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collector.GarbagePercent(cfg.Flows.MemoryBytes))
	}
}

// collectLater delays garbage collection until the heap is twice as large as the coming tables of flows. It would
// otherwise run while these are made; a short run would spend a tenth of its time on that. GOGC in the environment
// takes precedence.
func collectLater(cfg *config) {
	if os.Getenv("GOGC") != "" {
		return
	}
	const percent, first = 100, 4 << 20 // of the runtime: the first collection comes at first bytes
	debug.SetGCPercent(int(min(max(2*cfg.Flows.MemoryBytes/first, 1), math.MaxInt32/percent) * percent))
	runtime.AddCleanup(new(*config), func(percent int) { debug.SetGCPercent(percent) }, percent)
}

// memory is the most memory that a collector with these settings takes, in bytes.
func (c *config) memory() int64 {
	return collector.TotalMemory(collector.Memory(&c.Config, &c.Analysis, c))
}

// checkMemory warns of settings that allow more memory than the machine has. Such memory is seldom needed, and another
// machine may have it. It is therefore a problem only if the flows alone do not fit.
func checkMemory(cfg *config, v *verdict) {
	if len(v.problems) > 0 {
		return // numbers that cannot be say nothing about memory
	}
	machine := cli.MachineMemory()
	if cfg.Flows.MemoryBytes > machine && !v.dry {
		v.problem("flows.memory_bytes", "%s are more than the %s of this machine", mebibytes(cfg.Flows.MemoryBytes), mebibytes(machine))
		return
	}
	if text := memoryProblem(cfg, machine); text != "" {
		v.warn("flows.memory_bytes", "%s", text)
	}
}

// memoryProblem returns a warning that the settings allow more memory than there is, or "".
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
	return collector.Largest(collector.Memory(&cfg.Config, &cfg.Analysis, cfg), 4)
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }
