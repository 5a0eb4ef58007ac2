package shard

import (
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// Config bounds the memory of one [State].
type Config struct {
	MemoryBytes    int64         `yaml:"memory_bytes" doc:"Memory of the flow tables and of the sketches of their flows; as many flows as fit are kept." range:"1048576..1099511627776"`
	IdleTimeout    time.Duration `yaml:"idle_timeout" doc:"A flow or a hop that was not seen for this long is forgotten." range:"1s..24h"`
	PathLength     int           `yaml:"path_length" doc:"Hops of a usual path: how memory is divided between flows and the sketches of their hops." range:"1..64"`
	MaxPathLength  int           `yaml:"max_path_length" doc:"Hops of a flow that have sketches of their own; further ones count in the statistics of hops alone." range:"1..64"`
	MaxHops        int           `yaml:"max_hops" doc:"Hops (node and egress interface) of a window, and different ones of a day (UTC); further ones are folded into one that is called other." range:"1..65535"`
	TopFlows       int           `yaml:"top_flows" doc:"Busiest flows of a window that are reported and stored one by one. Up to half of them are probes of agents, however busy others are." range:"0..10000"`
	DailyFlows     int           `yaml:"daily_flows" doc:"Different flows that get stored series of their own within a day (UTC): what a store has to index. Further ones are stored together as the flow other." range:"0..10000000"`
	MaxPathChanges int           `yaml:"max_path_changes" doc:"Path changes of a window that are listed one by one; further ones are counted." range:"0..1000000"`
	MaxDrops       int           `yaml:"max_drops" doc:"Pairs of node and drop reason of a window that are listed one by one; drops of further ones are counted together." range:"1..1000000"`
}

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
