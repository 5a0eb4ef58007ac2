package summary

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// Tally sums up windows. One goroutine adds them, and any may read.
type Tally struct {
	mu        sync.Mutex
	totals    *window.Totals
	exporters exporterTotals
	findings  findings
	figures   Figures
}

// Figures are numbers of a run.
type Figures struct {
	Learning int                // hops that are younger than their statistics need
	Coverage inference.Coverage // how much was judged of the last window in which hops had records or agents probed
	Rate     float64            // reports a second, in the last window
	Diverted uint64             // reports that went on one by one
	Lost     int64              // reports that exporters lost
	// Folded counts what was stored as "other" because the day had no place left for its series.
	Folded struct{ Hops, Flows, Rest uint64 }
	Left   LeftOut // by limits, in this run
	// FirstLabel and LastLabel are labels of the windows that were handed over. LastLabel is 0 before the first;
	// FirstLabel may be known before.
	FirstLabel, LastLabel int64
}

// LeftOut counts what limits of the settings left out of windows and of the detectors.
type LeftOut struct {
	Hops    uint64 // records of hops that are counted as the hop other
	flows   uint64 // rows of flows and path changes that are stored as the flow other
	rows    uint64 // rows of exporters, interfaces, paths of probes and findings that are stored as other
	changes uint64 // path changes and digests with a fault that are not listed one by one
	drops   uint64 // reports of drops whose node and reason are not listed one by one

	historiesOfHops  uint64 // hops, links and interfaces whose values were not judged, in every window anew
	historiesOfPaths uint64 // paths of probes that were not judged, in every window anew
	findingsOfDrops  uint64 // nodes with a reason of drops that have no finding, in every window anew
	findingsOfFlows  uint64 // changes and faults of flows that have no finding of their own
}

// AddSince adds the difference between before and l.
func (t *LeftOut) AddSince(l, before *LeftOut) {
	t.Hops += l.Hops - before.Hops
	t.flows += l.flows - before.flows
	t.rows += l.rows - before.rows
	t.changes += l.changes - before.changes
	t.drops += l.drops - before.drops
	t.historiesOfHops += l.historiesOfHops - before.historiesOfHops
	t.historiesOfPaths += l.historiesOfPaths - before.historiesOfPaths
	t.findingsOfDrops += l.findingsOfDrops - before.findingsOfDrops
	t.findingsOfFlows += l.findingsOfFlows - before.findingsOfFlows
}

// NewTally makes one with places for hops and exporters.
func NewTally(hops, exporters int) *Tally {
	return &Tally{totals: window.NewTotals(hops), exporters: newExporterTotals(exporters), findings: findings{}}
}

// Add adds a window, with the findings that it brought and the number of reports of exporters that had no place so far.
// Change sets the figures.
func (t *Tally) Add(p *window.Partial, w *inference.Window, refused uint64, found []inference.Finding, change func(*Figures)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.totals.Add(p)
	t.exporters.add(w.Exporters, refused)
	t.findings.keep(found)
	change(&t.figures)
}

// Change changes the figures.
func (t *Tally) Change(change func(*Figures)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.figures)
}

// Figures are those of this moment, and the findings that last, by kind and severity.
func (t *Tally) Figures() (f Figures, open map[[2]string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f = t.figures
	f.Lost = t.exporters.lost()
	return f, t.findings.open()
}

// Known returns how many reports of the exporter at an address were read in ended windows.
func (t *Tally) Known(a decode.Addr) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exporters.known(a)
}

