package detect

import (
	"math"
	"time"
)

// Config configures how values are compared and time is counted. Hops that are fed with different configurations do not
// mix.
type Config struct {
	Floor    float64       // added to every value before its logarithm: what lies far below it is all the same
	Window   time.Duration // length of a window; an hour and a day are counted in windows
	MinCount uint64        // values that a window must have to be judged; with fewer the hop is silent in it
	Share    float64       // share of the windows of a hop in which a false finding may begin
	Rising   bool          // only what rises is a finding: queues
	Idle     bool          // zero may stay for as long as it likes: queues, links
	Single   bool          // a window has one value, its P50
	Steady   bool          // the same value may stay for as long as it likes: times on links
	Stopped  bool          // constant values are no finding, and end an open rise or fall
	Grave    float64       // factor of the usual value from which on a finding is grave
	Warmup   int           // windows before a hop is judged; the limits were tuned for 60
	Adopt    int           // windows after which the level of a finding becomes the usual one
	EndAfter int           // calm windows that end a finding

	reach    float32 // how far the limits lie above tails
	reachFor float64 // share that this is for
}

// Latency is the configuration for latencies in nanoseconds.
func Latency(window time.Duration) Config {
	return Config{Floor: 1000, Window: window, MinCount: 1, Share: 1e-6, Grave: 4, Warmup: 60, Adopt: 360, EndAfter: 3}
}

// Queue returns the configuration for queues in bytes. Most are empty most of the time, and otherwise differ by whole
// packets. Six full packets are added to both sides, so that one packet more is normal and a hundred are not.
func Queue(window time.Duration) Config {
	c := Latency(window)
	c.Floor, c.Rising, c.Idle = 10_000, true, true
	return c
}

// Utilization is the configuration for the utilisation of a link, one value a window. A tenth of the link is added to it.
func Utilization(window time.Duration) Config {
	c := Latency(window)
	c.Floor, c.Single, c.Idle = .1, true, true
	return c
}

// loss is the configuration for shares of packets that got lost, one value a window, of which only a rise is a finding.
// A thousandth is added to it.
func loss(window time.Duration) Config {
	c := Latency(window)
	c.Floor, c.Single, c.Idle, c.Rising = .001, true, true, true
	return c
}

// Kinds are the configurations by what is compared.
var Kinds = map[string]func(window time.Duration) Config{"latency": Latency, "queue": Queue, "utilisation": Utilization, "loss": loss}

const (
	minute   = time.Minute
	halfHour = 30 * time.Minute
)

// perDay is the number of windows in a day, at least one.
func (c *Config) perDay() float64 { return max(1, float64(24*time.Hour)/float64(c.Window)) }

// Moment is the time of a window as seasons count it. It is the same for all hops.
type Moment struct {
	bin  [seasons]int8
	fade float32 // what a day takes off in a window
}

// At returns the moment of the window that ends at a time, in ns since 1970 or any other start of an hour.
func (c *Config) At(end int64) (m Moment) {
	begin := end - int64(c.Window)
	for k := range m.bin {
		bins := seasonBins[k]
		m.bin[k] = int8((begin/seasonBin[k]%bins + bins) % bins)
	}
	m.fade = float32(1 / c.perDay())
	return m
}

func (c *Config) warmup() uint32 { return uint32(max(c.Warmup, 2)) }

// The means have these time constants, in windows.
var constants = [means]float32{1, 3, 9, 27, 81, 243, 729}

const (
	means     = 7
	previous  = 0 // the fastest mean, which is the window before
	usual     = 3 // the mean to which windows of few values are drawn
	reference = 6 // the slowest mean, to which profiles are relative
)

// contrast compares two means.
type contrast struct {
	fast, slow int     // means that are compared; fast 0 is the window itself
	floor      float32 // least difference of logarithms that counts
	up, down   float32 // factors of its tail quantile when a window exceeds it, and when not

	upSlowly, downSlowly float32 // the same of a slow mean, which may be leaving
	rate                 float32 // at which its mean of squares moves at least
	weight               float32 // of an excess: those of windows in a row that a slow mean makes are one
	part                 float32 // least mean excess of a slow mean, as a part of its tail quantile

	// A slow mean that creeps away raises its own mean of squares. So a square counts at most as the factor cut times
	// that mean, and it is multiplied by gain. With gain, a normal law has the mean of squares that a cut at 4 gives
	// it.
	cut, gain float32
}

// The contrasts, by what they compare. Their numbers are part of saved states.
const (
	windowPrevious = iota // the window with the one before
	windowUsual           // the window with the usual level
	threeUsual            // the mean of 3 windows with the usual level, which is that of 27
	nineSlow              // the mean of 9 windows with that of 81
	usualSlower           // the usual level with the mean of 243 windows
	slowReference         // the mean of 81 windows with the reference, that of 729
	contrasts
)

const (
	firstOfMeans = threeUsual // contrasts from here on compare two means, those before it the window itself
)

var bank = newBank()

// inverse is that of the constants: the least rate of a mean.
var inverse = func() (inverse [means]float32) {
	for k, t := range constants {
		inverse[k] = 1 / t
	}
	return inverse
}()

func newBank() (b [contrasts]contrast) {
	b = [contrasts]contrast{
		windowPrevious: {fast: 0, slow: previous, floor: .25},
		windowUsual:    {fast: 0, slow: usual, floor: .25},
		threeUsual:     {fast: 1, slow: usual, floor: .2},
		nineSlow:       {fast: 2, slow: 4, floor: .15},
		usualSlower:    {fast: usual, slow: 5, floor: .15},
		slowReference:  {fast: 4, slow: reference, floor: .5},
	}
	for j := range b {
		step := float64(.1/(1+constants[b[j].fast]) + .002)
		b[j].up, b[j].down = float32(math.Exp(step*(1-tailShare))), float32(math.Exp(-step*tailShare))
		step *= slowUp
		b[j].upSlowly, b[j].downSlowly = float32(math.Exp(step*(1-tailShare))), float32(math.Exp(-step*tailShare))
		b[j].weight = 1 / constants[b[j].fast]
		b[j].rate = 1 / max(500, 6*constants[b[j].slow])
		b[j].cut, b[j].gain = 4, 1
		if b[j].fast > 1 {
			b[j].part = usualPart
		}
	}
	// A ramp of hours shows here alone, while its limit would follow it; a hop that wanders by itself has the wider tail.
	b[slowReference].cut, b[slowReference].gain, b[slowReference].part = 1.2, 1.636, .2
	return b
}
