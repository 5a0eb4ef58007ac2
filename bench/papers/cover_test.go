package papers

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestRunCover prints the tables; HOPSCOPE_TOPOLOGIES names the directory with wide area networks.
func TestRunCover(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	var out strings.Builder
	if err := RunCover(t.Context(), &out, Options{Seed: 1, Limit: time.Second, Topologies: os.Getenv("HOPSCOPE_TOPOLOGIES")}); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	for _, want := range []string{"fat-tree:30", "1000000", "leaf-spine:389,778"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no row of %s", want)
		}
	}
}
