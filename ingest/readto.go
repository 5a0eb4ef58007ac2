package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/hopscope/hopscope/ingest/retry"
)

// ReadTo reads a partition up to the offset to and calls each with every message. If compaction removed the messages
// before that offset, it stops at the end of the log. After an error of the reader it calls failed and tries again.
// ReadTo returns an error only if ctx ends.
func ReadTo(ctx context.Context, r LogReader, to int64, failed func(error), each func(m *Message)) error {
	wait := retry.Backoff{Min: 50 * time.Millisecond, Max: time.Second}
	for r.Offset() < to {
		messages, err := r.Next(ctx)
		if ctx.Err() != nil {
			if errors.Is(err, ctx.Err()) {
				return err
			}
			return errors.Join(err, ctx.Err())
		}
		if err != nil {
			failed(err)
			wait.Sleep(ctx)
			continue
		}
		wait.Reset()
		if len(messages) == 0 && r.High() >= 0 && r.Offset() >= r.High() {
			return nil
		}
		for i := range messages {
			each(&messages[i])
		}
	}
	return nil
}
