package aggregation

import (
	"errors"
	"fmt"
	"time"
)

// MaxHops is the longest path that a flow can have.
const MaxHops = 64

// Kind is the kind of question that sketches answer.
type Kind uint8

// The kinds of sketches.
const (
	Quantiles Kind = iota
	Frequent
)

func (k Kind) String() string {
	if k == Frequent {
		return "frequent values"
	}
	return "quantiles"
}

// Config is the size and shape of a Pool.
type Config struct {
	Kind  Kind
	Bytes int // of one sketch, 32 to 1024
	Hops  int // sketches of flows and hops, of all flows together

	// Panes is the number of sketches of a hop, used in turn: 1 for one that is never emptied, up to 16. A pane is full
	// after PaneTime, on the same clock for all flows, or after PaneDigests digests of the hop.
	Panes       int
	PaneTime    time.Duration
	PaneDigests uint32
}

// DefaultConfig is quantiles in 100 bytes a hop, over the whole life of flows, for 100 000 flows with
// paths of five hops.
func DefaultConfig() Config {
	return Config{Bytes: 100, Hops: 500_000, Panes: 1}
}

// Validate names everything that is wrong.
func (c *Config) Validate() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf("latency: "+format, args...)) }
	if c.Kind > Frequent {
		bad("kind %d: unknown", c.Kind)
	}
	if c.Bytes < 32 || c.Bytes > 1024 {
		bad("sketches of %d bytes: want 32 to 1024", c.Bytes)
	}
	if c.Hops < 1 || c.Hops > 1<<30 {
		bad("room for %d hops: want 1 to 2³⁰", c.Hops)
	}
	if c.Panes < 1 || c.Panes > 16 {
		bad("%d panes: want 1 to 16", c.Panes)
	}
	if c.PaneTime != 0 && c.PaneTime < time.Microsecond {
		bad("panes of %v: want 1 µs at least", c.PaneTime)
	}
	switch ends := c.PaneTime != 0; {
	case c.Panes == 1 && (ends || c.PaneDigests != 0):
		bad("one pane has no end: want at least two")
	case c.Panes > 1 && ends == (c.PaneDigests != 0):
		bad("%d panes of %v and of %d digests: want one of the two", c.Panes, c.PaneTime, c.PaneDigests)
	}
	return errors.Join(problems...)
}
