package collector

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/sink"
)

// Load describes what one collector receives.
type Load struct {
	Reports   float64       // telemetry reports a second
	Path      int           // hops of a report
	Bytes     int           // of its datagram
	Flows     int           // seen within flows.idle_timeout
	Life      time.Duration // of a flow
	Hops      int           // pairs of node and egress interface in a window
	Exporters int
	Records   float64 // records of sFlow and IPFIX a second
}

// SizePart is an expected value of one part of a collector, with what it rests on.
type SizePart struct {
	Of    string  `json:"of"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // "cores", "bytes", "bytes/day", "bit/s" or "points/s"
	Rests string  `json:"rests_on"`
}

// Sizing is what a collector is expected to take.
type Sizing struct {
	UnitNs  float64    `json:"unit_ns"` // what a unit of processor time takes
	Parts   []SizePart `json:"parts"`
	Raise   []string   `json:"raise"`        // settings that the load exceeds
	Unknown []string   `json:"not_included"` // what neither load nor settings determine
}

// Processor times in units of [traffic.Unit], and resident bytes. They were fitted to runs of "hopscope-bench sizing",
// which compares their sums with a running collector; bench/RESULTS.md states how far they are off.
const (
	unitsWake   = 5.3  // a worker that wakes, takes a batch and hands it to shards
	unitsWait   = 6    // more, if it found none after its pause, and waited for the next datagram
	wakeTime    = 60e3 // nanoseconds between the end of a pause and the next one
	unitsReport = .1   // a report beside its hops: kernel, decoder, exporter, flow
	unitsHop    = .012 // a hop of a report
	unitsRecord = .5   // a record of sFlow or IPFIX
	unitsRow    = 3    // a row of a window, which is a hop, an exporter or a hop of a busy flow: merge, detectors, page, history

	programBytes    = 60 << 20 // the program with its page, and what is on its way
	hopBytes        = 32 << 10 // a hop in detectors, page and history
	hopShardBytes   = 12 << 10 // a hop in one shard
	correctionBytes = 400      // a hop in a window that is kept for corrections
	exporterRest    = 4 << 10  // an exporter
	windowGarbage   = 2 << 20  // what a window leaves for the garbage collector,
	rowGarbage      = 2600     // each of its rows,
	pointGarbage    = 2200     // and each of its points for a store
	collection      = 120      // seconds after which garbage is collected at the latest, or at GarbagePercent

	recordsDatagram = 4 // records of a datagram of sFlow or IPFIX, at least
)

// outputSection is implemented by settings of parts that write to disk or to a server.
type outputSection interface {
	// Output returns what the part is expected to write.
	Output(v *sink.Volume) sink.Output
}

// Expect returns what a collector with these settings is expected to take under a load, on a machine
// where a unit of processor time takes as long. Other arguments are those of [Memory].
func Expect(cfg *Config, analysis *Analysis, all any, load Load, unit time.Duration) Sizing {
	var (
		s         = Sizing{UnitNs: float64(unit.Nanoseconds())}
		flows     = &analysis.Flows
		window    = cfg.Window.Seconds()
		path      = min(load.Path, flows.MaxPathLength)
		hops      = min(load.Hops, flows.MaxHops)
		exporters = min(load.Exporters, cfg.Exporters.Tracking.MaxExporters)
		busy      = min(load.Flows, flows.TopFlows) * path
		rows      = float64(hops + busy + exporters + 1)
		v         = sink.Volume{Points: rows / window, Reports: load.Reports, Hops: load.Reports * float64(load.Path), Rows: hops, Spooled: len(stores.Spools(all)) > 0}
		shards    = cfg.shards()
		workers   = 0
		nap       time.Duration
	)
	for _, part := range settings.Parts(all) {
		if r, ok := part.Value.(interface {
			Wakes() (workers int, nap time.Duration)
		}); ok {
			workers, nap = r.Wakes()
		}
	}
	wakes, wake := wakeUps(load.Reports+load.Records/recordsDatagram, workers, nap, unit)
	cpu := []SizePart{
		{"receiving", wakes * wake, "cores", fmt.Sprintf("%.0f wake-ups a second of %d workers, of %.1f units each", wakes, workers, wake)},
		{"reports", load.Reports * (unitsReport + unitsHop*float64(load.Path)), "cores", fmt.Sprintf("%s reports a second, of %.2f units each with %d hops", count(load.Reports), unitsReport+unitsHop*float64(load.Path), load.Path)},
	}
	if load.Records > 0 {
		cpu = append(cpu, SizePart{"records", load.Records * unitsRecord, "cores", fmt.Sprintf("%s records of sFlow and IPFIX a second, of %.1f units each", count(load.Records), unitsRecord)})
	}
	cpu = append(cpu, SizePart{"windows", rows / window * unitsRow, "cores", fmt.Sprintf("%.0f rows every %v, of %d units each", rows, cfg.Window, unitsRow)})

	reports := load.Reports * load.Life.Seconds() / float64(max(load.Flows, 1))
	each, most := flows.Expect(path, reports)
	kept := min(load.Flows, most)
	memory := []SizePart{
		{"program", programBytes, "bytes", "a collector without load"},
		{"flows", float64(kept) * each, "bytes", fmt.Sprintf("%s flows of %.0f bytes, with %s reports each", count(float64(kept)), each, count(reports))},
		{"hops", float64(hops) * (hopBytes + hopShardBytes*float64(shards)), "bytes", fmt.Sprintf("%d hops of %d kB, and %d kB in each of %d shards", hops, hopBytes>>10, hopShardBytes>>10, shards)},
		{"exporters", float64(exporters * exporterRest), "bytes", fmt.Sprintf("%d exporters of %d kB", exporters, exporterRest>>10)},
	}
	if cfg.Corrections > 0 {
		memory = append(memory, SizePart{"corrections", min(float64(hops)*correctionBytes*cfg.Corrections.Seconds()/window, float64(cfg.CorrectionsBytes)), "bytes",
			fmt.Sprintf("%d hops of %d bytes in the windows of %v", hops, correctionBytes, cfg.Corrections)})
	}
	heap := float64(flows.MemoryBytes) // with the parts beside flows
	for _, part := range memory {
		if part.Of != "flows" {
			heap += part.Value
		}
	}
	percent := GarbagePercent(flows.MemoryBytes)
	garbage := windowGarbage + rows*rowGarbage
	var (
		disk, network []SizePart
		once          float64 // garbage of files
	)
	network = append(network, SizePart{"reports in", 8 * load.Reports * float64(load.Bytes+overhead), "bit/s", fmt.Sprintf("%s reports a second, of %d bytes and %d of headers", count(load.Reports), load.Bytes, overhead)})
	for _, part := range settings.Parts(all) {
		w, ok := part.Value.(outputSection)
		if !ok {
			continue
		}
		out := w.Output(&v)
		if out.Units > 0 {
			cpu = append(cpu, SizePart{part.Key, out.Units, "cores", out.Rests})
		}
		if out.Takes {
			garbage += rows * pointGarbage
			once += out.Garbage
		}
		if out.Disk > 0 {
			text := out.Rests
			if out.Most > 0 {
				text += fmt.Sprintf("; at most %s", bytesText(out.Most))
			}
			disk = append(disk, SizePart{part.Key, out.Disk, "bytes/day", text})
		}
		if out.Network > 0 {
			network = append(network, SizePart{part.Key + " out", 8 * out.Network, "bit/s", out.Rests})
		}
	}
	memory = append(memory, SizePart{"garbage", min(garbage/window*collection+once, heap*float64(percent)/100), "bytes",
		fmt.Sprintf("%.1f MB a window, of %d s, and %.0f MB of files; at most %d %% of the heap with flows.memory_bytes", garbage/1e6, collection, once/1e6, percent)})
	for i := range cpu {
		cpu[i].Value *= unit.Seconds()
	}
	s.add("processor", "cores", cpu, "sum")
	s.add("memory", "bytes", memory, fmt.Sprintf("sum; the settings allow at most %s", bytesText(float64(TotalMemory(Memory(cfg, analysis, all))))))
	rests := "sum"
	if len(disk) == 0 {
		rests = "no store and no history is enabled that keeps anything on this machine"
	}
	s.add("disk", "bytes/day", disk, rests)
	s.Parts = append(s.Parts, SizePart{"points", v.Points, "points/s", fmt.Sprintf("%d hops, %d hops of busy flows and %d exporters every %v", hops, busy, exporters, cfg.Window)})
	s.Parts = append(s.Parts, network...)
	s.raise(cfg, analysis, load, most)
	s.Unknown = unknown
	return s
}

// wakeUps returns how often workers wake in a second, and the units of each time. Datagrams arrive at random, so that a
// pause may bring none; its worker then waits for the next. A worker wakes no more often than its processor has time for.
func wakeUps(datagrams float64, workers int, nap, unit time.Duration) (wakes, units float64) {
	if workers == 0 || datagrams <= 0 {
		return 0, unitsWake
	}
	wakes, units = datagrams, unitsWake+unitsWait
	if nap > 0 {
		each, pause := datagrams/float64(workers), (float64(nap)+wakeTime)/1e9
		none := math.Exp(-each * pause)
		wakes, units = float64(workers)/(pause+none/each), unitsWake+unitsWait*none
	}
	return min(wakes, float64(workers)/(units*unit.Seconds())), units
}

// unknown are the costs that neither load nor settings determine.
var unknown = []string{
	"the kernel's work for network cards, which other programs cause as well: hopscope selftest and hopscope-bench udp measure receiving on a machine",
	"socket buffers (udp.receive_buffer_bytes for each socket), and the page cache of files",
	"exporters that the kernel gives to one worker, and flows that hash to one shard: cores are a mean over all of them",
	"open pages, queries of the history, path changes and findings in numbers, and points of interfaces with counters, one each a window",
	"processor, memory and disk of InfluxDB and Kafka, which depend on their retention; points a second are those that they receive",
	"spools, which are empty while their stores answer",
}

// overhead is the length of the headers of Ethernet, IPv4 and UDP before a report.
const overhead = 14 + 20 + 8

// add adds the sum of parts, and the parts below it.
func (s *Sizing) add(of, unit string, parts []SizePart, rests string) {
	sum := SizePart{of, 0, unit, rests}
	for i := range parts {
		sum.Value += parts[i].Value
		parts[i].Of = "  " + parts[i].Of
	}
	s.Parts = append(append(s.Parts, sum), parts...)
}

// raise names the settings that the load exceeds.
func (s *Sizing) raise(cfg *Config, analysis *Analysis, load Load, flows int) {
	if load.Flows > flows {
		need := math.Ceil(float64(load.Flows)/float64(flows)*float64(analysis.Flows.MemoryBytes)/(1<<20)) * (1 << 20)
		then := fmt.Sprintf("%.0f hold all", need)
		if need > shard.MostMemory {
			then = fmt.Sprintf("%.0f would hold all, and it takes at most %d: share the load among %.0f times as many collectors", need, int64(shard.MostMemory), math.Ceil(need/shard.MostMemory))
		}
		s.Raise = append(s.Raise, fmt.Sprintf("flows.memory_bytes: %d hold %s of %s flows, the others evict each other; %s", analysis.Flows.MemoryBytes, count(float64(flows)), count(float64(load.Flows)), then))
	}
	for _, l := range []struct {
		key       string
		have, has int
		then      string
	}{
		{"flows.max_hops", load.Hops, analysis.Flows.MaxHops, "are folded into other"},
		{"events.max_hops", load.Hops, analysis.Events.MaxHops, "have no findings"},
		{"exporters.tracking.max_exporters", load.Exporters, cfg.Exporters.Tracking.MaxExporters, "are counted alone, without losses"},
		{"flows.max_path_length", load.Path, analysis.Flows.MaxPathLength, "of a flow have no sketches"},
	} {
		if l.have > l.has {
			s.Raise = append(s.Raise, fmt.Sprintf("%s: %d are less than %d; further ones %s", l.key, l.has, l.have, l.then))
		}
	}
}

// Text is the value with its unit, as people read it.
func (p *SizePart) Text() string {
	switch p.Unit {
	case "cores":
		return fmt.Sprintf("%.2f cores", p.Value)
	case "bytes":
		return bytesText(p.Value)
	case "bytes/day":
		return bytesText(p.Value) + "/day"
	case "bit/s":
		return fmt.Sprintf("%.1f Mbit/s", p.Value/1e6)
	}
	return fmt.Sprintf("%.0f %s", p.Value, p.Unit)
}

func bytesText(n float64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.0f GiB", n/(1<<30))
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", n/(1<<30))
	}
	return fmt.Sprintf("%.0f MiB", math.Ceil(n/(1<<20)))
}

// count is a number with spaces between its thousands.
func count(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	var b strings.Builder
	for i, c := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return b.String()
}
