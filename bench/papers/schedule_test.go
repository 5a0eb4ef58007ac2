package papers

import (
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestRunSchedule prints the tables.
func TestRunSchedule(t *testing.T) {
	var out strings.Builder
	if err := runSchedule(t.Context(), &out, Options{Seed: 1, Limit: 300 * time.Millisecond, quick: !testkit.Night()}); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	rows := []string{"fat-tree:8", "leaf-spine:22,44"}
	if testkit.Night() {
		rows = []string{"fat-tree:30", "leaf-spine:125", "leaf-spine:224,448"}
	}
	for _, want := range rows {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no row of %s", want)
		}
	}
}
