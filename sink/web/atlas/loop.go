package atlas

import (
	"hash/fnv"
	"strconv"

	"github.com/hopscope/hopscope/inference/names"
)

// LoopView is the present state of the control of probes. The giver of one does not change it afterwards.
type LoopView struct {
	Epoch            uint32
	Phase            string // what is under way, in a word or two
	Paused           bool
	DryRun           bool
	AwaitingApproval bool
	Suspects         []LoopSuspect
	Probes           []LoopProbe // of the plan in force
}

// LoopSuspect is a direction of a link that is suspected. Both directions of a link are two suspects.
type LoopSuspect struct {
	LinkEnd
	Weight float64
	Why    string
	Since  int64 // ns since 1970
}

// LoopProbe is a probe and the directions of links that it takes, in its order.
type LoopProbe struct {
	ID       string
	Links    []LinkEnd
	Detailed bool
}

// LoopDoc is a control of probes as the API has it. Its suspects are numbers of directions.
type LoopDoc struct {
	Version  string       `json:"version"` // of the probes
	Epoch    uint32       `json:"epoch"`
	Phase    string       `json:"phase"`
	Paused   bool         `json:"paused,omitempty"`
	DryRun   bool         `json:"dry_run,omitempty"`
	Awaiting bool         `json:"awaiting_approval,omitempty"`
	Probes   int          `json:"probes"`
	Detailed int          `json:"detailed"`
	Suspects []suspectDoc `json:"suspects"`
}

type suspectDoc struct {
	Link    int     `json:"link"` // direction
	Weight  float64 `json:"weight"`
	Why     string  `json:"why,omitempty"`
	SinceMS int64   `json:"since_ms,omitempty"`
}

// maxSuspects bounds the list of suspected directions, in their given order.
const maxSuspects = 4096

// Loop puts a control on the map. Text makes a text one that a page can show.
func (a *Atlas) Loop(v *LoopView, text func(string) string) *LoopDoc {
	out := &LoopDoc{
		Version: v.Version(), Epoch: v.Epoch, Phase: text(v.Phase), Paused: v.Paused, DryRun: v.DryRun, Awaiting: v.AwaitingApproval,
		Probes: len(v.Probes), Suspects: []suspectDoc{},
	}
	for i := range v.Probes {
		if v.Probes[i].Detailed {
			out.Detailed++
		}
	}
	for _, s := range v.Suspects {
		if d := a.direction(s.LinkEnd); d >= 0 && len(out.Suspects) < maxSuspects {
			out.Suspects = append(out.Suspects, suspectDoc{d, Finite(s.Weight), text(s.Why), s.Since / 1e6})
		}
	}
	return out
}

// Version is a digest of the probes.
func (v *LoopView) Version() string {
	h := fnv.New64a()
	var b [9]byte
	number := func(n uint32) {
		b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
		_, _ = h.Write(b[:4]) // a digest takes everything
	}
	number(v.Epoch)
	for i := range v.Probes {
		p := &v.Probes[i]
		_, _ = h.Write([]byte(p.ID))
		detailed := uint32(0)
		if p.Detailed {
			detailed = 1
		}
		number(detailed)
		number(uint32(len(p.Links)))
		for _, l := range p.Links {
			number(l.Node)
			number(l.Port)
		}
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// ProbeDoc is a probe of the plan in force in the form of the API.
type ProbeDoc struct {
	ID       string `json:"id"`
	Links    []int  `json:"links"` // directions, in the probe's order; -1 for one that the map does not have
	Detailed bool   `json:"detailed,omitempty"`
}

// Probes returns a number of probes of a view, from an offset on.
func (a *Atlas) Probes(v *LoopView, offset, limit int) []ProbeDoc {
	rows := []ProbeDoc{}
	offset = min(offset, len(v.Probes))
	for _, p := range v.Probes[offset:min(offset+limit, len(v.Probes))] {
		row := ProbeDoc{ID: names.Clean(p.ID), Links: []int{}, Detailed: p.Detailed}
		for _, l := range p.Links {
			row.Links = append(row.Links, a.direction(l))
		}
		rows = append(rows, row)
	}
	return rows
}
