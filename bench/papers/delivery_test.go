package papers

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/topo/load"
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

// TestDeliveredAsPlanned carries out a plan by emulated switches: over each path arrives its rate, also at twice of what is
// planned, and no report elsewhere.
func TestDeliveredAsPlanned(t *testing.T) {
	g, err := load.Topology("random:30,60,3")
	if err != nil {
		t.Fatal(err)
	}
	sums := [2]delivered{{least: math.Inf(1)}, {least: math.Inf(1)}}
	if err := deliverOver(delivery.Generate(g, 1), Options{Seed: 1}, &sums); err != nil {
		t.Fatal(err)
	}
	for k, x := range sums {
		if x.networks != 1 || x.judged == 0 || x.least < 0.95 || x.most > 1.05 || x.elsewhere != 0 || (x.refused > 0) != (k == 1) {
			t.Errorf("at %d times the rate: %+v", k+1, x)
		}
	}
}
