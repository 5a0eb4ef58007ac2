package summary

import (
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// Totals are kept of as many exporters as are followed; those of the others are summed up, and nothing is forgotten.
func TestExporterTotals(t *testing.T) {
	const most = 2000
	totals := newExporterTotals(most)
	var reports uint64
	var lost int64
	steady := inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: 1}, Reports: 1000, Lost: 1, Sequenced: true}
	for window := range uint32(100) {
		stats := []inference.ExporterStats{steady}
		for k := range uint32(1000) {
			e := inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: 2 + window*1000 + k}, Reports: 3, Lost: 2}
			stats = append(stats, e)
		}
		for _, e := range stats {
			reports += e.Reports
			lost += e.Lost
		}
		totals.add(stats, uint64(window))
		if len(totals.of) > most {
			t.Fatalf("window %d: totals of %d exporters", window, len(totals.of))
		}
	}
	list, other := totals.list()
	if len(list) != listedExporters || other == nil || other.Exporters+uint64(len(list)) != 100_001 || other.Unfollowed != 99 {
		t.Fatalf("%d are listed beside %+v", len(list), other)
	}
	sum := other.Sums
	found := false
	for i := range list {
		sum.add(&list[i])
		found = found || list[i].node() == 1 && list[i].Reports == 100_000
	}
	if sum.Reports != reports || sum.Lost != lost || totals.lost() != lost || !found {
		t.Errorf("%d reports and %d lost in all, want %d and %d; the steady one is listed: %v", sum.Reports, sum.Lost, reports, lost, found)
	}
	few := newExporterTotals(most)
	few.add([]inference.ExporterStats{steady}, 0)
	if list, other := few.list(); len(list) != 1 || other != nil {
		t.Errorf("one exporter: %v, %v", list, other)
	}
}
