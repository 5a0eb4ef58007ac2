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
		if len(totals.totals) > most {
			t.Fatalf("window %d: totals of %d exporters", window, len(totals.totals))
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

// Of exporters whose reports cannot be read a few are listed, however many they are, and all others are listed before them. Nothing is uncounted.
func TestUnreadExporters(t *testing.T) {
	for _, most := range []int{400, 100_000} {
		totals := newExporterTotals(most)
		for window := range uint32(10) {
			stats := []inference.ExporterStats{{ExporterKey: inference.ExporterKey{Node: 1}, Reports: 5, Malformed: 1000}}
			for k := range uint32(300) {
				stats = append(stats, inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: 2 + window*300 + k}, Malformed: 1 + uint64(k)})
			}
			totals.add(stats, 0)
		}
		list, other := totals.list()
		if len(list) != 1+listedUnread || other == nil || other.Exporters != 3000-listedUnread || other.Unread != other.Exporters {
			t.Fatalf("%d are listed beside %+v", len(list), other)
		}
		sum, found := other.Sums, false
		for i := range list {
			sum.add(&list[i])
			found = found || list[i].Reports == 50
		}
		if want := uint64(10*1000 + 10*300*301/2); sum.Malformed != want || sum.Reports != 50 || !found {
			t.Errorf("%d reports, %d malformed, want 50 and %d", sum.Reports, sum.Malformed, want)
		}
		if got, want := other.text(), "and 2 980 more exporters, of which none sent a readable report"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
