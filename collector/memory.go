package collector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/hopscope/hopscope/collector/pipeline"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/guess"
)

// Need is the most memory that a part of a collector takes, in bytes.
type Need struct {
	Part  string
	Bytes int64
}

// memorySection is implemented by settings of sources, stores and the page that take memory worth a line.
type memorySection interface {
	// Memory is the most memory that the part takes, in bytes.
	Memory() int64
}

// hopSection is implemented by settings of parts whose memory grows with the hops of a window.
type hopSection interface {
	// HopMemory is the most memory that the part takes for so many hops, in bytes.
	HopMemory(hops int) int64
}

// readers is implemented by settings of sources whose datagrams several goroutines read.
type readers interface {
	// Readers returns the number of goroutines and the largest frame, in bytes.
	Readers() (n, maxFrame int)
}

const (
	// runtimeBytes is the memory of any program of this size: its text, the runtime, stacks.
	runtimeBytes = 48 << 20
	// sprayFit is the memory of a shard while it searches for the paths of a flow that uses several at once.
	sprayFit = 16 << 20
	// exporterBytes is the memory of an exporter beside its sequence numbers: totals, histories of detectors, a row.
	exporterBytes = 2048
	// absentExporters is the number of exporters that detectors keep beside the tracked ones.
	absentExporters = 4096
	// historyBytes is the most that detectors keep of a hop. That is nine statistics of 300 to 600 bytes (median,
	// 99th percentile, floor and tail of latency and queue, utilisation) and their overhead. The finding of each with
	// its text, its place among causes, and the entries of tables are included. TestMemoryOfHops measures some 6300
	// bytes with a tenth of the hops in trouble, and 8800 with all of them.
	historyBytes = 11 * 1024
	// linkBytes is the most that detectors keep of a link: one statistic, twelve windows of its times, a finding.
	linkBytes = 2048
	// probedBytes is the most that detectors keep of a path of probes: two histories of losses, the statistic of its
	// delay, a finding of each, the routers of its way and the finding of a link of its own. TestMemoryOfProbes measures
	// 18100 bytes with all of them in trouble.
	probedBytes = 18 * 1024
	// smallestReport is the least that a report takes in a datagram.
	smallestReport = 8
)

// Memory lists the most memory that a collector takes, part by part, whatever it receives. cfg and analysis are its
// settings. The argument all points to the settings struct with the sections of its sources and stores. The kernel's
// memory for sockets is not included.
func Memory(cfg *Config, analysis *Analysis, all any) []Need {
	shards := cfg.shards()
	needs := []Need{
		{"program", runtimeBytes},
		{"flows", analysis.Flows.MemoryBytes},
		{"hops, busiest flows and windows", analysis.Flows.Memory(shards)},
		{"exporters", cfg.Exporters.Tracking.Memory(pipeline.MaxGroups) + int64(cfg.Exporters.Tracking.MaxExporters+absentExporters)*exporterBytes},
		{"detectors", int64(analysis.Events.MaxHops)*(historyBytes+linkBytes) + int64(analysis.Events.MaxFlows+analysis.Events.MaxDrops)*512 +
			int64(analysis.Events.MaxProbes)*probedBytes},
	}
	if cfg.Exporters.Recognises() {
		needs = append(needs, Need{"dialects", guess.Memory})
	}
	if stores.Publishes(all) {
		needs = append(needs, Need{"what others have in common", cfg.Exporters.Tracking.NumbersMemory(pipeline.PublishedRuns) + analysis.Flows.ArrivalMemory(shards)})
	}
	needs = append(needs, Need{"series of the day", int64(analysis.Flows.DailyFlows)*160 +
		int64(3*analysis.Flows.MaxHops+cfg.Exporters.Tracking.MaxExporters)*96})
	if cfg.Corrections > 0 {
		needs = append(needs, Need{"corrections", cfg.CorrectionsBytes})
	}
	if analysis.PINT.Reads() {
		needs = append(needs, Need{"digests", 2*analysis.PINT.MemoryBytes + analysis.PINT.SprayBytes + sprayFit*int64(shards)})
	}
	workers, frame := 1, 0
	for _, part := range settings.Parts(all) {
		if r, ok := part.Value.(readers); ok {
			n, most := r.Readers()
			workers, frame = workers+n, max(frame, most)
		}
		if s, ok := part.Value.(memorySection); ok {
			if n := s.Memory(); n > 0 {
				needs = append(needs, Need{part.Key, n})
			}
		}
		if s, ok := part.Value.(hopSection); ok {
			if n := s.HopMemory(analysis.Flows.MaxHops); n > 0 {
				needs = append(needs, Need{part.Key, n})
			}
		}
	}
	report, hop := int64(unsafe.Sizeof(decode.Report{})), int64(unsafe.Sizeof(decode.Hop{}))
	kept := report + int64(unsafe.Sizeof(decode.Rare{})) + decode.KeptHops*hop
	batch := pipeline.BatchReports*kept + (pipeline.BatchHops+int64(frame/4))*hop
	in := (2*(pipeline.BatchReports+int64(frame/smallestReport)) + pipeline.HeldReports) * kept
	batches := int64(shards * (cfg.ShardQueueBatches + 2 + workers))
	return append(needs, Need{"batches on their way", batches*batch + int64(workers)*in})
}

// Largest names the largest needs, largest first, with their MiB.
func Largest(needs []Need, most int) string {
	sorted := slices.SortedStableFunc(slices.Values(needs), func(a, b Need) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var parts []string
	for _, n := range sorted[:min(most, len(sorted))] {
		parts = append(parts, fmt.Sprintf("%s %d MiB", n.Part, (n.Bytes+1<<20-1)>>20))
	}
	return strings.Join(parts, ", ")
}

// garbageBytes is the garbage that a collector has beside tables of flows of up to a hundred times as much.
const garbageBytes = 64 << 20

// GarbagePercent is the percentage for [runtime/debug.SetGCPercent] with which garbage is collected once it takes 64 MiB, where flows
// may take up to 6.4 GiB, and else a hundredth of theirs. Otherwise it would grow to the size of the tables of flows, which are
// allocated at once, or for two minutes. These tables have no pointers, so that collections read little of the heap.
func GarbagePercent(flowBytes int64) int {
	return int(min(max(100*garbageBytes/max(flowBytes, 1), 1), 100))
}

// TotalMemory adds up needs, with a tenth on top for memory that the garbage collector has not freed yet.
func TotalMemory(needs []Need) (total int64) {
	for _, n := range needs {
		total += n.Bytes
	}
	return total + total/10
}
