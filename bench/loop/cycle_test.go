package loop

import (
	"strings"
	"testing"
)

// Small networks go through all changes of plan, with switches and without.
func TestCycle(t *testing.T) {
	table := &CycleTable{Section: "cycle", Cycles: cycles}
	for _, switches := range []bool{false, true} {
		row, err := cycleRow(t.Context(), DefaultOptions(), map[bool]string{false: "fat-tree:4", true: "leaf-spine:2,4"}[switches], switches)
		if err != nil {
			t.Fatal(err)
		}
		if row.Median <= 0 || row.Worst < row.Median || row.Planning <= 0 || row.Probes == 0 || row.Suspicious == 0 || (row.Entries > 0) != switches {
			t.Errorf("%+v", row)
		}
		table.Rows = append(table.Rows, *row)
	}
	var b strings.Builder
	if err := table.Print(&b); err != nil || !strings.Contains(b.String(), "fat-tree:4: 20 switches, 8 agents") || !strings.Contains(b.String(), "24 entries over P4Runtime") {
		t.Errorf("%v: %s", err, b.String())
	}
}
