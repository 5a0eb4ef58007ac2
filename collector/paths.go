package collector

import (
	"sync"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/shard"
)

// Inferred tells what digests say of the paths of flows, with the n of them that need a look most. It asks the owners of all flows.
func (c *Collector) Inferred(n int) (out shard.Inferred) {
	var mu sync.Mutex
	c.pipeline.visit(func(q *shardQueue) {
		part := q.state.Inferred(n)
		mu.Lock()
		defer mu.Unlock()
		out.Add(&part, n)
	})
	return out
}

// InferredOf tells what digests say of the paths of some flows, in no order and without those that have none.
func (c *Collector) InferredOf(keys []decode.FlowKey) (out []shard.InferredFlow) {
	var mu sync.Mutex
	c.pipeline.visit(func(q *shardQueue) {
		part := q.state.InferredOf(keys)
		mu.Lock()
		defer mu.Unlock()
		out = append(out, part...)
	})
	return out
}
