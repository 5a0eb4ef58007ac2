package jsonl

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// Config is the settings of the output of lines.
type Config struct {
	Path           string        `yaml:"path" doc:"File for lines, of one process. \"-\", with its quotes, is standard output, without the settings below."`
	RotateBytes    int64         `yaml:"rotate_bytes" doc:"Size at which a new file begins. 0 sets no limit." range:"0..1099511627776"`
	RotateInterval time.Duration `yaml:"rotate_interval" doc:"Time in UTC at whose multiples a new file begins: 24h at midnight, 1h on the hour. 0 sets no limit." range:"0s..8760h"`
	KeepFiles      int           `yaml:"keep_files" doc:"Files put aside that are kept; older ones are removed." range:"1..100000"`
	Sync           bool          `yaml:"sync" doc:"Sync every batch to disk before it counts as stored. Otherwise a crash of the machine can lose it."`
}

// DefaultConfig writes to standard output. With a path, it keeps about a gibibyte.
func DefaultConfig() Config {
	return Config{Path: "-", RotateBytes: 128 << 20, RotateInterval: 24 * time.Hour, KeepFiles: 7, Sync: true}
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Validate returns the errors in c that the ranges of single values do not show.
func (c *Config) Validate() error {
	switch {
	case c.Path == "":
		return errors.New("path: is missing; \"-\" is standard output")
	case os.IsPathSeparator(c.Path[len(c.Path)-1]):
		return errors.New("path: names a directory; name a file in it")
	}
	return nil
}

// Open makes a writer of these settings.
func (c Config) Open() (sink.Writer, error) {
	return sink.Opened(New(c))
}

// Target returns where lines go, for display.
func (c Config) Target() string {
	if c.Path == "-" {
		return stdoutName
	}
	return c.Path
}

// lineBytes is the mean length of a line in a replay of 2864 reports. The processor time of a line, lineUnits, is taken to
// be that of a point of InfluxDB.
const (
	lineBytes = 320
	lineUnits = .5
)

// Output is what the store is expected to write. Lines on standard output are on no disk of its own.
func (c *Config) Output(v *sink.Volume) sink.Output {
	out := sink.Output{Takes: true, Disk: v.Points * lineBytes * sink.Day, Units: v.Points * lineUnits, Rests: fmt.Sprintf("%.0f lines a second of %d bytes", v.Points, lineBytes)}
	if c.Path == "-" { // where lines go from there is not known
		out.Disk, out.Rests = 0, out.Rests+", to standard output"
		return out
	}
	if c.RotateBytes > 0 {
		out.Most = float64(c.RotateBytes) * float64(c.KeepFiles+1)
	}
	return out
}
