package ask

import "github.com/hopscope/hopscope/inference"

// ProbeSpan is a window as the control of probes asks for it. Whole numbers: latencies are nanoseconds, queues bytes.
type ProbeSpan struct {
	StartMS int64      `json:"start_ms"`
	EndMS   int64      `json:"end_ms"`
	Missing []string   `json:"missing,omitempty"` // collectors of a fleet that the window is without
	LeftOut int        `json:"left_out"`          // probes that found no place here
	Bound   uint64     `json:"flow_bound"`        // most reports of a flow that is not in the window
	Probes  []ProbeRow `json:"probes"`
	Links   []LinkRow  `json:"links,omitempty"`
	NoLinks int        `json:"links_left_out,omitempty"` // directions of links that found no place here
}

// LinkRow is how long packets were on a direction of a link, by the clocks at its two ends.
type LinkRow struct {
	Node     uint32 `json:"node"`
	EgressIf uint32 `json:"egress_if"`
	Peer     uint32 `json:"peer"`
	PeerIf   uint32 `json:"peer_if"`
	Period   uint64 `json:"period_ns,omitempty"` // after which the clocks begin again; absent for 2⁶⁴
	Packets  uint64 `json:"packets"`
	Least    int64  `json:"least_ns"`
}

// ProbeRow is the result of a probe in a window, with the hops in the order in which it passed them.
type ProbeRow struct {
	Flow    string     `json:"flow"`
	Reports uint64     `json:"reports"`
	Hops    []ProbeHop `json:"hops"`
}

// ProbeHop is what a probe reported of a hop.
type ProbeHop struct {
	Node     uint32         `json:"node"`
	EgressIf uint32         `json:"egress_if"`
	Latency  *ProbeQuantile `json:"latency_ns,omitempty"` // absent where the hop reported none
	Queue    *ProbeQuantile `json:"queue_bytes,omitempty"`
}

// ProbeQuantile holds quantiles of whole numbers.
type ProbeQuantile struct {
	Count uint64 `json:"count"`
	P50   uint64 `json:"p50"`
	P90   uint64 `json:"p90"`
	P99   uint64 `json:"p99"`
}

// ProbeSpans holds windows, oldest first.
type ProbeSpans struct {
	Windows []ProbeSpan `json:"windows"`
}

func newProbeQuantile(s *inference.Summary) *ProbeQuantile {
	if s.Count == 0 {
		return nil
	}
	return &ProbeQuantile{s.Count, s.P50, s.P90, s.P99}
}

// NewProbeRow returns a probe in the form of the API.
func NewProbeRow(f *inference.FlowStats) ProbeRow {
	r := ProbeRow{Flow: f.Key.String(), Reports: f.Packets}
	for i := range f.Hops {
		h := &f.Hops[i]
		r.Hops = append(r.Hops, ProbeHop{h.Node, h.EgressIf, newProbeQuantile(&h.Latency), newProbeQuantile(&h.Queue)})
	}
	return r
}
