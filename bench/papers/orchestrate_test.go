package papers

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRunOrchestrate prints the tables, over the networks in the directory that HOPSCOPE_TOPOLOGIES names.
func TestRunOrchestrate(t *testing.T) {
	dir := os.Getenv("HOPSCOPE_TOPOLOGIES")
	if dir == "" || testing.Short() {
		t.Skip("HOPSCOPE_TOPOLOGIES names no directory with graphs and index.csv, or -short: takes two minutes")
	}
	o := Options{Seed: 1, Topologies: dir}
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
	if err := RunOrchestrate(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
}
