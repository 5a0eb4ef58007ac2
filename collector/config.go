package collector

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/sink/notify"
)

// Config holds the settings of the engine that do not depend on where reports come from and go to. A program embeds it in its
// settings, beside [Analysis] and the sections of its sources and stores.
type Config struct {
	Window            time.Duration `yaml:"window" doc:"Length of a window, with one point of every series." range:"100ms..1h"`
	Instance          string        `yaml:"instance" doc:"Name of this collector in every point, of letters, digits, dots, dashes, underscores; unique in a store. Empty is the host's name."`
	Corrections       time.Duration `yaml:"corrections" doc:"Longest step back of the clock after which repeated windows are merged with stored ones. After a longer one the last window stays open until the clock has passed it." range:"0s..24h"`
	CorrectionsBytes  int64         `yaml:"corrections_bytes" doc:"Most memory of windows kept for corrections, which bounds how far they reach back." range:"65536..17179869184"`
	Shards            int           `yaml:"shards" doc:"Goroutines that own flow tables. 0 is one a CPU." range:"0..256"`
	ShardQueueBatches int           `yaml:"shard_queue_batches" doc:"Batches that wait for a shard. Live sources wait up to 50 ms a window for room, and then drop further ones." range:"1..65536"`
	SeedFile          string        `yaml:"seed_file" doc:"File of at least 16 secret characters that seed all random choices, the same in a fleet. Senders that know them can send colliding flows. Empty draws a seed at every start."`
	DrainTimeout      time.Duration `yaml:"drain_timeout" doc:"Longest time to write what a stopping collector holds." range:"0s..10m"`
	StateFile         string        `yaml:"state_file" doc:"File of exporters' numbers and accounts, for restarts. Empty is collector.state beside the first spool, if there is one."`
	Inventory         string        `yaml:"inventory" doc:"File of names, and speeds of interfaces (docs/inventory.md), read again when it changes. Empty takes node names from pint.topology."`
	Alerts            notify.Config `yaml:"alerts" doc:"Findings that are sent to webhook, alertmanager and syslog (docs/alerts.md)."`
	Exporters         Exporters     `yaml:"exporters" doc:"Exporters, and the dialect of each."`
	IPFIX             IPFIX         `yaml:"ipfix" doc:"Reading of IPFIX and NetFlow 9 (docs/formats.md)."`
}

// Analysis holds the settings of statistics and detectors.
type Analysis struct {
	Flows  shard.Config  `yaml:"flows" doc:"Memory for flows and hops, of all shards together."`
	PINT   PINT          `yaml:"pint" doc:"What PINT digests can stand for."`
	Policy string        `yaml:"policy" doc:"File of the ways that flows may take (docs/findings.md), read at the start. Empty allows all."`
	Events events.Config `yaml:"events" doc:"Thresholds and memory of findings."`
}

// minSeed is the least number of characters of a seed file: as of a password that cannot be guessed.
const minSeed = 16

// Seed returns the seed of all random choices: that of the file, or one that cannot be guessed.
func (c *Config) Seed() (uint64, error) {
	if c.SeedFile == "" {
		return rand.Uint64(), nil
	}
	text, err := os.ReadFile(c.SeedFile)
	if err != nil {
		return 0, fmt.Errorf("seed_file: %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) < minSeed {
		return 0, fmt.Errorf("seed_file: %s has %d characters, want %d at least (openssl rand -hex 16)", c.SeedFile, len(text), minSeed)
	}
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:]), nil
}

// SetDefaults makes windows of ten seconds and a shard for each CPU.
func (c *Config) SetDefaults() {
	*c = Config{
		Window: 10 * time.Second, Corrections: 10 * time.Minute, CorrectionsBytes: 64 << 20,
		ShardQueueBatches: 64, DrainTimeout: 20 * time.Second,
		Exporters: exporters.DefaultConfig(), IPFIX: exporters.DefaultIPFIX(),
	}
	c.Alerts.SetDefaults()
}

// SetDefaults keeps about half a million flows.
func (a *Analysis) SetDefaults() {
	*a = Analysis{Flows: shard.DefaultConfig(), PINT: exporters.DefaultDigestConfig(), Events: events.DefaultConfig()}
}

func (c *Config) shards() int {
	if c.Shards > 0 {
		return c.Shards
	}
	return runtime.GOMAXPROCS(0)
}

// maxInstance bounds the name of an instance, in bytes. It is as long as a host name can be.
const maxInstance = 253

// Validate checks the name of the instance.
func (c *Config) Validate() error {
	if len(c.Instance) > maxInstance {
		return fmt.Errorf("instance: has %d characters, more than %d", len(c.Instance), maxInstance)
	}
	if i := strings.IndexFunc(c.Instance, notInName); i >= 0 {
		return fmt.Errorf("instance: %q holds more than letters, digits, dots, dashes and underscores", c.Instance)
	}
	return nil
}

// notInName reports whether an instance's name cannot hold r. Such a name needs no escaping in any store or query.
func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
}

// InstanceName is the instance's name in the settings, or else that of the host with underscores for what no name can
// hold.
func (c *Config) InstanceName() string {
	if c.Instance != "" {
		return c.Instance
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "unnamed"
	}
	name := strings.Map(func(r rune) rune {
		if notInName(r) {
			return '_'
		}
		return r
	}, host)
	return name[:min(len(name), maxInstance)]
}

// NewShard makes one of the shards of a pipeline that has so many, for programs that count reports without a collector. Of the
// options it takes the seed, and what the settings of PINT need.
func NewShard(a *Analysis, opt Options, shards int) (*shard.State, error) {
	flows := a.Flows
	flows.MemoryBytes = max(flows.MemoryBytes/int64(shards), 1<<20)
	sites, err := exporters.NewSites(&Exporters{Sites: opt.Sites})
	if err != nil {
		return nil, err
	}
	if err := flows.Validate(); err != nil {
		return nil, err
	}
	one, err := a.PINT.Shards(1, shards, flows, opt.Seed, sites, opt.Ways, opt.digestInputs())
	if err != nil {
		return nil, err
	}
	return one[0], nil
}
