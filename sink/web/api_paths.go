package web

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web/atlas"
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
	answer pathList
}

type pathList struct {
	Known     int       `json:"known"`
	Marked    int       `json:"marked"`
	Undecided int       `json:"undecided"`
	Sprayed   int       `json:"sprayed"` // flows that use several paths at once; they are none of the others
	Flows     []pathRow `json:"flows"`
}

// pathRow is a flow with digests.
type pathRow struct {
	Key        string     `json:"key"`
	Complete   bool       `json:"complete"`
	Confidence float64    `json:"confidence"` // that the whole path is right; 0 while it is not known
	Digests    uint64     `json:"digests"`    // that it was inferred from, or that were seen while it is not known
	Needed     int        `json:"needed"`     // digests that it still takes, about
	Others     int        `json:"others"`     // other paths that were seen
	Hops       []pathHop  `json:"hops"`
	Whole      *wholePath `json:"path_value,omitempty"` // what each packet brings of its whole path, where a query asks for it
	Frequent   string     `json:"frequent,omitempty"`   // the quantity of the hops' frequent values: latency, in ns, or queue, in bytes

	// Of a flow that uses several paths at once.
	Sprayed     bool         `json:"sprayed,omitempty"`
	Share       float64      `json:"share,omitempty"`             // of its packets that take the path of hops
	OtherPaths  []pathShare  `json:"other_paths,omitempty"`       // also those of a flow that uses several in turn, which have no share
	Inseparable []pathChoice `json:"inseparable_paths,omitempty"` // of which digests do not say which are used
	Unexplained float64      `json:"unexplained_share,omitempty"` // of packets that take none of them

	Unsettled bool `json:"unsettled,omitempty"` // digests contradict the path: whether it is the only one is being looked for
}

type pathHop struct {
	Node       string  `json:"node,omitempty"` // absent where it is not known yet
	Marked     bool    `json:"marked,omitempty"`
	Confidence float64 `json:"confidence,omitempty"` // that the node is right; absent where that is not known by hop

	Frequent []frequentValue `json:"frequent,omitempty"` // values that come most often, where a query asks for them
}

type wholePath struct {
	Of      string `json:"of"` // "sum of latency" in ns, "max of queue" in bytes, "min of utilization" in parts of 65536
	Digests uint64 `json:"digests"`
	P50     uint64 `json:"p50"`
	P99     uint64 `json:"p99"`
}

type frequentValue struct {
	Value float64 `json:"value"`
	Least float64 `json:"least_share"` // of the digests of the hop
	Most  float64 `json:"most_share"`
}

type pathShare struct {
	Nodes      []string `json:"nodes"`
	Share      float64  `json:"share,omitempty"`
	Confidence float64  `json:"confidence"`
}

type pathChoice struct {
	Paths [][]string `json:"paths"`
	Share float64    `json:"share"`
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
		c.answer.Flows = []pathRow{}
	}
	s.answer(w, c.answer)
}

func newPathList(p *Paths) pathList {
	out := pathList{p.Known, p.Marked, p.Undecided, p.Sprayed, []pathRow{}}
	for i := range p.Flows {
		out.Flows = append(out.Flows, newPathRow(&p.Flows[i]))
	}
	return out
}

func newPathRow(f *PathFlow) pathRow {
	row := pathRow{
		Key: f.Key.String(), Complete: !f.Partial, Confidence: atlas.Finite(f.Confidence), Digests: f.Digests, Needed: f.Needed,
		Others: len(f.Others), Hops: []pathHop{},
		Sprayed: f.Sprayed(), Share: atlas.Finite(f.Share), Unexplained: atlas.Finite(f.Unexplained), Unsettled: f.Unsettled,
		Frequent: f.Frequent,
	}
	if v := &f.Path; v.Count > 0 {
		row.Whole = &wholePath{v.Of, v.Count, v.P50, v.P99}
	}
	for _, h := range f.Hops {
		hop := pathHop{Marked: h.Inferred, Confidence: atlas.Finite(h.Confidence)}
		if !h.Unknown {
			hop.Node = strconv.FormatUint(uint64(h.Node), 10)
		}
		for _, v := range h.Frequent {
			hop.Frequent = append(hop.Frequent, frequentValue{atlas.Finite(v.Value), atlas.Finite(v.Least), atlas.Finite(v.Most)})
		}
		row.Hops = append(row.Hops, hop)
	}
	for _, o := range f.Others {
		row.OtherPaths = append(row.OtherPaths, pathShare{nodeNames(o.Nodes), atlas.Finite(o.Share), atlas.Finite(o.Confidence)})
	}
	for _, set := range f.Inseparable {
		c := pathChoice{Share: atlas.Finite(set.Share)}
		for _, nodes := range set.Paths {
			c.Paths = append(c.Paths, nodeNames(nodes))
		}
		row.Inseparable = append(row.Inseparable, c)
	}
	return row
}

// several returns the digests' paths of those flows whose one path is incomplete: they use several, or digests
// contradict it. The result asked is false without a tracer, such as in a console. The paths of windows then have to
// do.
func (s *Server) several(keys []decode.FlowKey) (several map[decode.FlowKey]*pathRow, asked bool) {
	if s.deps.PathsOf == nil {
		return nil, false
	}
	if len(keys) == 0 {
		return nil, true
	}
	out := map[decode.FlowKey]*pathRow{}
	flows := s.deps.PathsOf(keys)
	for i := range flows {
		if f := &flows[i]; f.Sprayed() || f.Unsettled {
			row := newPathRow(f)
			out[f.Key] = &row
		}
	}
	return out, true
}
