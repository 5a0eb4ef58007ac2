package schedule

import "github.com/hopscope/hopscope/planner"

// Plan holds the sending times of every probe: the slot of its phase, and again after every interval.
type Plan struct {
	planner.Head
	Algorithm   string   `json:"algorithm"`
	Topology    string   `json:"topology,omitempty"`
	Slot        float64  `json:"slot_ms"`
	Hyperperiod float64  `json:"hyperperiod_ms"` // after which everything repeats
	Probes      []Timed  `json:"probes"`         // those that are sent, in the order of the problem
	NotSent     []string `json:"not_sent,omitempty"`
	NotSeen     []Unseen `json:"not_seen,omitempty"`
	Partial     bool     `json:"partial,omitempty"` // there are links that are not seen in time
	Stats       Stats    `json:"stats"`

	planner.Replacement // probe by probe: one changes that was not sent, is not sent any more, or has another interval or phase
}

// Timed is a probe with its interval and phase.
type Timed struct {
	ID             string  `json:"id"`
	Interval       float64 `json:"interval_ms"`
	Phase          float64 `json:"phase_ms"` // of the first start, below the interval
	BytesPerSecond float64 `json:"bytes_per_second"`
	Class          string  `json:"class"` // of the link that asks for most among those that it sees in time alone, or among all
	Agent          string  `json:"agent,omitempty"`
	Collector      string  `json:"collector,omitempty"`
}

// Unseen is a link that is not seen in time.
type Unseen struct {
	Link   string  `json:"link"`
	Weight float64 `json:"weight"`
	Reason string  `json:"reason"`
}

// Stats describes a schedule. The objective is bytes a second: of all probes, on all links that they pass.
type Stats struct {
	planner.Stats
	Probes         int     `json:"probes"` // of the problem
	Sent           int     `json:"sent"`
	Links          int     `json:"links"`               // that are to be seen
	Seen           int     `json:"seen"`                // links that are seen in time
	Starts         int     `json:"starts"`              // of probes in a hyperperiod
	BusiestLink    float64 `json:"busiest_link_bps"`    // what the link carries that carries most
	BusiestSend    float64 `json:"busiest_send_bps"`    // of an agent
	BusiestReceive float64 `json:"busiest_receive_bps"` // of an agent
	Peak           int     `json:"peak"`                // most probes that an agent starts in one slot
	PeakBound      int     `json:"peak_lower_bound"`    // with these intervals
	TooClose       int     `json:"crowded"`             // starts that are nearer to the one before at their agent than wanted
	ShortestWait   float64 `json:"shortest_wait_ms"`    // between starts at one agent; the hyperperiod if there is one start
	Nodes          int     `json:"nodes"`               // of search trees
}

// Times are intervals and phases by the index of the probes, in slots. An interval of 0 means that a probe is not sent.
type Times struct{ Interval, Phase []int }

// agent is the name of an agent, empty for -1.
func (r *Resolved) agent(a int32) string {
	if a < 0 {
		return ""
	}
	return r.Agents[a].Name
}

// NewPlan builds a plan from times. The caller fills in bounds, optimality and time.
func NewPlan(r *Resolved, algorithm string, t Times) *Plan {
	plan := &Plan{Algorithm: algorithm, Slot: r.Slot, Hyperperiod: r.Millis(r.Hyper), Probes: []Timed{}}
	for k := range r.Probes {
		p := &r.Probes[k]
		if t.Interval[k] == 0 {
			plan.NotSent = append(plan.NotSent, p.ID)
			continue
		}
		out := Timed{ID: p.ID, Class: DefaultClass, Interval: r.Millis(t.Interval[k]), Phase: r.Millis(t.Phase[k]), Agent: r.agent(p.Agent), Collector: r.agent(p.Collector),
			BytesPerSecond: float64(p.Total) / r.Seconds(t.Interval[k])}
		best, alone := 0, false
		for _, l := range p.Links {
			link := &r.Links[l]
			if now := link.Period >= t.Interval[k]; link.Period > 0 && (best == 0 || now && !alone || now == alone && link.Period < best) {
				best, alone, out.Class = link.Period, now, link.Class
			}
		}
		plan.Probes = append(plan.Probes, out)
	}
	seen := run(r, t)
	plan.Stats = seen.stats(r)
	for l := range r.Links {
		link := &r.Links[l]
		if seen.gap[l] > link.Period && link.Period > 0 {
			plan.NotSeen = append(plan.NotSeen, Unseen{Link: link.Name, Weight: link.Weight})
		}
	}
	plan.Partial = len(plan.NotSeen) > 0
	return plan
}
