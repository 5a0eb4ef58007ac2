package schedule

import (
	"io"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Problem asks for intervals and phases of probes. Every link must be seen in its period, within the limits, and the
// total bytes of all probes on all links should be minimal. Times are in milliseconds, limits in bits per second, where
// 0 is no limit.
type Problem struct {
	Slot          float64  `json:"slot_ms"`              // all times are multiples of it
	Period        float64  `json:"period_ms"`            // of links without a period of their own or of a class
	Longest       float64  `json:"longest_ms,omitempty"` // hyperperiod, and so the longest interval; 0 for that of the periods
	Spacing       float64  `json:"spacing_ms,omitempty"` // wanted between starts at one agent; 0 for a slot
	HeaderBytes   int      `json:"header_bytes"`         // of a probe that has passed no node yet
	HopBytes      int      `json:"bytes_per_hop"`        // that every node adds
	OverheadBytes int      `json:"overhead_bytes"`       // around a packet on a link
	LinkLimit     float64  `json:"link_limit_bps,omitempty"`
	SendLimit     float64  `json:"send_limit_bps,omitempty"`    // of every agent
	ReceiveLimit  float64  `json:"receive_limit_bps,omitempty"` // of every agent
	Classes       []Class  `json:"classes,omitempty"`           // the first that a link fits counts
	Unwatched     []string `json:"unwatched,omitempty"`         // links that need not be seen; names as in a class
	Probes        []Probe  `json:"probes"`
	Links         []Link   `json:"links,omitempty"`  // beside those that probes pass: limits, weights and periods of single links
	Agents        []Agent  `json:"agents,omitempty"` // that have limits of their own
}

// Class is a group of links that are to be seen equally often.
type Class struct {
	Name   string   `json:"name"`
	Period float64  `json:"period_ms"`
	Links  []string `json:"links"` // names, with * for any text and ? for any letter
}

// Probe is one that can be sent.
type Probe struct {
	ID        string   `json:"id"`
	Links     []string `json:"links"` // in walking order
	Agent     string   `json:"agent,omitempty"`
	Collector string   `json:"collector,omitempty"`
}

// Link holds the settings of a link beyond the fact that probes pass it.
type Link struct {
	Name   string   `json:"name"`
	Period float64  `json:"period_ms,omitempty"` // 0 for that of its class
	Weight *float64 `json:"weight,omitempty"`    // of seeing it in time; 1 where left out
	Limit  *float64 `json:"limit_bps,omitempty"` // where left out, that of all links
}

// Agent is a node that sends or receives probes.
type Agent struct {
	Name    string   `json:"name"`
	Send    *float64 `json:"send_bps,omitempty"`    // where left out, the limit of all agents
	Receive *float64 `json:"receive_bps,omitempty"` // where left out, the limit of all agents
}

// DefaultClass is the name of the class of links that fit no other one.
const DefaultClass = "default"

// Defaults is a problem without probes. Links are seen every second, in slots of 10 ms, by probes of 44 bytes (IPv4,
// UDP, and the shim and header of INT-MD 2.1). Every node adds 12 bytes (node id, latency and queue), and Ethernet adds
// 38.
func Defaults() *Problem {
	return &Problem{Slot: 10, Period: 1000, HeaderBytes: 44, HopBytes: 12, OverheadBytes: 38}
}

// Read reads and validates a problem in JSON. Keys left out are as in Defaults.
func Read(r io.Reader) (*Problem, error) {
	return planner.ReadProblem(r, Defaults())
}

// Validate returns what is wrong with the problem itself. A link that cannot be seen in time is no error: such a
// problem has a partial plan.
func (p *Problem) Validate() error {
	_, err := p.Resolve()
	return err
}

// match reports whether name fits a pattern with * for any text and ? for any letter.
func match(pattern, name string) bool {
	p, s := []rune(pattern), []rune(name)
	star, back := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			star, back = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == s[j]):
			i++
			j++
		case star >= 0: // the star takes one more
			back++
			i, j = star+1, back
		default:
			return false
		}
	}
	return !slices.ContainsFunc(p[i:], func(r rune) bool { return r != '*' })
}
