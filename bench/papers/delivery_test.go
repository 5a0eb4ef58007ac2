package papers

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestRunDelivery prints the table; HOPSCOPE_TOPOLOGIES names the directory with the networks.
func TestRunDelivery(t *testing.T) {
	dir := os.Getenv("HOPSCOPE_TOPOLOGIES")
	var out strings.Builder
	if err := runDelivery(t.Context(), &out, Options{Seed: 1, Limit: 200 * time.Millisecond, Topologies: dir, quick: !testkit.Night()}); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	for line := range strings.Lines(out.String()) {
		if row := strings.Join(strings.Fields(line), " "); strings.HasPrefix(row, "ours ") && !strings.HasPrefix(row, "ours 100.0 % 67 ") {
			t.Errorf("not all points are served: %s", row)
		}
	}
	if dir == "" && !strings.Contains(out.String(), "left out") {
		t.Error("nothing says that the networks are missing")
	}
}
