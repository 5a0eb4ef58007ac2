package loop

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestAgent measures for a moment: everything is measured, and nothing is said about how much it is. A busy machine lets
// neither program run in a short moment, so that moments become longer until each has sent.
func TestAgent(t *testing.T) {
	var r AgentResult
	for send := 20 * time.Millisecond; ; send *= 4 {
		var err error
		if r, err = Agent(t.Context(), AgentConfig{Rounds: 2, Send: send, wake: 100 * time.Millisecond, Batch: 16}); err != nil {
			t.Fatalf("%v\n(in a container: --cap-add SYS_ADMIN,NET_ADMIN,NET_RAW)", err)
		}
		if r.BareRate > 0 && r.AgentRate > 0 || send > testkit.Patience/10 {
			break
		}
	}
	if r.BareRate <= 0 || r.AgentRate <= 0 || r.BareLate.P99 <= 0 || r.AgentLate.P99 <= 0 || r.FrameBytes != 94 || len(r.RatioOfRounds) != 2 || r.WakesAsked != 100 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if err := r.Print(&b); err != nil || strings.Count(b.String(), "\n") != 4 {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestLateness(t *testing.T) {
	var at []int64
	for k := range int64(100) {
		at = append(at, 1_000_000_000+k*1_000_000+k*1000) // the k-th is k µs late
	}
	if got := lateness(at, 1_000_000); got != (Late{50, 99, 99}) {
		t.Errorf("%+v", got)
	}
}
