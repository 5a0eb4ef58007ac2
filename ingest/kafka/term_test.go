package kafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hopscope/hopscope/ingest"
)

// TestRefusedBetweenGenerations commits an offset that the group refused because it had rebalanced. The offset is
// committed again in the next generation, as the term goes on. When the partitions were lost, the term ends.
func TestRefusedBetweenGenerations(t *testing.T) {
	for _, x := range []struct {
		name  string
		cause error // of the end of the first generation
		kept  bool
	}{{"in order", context.Canceled, true}, {"lost", errLost, false}} {
		t.Run(x.name, func(t *testing.T) {
			commits := 0
			next := &ingest.Generation{ID: 2, Lost: t.Context(), Commit: func(context.Context, string, int, int64) error {
				commits++
				return nil
			}}
			ended, lose := context.WithCancelCause(t.Context())
			var term *Term
			first := &ingest.Generation{ID: 1, Lost: ended, Commit: func(context.Context, string, int, int64) error {
				term.set(nil)
				lose(x.cause)
				term.set(next) // before the answer is there
				return errLost
			}}
			term = newTerm(t.Context(), &LeadConfig{Topic: "plans", Timeout: time.Minute}, first)
			err := term.Holds(t.Context())
			if kept := err == nil && term.ctx.Err() == nil && commits == 1; kept != x.kept || !kept && !errors.Is(err, ErrLost) {
				t.Errorf("%v after %d commits of the next generation, and the term: %v", err, commits, context.Cause(term.ctx))
			}
		})
	}
}
