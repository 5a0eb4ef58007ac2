package digest

import "github.com/hopscope/hopscope/inference/pathtrace"

// Stats counts what became of the digests of a shard.
type Stats struct {
	Digests     uint64 `json:"digests"`              // that came
	Unread      uint64 `json:"unread"`               // of another plan, or of a program whose network is not known
	Elsewhere   uint64 `json:"other_site,omitempty"` // of exporters in another site than the network that is known
	Rejected    uint64 `json:"rejected"`             // that cannot be: wider than their scheme, of too many hops
	Duplicate   uint64 `json:"duplicate"`            // of packets that came before
	Unexplained uint64 `json:"strange"`              // that no path explains
	Decoded     uint64 `json:"paths_decoded"`        // flows whose path became known
	Undecided   int    `json:"flows_undecided"`      // flows that wait for their path
	Watched     int    `json:"flows_watched"`        // flows whose digests contradict the map, or seem to
	Sprayed     int    `json:"flows_sprayed"`        // flows that use several paths at once, and whose paths are known
	Fits        uint64 `json:"mixture_fits"`         // how often such paths were looked for
	Bytes       int64  `json:"bytes"`                // memory of paths and sketches
	NoMemory    uint64 `json:"no_memory,omitempty"`  // of the rejected, those of flows for whose paths no memory was left
	Unkept      uint64 `json:"unkept,omitempty"`     // of flows that use several paths, that were not kept, or gave way early, because their memory was full
	FewIDs      FewIDs `json:"few_ids,omitzero"`     // flows whose packets have few ids
}

// Add adds the statistics of another shard.
func (d *Stats) Add(o Stats) {
	d.Digests += o.Digests
	d.Unread += o.Unread
	d.Elsewhere += o.Elsewhere
	d.Rejected += o.Rejected
	d.Duplicate += o.Duplicate
	d.Unexplained += o.Unexplained
	d.Decoded += o.Decoded
	d.Undecided += o.Undecided
	d.Watched += o.Watched
	d.Sprayed += o.Sprayed
	d.Fits += o.Fits
	d.Bytes += o.Bytes
	d.NoMemory += o.NoMemory
	d.Unkept += o.Unkept
	d.FewIDs.add(&o.FewIDs)
}

// Stats returns what became of digests.
func (d *Reader) Stats() Stats {
	if d == nil {
		return Stats{}
	}
	st := d.stats
	st.FewIDs = d.few
	for _, t := range d.tracers {
		ts := t.Stats()
		st.Undecided += ts.Undecided
		st.Bytes += int64(ts.Bytes)
		st.NoMemory += ts.Events[pathtrace.RejectedMemory]
	}
	st.Watched = d.survey.Flows()
	st.Bytes += int64(d.survey.SizeBytes())
	st.Bytes += d.sprays.bytes
	st.Unkept = d.sprays.unkept
	for i := range d.sprays.flows {
		if d.sprays.flows[i].result != nil {
			st.Sprayed++
		}
	}
	for _, p := range d.plans {
		for _, pool := range p.pools {
			if pool != nil {
				st.Bytes += int64(pool.SizeBytes())
			}
		}
	}
	return st
}
