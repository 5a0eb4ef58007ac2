package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sink"
)

// ownerTask puts the slices together: the one partition of topic series.
type ownerTask struct {
	w             *worker
	assembler     *fleet.Assembler
	codec         *fleet.Codec
	admission     *window.Admission
	detector      *events.Detector
	nameRows      inventory.RowSchedule
	lastPublished int64
	detected      int64 // label of the last window that the detectors saw
	after         int64
	rebuilt       time.Time
	aside         []byte              // what was kept beside the checkpoint
	unalerted     []inference.Finding // open ones that the alerts do not know

	whole, late uint64
}

// silence is the least time for which a slice publishes nothing before windows are published without it.
const silence = 5 * time.Minute

func (c *Consumer) newOwner(w *worker) (*ownerTask, error) {
	t := &ownerTask{
		w: w, codec: fleet.NewCodec(0, c.limits), admission: window.NewAdmission(c.opt.Admission), detector: events.New(c.opt.Events),
	}
	if c.alerting != nil {
		if err := c.alerting.Reset(); err != nil {
			return nil, err
		}
	}
	var err error
	t.assembler, err = fleet.NewAssembler(fleet.Options{
		Slices: c.opt.Params.Slices, Window: int64(c.opt.Params.Window), Corrections: int64(c.cfg.Corrections), MaxOpen: 2 * c.cfg.MaxOpen,
		Silence: max(int64(silence), 2*maxAhead*int64(c.opt.Params.Window)), MaxHeld: 2 * c.cfg.HeldBytes, Fetch: w.fetch,
		MaxExporters: c.opt.Admission.Exporters, MaxBytes: c.cfg.WindowBytes * int64(c.opt.Params.Slices), Limits: c.limits,
	})
	return t, err
}

// rewrite publishes windows again, without the findings that were published then, which depended on earlier windows.
// The detectors go on from the last window that they saw.
func (t *ownerTask) rewrite(from int64, last *checkpoint) error {
	t.after = from
	if last == nil {
		return nil
	}
	t.w.rewriteTo = last.label
	parts, err := readParts(last.state, ownerParts)
	var detectors, alerts []byte
	if err == nil {
		detectors, alerts, err = readDetectors(parts[1])
	}
	if err == nil {
		err = errors.Join(t.admission.ReadState(parts[0]), t.detector.ReadState(detectors))
	}
	t.alertsGoOn(alerts, err == nil)
	if err != nil {
		return fmt.Errorf("detectors begin anew: %w", err)
	}
	t.detected = last.label
	return nil
}

func (t *ownerTask) add(ctx context.Context, r *fleet.Record) error {
	e, err := t.assembler.Add(r)
	if cannotFetch(err) {
		return err
	}
	if err != nil {
		t.w.noteError(err)
	}
	for _, a := range e.Whole {
		if err := t.publish(ctx, a, true); err != nil {
			return err
		}
	}
	return nil
}

// publish writes the points of a window and sends it to the fleet. The first time, the detectors see it.
func (t *ownerTask) publish(ctx context.Context, a *fleet.Assembled, first bool) error {
	defer t.assembler.Release(a)
	for _, bad := range a.Bad {
		t.w.noteError(bad)
	}
	c := t.w.c
	if first {
		t.lastPublished = a.End
		t.whole++
	}
	before := summary.LeftOutEver(t.admission, t.detector)
	w := a.Partial.Window(c.opt.Limits)
	w.Start, w.End = windowStart(&w, a), a.End
	var found []inference.Finding
	if first && a.End > t.detected {
		t.detector.Accept(stores.Acceptances(c.rules.Rules()))
		found = slices.Clone(t.detector.Step(c.seen(&w, a)))
		t.detected = a.End
		c.alert(ctx, a.End, slices.Concat(t.unalerted, found))
		t.unalerted = nil
		t.detector.Mark(&w)
	}
	if a.End <= t.after {
		return nil
	}
	t.admission.Mark(&w, found)
	if first {
		behind := summary.LeftOutEver(t.admission, t.detector)
		behind.Window(&w)
		c.leave(&before, &behind)
		stores.LogFindings(c.log, found, c.names())
	}
	out := sink.NewWindow(c.opt.Params.Name, ownerWindow(&w), found)
	out.Revision = a.Revision
	if first {
		out.Names = t.nameRows.Rows(c.names(), a.End)
	}
	out.Run = &sink.Run{Boot: fleetRun, Version: c.opt.Version, Start: a.Start, Reports: w.Reports}
	if err := c.put(ctx, &sink.Batch{Points: out.Points()}); err != nil {
		return err
	}
	record, err := fleet.EncodeWhole(t.codec, c.opt.ID, fleet.NewDocument(c.opt.Params.Name, a, &w, found))
	if err != nil {
		return fmt.Errorf("window %s: %w", windowName(a.End), err)
	}
	if first {
		c.window(&w, a)
	}
	return c.publish(ctx, t.w.topic, 0, []fleet.Out{record})
}

// fleetRun is the run that the points of the fleet itself are from, whichever consumer writes them: one that takes over writes the
// same.
const fleetRun = "fleet"

// windowStart is the earliest start that a collector reported, and that of the window where no collector was in it.
func windowStart(w *inference.Window, a *fleet.Assembled) int64 {
	if w.End == 0 {
		return a.Start
	}
	return w.Start
}

