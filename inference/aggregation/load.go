package aggregation

import (
	"errors"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
)

// UtilizationCode returns the paper's code for utilisation: 8 bits with ε = 0.025. Its values reach from 1/512 of a
// full link to 500 full links.
func UtilizationCode() pint.CodeConfig {
	return pint.CodeConfig{Kind: pint.Multiplicative, Bits: 8, Epsilon: 0.025, Unit: pint.UtilizationUnit / 512}
}

// panes is how many parts a window has.
const panes = 4

// LoadConfig holds the length of the window that a [FlowLoad] covers.
type LoadConfig struct {
	Window time.Duration // 1 µs to a day
}

// DefaultLoadConfig is a window of ten seconds.
func DefaultLoadConfig() LoadConfig { return LoadConfig{Window: 10 * time.Second} }

// Validate returns what is wrong with the settings.
func (c *LoadConfig) Validate() error {
	if c.Window < time.Microsecond || c.Window > 24*time.Hour {
		return fmt.Errorf("congestion: window of %v: want 1 µs to a day", c.Window)
	}
	return nil
}

// LoadTracker reads digests. It is immutable and safe for concurrent use; flows are not.
type LoadTracker struct {
	pane   int64 // ns
	values []float64
}

// FlowLoad is the utilisation of one flow's bottleneck, 72 bytes. The zero value is a flow without digests.
type FlowLoad struct {
	pane  int64 // number of the one in use; its place is that modulo 4
	last  uint16
	begun bool
	max   [panes]uint16
	count [panes]uint32
	sum   [panes]float64
}

// Load is the utilisation in the digests of a flow over the last window. It covers between three and four of the
// window's four panes. A utilisation of 1 is a full link; it is more than 1 where packets queue.
type Load struct {
	Count           uint64
	Last, Mean, Max float64
}

// NewLoadTracker makes a tracker for digests of a code whose values are in parts of [pint.UtilizationUnit].
func NewLoadTracker(c LoadConfig, code pint.Code) (*LoadTracker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if code == nil {
		return nil, errors.New("congestion: no code for the utilisation")
	}
	if b := code.Bits(); b < 1 || b > 16 {
		return nil, fmt.Errorf("congestion: codes of %d bits: want 1 to 16", b)
	}
	t := &LoadTracker{pane: int64(c.Window) / panes, values: make([]float64, 1<<code.Bits())}
	for i := range t.values {
		t.values[i] = code.Decode(uint32(i)) / pint.UtilizationUnit
	}
	return t, nil
}

// Decode returns the utilisation that a code stands for.
func (t *LoadTracker) Decode(code uint32) float64 { return t.values[min(int(code), len(t.values)-1)] }

// Add notes the digest of a packet that came at the time now, in nanoseconds. A digest that comes late is counted as if
// it had come in time. Add returns false, and notes nothing, if the code has more bits than the tracker's codes.
func (t *LoadTracker) Add(f *FlowLoad, code uint32, now int64) bool {
	if int(code) >= len(t.values) {
		return false
	}
	to := floor(now, t.pane)
	switch {
	case !f.begun:
		f.begun, f.pane = true, to
	case to > f.pane:
		for pane := max(f.pane, to-panes) + 1; pane <= to; pane++ {
			f.max[pane&(panes-1)], f.count[pane&(panes-1)], f.sum[pane&(panes-1)] = 0, 0, 0
		}
		f.pane = to
	}
	i := f.pane & (panes - 1)
	f.last = uint16(code)
	f.max[i] = max(f.max[i], uint16(code))
	f.count[i]++
	f.sum[i] += t.values[code]
	return true
}

// Window returns what is known of a flow at the time now. It is not ok if no digest came within the window.
func (t *LoadTracker) Window(f *FlowLoad, now int64) (w Load, ok bool) {
	if !f.begun {
		return w, false
	}
	var largest uint16
	for pane := max(f.pane, floor(now, t.pane)) - panes + 1; pane <= f.pane; pane++ {
		i := pane & (panes - 1)
		w.Count += uint64(f.count[i])
		w.Mean += f.sum[i]
		largest = max(largest, f.max[i])
	}
	if w.Count == 0 {
		return w, false
	}
	w.Mean /= float64(w.Count)
	w.Last, w.Max = t.values[f.last], t.values[largest]
	return w, true
}

// floor divides and rounds down, also for times before 1970, which are negative.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
