package web

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// maxText bounds the evidence of a finding, in bytes.
const maxText = 1024

// finding is an [inference.Finding] as the API gives it: names instead of codes, milliseconds instead of nanoseconds,
// and empty where nothing is meant.
type finding struct {
	ID        string  `json:"id"` // a number too large for JavaScript
	Kind      string  `json:"kind"`
	Severity  string  `json:"severity"`
	StartMS   int64   `json:"start_ms"`
	UpdatedMS int64   `json:"updated_ms"`
	EndMS     int64   `json:"end_ms"` // 0 as long as the cause lasts
	Node      string  `json:"node,omitempty"`
	EgressIf  string  `json:"egress_if,omitempty"`
	Flow      string  `json:"flow,omitempty"`
	Exporter  string  `json:"exporter,omitempty"`
	HWID      string  `json:"hw_id,omitempty"`
	Value     float64 `json:"value"`
	Baseline  float64 `json:"baseline"`
	Text      string  `json:"text"`

	id       uint64
	kind     inference.Kind
	severity inference.Severity
}

func newFinding(f *inference.Finding) finding {
	out := finding{
		ID: strconv.FormatUint(f.ID, 10), Kind: f.Kind.String(), Severity: f.Severity.String(),
		StartMS: f.Start / 1e6, UpdatedMS: max(f.Updated, f.Start) / 1e6, EndMS: f.End / 1e6,
		Value: finite(f.Value), Baseline: finite(f.Baseline), Text: f.Text, id: f.ID, kind: f.Kind, severity: f.Severity,
	}
	if len(out.Text) > maxText {
		out.Text = out.Text[:maxText] + "…"
	}
	out.Text = clean(out.Text)
	if f.Flow.IPVersion != 0 {
		out.Flow = f.Flow.String()
	}
	if f.Exporter != (decode.Addr{}) {
		out.Exporter, out.HWID = f.Exporter.String(), strconv.Itoa(int(f.HWID))
	}
	if f.Node != 0 || out.Flow == "" {
		out.Node = strconv.FormatUint(uint64(f.Node), 10)
	}
	switch {
	case f.Kind == inference.HighLatency, f.Kind == inference.HighQueue,
		f.Kind == inference.PathChanged && out.Flow == "": // many flows left the same hop
		out.EgressIf = strconv.FormatUint(uint64(f.EgressIf), 10)
	}
	return out
}

// findings is the bounded memory of findings. When it is full the ended ones make room, the one that ended first
// before the others, then the least severe and oldest of the open ones.
type findings struct {
	mu      sync.RWMutex
	max     int
	all     map[uint64]finding
	evicted uint64
}

// put takes a finding's latest state.
func (f *findings) put(in finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.all[in.id]; !known && len(f.all) >= f.max {
		f.evict()
	}
	f.all[in.id] = in
}

func (f *findings) evict() {
	var victim finding
	first := true
	for _, c := range f.all {
		if first || sooner(&c, &victim) {
			victim, first = c, false
		}
	}
	delete(f.all, victim.id)
	f.evicted++
}

// sooner tells whether a makes room before b.
func sooner(a, b *finding) bool {
	if aEnded, bEnded := a.EndMS != 0, b.EndMS != 0; aEnded != bEnded {
		return aEnded
	} else if aEnded {
		return cmp.Or(cmp.Compare(a.EndMS, b.EndMS), cmp.Compare(a.id, b.id)) < 0
	}
	return cmp.Or(cmp.Compare(a.severity, b.severity), cmp.Compare(a.StartMS, b.StartMS), cmp.Compare(a.id, b.id)) < 0
}

// silent gives the exporters of which an open finding says that they fell silent.
func (f *findings) silent() map[exporterKey]bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	m := map[exporterKey]bool{}
	for _, x := range f.all {
		if x.EndMS == 0 && x.kind == inference.ExporterSilence {
			m[exporterKey{x.Exporter, x.Node, x.HWID}] = true
		}
	}
	return m
}

// list gives the open findings, the most severe first, then the ended ones, the latest first.
func (f *findings) list() (open, ended []finding) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	open, ended = []finding{}, []finding{}
	for _, x := range f.all {
		if x.EndMS == 0 {
			open = append(open, x)
		} else {
			ended = append(ended, x)
		}
	}
	slices.SortFunc(open, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.severity, a.severity), cmp.Compare(b.StartMS, a.StartMS), cmp.Compare(b.id, a.id))
	})
	slices.SortFunc(ended, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.EndMS, a.EndMS), cmp.Compare(b.id, a.id))
	})
	return open, ended
}
