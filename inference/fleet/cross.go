package fleet

import (
	"time"

	"github.com/hopscope/hopscope/inference"
)

// CrossLimits bounds the memory of a [Cross] and says what it takes for the same.
type CrossLimits struct {
	Exporters int           // of the slice that are known at a time; further ones pass as their collectors tell them
	Runs      int           // of numbers of an exporter; older ones are known by their number alone
	Flows     int           // of the slice that are known at a time
	Window    int           // as sequence.Config.Window: a number farther behind the newest one is late
	MaxGap    int           // as sequence.Config.MaxGap: a larger jump ahead is a restart
	Horizon   time.Duration // a collector that did not hear an exporter for so long does not have it any more
	Idle      time.Duration // a flow that nothing was told of for so long is forgotten
}

// DefaultCrossLimits are for a slice of a fleet of 16.
func DefaultCrossLimits() CrossLimits {
	return CrossLimits{
		Exporters: 4096, Runs: 256, Flows: 65536, Window: 1 << 18, MaxGap: 1 << 20, Horizon: 2 * time.Minute, Idle: time.Hour,
	}
}

// Cross corrects the merged partials of one slice for exporters and flows that reach several collectors.
type Cross struct {
	limits CrossLimits
	stats  CrossStats
}

// CrossStats is what a Cross knows, and what it counted since NewCross.
type CrossStats struct {
	Exporters, Flows int    // known now
	Shared           int    // of the exporters, those that several collectors heard lately
	Refused          uint64 // exporters and flows for which there was no place, each time that they were told
}

// NewCross knows nothing yet.
func NewCross(limits CrossLimits) *Cross { return &Cross{limits: limits} }

// Begin begins the window with this label. Windows come in the order of their labels.
func (c *Cross) Begin(end int64) {}

// Add tells what a collector saw of the slice in the window. A collector may be added more than once; the order of
// collectors does not matter. It keeps nothing of q.
func (c *Cross) Add(from string, q *inference.Partial) {}

// Finish ends the window and corrects p, into which everything was merged that was added. It takes numbers and arrivals
// out of p.
func (c *Cross) Finish(p *inference.Partial) { p.DropAcross() }

// Stats may be called between windows.
func (c *Cross) Stats() CrossStats { return c.stats }

// AppendState appends what c knows between two windows, for ReadState.
func (c *Cross) AppendState(b []byte) []byte { return b }

// ReadState makes c know what AppendState wrote. What AppendState does not write is refused, and then c knows nothing.
func (c *Cross) ReadState(b []byte) error { return nil }
