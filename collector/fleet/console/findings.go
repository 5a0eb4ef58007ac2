package console

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/ingest"
)

// firstReading is the longest wait for the findings of the past.
const firstReading = 30 * time.Second

// timedLog is a log whose partitions are read from a time on.
type timedLog interface {
	OffsetAt(ctx context.Context, topic string, partition int, nanos int64) (int64, error)
	Reader(topic string, partition int, offset int64) ingest.LogReader
}

// Findings reads the findings in the merged windows of a fleet.
type Findings struct {
	Log     timedLog
	Topic   string
	Logger  *slog.Logger
	Observe func([]inference.Finding) // called with those of each window, by one goroutine

	codec  *fleet.Codec
	caught chan struct{} // closed at the end of the log
	logged string        // the last error that was logged
}

// Start reads from a time on until ctx ends. It returns at the end of the log, and after [firstReading] at the latest.
func (f *Findings) Start(ctx context.Context, from int64) {
	f.codec, f.caught = fleet.NewCodec(maxValue, limits), make(chan struct{})
	go f.run(ctx, from)
	wait := time.NewTimer(firstReading)
	defer wait.Stop()
	select {
	case <-f.caught:
	case <-ctx.Done():
	case <-wait.C:
		f.Logger.Warn("the findings of the fleet are not read yet; the loop begins with those that are", "topic", f.Topic)
	}
}

// run reads from a time on. An error changes nothing that was observed, and is logged once.
func (f *Findings) run(ctx context.Context, from int64) {
	wait := backoff
	fail := func(err error) {
		if err != nil && ctx.Err() == nil && f.logged != err.Error() {
			f.logged = err.Error()
			f.Logger.Error("findings cannot be read; suspects stay", "error", f.logged)
		}
		wait.Sleep(ctx)
	}
	var reader ingest.LogReader
	for caught := false; ctx.Err() == nil; {
		if reader == nil {
			offset, err := f.Log.OffsetAt(ctx, f.Topic, 0, from)
			if err != nil {
				fail(err)
				continue
			}
			reader = f.Log.Reader(f.Topic, 0, offset)
		}
		messages, err := reader.Next(ctx)
		if err != nil {
			fail(err)
			continue
		}
		if wait.Reset(); f.logged != "" {
			f.logged = ""
			f.Logger.Info("findings can be read again")
		}
		for i := range messages {
			if err := f.read(&messages[i]); err != nil {
				f.Logger.Debug("a record of the series is passed over", "offset", messages[i].Offset, "error", err.Error())
			}
		}
		if !caught && reader.Offset() >= reader.High() {
			caught = true
			close(f.caught)
		}
	}
}

// read observes the findings of a window.
func (f *Findings) read(m *ingest.Message) error {
	r, err := record(m)
	if err != nil || r.Head.Kind != fleet.Whole {
		return err
	}
	_, list, err := readFindings(f.codec, &r)
	if list != nil {
		f.Observe(list)
	}
	return err
}

// readFindings returns the document of a window and its findings, which are not nil. Findings of kinds that this
// version does not know are left out, and are errors. A revision has neither document nor findings.
func readFindings(codec *fleet.Codec, r *fleet.Record) (*fleet.Document, []inference.Finding, error) {
	if r.Head.Revision > 0 {
		return nil, nil, nil
	}
	if fleet.Sum(r.Value) != r.Head.Sum {
		return nil, nil, fleet.ErrSum
	}
	d, err := fleet.DecodeWhole(codec, r.Value)
	if err != nil {
		return nil, nil, err
	}
	list := []inference.Finding{}
	for i := range d.Findings {
		found, ferr := d.Findings[i].Finding()
		if ferr != nil {
			err = errors.Join(err, ferr)
			continue
		}
		list = append(list, found)
	}
	return d, list, err
}
