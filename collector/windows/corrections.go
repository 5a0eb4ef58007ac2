package windows

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
)

// corrections keeps the counts of the last labels, as bytes. A window whose label comes again can thus be added to
// them and written whole. The kept labels are bounded by those that the clock may come to again, and by memory. The
// latest label is always kept.
type corrections struct {
	room  int           // for kept windows, in bytes
	first window.Limits // of a window that is new
	most  window.Limits // of one that was added to

	kept   []keptWindow // in the order of their labels
	bytes  int
	merged window.Partial // memory
	buf    []byte
}

type keptWindow struct {
	label    int64
	revision uint64 // how often it was written before the last time
	data     []byte // a partial
}

// Corrections bounds what is kept of windows whose labels may come again.
type Corrections struct {
	Reach     time.Duration // how far back from the last window
	Bytes     int64         // most memory
	Shards    int
	Exporters int // that are followed
	Flows     shard.Config
}

// newCorrections makes corrections that keep the kinds that are written again: hops, exporters and the written flows.
// A window may grow to twice its lists by additions. All other kinds are written once, so their limit is 0.
func newCorrections(cfg *Corrections) *corrections {
	flows, hops, exporters := &cfg.Flows, cfg.Shards*(cfg.Flows.MaxHops+1), cfg.Exporters
	return &corrections{
		room:  int(cfg.Bytes),
		first: window.Limits{Hops: hops, Flows: flows.TopFlows, Exporters: math.MaxInt},
		most:  window.Limits{Hops: 2 * hops, Flows: 2 * flows.TopFlows, Exporters: 2 * exporters},
	}
}

// add keeps what p counted under a label. If something was counted under it before, it returns the window of both and the
// number of times that the label was written; otherwise nil.
func (c *corrections) add(label int64, p *window.Partial) (whole *inference.Window, revision uint64, err error) {
	i, found := slices.BinarySearchFunc(c.kept, label, func(k keptWindow, label int64) int {
		switch {
		case k.label < label:
			return -1
		case k.label > label:
			return 1
		}
		return 0
	})
	c.merged.Reset()
	limits := c.first
	if found {
		limits = c.most
		// The bytes are the collector's own, so there is nothing to defend against.
		if err := c.merged.ReadBinary(c.kept[i].data, window.NoLimits()); err != nil {
			return nil, 0, fmt.Errorf("what was counted before cannot be read: %w", err)
		}
	} else {
		c.kept = slices.Insert(c.kept, i, keptWindow{label: label})
	}
	c.merged.MergeWithin(p, limits)
	k := &c.kept[i]
	c.bytes -= len(k.data)
	c.buf, err = c.merged.AppendBinary(c.buf[:0])
	k.data = bytes.Clone(c.buf)
	c.bytes += len(k.data)
	if err != nil {
		return nil, 0, err
	}
	if !found {
		return nil, 0, nil
	}
	k.revision++
	w := c.merged.Window(c.most)
	return &w, k.revision, nil
}

// trim forgets the labels up to floor, and older ones for as long as there are too many bytes. It returns the latest label
// that is forgotten, or floor.
func (c *corrections) trim(floor int64) int64 {
	n := 0
	for n < len(c.kept)-1 && (c.kept[n].label <= floor || c.bytes > c.room) {
		floor = max(floor, c.kept[n].label)
		c.bytes -= len(c.kept[n].data)
		n++
	}
	c.kept = slices.Delete(c.kept, 0, n)
	return floor
}
