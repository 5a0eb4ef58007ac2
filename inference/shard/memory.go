package shard

import (
	"unsafe"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// slack is the greatest room of a slice that grew by appending, in sixteenths of its items.
const slack = 22

// ArrivalMemory returns the further memory of [State.ListArrivals], as Memory counts it.
func (c *Config) ArrivalMemory(shards int) int64 {
	const listed = 2 * (int64(unsafe.Sizeof(window.Arrival{})) + maxPathLength*int64(unsafe.Sizeof(inference.HopKey{})))
	return int64(2*shards+1) * 2 * int64(c.MaxPathChanges) * listed
}

// Memory is the most that the tables of this many shards and the windows made of them take, in bytes, beside
// [Config.MemoryBytes], whatever is reported. Networks take a tenth of it: values of one hop lie in a few octaves, and
// few places are taken.
func (c *Config) Memory(shards int) int64 {
	hops, lists := int64(c.MaxHops)+1, int64(2*c.MaxPathChanges+c.MaxDrops)
	key := int64(unsafe.Sizeof(inference.HopKey{}))

	// A cut is there twice: the open window, and the one that is handed over.
	const rest, far = int64(unsafe.Sizeof(hopRest{})), 2 * (int64(unsafe.Sizeof(farCode{})) + 8 + 1)
	rows := hops * (rowCounters + 4*rowOctaves) * 2 // while they grow, they are there twice
	pages := (hops*hopOctaves + rowOctaves) * 4 * octaveCodes * slack / 16
	hopTables := hops*(key+8+64) + 2*(hops*(key+rest+farCodes*far)+rows+pages)
	top := int64(0)
	if c.TopFlows > 0 {
		places := min(max(4*c.TopFlows, 16), 1<<16-1)
		held := int64(topOctaves(places)) * octaveBytes * slack / 16
		top = int64(places)*(int64(unsafe.Sizeof(topFlow{}))+8) + 2*held + 2*(held+int64(c.TopFlows)*int64(unsafe.Sizeof(window.FlowPart{})))
	}
	const listed = 2 * (128 + 2*maxBlocks*12 + 96)                 // an item of a list of changes, faults or drops, with its index
	link := 2 * (int64(unsafe.Sizeof(inference.LinkStats{})) + 64) // of a list that grew, with its index
	const reading = 2 * int64(unsafe.Sizeof(inference.HopKey{})+unsafe.Sizeof(countReading{})+8)
	perShard := hopTables + top + 2*lists*listed + 2*hops*(link+window.InterfaceMemory+window.CountsMemory) + hops*reading + digest.WindowMemory + 2*(window.NamelessMemory+window.ProbeMemory) + probeWaysMemory + viewsMemory + 1<<20

	// The window of all shards, the sums of the run, and the points of the stored series.
	part := int64(unsafe.Sizeof(window.HopPart{})) + 48
	merged := hops*int64(shards)*(2*link+window.InterfaceMemory+window.CountsMemory) + hops*(part+2*octaveBytes*(quantile.KeptOctaves+int64(min(shards*hopOctaves, 2*quantile.Octaves)/2)))
	totals := hops * (part + 2*quantile.Octaves*octaveBytes)
	points := (hops + int64(c.TopFlows*c.MaxPathLength)) * 2048
	nameless := int64(shards+1) * window.NamelessMemory
	probes := int64(shards) * window.ProbeMemory
	return int64(shards)*(perShard+top/4) + merged + nameless + probes + totals + points + lists*listed
}

// Expect returns the memory of a flow whose reports have so many hops, after so many reports, in bytes, and how many
// such flows [Config.MemoryBytes] hold. A sketch of up to 300 values takes half a block.
func (c *Config) Expect(path int, reports float64) (each float64, most int) {
	path = min(path, c.MaxPathLength)
	blocks := path * int(unsafe.Sizeof(block{}))
	fixed := int(unsafe.Sizeof(entry{})) + indexBytes
	entries := int(c.MemoryBytes) / c.flowBytes()
	const brief = 300
	if reports <= brief {
		blocks /= 2
	}
	most = min(entries, int(c.MemoryBytes-int64(entries*fixed))/max(blocks, 1))
	return float64(fixed + blocks), most
}
