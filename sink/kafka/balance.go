package kafka

import (
	"slices"

	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/sink"
)

// BalanceOf is the balance of a store in the form of the roster, whose sums are equal at any time.
func BalanceOf(all []sink.Balance, store string) *roster.Balance {
	i := slices.IndexFunc(all, func(b sink.Balance) bool { return b.Sink == store })
	if i < 0 {
		return nil
	}
	b := &all[i]
	c := &roster.Balance{Sink: b.Sink, Stored: b.Stored, InFlight: map[string]uint64{}, Dropped: map[string]uint64{}}
	c.Received = c.Stored
	for stages, from := range map[*map[string]uint64]map[string]int64{&c.InFlight: b.InFlight, &c.Dropped: b.Dropped} {
		for stage, n := range from {
			if n > 0 {
				(*stages)[stage] = uint64(n)
				c.Received += uint64(n)
			}
		}
	}
	return c
}
