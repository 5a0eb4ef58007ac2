package fleet

import (
	"errors"
	"fmt"
	"time"
)

// Config is the settings of a consumer's membership in its fleet.
type Config struct {
	Group       string        `yaml:"group" doc:"Name of the group of consumers, behind the prefix of kafka."`
	Session     time.Duration `yaml:"session" doc:"A consumer of which nothing was heard for this long loses its partitions to others. The brokers bound it, usually to 6s..30m." range:"1s..30m"`
	Drain       time.Duration `yaml:"drain" doc:"How long a consumer may take to write what it has, before it gives its partitions to others. What is not written by then, they write again." range:"100ms..10m"`
	Checkpoint  time.Duration `yaml:"checkpoint" doc:"How often a partition's state is kept. The next consumer of the partition reads again what came since." range:"100ms..1h"`
	Patience    int           `yaml:"patience" doc:"Windows after which one closes without the collectors that did not deliver it, and after which these are not waited for any more." range:"1..1000"`
	Corrections time.Duration `yaml:"corrections" doc:"How old a window may be for reports that come late to be merged into it. Topic windows has to keep its records for longer." range:"0s..24h"`
	MaxLag      time.Duration `yaml:"max_lag" doc:"A consumer is ready when the last window of each of its partitions is not older than this, beside its own length and the wait for collectors." range:"1s..24h"`
	MaxOpen     int           `yaml:"max_open" doc:"Windows of a partition that are open at the same time. There are many after an outage: what the first collector kept meanwhile comes before anything of the next one." range:"2..8192"`
	MaxRecords  int           `yaml:"max_records" doc:"Records of all open windows of a partition. Some 200 bytes are kept of each." range:"1024..16777216"`
	HeldBytes   int64         `yaml:"held_bytes" doc:"Most memory of the records of all open windows of a partition, in their compressed form. What is beyond is read from Kafka again when its window closes." range:"65536..17179869184"`
	WindowBytes int64         `yaml:"window_bytes" doc:"Most bytes of the records of one window of a partition, in their compressed form. What is beyond is refused." range:"1048576..17179869184"`
	RecordBytes int           `yaml:"record_bytes" doc:"Most bytes of a record that is written to Kafka; below message.max.bytes of the brokers." range:"65536..104857600"`
}

// defaultConfig gives partitions to others after six seconds of silence.
func defaultConfig() Config {
	return Config{
		Group: "consumers", Session: 6 * time.Second, Drain: 3 * time.Second, Checkpoint: 10 * time.Second, Patience: 3, Corrections: 2 * time.Hour,
		MaxLag: time.Minute, MaxOpen: 1 << 13, MaxRecords: 1 << 17, HeldBytes: 32 << 20, WindowBytes: 64 << 20, RecordBytes: 900_000,
	}
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = defaultConfig() }

// Validate returns the errors that the ranges of the fields do not show.
func (c *Config) Validate() error {
	var errs []error
	if c.Group == "" {
		errs = append(errs, errors.New("group: is empty"))
	}
	if c.Drain >= c.Session*4 {
		errs = append(errs, fmt.Errorf("drain: %v is more than four times the session of %v: others wait for so long for the partitions", c.Drain, c.Session))
	}
	return errors.Join(errs...)
}

// maxAhead is how many windows can be open that are not over yet. All others close as soon as a partition was read to its end.
const maxAhead = 32

// Needs returns how long topic windows has to keep its records. A consumer then finds everything that a checkpoint
// leaves to be read, and everything that can be corrected.
func (c *Config) Needs(window time.Duration) time.Duration {
	return c.Corrections + 2*c.Checkpoint + time.Duration(c.Patience+maxAhead)*window
}
