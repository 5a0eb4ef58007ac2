package pipeline

import (
	"sync"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/names"
)

// maxRouters bounds how many routers have an address.
const maxRouters = 1 << 14

// routers remembers the addresses of the routers on the ways of agents' probes. A finding has only their numbers, and an
// IPv6 address cannot be read from one.
type routers struct {
	mu      sync.Mutex
	known   map[uint32]bool
	learned []names.Node // since the last call of drain
}

// see learns the routers of a report of a way.
func (x *routers) see(r *decode.Report) {
	if r.Kind != decode.KindProbes || r.Rare == nil || r.Rare.Probes == nil || len(r.Rare.Probes.Way) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, a := range r.Rare.Probes.Way {
		id := a.Node()
		if a == (decode.Addr{}) || x.known[id] || len(x.known) == maxRouters {
			continue
		}
		if x.known == nil {
			x.known = map[uint32]bool{}
		}
		x.known[id] = true
		x.learned = append(x.learned, names.Node{ID: id, Name: a.String()})
	}
}

func (x *routers) drain() []names.Node {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.learned
	x.learned = nil
	return list
}
