package web

import (
	"cmp"
	"net/http"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// maxText bounds the evidence of a finding and other texts from the network, in bytes.
const maxText = 1024

// names returns the present names of nodes.
func (s *Server) names() *names.Names {
	if s.deps.Names == nil {
		return nil
	}
	return s.deps.Names()
}

// serveNames answers all names.
func (s *Server) serveNames(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, s.names().Document())
}

// readable is a text from the network as the page displays it.
func readable(s string) string { return names.Readable(s, maxText) }

// findings is the bounded memory of findings. When it is full, it evicts the finding that ended first. If none has
// ended, it evicts the oldest of the least severe open ones.
type findings struct {
	mu      sync.RWMutex
	max     int
	all     map[uint64]inference.Finding
	evicted uint64

	openEvicted uint64 // of those, findings that had not ended
}

// keep keeps a finding's latest state and returns it as it is kept.
func (f *findings) keep(in inference.Finding) inference.Finding {
	in.Text = readable(in.Text)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.all[in.ID]; !known && len(f.all) >= f.max {
		f.evict()
	}
	f.all[in.ID] = in
	return in
}

func (f *findings) evict() {
	var victim inference.Finding
	first := true
	for _, c := range f.all {
		if first || sooner(&c, &victim) {
			victim, first = c, false
		}
	}
	delete(f.all, victim.ID)
	f.evicted++
	if victim.End == 0 {
		f.openEvicted++
	}
}

// sooner reports whether a makes room before b.
func sooner(a, b *inference.Finding) bool {
	if aEnded, bEnded := a.End != 0, b.End != 0; aEnded != bEnded {
		return aEnded
	} else if aEnded {
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.ID, b.ID)) < 0
	}
	return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) < 0
}

// silentExporters returns the exporters with an open finding of silence.
func (f *findings) silentExporters() map[inference.ExporterKey]bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	m := map[inference.ExporterKey]bool{}
	for _, x := range f.all {
		if x.End == 0 && x.Kind == inference.ExporterSilence {
			m[inference.ExporterKey{Addr: x.Exporter, Node: x.Node, HWID: x.HWID, Nameless: x.Nameless}] = true
		}
	}
	return m
}

// isOpen reports whether a finding is open.
func (f *findings) isOpen(id uint64) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	x, known := f.all[id]
	return known && x.End == 0
}

// list returns the open findings in the order of [ask.SortOpen], then the ended ones, the latest first.
func (f *findings) list() (open, ended []inference.Finding) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, x := range f.all {
		if x.End == 0 {
			open = append(open, x)
		} else {
			ended = append(ended, x)
		}
	}
	ask.SortOpen(open)
	slices.SortFunc(ended, func(a, b inference.Finding) int {
		return cmp.Or(cmp.Compare(b.End, a.End), cmp.Compare(b.ID, a.ID))
	})
	return open, ended
}
