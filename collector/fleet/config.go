package fleet

import (
	"errors"
	"fmt"
	"time"
)

// Config is the settings of a consumer's membership in its fleet.
type Config struct {
	Group       string        `yaml:"group" doc:"Name of the group of consumers, behind the prefix of kafka."`
	Session     time.Duration `yaml:"session" doc:"Silence after which a consumer loses its partitions. Brokers bound it, usually to 6s..30m." range:"1s..30m"`
	Drain       time.Duration `yaml:"drain" doc:"Longest time for writes before partitions are handed over; the next consumer repeats the rest." range:"100ms..10m"`
	Checkpoint  time.Duration `yaml:"checkpoint" doc:"Interval of checkpoints. The next consumer of a partition reads again from the last one." range:"100ms..1h"`
	Patience    int           `yaml:"patience" doc:"Windows after which a window closes without missing collectors, and after which these are expected no longer." range:"1..1000"`
	Corrections time.Duration `yaml:"corrections" doc:"Oldest windows that late reports are merged into. Retention of topic windows must be longer." range:"0s..24h"`
	MaxLag      time.Duration `yaml:"max_lag" doc:"Age of the last window, beyond its length and the wait for collectors, up to which a consumer is ready." range:"1s..24h"`
	MaxOpen     int           `yaml:"max_open" doc:"Most open windows of a partition; many after an outage." range:"2..8192"`
	MaxRecords  int           `yaml:"max_records" doc:"Records of all open windows of a partition, of some 200 bytes each." range:"1024..16777216"`
	HeldBytes   int64         `yaml:"held_bytes" doc:"Most memory for compressed records of open windows of a partition. Further ones are read again from Kafka at the close." range:"65536..17179869184"`
	WindowBytes int64         `yaml:"window_bytes" doc:"Most compressed bytes of the records of one window of a partition; further ones are refused." range:"1048576..17179869184"`
	RecordBytes int           `yaml:"record_bytes" doc:"Most bytes of a record written to Kafka; below the brokers' message.max.bytes." range:"65536..104857600"`
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
