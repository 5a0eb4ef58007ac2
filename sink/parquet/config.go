package parquet

import (
	"errors"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// Config is the settings of the files and of the memory for each.
type Config struct {
	Dir            string        `yaml:"dir" doc:"Directory of the datasets, created if missing; it belongs to one process."`
	RotateInterval time.Duration `yaml:"rotate_interval" doc:"Longest time that rows wait in memory before their file is written." range:"1s..1h"`
	MemoryBytes    int           `yaml:"memory_bytes" doc:"Most memory of waiting rows; when full, files are written early." range:"1048576..17179869184"`
	RowGroupRows   int           `yaml:"row_group_rows" doc:"Most rows of a row group, which a reader holds at once." range:"1000..10000000"`
	Raw            bool          `yaml:"raw" doc:"Also keep one row a hop of every report, in the dataset raw."`
	RawMemoryBytes int           `yaml:"raw_memory_bytes" doc:"Most memory of waiting raw rows, twice: one half fills while the other is written. Further rows are dropped." range:"1048576..17179869184"`
}

// defaultConfig writes four parts an hour.
func defaultConfig() Config {
	return Config{RotateInterval: 15 * time.Minute, MemoryBytes: 64 << 20, RowGroupRows: 65536, RawMemoryBytes: 64 << 20}
}

// SetDefaults makes c the default settings, with a directory below the working directory.
func (c *Config) SetDefaults() {
	*c = defaultConfig()
	c.Dir = "series"
}

// Open makes a writer of these settings.
func (c Config) Open() (sink.Writer, error) {
	return sink.Opened(New(c))
}

// OpenReports makes the writer of the raw stream, or returns nil when these settings do not ask for it. With [sink.Drop]
// a report that finds no room is dropped and counted, with [sink.Block] it waits.
func (c Config) OpenReports(policy sink.Policy) (sink.ReportWriter, error) {
	if !c.Raw {
		return nil, nil
	}
	r, err := newRaw(c, policy)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Doc returns what the switch, the queue and the spool of this store are for.
func (c Config) Doc(key string) string {
	return map[string]string{
		"enabled": "Write Parquet files.",
		"spool":   "Keeps the rows of files that are not finished.",
	}[key]
}

// Target returns where files go, for display.
func (c Config) Target() string { return c.Dir }

// Memory is the most memory that waits for its file, in bytes: rows of series, and the raw ones twice.
func (c *Config) Memory() int64 {
	if !c.Raw {
		return int64(c.MemoryBytes)
	}
	return int64(c.MemoryBytes) + 2*int64(c.RawMemoryBytes)
}

// Validate returns the errors in c that the ranges of single values do not show.
func (c *Config) Validate() error {
	if c.Dir == "" {
		return errors.New("dir: is missing")
	}
	return nil
}

// Bytes of a row in a file and of a hop of a report in the dataset raw, the processor time of a row, and what the files
// of all series leave to the garbage collector when they are written. The first and the last were measured beside
// "hopscope-bench sizing", rawBytes in a replay of 2864 reports.
const (
	rowBytes     = 14
	rawBytes     = 14
	rowUnits     = 1
	filesGarbage = 40 << 20
)

// Output is what the store is expected to write.
func (c *Config) Output(v *sink.Volume) sink.Output {
	out := sink.Output{Takes: true, Garbage: filesGarbage, Units: v.Points * rowUnits, Disk: v.Points * rowBytes * sink.Day, Rests: fmt.Sprintf("%.0f rows a second, of %d bytes each", v.Points, rowBytes)}
	if c.Raw {
		out.Disk += v.Hops * rawBytes * sink.Day
		out.Rests += fmt.Sprintf(", and %.0f raw ones of %d", v.Hops, rawBytes)
	}
	return out
}
