package shard

import (
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// Config bounds the memory of one [State].
type Config struct {
	MemoryBytes    int64         `yaml:"memory_bytes" doc:"Memory of flow tables and sketches, which bounds the number of flows." range:"1048576..1099511627776"`
	IdleTimeout    time.Duration `yaml:"idle_timeout" doc:"Time unseen after which a flow or hop is forgotten." range:"1s..24h"`
	PathLength     int           `yaml:"path_length" doc:"Hops of a usual path, which divides memory between flows and sketches." range:"1..64"`
	MaxPathLength  int           `yaml:"max_path_length" doc:"Hops of a flow with own sketches; further ones count for hops alone." range:"1..64"`
	MaxHops        int           `yaml:"max_hops" doc:"Hops (node and egress interface) of a window, and of a day (UTC); further ones are folded into other." range:"1..65535"`
	TopFlows       int           `yaml:"top_flows" doc:"Busiest flows of a window that are reported and stored. At most half of them are probes of agents." range:"0..10000"`
	DailyFlows     int           `yaml:"daily_flows" doc:"Flows a day (UTC) with own series. Further ones are stored as the flow other." range:"0..10000000"`
	MaxPathChanges int           `yaml:"max_path_changes" doc:"Path changes in the list of a window; further ones are counted." range:"0..1000000"`
	MaxDrops       int           `yaml:"max_drops" doc:"Pairs of node and drop reason in the list of a window; further ones are counted together." range:"1..1000000"`
}

// MostMemory is the end of the range of [Config.MemoryBytes].
const MostMemory = 1 << 40

// DefaultConfig keeps about 500 000 flows of five hops.
func DefaultConfig() Config {
	return Config{
		MemoryBytes: 512 << 20, IdleTimeout: time.Minute, PathLength: 5, MaxPathLength: 32, MaxHops: 4096,
		TopFlows: 100, DailyFlows: 10_000, MaxPathChanges: 1000, MaxDrops: 1024,
	}
}

// Validate reports errors beyond the ranges of the fields.
func (c *Config) Validate() error {
	var errs []error
	if c.PathLength > c.MaxPathLength {
		errs = append(errs, fmt.Errorf("path_length: %d is more than the max_path_length of %d", c.PathLength, c.MaxPathLength))
	}
	if need := minFlows * int64(c.flowBytes()); c.MemoryBytes < need {
		errs = append(errs, fmt.Errorf("memory_bytes: %d holds less than %d flows of %d hops, which need %d", c.MemoryBytes, minFlows, c.PathLength, need))
	}
	return errors.Join(errs...)
}

// minFlows is how many flows a shard must have room for: two batches of new ones.
const minFlows = 2 * batchSize

// flowBytes returns the memory of a flow whose path has the usual length. It is its entry in the table, its cells in
// the index and its blocks.
func (c *Config) flowBytes() int {
	return int(unsafe.Sizeof(entry{})) + indexBytes + c.PathLength*int(unsafe.Sizeof(block{}))
}

// indexBytes is the memory of a flow in the index of the table.
const indexBytes = 12
