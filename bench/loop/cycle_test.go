package loop

import (
	"strings"
	"testing"
)

// Small networks go through all changes of plan, with switches and without.
func TestCycle(t *testing.T) {
	table := &cycleTable{Section: "cycle", Cycles: cycles}
	for _, entries := range []int{0, 4} {
		row, err := cycleRow(t.Context(), DefaultOptions(), map[int]string{0: "fat-tree:4", 4: "leaf-spine:2,4"}[entries], entries, 10)
		if err != nil {
			t.Fatal(err)
		}
		if row.Median <= 0 || row.Worst < row.Median || row.Planning <= 0 || row.Probes == 0 || row.Suspicious == 0 || row.Entries != 6*entries || row.Bytes == 0 || row.CPUWorst < row.CPU {
			t.Errorf("%+v", row)
		}
		table.Rows = append(table.Rows, *row)
	}
	var b strings.Builder
	if err := table.Print(&b); err != nil || !strings.Contains(b.String(), "fat-tree:4: 20 switches, 8 agents") || !strings.Contains(b.String(), "24 entries over P4Runtime") {
		t.Errorf("%v: %s", err, b.String())
	}
}