// Fill fills in the hops of a summary, at most most, its exporters and its findings.
func (t *Tally) Fill(s *Summary, most int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.totals.Hops()
	s.HopCount = len(all)
	slices.SortStableFunc(all, func(a, b inference.HopStats) int {
		return cmp.Or(cmp.Compare(b.Latency.P99, a.Latency.P99), cmp.Compare(b.Queue.P99, a.Queue.P99))
	})
	for i := range all[:min(most, len(all))] {
		h := &all[i]
		s.Hops = append(s.Hops, Hop{NodeID: h.Node, EgressIf: h.EgressIf, Other: h.Other, Reports: h.Count,
			Latency: quantiles(&h.Latency), Queue: quantiles(&h.Queue)})
	}
	for _, n := range t.totals.Nameless() {
		s.Nameless = append(s.Nameless, namelessOf(&n))
	}
	s.Exporters, s.OtherExporters = t.exporters.list()
	for _, f := range t.findings {
		s.Findings = append(s.Findings, findingOf(&f))
	}
	slices.SortFunc(s.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
}

// exporterTotals sums windows by exporter, of as many as the tracker has places for. Those that it has forgotten make
// room, the longest forgotten first, and are summed up together.
type exporterTotals struct {
	most    int
	window  uint64 // number of the last one
	totals  map[inference.ExporterKey]*exporterTotal
	other   Exporter
	folded  uint64 // exporters in other
	unread  uint64 // of these, those that sent no readable report
	refused uint64 // reports of exporters that had no place
}

type exporterTotal struct {
	Exporter
	window uint64 // the last that named it
}

func newExporterTotals(most int) exporterTotals {
	return exporterTotals{most: most, totals: map[inference.ExporterKey]*exporterTotal{}}
}

func (t *exporterTotals) add(stats []inference.ExporterStats, refused uint64) {
	t.window++
	t.refused = refused
	for i := range stats {
		e := &stats[i]
		s := t.totals[e.ExporterKey]
		if s == nil {
			s = &exporterTotal{Exporter: Exporter{Address: e.Addr.String(), HWID: e.HWID}}
			if node := e.Node; !e.Nameless {
				s.NodeID = &node
			}
			t.totals[e.ExporterKey] = s
		}
		s.window = t.window
		s.add(&Exporter{Sequenced: e.Sequenced, Reports: e.Reports, Lost: e.Lost, Duplicated: e.Duplicated, Reordered: e.Reordered,
			Late: e.Late, Down: e.Down, Restarts: e.Restarts, Malformed: e.Malformed})
	}
	if len(t.totals) > t.most {
		t.fold()
	}
}

// fold makes room: a quarter of the places, as far as the tracker has forgotten as many.
func (t *exporterTotals) fold() {
	var gone []inference.ExporterKey
	for k, s := range t.totals {
		if s.window < t.window {
			gone = append(gone, k)
		}
	}
	slices.SortFunc(gone, func(a, b inference.ExporterKey) int {
		return cmp.Or(cmp.Compare(t.totals[a].window, t.totals[b].window), a.Compare(b))
	})
	for _, k := range gone[:min(len(gone), len(t.totals)-t.most+t.most/4)] {
		t.other.add(&t.totals[k].Exporter)
		t.folded++
		if t.totals[k].unread() {
			t.unread++
		}
		delete(t.totals, k)
	}
}

func (s *Exporter) add(o *Exporter) {
	s.Sequenced = s.Sequenced || o.Sequenced
	s.Reports += o.Reports
	s.Lost += o.Lost
	s.Duplicated += o.Duplicated
	s.Reordered += o.Reordered
	s.Late += o.Late
	s.Down += o.Down
	s.Restarts += o.Restarts
	s.Malformed += o.Malformed
}

// unread reports whether no report of the exporter could be read.
func (s *Exporter) unread() bool { return s.Reports == 0 && s.Malformed > 0 }

// node is the id of the node, -1 for none.
func (s *Exporter) node() int64 {
	if s.NodeID == nil {
		return -1
	}
	return int64(*s.NodeID)
}

// lost returns the loss of all exporters.
func (t *exporterTotals) lost() int64 {
	lost := t.other.Lost
	for _, s := range t.totals {
		lost += s.Lost
	}
	return lost
}

// known returns how many reports of the exporter at an address were read in ended windows.
func (t *exporterTotals) known(a decode.Addr) (n uint64) {
	for k, s := range t.totals {
		if k.Addr == a {
			n += s.Reports
		}
	}
	return n
}

// A summary lists this many exporters, and as many without a readable report: random addresses are endless.
const (
	listedExporters = 1000
	listedUnread    = 20
)

// list returns the exporters with the most reports, in order, and the sum of the others, nil if there are none.
func (t *exporterTotals) list() ([]Exporter, *OtherExporters) {
	out := make([]Exporter, 0, len(t.totals))
	for _, s := range t.totals {
		out = append(out, s.Exporter)
	}
	byName := func(a, b Exporter) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.node(), b.node()), cmp.Compare(a.HWID, b.HWID))
	}
	slices.SortFunc(out, func(a, b Exporter) int {
		switch {
		case a.unread() && !b.unread():
			return 1
		case b.unread() && !a.unread():
			return -1
		}
		return cmp.Or(cmp.Compare(b.Reports, a.Reports), cmp.Compare(b.Malformed, a.Malformed), byName(a, b))
	})
	other := OtherExporters{Exporters: t.folded, Unread: t.unread, Unfollowed: t.refused, Sums: t.other}
	listed, unread := out[:0], 0
	for i := range out {
		s := out[i]
		if s.unread() {
			unread++
		}
		switch {
		case len(listed) < listedExporters && unread <= listedUnread:
			listed = append(listed, s)
			continue
		case s.unread():
			other.Unread++
		}
		other.Exporters++
		other.Sums.add(&s)
	}
	slices.SortFunc(listed, byName)
	if other.Exporters == 0 && other.Unfollowed == 0 {
		return listed, nil
	}
	return listed, &other
}
