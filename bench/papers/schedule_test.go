package papers

import (
	"strings"
	"testing"
	"time"
)

// TestRunSchedule prints the tables.
func TestRunSchedule(t *testing.T) {
	var out strings.Builder
	if err := runSchedule(t.Context(), &out, Options{Seed: 1, Limit: 300 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	for _, want := range []string{"fat-tree:30", "leaf-spine:125", "leaf-spine:224,448"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no row of %s", want)
		}
	}
}
