// Package papers prints the tables of published planners beside the numbers of hopscope. Every function runs the
// algorithm as published, re-implemented, and that of hopscope on the same input in the same run, so that times
// compare. A program of another origin plans the same instances ([harness.Program]). The figures of PINT are in
// package digests.
package papers

import (
	"context"
	"io"
	"time"
)

// Families are the families of plans that have tables, one a line, in the order in which they are printed.
var Families = []Family{
	{"cover", runCover},
	{"orchestrate", runOrchestrate},
	{"attention", runAttention},
	{"delivery", runDelivery},
	{"schedule", runSchedule},
}

// Family prints the tables of one family of plans.
type Family struct {
	Name string
	Run  func(context.Context, io.Writer, Options) error
}

// Options choose the content and the cost of tables.
type Options struct {
	Seed       uint64
	Limit      time.Duration // for one run of one algorithm; 0 for 10 s
	Topologies string        // directory with graphs/, demands/ and index.csv; rows that need it are left out if empty
	Tables     []string      // only those whose title has one of these in it; all if empty
	Printed    *bool         // set once a table is printed; may be nil
	quick      bool          // the first rows of each table, which are the small ones
}

// shown returns the rows of a table: all of them, or the first n in quick tables.
func shown[T any](o Options, n int, all ...T) []T {
	if o.quick {
		return all[:min(n, len(all))]
	}
	return all
}

func (o Options) limit() time.Duration {
	if o.Limit > 0 {
		return o.Limit
	}
	return 10 * time.Second
}
