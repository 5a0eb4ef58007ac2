package papers

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestRunOrchestrate prints the tables, over the networks in the directory that HOPSCOPE_TOPOLOGIES names or random ones,
// with a limit of HOPSCOPE_LIMIT. Everything is checked on the way; Balance must be proven everywhere.
func TestRunOrchestrate(t *testing.T) {
	testkit.Long(t)
	o := Options{Seed: 1, Limit: 300 * time.Millisecond, Topologies: os.Getenv("HOPSCOPE_TOPOLOGIES"), quick: !testkit.Night()}
	if s := os.Getenv("HOPSCOPE_SEED"); s != "" {
		var err error
		if o.Seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if s := os.Getenv("HOPSCOPE_LIMIT"); s != "" {
		var err error
		if o.Limit, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := runOrchestrate(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	_, carried, _ := strings.Cut(out.String(), "INTO carried out")
	carried, _, _ = strings.Cut(carried, "INTO")
	rows := 0
	for line := range strings.Lines(carried) {
		if row := strings.Fields(line); len(row) > 5 && row[1] == "(published)" {
			if rows++; row[2] != row[3] || row[4] != "100.0" {
				t.Errorf("what switches report is not as planned everywhere: %v", row)
			}
		}
	}
	if rows != 2 {
		t.Errorf("%d plans are carried out, want 2", rows)
	}
	_, balance, _ := strings.Cut(out.String(), "INTO Balance")
	balance, _, _ = strings.Cut(balance, "INTO")
	for line := range strings.Lines(balance) {
		if row := strings.Fields(line); len(row) > 0 && row[0] == "ours" && row[2] != "0.000" {
			t.Errorf("Balance is not proven everywhere: %v", row)
		}
	}
}
