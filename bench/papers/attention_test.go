package papers

import (
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestRunAttention prints the tables: their first rows, and all of them by night.
func TestRunAttention(t *testing.T) {
	testkit.Long(t)
	var out strings.Builder
	if err := runAttention(t.Context(), &out, Options{Seed: 1, Limit: time.Second, quick: !testkit.Night()}); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	for line := range strings.Lines(out.String()) {
		row := strings.Join(strings.Fields(line), " ")
		if strings.Contains(row, " % ours ") && !strings.Contains(row, " ours 100 100 ") {
			t.Errorf("not all cycles are proven: %s", row)
		}
		if got, ok := strings.CutPrefix(row, "fat-tree:30 with hosts 200 "); ok && !strings.Contains(got, " 100.00 % 0.000 ") {
			t.Errorf("not every suspicious link gets attention: %s", row)
		}
	}
}
