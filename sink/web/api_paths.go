package web

import (
	"net/http"
	"sync"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// Paths is the paths of flows by their digests.
type Paths struct {
	Known     int // flows whose path is known
	Marked    int // those of them with hops that no digest confirms
	Undecided int // flows whose path is not known
	Sprayed   int // flows that use several paths at once; they are none of the others
	Flows     []PathFlow
}

// PathFlow is one flow of them.
type PathFlow struct {
	inference.FlowStats
	Needed int // digests that an undecided path still takes, about; 0 where that is not known
}

const (
	// listedPaths is how many flows are asked for.
	listedPaths = 50
	// pathsAge is how old an answer may be: the owners of flows are asked for it, which takes time from their work.
	pathsAge = 2 * time.Second
)

// pathCache keeps the last answer, for all pages.
type pathCache struct {
	mu     sync.Mutex
	at     time.Time
	answer ask.PathList
}

// servePaths answers with the paths of flows with digests, first those that need a look.
func (s *Server) servePaths(w http.ResponseWriter, _ *http.Request) {
	c := &s.paths
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); s.deps.Paths != nil && (c.answer.Flows == nil || now.Sub(c.at) >= pathsAge) {
		p := s.deps.Paths(listedPaths)
		c.at, c.answer = now, newPathList(&p)
	}
	if c.answer.Flows == nil {
		c.answer.Flows = []ask.PathRow{}
	}
	s.answer(w, c.answer)
}

func newPathList(p *Paths) ask.PathList {
	out := ask.PathList{Known: p.Known, Marked: p.Marked, Undecided: p.Undecided, Sprayed: p.Sprayed, Flows: []ask.PathRow{}}
	for i := range p.Flows {
		out.Flows = append(out.Flows, ask.NewPathRow(&p.Flows[i].FlowStats, p.Flows[i].Needed))
	}
	return out
}

// several returns the digests' paths of those flows whose one path is incomplete: they use several, or digests
// contradict it. The result asked is false without a tracer, such as in a console. The paths of windows then have to
// do.
func (s *Server) several(keys []decode.FlowKey) (several map[decode.FlowKey]*ask.PathRow, asked bool) {
	if s.deps.PathsOf == nil {
		return nil, false
	}
	if len(keys) == 0 {
		return nil, true
	}
	out := map[decode.FlowKey]*ask.PathRow{}
	flows := s.deps.PathsOf(keys)
	for i := range flows {
		if f := &flows[i]; f.Sprayed() || f.Unsettled {
			row := ask.NewPathRow(&f.FlowStats, f.Needed)
			out[f.Key] = &row
		}
	}
	return out, true
}
