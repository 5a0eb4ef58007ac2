package detect

import (
	"math"
	"time"
)

// Config says how values are compared and time is counted. Hops that are fed with different configurations do not mix.
type Config struct {
	Floor    float64       // added to every value before its logarithm: what lies far below it is all the same
	Window   time.Duration // length of a window; an hour and a day are counted in windows
	MinCount uint64        // values that a window must have to be judged; with fewer the hop is silent in it
	Strict   float64       // factor of all limits; 1 is what the limits were tuned for
}

// Latency is the configuration for latencies in nanoseconds.
func Latency(window time.Duration) Config {
	return Config{Floor: 1000, Window: window, MinCount: 5, Strict: 1}
}

const (
	minute   = time.Minute
	halfHour = 30 * time.Minute
)

// perDay is the number of windows in a day, at least one.
func (c *Config) perDay() float64 { return max(1, float64(24*time.Hour)/float64(c.Window)) }

const (
	warmup   = 60  // windows before a hop is judged
	endAfter = 3   // calm windows that end a finding
	learnAt  = 360 // age at which a finding's level becomes the usual one
)

// The means have these time constants, in windows.
var constants = [means]float64{1, 3, 9, 27, 81, 243, 729}

const (
	means     = 7
	reference = 6 // the slowest mean, to which profiles are relative
	usual     = 3 // the mean to which windows of few values are drawn
)

// contrast compares two means.
type contrast struct {
	fast, slow int
	limit      float64 // in root mean squares
	floor      float64 // least difference of logarithms that counts
	up, down   float64 // factors of its tail quantile when a window exceeds it, and when not
}

const (
	contrasts     = 6
	fastContrasts = 3    // the first ones, which share what findings that passed raised
	tailLimit     = 2.2  // in tail quantiles
	tailShare     = .005 // of the windows beyond a tail quantile
)

var bank = newBank()

func newBank() (b [contrasts]contrast) {
	b = [contrasts]contrast{
		{fast: 0, slow: 3, limit: 5.8, floor: .25},
		{fast: 0, slow: 3, limit: 5.8, floor: .25},
		{fast: 1, slow: 3, limit: 5.6, floor: .2},
		{fast: 2, slow: 4, limit: 5.5, floor: .15},
		{fast: 3, slow: 5, limit: 5.5, floor: .15},
		{fast: 4, slow: 6, limit: 5.5, floor: .5},
	}
	b[0].slow = 0
	for j := range b {
		step := .1/(1+constants[b[j].fast]) + .002
		b[j].up, b[j].down = math.Exp(step*(1-tailShare)), math.Exp(-step*tailShare)
	}
	return b
}
