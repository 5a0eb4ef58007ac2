package sequence

import (
	"fmt"
	"math/bits"
	"time"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/window"
)

// Config bounds the memory and sets the tolerance of a [Tracker].
type Config struct {
	MaxExporters int           `yaml:"max_exporters" doc:"Exporters (address, node, hardware id) tracked; reports of further ones are only counted." range:"1..1048576"`
	Window       int           `yaml:"window" doc:"Most sequence numbers behind the newest for which missing ones are waited for; a power of two." range:"64..1048576"`
	MaxGap       int           `yaml:"max_gap" doc:"Largest jump ahead that counts as loss, at most a sixteenth of the numbers' range; a larger one is a restart." range:"64..1073741824"`
	ForgetAfter  time.Duration `yaml:"forget_after" doc:"Silence after which an exporter is forgotten." range:"1s..720h"`
}

// DefaultConfig tracks 4096 exporters in about 3 MB. Records of missing numbers take 8 MB more at most.
func DefaultConfig() Config {
	return Config{MaxExporters: 4096, Window: 1 << 18, MaxGap: 1 << 20, ForgetAfter: time.Hour}
}

// Validate reports errors beyond the ranges of the fields.
func (c *Config) Validate() error {
	if c.Window&(c.Window-1) != 0 || c.Window < 64 {
		return fmt.Errorf("window: %d is no power of two of at least 64", c.Window)
	}
	return nil
}

// Memory is the most memory that this many trackers take that share places, in bytes.
func (c *Config) Memory(trackers int) int64 {
	const doors = 2*doorLength + mostOutside*32
	entries := c.MaxExporters * (int(unsafe.Sizeof(entry{})) + leastWait/8 + 8)
	indexes := trackers * 8 * c.MaxExporters * int(unsafe.Sizeof(slot{})) // each has room for all
	records := max(c.MaxExporters/16, 4) * c.longest() / 8
	copies := trackers * (8*c.sums(trackers) + c.waiting(trackers)*(int(unsafe.Sizeof(decode.Lazy{}))+waitingHops*int(unsafe.Sizeof(decode.Hop{}))))
	return int64(entries + indexes + records + doors + copies)
}

// waitingHops is how many hops a report has memory for that waits.
const waitingHops = 8

// sums is how many sums one of several trackers keeps, a power of two.
func (c *Config) sums(trackers int) int { return 1 << bits.Len(uint(sumsEach*c.MaxExporters/trackers)) }

// waiting is how many reports wait at most in one of several trackers.
func (c *Config) waiting(trackers int) int { return max(c.MaxExporters/trackers, mostWaiting) }

// NumbersMemory returns the further memory of [Tracker.ReportNumbers] in bytes, for all trackers together. It holds for
// so many runs of each sequence, in a window in which all of them have as many.
func (c *Config) NumbersMemory(runs int) int64 {
	const list = int(unsafe.Sizeof(window.Run{}))
	return int64(c.MaxExporters) * int64(int(unsafe.Sizeof(numberLog{}))+2*keptFills*4+2*int(unsafe.Sizeof(window.Numbers{}))+8*runs*list)
}

// longest is the length of the longest record: no more than a gap that is none of a restart.
func (c *Config) longest() int { return min(c.Window, 1<<(bits.Len(uint(c.MaxGap))-1)) }
