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
	if err := RunAttention(t.Context(), &out, Options{Seed: 1, Limit: time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	for line := range strings.Lines(out.String()) {
		if row := strings.Join(strings.Fields(line), " "); strings.Contains(row, " ours ") && !strings.Contains(row, " ours 100 100 ") && !strings.HasPrefix(row, "all ours ") {
			t.Errorf("not all cycles are proven: %s", row)
		}
	}
}
