package collector

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/ingest/udp"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/influx"
	"github.com/hopscope/hopscope/sink/parquet"
	"github.com/hopscope/hopscope/sink/spool"
	"github.com/hopscope/hopscope/sink/web"
)

// Config is everything that a collector can be told.
type Config struct {
	Window            time.Duration `yaml:"window" doc:"Length of a window: every series has one point a window." range:"100ms..1h"`
	Shards            int           `yaml:"shards" doc:"Goroutines that own flow tables. 0 means one for each CPU." range:"0..256"`
	ShardQueueBatches int           `yaml:"shard_queue_batches" doc:"Batches that may wait for a shard. A live source drops and counts what comes on top." range:"1..65536"`
	DrainTimeout      time.Duration `yaml:"drain_timeout" doc:"How long a stopping collector may take to write what it still holds." range:"0s..10m"`
	Exporters         Exporters     `yaml:"exporters" doc:"Who sends, in which dialect."`
	UDP               udp.Config    `yaml:"udp" doc:"Report datagrams from the network."`
	Flows             shard.Config  `yaml:"flows" doc:"What is kept of flows and hops. Sizes are for all shards together."`
	PINT              PINT          `yaml:"pint" doc:"What PINT digests can stand for."`
	Events            events.Config `yaml:"events" doc:"When something is worth a finding."`
	Influx            InfluxSink    `yaml:"influx" doc:"Series to InfluxDB 2, or 1.8 through its compatibility API."`
	Parquet           ParquetSink   `yaml:"parquet" doc:"Series to Parquet files."`
	Web               web.Config    `yaml:"web" doc:"The page, the metrics and the health checks."`
	Log               Log           `yaml:"log" doc:"What is written to standard error."`
}

// Exporters says how the senders of reports are read.
type Exporters struct {
	Profile  string            `yaml:"profile" doc:"Dialect of exporters that no entry of profiles names (see docs/formats.md)."`
	Profiles []ExporterProfile `yaml:"profiles" doc:"Dialects by source address; the longest prefix wins."`
	Tracking sequence.Config   `yaml:"tracking" doc:"How sequence numbers are followed."`
}

// ExporterProfile gives one network of exporters its dialect.
type ExporterProfile struct {
	Prefix  string `yaml:"prefix" doc:"Source addresses, as 10.1.0.0/16."`
	Profile string `yaml:"profile" doc:"Name of the dialect."`
}

// InfluxSink is the InfluxDB sink with its queue.
type InfluxSink struct {
	Enabled       bool `yaml:"enabled" doc:"Write to InfluxDB."`
	influx.Config `yaml:""`
	Queue         sink.QueueConfig `yaml:"queue" doc:"Between the collector and the server."`
	Spool         SpoolConfig      `yaml:"spool" doc:"What is kept on disk while the server is away."`
}

// SpoolConfig is a spool that can be left out.
type SpoolConfig struct {
	Enabled      bool `yaml:"enabled" doc:"Keep batches on disk until the store has them."`
	spool.Config `yaml:""`
}

// ParquetSink is the Parquet sink with its queue.
type ParquetSink struct {
	Enabled        bool `yaml:"enabled" doc:"Write Parquet files."`
	parquet.Config `yaml:""`
	Queue          sink.QueueConfig `yaml:"queue" doc:"Between the collector and the disk."`
	Spool          SpoolConfig      `yaml:"spool" doc:"Keeps the rows of files that are not finished."`
}

// Log is how the program speaks.
type Log struct {
	Level  string `yaml:"level" doc:"Least severity that is written." oneof:"debug|info|warn|error"`
	Format string `yaml:"format" doc:"auto is text on a terminal, JSON otherwise." oneof:"auto|text|json"`
}

// DefaultConfig is a collector on loopback that stores nothing but shows everything.
func DefaultConfig() Config {
	return Config{
		Window:            10 * time.Second,
		ShardQueueBatches: 64,
		DrainTimeout:      20 * time.Second,
		Exporters:         Exporters{Profile: "auto", Tracking: sequence.DefaultConfig()},
		UDP:               udp.DefaultConfig(),
		Flows:             shard.DefaultConfig(),
		PINT:              DefaultPINT(),
		Events:            events.DefaultConfig(),
		Influx:            InfluxSink{Config: influx.DefaultConfig(), Queue: sink.DefaultQueueConfig(), Spool: defaultSpool("influx")},
		Parquet:           ParquetSink{Config: defaultParquet(), Queue: sink.DefaultQueueConfig(), Spool: defaultSpool("parquet")},
		Web:               web.DefaultConfig(),
		Log:               Log{Level: "info", Format: "auto"},
	}
}

// Directories are relative, so that a service is told where they are by its working directory.
func defaultSpool(sink string) SpoolConfig {
	c := SpoolConfig{Enabled: true, Config: spool.DefaultConfig()}
	c.Dir = "spool/" + sink
	return c
}

func defaultParquet() parquet.Config {
	c := parquet.DefaultConfig()
	c.Dir = "series"
	return c
}

func (c *Config) shards() int {
	if c.Shards > 0 {
		return c.Shards
	}
	return runtime.GOMAXPROCS(0)
}

// Validate checks the dialects.
func (e *Exporters) Validate() error {
	var errs []error
	if _, ok := demux.Lookup(e.Profile); !ok {
		errs = append(errs, fmt.Errorf("profile: %q is none of %s", e.Profile, strings.Join(demux.Profiles(), ", ")))
	}
	return errors.Join(errs...)
}

// Validate checks one entry.
func (e *ExporterProfile) Validate() error {
	var errs []error
	if _, err := netip.ParsePrefix(e.Prefix); err != nil {
		errs = append(errs, fmt.Errorf("prefix: %q is not a prefix such as 10.1.0.0/16", e.Prefix))
	}
	if _, ok := demux.Lookup(e.Profile); !ok {
		errs = append(errs, fmt.Errorf("profile: %q is none of %s", e.Profile, strings.Join(demux.Profiles(), ", ")))
	}
	return errors.Join(errs...)
}

// Validate says nothing about a sink that is off.
func (c *InfluxSink) Validate() error {
	if !c.Enabled {
		return nil
	}
	return c.Config.Validate()
}

// Validate says nothing about a spool that is off.
func (c *SpoolConfig) Validate() error {
	if !c.Enabled {
		return nil
	}
	return c.Config.Validate()
}

// Validate says nothing about a sink that is off.
func (c *ParquetSink) Validate() error {
	if !c.Enabled {
		return nil
	}
	return c.Config.Validate()
}
