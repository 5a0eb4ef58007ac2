package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/sink"
)

// ownerTask puts the slices together: the one partition of topic series.
type ownerTask struct {
	w         *worker
	assembler *fleet.Assembler
	codec     *fleet.Codec
	admission *inference.Admission
	detector  *events.Detector
	told      int64
	detected  int64 // label of the last window that the detectors saw
	after     int64
	rebuilt   time.Time

	whole, late uint64
}

// silence is how long a slice may tell nothing at least, before windows are told without it.
const silence = 5 * time.Minute

func (c *Consumer) newOwner(w *worker) (*ownerTask, error) {
	t := &ownerTask{
		w: w, codec: fleet.NewCodec(0, c.limits), admission: inference.NewAdmission(c.opt.Admission), detector: events.New(c.opt.Events),
	}
	var err error
	t.assembler, err = fleet.NewAssembler(fleet.AssemblerConfig{
		Slices: c.opt.Params.Slices, Window: int64(c.opt.Params.Window), Corrections: int64(c.cfg.Corrections), MaxOpen: 2 * c.cfg.MaxOpen,
		Silence: max(int64(silence), 2*maxAhead*int64(c.opt.Params.Window)), MaxHeld: 2 * c.cfg.HeldBytes, Fetch: w.fetch,
		MaxExporters: c.opt.Admission.Exporters, MaxBytes: c.cfg.WindowBytes * int64(c.opt.Params.Slices), Limits: c.limits,
	})
	return t, err
}

// rewrite tells windows again, without what the detectors found then: that was told, and depends on what they had seen before. From
// the last window that they saw they go on.
func (t *ownerTask) rewrite(from int64, last *checkpoint) error {
	t.after = from
	if last == nil {
		return nil
	}
	t.w.rewriteTo = last.label
	parts, err := readParts(last.state, 4)
	if err == nil {
		err = errors.Join(t.admission.ReadState(parts[0]), t.detector.ReadState(parts[1]))
	}
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
		t.w.tell(err)
	}
	for _, a := range e.Whole {
		if err := t.tell(ctx, a, true); err != nil {
			return err
		}
	}
	return nil
}

// tell writes the points of a window and publishes it. The first time, the detectors see it.
func (t *ownerTask) tell(ctx context.Context, a *fleet.Assembled, first bool) error {
	defer t.assembler.Release(a)
	for _, bad := range a.Bad {
		t.w.tell(bad)
	}
	c := t.w.c
	if first {
		t.told = a.End
		t.whole++
	}
	w := a.Partial.Window(c.opt.Limits)
	w.Start, w.End = windowStart(&w, a), a.End
	var found []inference.Finding
	if first && a.End > t.detected {
		found = slices.Clone(t.detector.Step(c.seen(&w, a)))
		t.detected = a.End
	}
	if a.End <= t.after {
		return nil
	}
	t.admission.Mark(&w, found)
	if first {
		c.logFindings(found)
	}
	out := sink.NewWindow(c.opt.Params.Name, ownerWindow(&w), found)
	out.Revision = a.Revision
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

// fleetRun is the run that the points of the fleet itself are from, whoever writes them: one that takes over writes the same.
const fleetRun = "fleet"

// windowStart is the earliest start that a collector told, and that of the window where nobody was in it.
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
	if err := t.w.readAgain(ctx, r.From(), r.To(), r.Add); err != nil {
		return err
	}
	a, err := r.Whole()
	if err != nil {
		t.w.tell(err)
		return nil
	}
	t.late++
	return t.tell(ctx, a, false)
}

func (t *ownerTask) floor() int64 { return t.assembler.Floor() }
func (t *ownerTask) label() int64 { return t.told }

func (t *ownerTask) appendState(b []byte) []byte {
	return appendParts(b, t.admission.AppendState(nil), t.detector.AppendState(nil), binary.AppendVarint(nil, t.detected), t.assembler.AppendState(nil))
}

func (t *ownerTask) readState(b []byte) error {
	parts, err := readParts(b, 4)
	if err != nil {
		return err
	}
	detected, n := binary.Varint(parts[2])
	if n != len(parts[2]) {
		return errCheckpoint
	}
	if err := t.admission.ReadState(parts[0]); err != nil {
		return err
	}
	if err := t.detector.ReadState(parts[1]); err != nil {
		// They learn again; everything else goes on.
		t.w.tell(fmt.Errorf("detectors begin anew: %w", err))
		t.detector = events.New(t.w.c.opt.Events)
	}
	if err := t.assembler.ReadState(parts[3]); err != nil {
		return err
	}
	t.told, t.detected = t.assembler.Last(), detected
	return nil
}

func (t *ownerTask) report(s *PartitionStatus) {
	a := t.assembler.Stats()
	s.Open, s.Closed = t.assembler.Open(), t.whole
	s.Again, s.HeldBytes = t.assembler.Again(), t.assembler.Bytes()
	s.Late, s.Duplicates, s.GateRefused, s.GateUnknown, s.Forced = a.Late, a.Duplicates, a.Refused, a.Unknown, a.Forced
}

// appendParts and readParts keep several states behind each other, each after its length.
func appendParts(b []byte, parts ...[]byte) []byte {
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

func readParts(b []byte, n int) ([][]byte, error) {
	parts := make([][]byte, n)
	for i := range parts {
		size, used := binary.Uvarint(b)
		if used <= 0 || size > uint64(len(b)-used) {
			return nil, errCheckpoint
		}
		parts[i], b = b[used:used+int(size)], b[used+int(size):]
	}
	if len(b) > 0 {
		return nil, errCheckpoint
	}
	return parts, nil
}