func (t *ownerTask) due(ctx context.Context, now time.Time) error {
	pending := t.assembler.Pending()
	if len(pending) == 0 || now.Sub(t.rebuilt) < t.w.c.opt.Params.Window/4 {
		return nil
	}
	t.rebuilt = now
	r := t.assembler.Rebuild(pending[0])
	if r == nil {
		return nil
	}
	if err := t.w.reread(ctx, r.From(), r.To(), r.Add); err != nil {
		return err
	}
	a, err := r.Whole()
	if err != nil {
		t.w.noteError(err)
		return nil
	}
	t.late++
	return t.publish(ctx, a, false)
}

func (t *ownerTask) noteHole(int64) {}

func (t *ownerTask) floor() int64 { return t.assembler.Floor() }
func (t *ownerTask) label() int64 { return t.lastPublished }

// ownerParts are the parts of an owner's state.
const ownerParts = 4

func (t *ownerTask) appendState(b []byte) []byte {
	return appendParts(b, t.admission.AppendState(nil), t.detectors(), binary.AppendVarint(nil, t.detected), t.assembler.AppendState(nil))
}

func (t *ownerTask) readState(b []byte) error {
	parts, err := readParts(b, ownerParts)
	if err != nil {
		return err
	}
	detected, n := binary.Varint(parts[2])
	if n != len(parts[2]) {
		return errCheckpoint
	}
	if err := errors.Join(t.admission.ReadState(parts[0]), t.assembler.ReadState(parts[3])); err != nil {
		return err
	}
	t.readDetectors(parts[1], detected)
	t.lastPublished, t.detected = t.assembler.Last(), detected
	return nil
}

// readDetectors restores the state of detectors and alerts. If a program of another version had the partition
// meanwhile, that is the state that was kept beside its checkpoints. The earlier learning is worth more than what that
// program learnt since.
func (t *ownerTask) readDetectors(b []byte, detected int64) {
	detectors, alerts, err := readDetectors(b)
	if err == nil && len(detectors) > 0 && detectors[0] == t.version() {
		if err = t.detector.ReadState(detectors); err == nil {
			t.alertsGoOn(alerts, true)
			return
		}
	}
	former := events.New(t.w.c.opt.Events)
	if err == nil {
		err = former.ReadState(detectors)
	}
	kept, keptAlerts, aerr := t.readKept(detected)
	switch {
	case kept != nil && aerr == nil:
		t.detector = kept
		if err == nil {
			kept.Inherit(former.Open())
		}
		alerts = keptAlerts
		t.w.c.log.Info("the detectors resume from before another version had the series", "open_findings", len(kept.Open()))
	case err == nil:
		t.detector = former
	default:
		// They learn again; the rest of the state stays.
		t.w.noteError(fmt.Errorf("detectors begin anew: %w", err))
	}
	t.alertsGoOn(alerts, false)
}

// keptFor is the greatest age of the kept state: the daily pattern of a hop is known for two days.
const keptFor = 24 * time.Hour

// readKept reads the state kept beside the checkpoint, nil if there is none of use.
func (t *ownerTask) readKept(now int64) (*events.Detector, []byte, error) {
	at, n := binary.Varint(t.aside)
	if n <= 0 || now-at > int64(keptFor) || now < at {
		return nil, nil, nil
	}
	detectors, alerts, err := readDetectors(t.aside[n:])
	if err != nil {
		return nil, nil, err
	}
	d := events.New(t.w.c.opt.Events)
	return d, alerts, d.ReadState(detectors)
}

// version is that of the state of detectors which this program writes.
func (t *ownerTask) version() byte { return events.New(t.w.c.opt.Events).AppendState(nil)[0] }

// detectors is the state of the detectors, and of the alerts if there are receivers.
func (t *ownerTask) detectors() []byte {
	b := t.detector.AppendState(nil)
	if a := t.w.c.alerting; a != nil {
		b = appendDetectors(b, a.AppendState(nil))
	}
	return b
}

func (t *ownerTask) asideName() string  { return fmt.Sprint("detectors-", t.version()) }
func (t *ownerTask) readAside(b []byte) { t.aside = b }
func (t *ownerTask) asideState() []byte {
	return append(binary.AppendVarint(nil, t.detected), t.detectors()...)
}

func (t *ownerTask) report(s *partitionStatus) {
	a := t.assembler.Stats()
	s.Open, s.Closed = t.assembler.Open(), t.whole
	s.Reread, s.heldBytes = t.assembler.Reread(), t.assembler.Held()
	s.Late, s.duplicates, s.gateRefused, s.gateUnknown, s.forced = a.Late, a.Duplicates, a.Refused, a.Unknown, a.Forced
}

// appendParts and readParts keep several states behind each other, each after its length.
func appendParts(b []byte, parts ...[]byte) []byte { return state.Append(b, codeParts(parts)) }

func readParts(b []byte, n int) ([][]byte, error) {
	parts := make([][]byte, n)
	if err := state.Read("checkpoint", b, codeParts(parts)); err != nil {
		return nil, fmt.Errorf("%w: %w", errCheckpoint, err)
	}
	return parts, nil
}

func codeParts(parts [][]byte) func(*state.Coder) {
	return func(c *state.Coder) {
		for i := range parts {
			c.Blob("part", &parts[i])
		}
	}
}
