package loop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// options choose the measurements.
type options struct {
	Seed   uint64
	Seeds  int           // emulated networks, each with every fault
	Faults []string      // of the table of the emulator; all of them without one
	Quiet  time.Duration // before the first fault
	pause  time.Duration // after each fault

	Demo    time.Duration // how long the demonstration is followed
	Picture string        // file for its picture; empty for none

	Algorithm *harness.Program // that suspects links, too, in detection; nil for none

	// Progress is called with the name of the current step. It may be nil.
	Progress func(string)
}

// DefaultOptions is one network with all faults.
func DefaultOptions() options {
	return options{Seed: 1, Seeds: 1, Quiet: 100 * time.Second, pause: 15 * time.Second, Demo: time.Hour}
}

// section is a part of the measurements.
type section struct {
	Name, Doc string
	Run       func(ctx context.Context, out io.Writer, o options) error
}

// Sections are all of them, in the order in which they are printed.
var Sections = []section{
	{"detection", "which links are suspected, and how soon, when the faults of the emulator happen", func(ctx context.Context, out io.Writer, o options) error {
		t, err := runDetection(ctx, o)
		if err != nil {
			return err
		}
		return harness.Show(out, "detection", t, t.Print)
	}},
	{"bytes", "what probes carry with attention, beside all of them in detail", func(ctx context.Context, out io.Writer, o options) error {
		t, err := runBytes(ctx, o)
		if err != nil {
			return err
		}
		return harness.Show(out, "bytes", t, t.Print)
	}},
	{"cycle", "how long it takes from suspects to a new plan in force at all agents", func(ctx context.Context, out io.Writer, o options) error {
		t, err := runCycle(ctx, o)
		if err != nil {
			return err
		}
		return harness.Show(out, "cycle", t, t.Print)
	}},
	{"plain", "which lossy links probes name where no switch reports, by the ways of their ports", func(ctx context.Context, out io.Writer, o options) error {
		t, err := runPlain(ctx, o)
		if err != nil {
			return err
		}
		return harness.Show(out, "plain", t, t.Print)
	}},
	{"demo", "what control suspects in \"hopscope demo\", beside its faults, in virtual time, and as a picture", func(ctx context.Context, out io.Writer, o options) error {
		t, err := runDemo(ctx, o)
		if err != nil {
			return err
		}
		if o.Picture != "" {
			var b bytes.Buffer
			if err := t.picture(&b); err != nil {
				return err
			}
			if err := os.WriteFile(o.Picture, b.Bytes(), 0o644); err != nil {
				return err
			}
		}
		return harness.Show(out, "demo", t, t.Print)
	}},
}

// Validate returns the errors of options.
func (o *options) Validate() error {
	if o.Demo < time.Minute || o.Demo > 24*time.Hour {
		return fmt.Errorf("--for %v is outside 1m..24h", o.Demo)
	}
	if o.Seeds < 1 || o.Seeds > 10_000 {
		return fmt.Errorf("--seeds %d is outside 1..10000", o.Seeds)
	}
	for i, name := range o.Faults {
		if _, ok := scenario.Lookup(name); !ok {
			return fmt.Errorf("--fault %q is not in the table of faults", name)
		}
		if slices.Contains(o.Faults[:i], name) {
			return fmt.Errorf("--fault %q is given twice", name)
		}
	}
	return nil
}
