package spool

import (
	"errors"
	"fmt"
	"time"
)

// Config is the settings of the directory of the spool and of its bounds.
type Config struct {
	Dir          string        `yaml:"dir" doc:"Directory, created if missing, for one sink of one process."`
	MaxBytes     int64         `yaml:"max_bytes" doc:"Most bytes on disk; then the oldest segment is evicted." range:"65536..17592186044416"`
	SegmentBytes int64         `yaml:"segment_bytes" doc:"Size of a segment, which is evicted whole and bounds a record." range:"4096..1073741824"`
	Sync         string        `yaml:"sync" doc:"Sync to disk: each record (survives a crash of the machine; slow), interval, or never." oneof:"each|interval|never"`
	SyncInterval time.Duration `yaml:"sync_interval" doc:"Longest time until a sync with sync: interval." range:"10ms..10m"`
}

// DefaultConfig holds a gibibyte: a day of a hundred hops and a thousand flows in windows of ten seconds.
func DefaultConfig() Config {
	return Config{MaxBytes: 1 << 30, SegmentBytes: 8 << 20, Sync: "interval", SyncInterval: time.Second}
}

// Validate returns the errors in c that the ranges of single values do not show.
func (c *Config) Validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("dir: is missing"))
	}
	if c.SegmentBytes > c.MaxBytes/4 {
		errs = append(errs, fmt.Errorf("segment_bytes: %d is more than a quarter of max_bytes %d, so that eviction would take too much at once", c.SegmentBytes, c.MaxBytes))
	}
	return errors.Join(errs...)
}
