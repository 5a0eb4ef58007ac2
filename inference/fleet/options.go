package fleet

import (
	"fmt"

	"github.com/hopscope/hopscope/inference/fleet/cross"
	"github.com/hopscope/hopscope/inference/window"
)

// Options configures how the records of a partition become windows. A [Merger] reads records of windows, a [Gate] of
// reports, and an [Assembler] of series. A bound that is 0 has a default.
type Options struct {
	Name    string // of the member, in its records
	Slice   int    // of a Gate and a Merger: the partition
	Slices  int    // of an Assembler: the number of slices
	Reports bool   // of a Gate: of the topic reports, and not of windows
	Window  int64  // length, ns
	// Patience is the number of windows after which a window closes without missing collectors, and after which they
	// are dead.
	Patience int
	// Corrections is the time, ns, for which a window that is closed may still be corrected.
	Corrections int64
	// Silence, ns, is how long a slice may send nothing before an Assembler completes windows without it. It is
	// measured by the append times of records. A slice that is behind and sends its windows one by one is waited for.
	Silence int64
	Limits  window.Limits // of the partial of one record
	Cross   *cross.Limits // of a Merger: corrects exporters and flows that reach several collectors; nil corrects nothing
	Fetch   Fetch         // reads records again whose values are not in memory; nil keeps all values

	MaxOpen      int   // windows that are open at the same time
	MaxAhead     int   // of these, windows that end after a record of them is appended
	MaxRecords   int   // of all open windows
	MaxExporters int   // whose collectors an Assembler remembers
	MaxBytes     int64 // of the values of one window
	MaxHeld      int64 // bytes of values in memory, of all open windows; 0 for all
	MaxValue     int   // bytes of a value when it is not compressed; 0 for maxValue

	maxMembers int // collectors that are known at the same time

}

// complete fills in defaults, of which some differ between a Gate and an Assembler, and checks what both have in common.
func (o *Options) complete(maxOpen int, maxBytes int64) error {
	for v, to := range map[*int]int{&o.Patience: 3, &o.MaxOpen: maxOpen, &o.MaxAhead: 32, &o.MaxRecords: 1 << 17, &o.MaxExporters: 1 << 16, &o.maxMembers: 4096} {
		if *v <= 0 {
			*v = to
		}
	}
	if o.Corrections <= 0 {
		o.Corrections = 2 * 3600e9
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = maxBytes
	}
	if o.Fetch == nil {
		o.MaxHeld = 0
	}
	switch {
	case o.Window <= 0:
		return fmt.Errorf("fleet: windows of %d ns", o.Window)
	case o.Corrections/o.Window > maxPast:
		return fmt.Errorf("fleet: corrections of %d windows, at most %d can be", o.Corrections/o.Window, maxPast)
	case o.Slice < 0 || o.Slice >= MaxSlices:
		return fmt.Errorf("fleet: slice %d of at most %d", o.Slice, MaxSlices)
	case o.Patience > 1000:
		return fmt.Errorf("fleet: a patience of %d windows, at most 1000 can be", o.Patience)
	case o.maxMembers > MaxMembers:
		return fmt.Errorf("fleet: %d collectors, at most %d can be", o.maxMembers, MaxMembers)
	}
	return nil
}
