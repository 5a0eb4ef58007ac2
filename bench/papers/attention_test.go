package papers

import (
	"strings"
	"testing"
	"time"
)

// TestRunAttention prints the table.
func TestRunAttention(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	var out strings.Builder
	if err := RunAttention(t.Context(), &out, Options{Seed: 1, Limit: 200 * time.Millisecond}); err != nil {
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
