package subject

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Journal is the state that the detectors of one Detector of package events share. It holds the settings, the present
// window, and the findings that are open or published in it.
type Journal struct {
	Cfg   Config
	Stats Stats

	Unjudged, Unlisted uint64 // see Detector.Refused of package events

	Now     int64  // end of the window
	Windows uint64 // number of windows, the present one included
	ID      uint64 // of the last finding that started

	// Flows whose digests an error of the inventory explains, in this window.
	Explained map[decode.FlowKey]bool

	Published []inference.Finding  // findings that started, became more severe or ended in this window
	Open      []*inference.Finding // open findings by id, and until finish those that ended in this window
	States    []Coded              // of all detectors

	Judged func() int // number of flows whose statistics share the findings that are expected by chance

	Late  map[uint64]uint64             // windows before its start in which the condition of a finding may have begun; set when they are published first
	Moved map[uint64][]inference.HopKey // hops that the flows of a finding moved to or, of latencies, where they come from; set when they are published
}

// Begin opens the next window.
func (j *Journal) Begin(end int64) {
	j.Published, j.Now = j.Published[:0], end
	j.Windows++
}

// Finish closes the window.
func (j *Journal) Finish() {
	j.Open = slices.DeleteFunc(j.Open, func(f *inference.Finding) bool { return f.End != 0 })
}

// Publish starts a finding or updates it: *open is the finding, nil before it starts. The first call publishes f as its
// start. Later calls replace flow, value, baseline and text. They publish it again only if it became more severe, has
// another element, or rests or is back. Severity does not fall before the end.
func (j *Journal) Publish(open **inference.Finding, f inference.Finding) {
	old := *open
	if old == nil {
		j.ID++
		f.ID, f.Start, f.Updated = j.ID, j.Now, j.Now
		if f.Element == (inference.Element{}) {
			f.Element = elementOf(&f)
		}
		started := f // f itself stays on the stack
		*open = &started
		j.Open = append(j.Open, &started)
		j.Published = append(j.Published, f)
		return
	}
	turned := f.Resting != old.Resting
	old.Flow, old.Updated, old.Value, old.Baseline, old.Text = f.Flow, j.Now, f.Value, f.Baseline, f.Text
	old.Statistic, old.Learning, old.Resting, old.Path = f.Statistic, f.Learning, f.Resting, f.Path
	elsewhere := f.Element != (inference.Element{}) && f.Element != old.Element
	if elsewhere {
		old.Element = f.Element
	}
	if f.Severity > old.Severity || elsewhere || turned {
		old.Severity = max(f.Severity, old.Severity)
		j.Published = append(j.Published, *old)
	}
}

// End publishes the end of a finding. Nothing happens if none is open.
func (j *Journal) End(open **inference.Finding, text string) {
	f := *open
	if f == nil {
		return
	}
	f.Updated, f.End, f.Text = j.Now, j.Now, text
	j.Published = append(j.Published, *f)
	*open = nil
}

// Find returns an open finding by its id, nil for one that is not open.
func (j *Journal) Find(id uint64) *inference.Finding {
	i, ok := slices.BinarySearchFunc(j.Open, id, func(f *inference.Finding, id uint64) int { return cmp.Compare(f.ID, id) })
	if !ok || j.Open[i].End != 0 {
		return nil
	}
	return j.Open[i]
}

// elementOf returns the element of a finding if its detector names none.
func elementOf(f *inference.Finding) inference.Element {
	switch {
	case f.Exporter != (decode.Addr{}):
		return inference.ElementOfExporter(inference.ExporterKey{Addr: f.Exporter, Node: f.Node, HWID: f.HWID, Nameless: f.Nameless})
	case f.Kind == inference.PathChanged && f.FlowText() != "", f.Kind == inference.StrangeDigests && f.FlowText() != "",
		f.Node == 0 && f.FlowText() != "" && f.Kind != inference.PacketDrops:
		return inference.ElementOfFlow(f.Flow)
	case f.Kind == inference.PathChanged: // of several flows that have no element in common
		return inference.Element{}
	}
	return inference.ElementOfHop(inference.HopKey{Node: f.Node, EgressIf: f.EgressIf})
}

// MostHops bounds the hops that are remembered of a flow or a link.
const MostHops = 32

// Stats is the state of a Detector and what it had no room for.
type Stats struct {
	Open          int // findings
	Hops          int // with a history
	Watched       int // statistics of these, and the latencies of flows
	Links         int // whose times are watched in both directions
	Paths         int // of probes, whose delays are watched
	Learning      int // hops that are younger than their statistics need
	HopsRefused   uint64
	DropsRefused  uint64
	PathsRefused  uint64 // paths of probes without a history, in every window anew
	FaultsRefused uint64 // digests with a fault, of flows that have no finding of their own
}
