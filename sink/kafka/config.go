package kafka

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/hopscope/hopscope/inference/fleet"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/sink"
)

// Config is the settings of the member's fleet and of its Kafka.
type Config struct {
	brokers.Config  `yaml:""`
	Fleet           string       `yaml:"fleet" doc:"Name of the fleet: the instance in all its points."`
	Slices          int          `yaml:"slices" doc:"Shares of windows, a partition each: the most consumers that can work. All members have the same; it never changes." range:"1..1024"`
	Reports         string       `yaml:"reports" doc:"Reports that go to consumers one by one: needed (PINT digests, postcards, raw_exporters), all, or none." oneof:"needed|all|none"`
	RawExporters    []string     `yaml:"raw_exporters" doc:"Networks of exporters whose flows reach several collectors, as 10.1.0.0/16; their reports go to consumers one by one."`
	MaxMessageBytes int          `yaml:"max_message_bytes" doc:"Longest value of a record; longer ones are split. Topics must allow more." range:"65536..4194304"`
	InFlight        int          `yaml:"in_flight" doc:"Most requests to Kafka at a time." range:"1..64"`
	DrainBytes      int64        `yaml:"drain_bytes" doc:"Most bytes a second from the spool, above the rate of new windows; 0 sets no limit." range:"0..17179869184"`
	Topics          topicsConfig `yaml:"topics" doc:"Topics as hopscope kafka topics creates and checks them."`
}

// topicsConfig holds the retention of records and the number of their copies.
type topicsConfig struct {
	Replication      int           `yaml:"replication" doc:"Copies of each record. 0 is the brokers' default." range:"0..16"`
	WindowsRetention time.Duration `yaml:"windows_retention" doc:"Retention of windows before the merge, which bounds how long all consumers may be away." range:"1h..8760h"`
	ReportsRetention time.Duration `yaml:"reports_retention" doc:"The same for single reports, which are many more bytes." range:"1h..8760h"`
	SeriesRetention  time.Duration `yaml:"series_retention" doc:"Retention of merged windows for pages and other readers." range:"1h..8760h"`
}

// DefaultConfig is a fleet on a broker of the same machine.
func DefaultConfig() Config {
	return Config{
		Config: brokers.DefaultConfig(), Fleet: "fleet", Slices: 16, Reports: "needed",
		MaxMessageBytes: 900_000, InFlight: 4, DrainBytes: 32 << 20,
		Topics: topicsConfig{WindowsRetention: 24 * time.Hour, ReportsRetention: 6 * time.Hour, SeriesRetention: 7 * 24 * time.Hour},
	}
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Open makes a [Writer] of these settings.
func (c Config) Open() (sink.Writer, error) {
	return sink.Opened(New(c))
}

// Group is the name of the consumers' group.
func (c *Config) Group() string { return c.Prefix + "consumers" }

// Target returns where records go, for display.
func (c Config) Target() string { return c.Config.Target() }

// Publishes reports that this store takes partial windows.
func (c *Config) Publishes() bool { return true }

// Validate finds everything that is wrong with c beyond the ranges of single values. It reads no file.
func (c *Config) Validate() error {
	errs := []error{c.Config.Validate()}
	if c.Fleet == "" || len(c.Fleet) > fleet.MaxName || strings.ContainsFunc(c.Fleet, notInName) {
		errs = append(errs, fmt.Errorf("fleet: %q is no name: 1 to %d letters, digits, dots, dashes and underscores", c.Fleet, fleet.MaxName))
	}
	for i, p := range c.RawExporters {
		if _, err := netip.ParsePrefix(p); err != nil {
			errs = append(errs, fmt.Errorf("raw_exporters[%d]: %q is no network such as 10.1.0.0/16", i, p))
		}
	}
	if c.Reports == "none" && len(c.RawExporters) > 0 {
		errs = append(errs, errors.New("raw_exporters: have no effect, since reports is none; choose one"))
	}
	return flat(errs)
}

// flat joins errors that may be joined ones, into single ones.
func flat(errs []error) error {
	var out []error
	for _, err := range errs {
		if j, ok := err.(interface{ Unwrap() []error }); ok {
			out = append(out, j.Unwrap()...)
		} else {
			out = append(out, err)
		}
	}
	return errors.Join(out...)
}

// CheckFiles reads the files that the settings name, and returns every problem with them.
func (c *Config) CheckFiles() error { return c.Config.CheckFiles() }

// Memory is about what requests on their way and their answers take, also those to partitions that do not answer, beside the queue's.
// It includes the reports that wait for others to go with them.
func (c *Config) Memory() int64 {
	need := int64(3*c.InFlight+c.Slices)*int64(c.MaxMessageBytes) + maxPayload
	if c.Reports != "none" {
		need += int64(c.Slices) * batchBytes
	}
	return need
}

// Doc returns what the switch, the queue and the spool of this store are for.
func (c Config) Doc(key string) string {
	return map[string]string{
		"enabled": "Publish windows to a fleet, whose consumers write the series; excludes other stores.",
	}[key]
}

func notInName(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-')
}

// Bytes of a row of a window in records, and those of a report: "hopscope-bench fleet" measures them.
const (
	rowBytes    = 215
	reportBytes = 47
)

// Output is what the store is expected to write.
func (c *Config) Output(v *sink.Volume) sink.Output {
	out := sink.Output{Takes: true, Network: v.Points * rowBytes, Rests: fmt.Sprintf("%.0f rows a second of %d bytes", v.Points, rowBytes)}
	if c.Reports == "all" {
		out.Network += v.Reports * reportBytes
		out.Rests += fmt.Sprintf(", %.0f reports of %d bytes", v.Reports, reportBytes)
	}
	return out
}
