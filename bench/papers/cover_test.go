package papers

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestRunCover prints the tables, their first rows and all of them by night; HOPSCOPE_TOPOLOGIES names the directory
// with wide area networks.
func TestRunCover(t *testing.T) {
	testkit.Long(t)
	var out strings.Builder
	if err := runCover(t.Context(), &out, Options{Seed: 1, Limit: time.Second, Topologies: os.Getenv("HOPSCOPE_TOPOLOGIES"), quick: !testkit.Night()}); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	rows := []string{"fat-tree:14", "10000", "leaf-spine:33,67"}
	if testkit.Night() {
		rows = []string{"fat-tree:30", "1000000", "leaf-spine:389,778"}
	}
	for _, want := range rows {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no row of %s", want)
		}
	}
}
