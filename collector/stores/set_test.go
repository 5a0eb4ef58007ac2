package stores

import (
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/spool"
)

// The sentences of all that makes a store not ready. A spool that evicts does so for a minute after the last time.
func TestStoreProblems(t *testing.T) {
	var s sink.QueueStats
	st := &Queue{Store: Store{Spool: &spool.Config{Dir: "spool/influx"}}}
	s.LastRefusal = sink.Refused{Time: time.Unix(3600, 0), Points: 3255, Of: 3295, Reason: "another type"}
	s.PointsRejected = 6510
	if got, want := st.refusal(&s), "the store refused 3255 of 3295 points at 01:00:00 (6510 so far): another type; they are kept: hopscope spool list spool/influx/refused"; got != want {
		t.Errorf("refusal = %q, want %q", got, want)
	}
	st.Spool = nil
	if got := st.refusal(&s); !strings.HasSuffix(got, "another type; without a spool they are lost") {
		t.Errorf("refusal = %q", got)
	}
}
