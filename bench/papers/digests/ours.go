package digests

import (
	"math/rand/v2"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// ourTracer is inference/pathtrace.
type ourTracer struct {
	config prior.Config
	tracer *pathtrace.Tracer
	flow   pathtrace.Flow
	path   []uint32
	own    bool // the path's switches are the candidates
}

// knowledge is the decoder's knowledge besides the digests.
type knowledge struct {
	name    string
	own     bool // the candidates are the path's switches; all otherwise
	links   bool
	routing prior.Routing
}

var knowledges = []knowledge{
	{name: "ours, V = the path", own: true},
	{name: "ours, V = all"},
	{name: "ours, and the links", links: true},
	{name: "ours, and distances", links: true, routing: prior.Distance},
}

// newOurTracer makes a tracer for the paths of a network.
func newOurTracer(n *network, scheme *pint.Scheme, k knowledge) (*ourTracer, error) {
	c := prior.Config{Scheme: scheme, Nodes: n.nodes(), Routing: k.routing}
	if k.links {
		c.Links = n.links()
	}
	m, err := prior.NewModel(c)
	if err != nil {
		return nil, err
	}
	return &ourTracer{config: c, tracer: pathtrace.New(m), own: k.own}, nil
}

func (t *ourTracer) begin(path []uint32) error {
	t.path = path
	if !t.own {
		t.tracer.Release(&t.flow)
		return nil
	}
	t.config.Nodes = path
	m, err := prior.NewModel(t.config)
	if err != nil {
		return err
	}
	t.tracer, t.flow = pathtrace.New(m), pathtrace.Flow{}
	return nil
}

func (t *ourTracer) packet(r *rand.Rand) ([]uint32, bool) {
	id := r.Uint32()
	e := t.tracer.Add(&t.flow, id, len(t.path), t.config.Scheme.Digest(id, t.path))
	if e != pathtrace.Decoded {
		return nil, false
	}
	s, _ := t.tracer.Path(&t.flow, 0, nil)
	return s.Nodes, true
}
