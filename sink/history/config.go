package history

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// Config has the place and the bounds of the history.
type Config struct {
	Enabled  bool          `yaml:"enabled" doc:"Keep a history on disk for the page."`
	Dir      string        `yaml:"dir" doc:"Directory of the history, for one process. Empty is history in the directory of the first spool, or else none."`
	MaxBytes int64         `yaml:"max_bytes" doc:"Most bytes on disk: half for minutes, a quarter for ten minutes, the rest for hours and days. The oldest go first." range:"16777216..1099511627776"`
	Minutes  time.Duration `yaml:"minutes" doc:"Retention of records of minutes; of ten minutes ten times as long." range:"1h..8784h"`
	Hours    time.Duration `yaml:"hours" doc:"Retention of records of hours and days." range:"24h..87840h"`
}

// DefaultConfig keeps minutes for two days, ten minutes for twenty, and hours for 400, in a gibibyte.
func DefaultConfig() Config {
	return Config{Enabled: true, MaxBytes: 1 << 30, Minutes: 48 * time.Hour, Hours: 400 * 24 * time.Hour}
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Validate names what is wrong between the fields.
func (c *Config) Validate() error {
	if c.Enabled && c.Hours < c.Minutes {
		return errors.Join(fmt.Errorf("hours: %v is less than minutes, %v", c.Hours, c.Minutes))
	}
	return nil
}

// keep returns how long records of a step are kept.
func (c *Config) keep(t int) time.Duration {
	switch t {
	case 0:
		return c.Minutes
	case 1:
		return max(10*c.Minutes, c.Minutes) // unless that is longer than there are durations
	}
	return c.Hours
}

// share is the part of the bytes that records of a step may take.
func (c *Config) share(t int) int64 { return c.MaxBytes / [...]int64{2, 4, 6, 12}[t] }

// HopMemory is the most memory of a history of so many hops, in bytes.
func (c *Config) HopMemory(hops int) int64 {
	if !c.Enabled {
		return 0
	}
	// A hop in a record, with two histograms of all octaves; what such records are merged from has the hops of two days.
	const hop = int64(unsafe.Sizeof(window.HopPart{})) + 48 + 2*quantile.Octaves*quantile.OctaveCodes*4
	const held = 1 + queued + 1 + 2*mostQueries // the open minute, those that wait, one that is written or made, and of a query the sum and what is added
	return int64(hops) * (held*hop + mostQueries*mostColumns*4)
}

// hopBytes returns the expected bytes of a hop with so many values in a record. The histogram of a hop grows with the
// logarithm of their number. It was fitted to "hopscope-bench sizing", between 2,700 and 41,000 values.
func hopBytes(values float64) float64 { return max(32*math.Log2(max(values, 1))-195, 60) }

// Output is what the history is expected to write.
func (c *Config) Output(v *sink.Volume) (out sink.Output) {
	if !c.Enabled || c.Dir == "" && !v.Spooled {
		return out
	}
	hops, second := float64(v.Rows+1), v.Hops/float64(v.Rows+1)
	minutes, tens, hours := hops*1440*hopBytes(60*second), hops*144*hopBytes(600*second), hops*25*hopBytes(3600*second)
	days := func(t int) float64 { return c.keep(t).Hours() / 24 }
	return sink.Output{
		Disk:  minutes + tens + hours,
		Most:  min(float64(c.MaxBytes), minutes*days(0)+tens*days(1)+hours*days(2)),
		Rests: fmt.Sprintf("%.0f hops, %.0f bytes each a minute, and more for longer steps", hops, hopBytes(60*second)),
	}
}
