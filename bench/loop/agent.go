package loop

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// AgentConfig holds the parameters of the measurement.
type AgentConfig struct {
	Rounds int           // of every loop; medians are printed
	Send   time.Duration // of a round of sending
	wake   time.Duration // of a round of waking
	Batch  int           // frames a system call
	Digest bool          // the agent's probes have a digest; the frames of the bare loops are as long

	keys string // file of the keys of digests
}

// AgentResult holds the measured values.
type AgentResult struct {
	Batch         int     `json:"batch"`
	FrameBytes    int     `json:"frame_bytes"`
	BareRate      float64 `json:"bare_sends_per_second"`
	AgentRate     float64 `json:"agent_sends_per_second"`
	SendRatio     float64 `json:"send_ratio"` // median over pairs of rounds
	BareLate      Late    `json:"bare_late"`
	AgentLate     Late    `json:"agent_late"`
	LateRatio     float64 `json:"late_p99_ratio"` // median over pairs of rounds
	WakesAsked    int     `json:"wakes_asked"`    // by one round
	RatioOfRounds []pair  `json:"rounds"`
}

// Late is the delay of a frame behind its time at the other end, in microseconds: medians over rounds.
type Late struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	Max float64 `json:"max_us"`
}

// pair is a round of the bare loop and of the agent, one after the other.
type pair struct {
	BareRate  float64 `json:"bare_sends_per_second"`
	AgentRate float64 `json:"agent_sends_per_second"`
	BareP99   float64 `json:"bare_late_p99_us"`
	AgentP99  float64 `json:"agent_late_p99_us"`
}

// DefaultAgentConfig is a measurement of about half a minute.
func DefaultAgentConfig() AgentConfig {
	return AgentConfig{Rounds: 5, Send: time.Second, wake: 2 * time.Second, Batch: 64}
}

// Print writes the result as text.
func (r *AgentResult) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "sending, %d bytes, %d a call\tbare sendmmsg %.0f/s\tagent %.0f/s\tratio %.2f\n", r.FrameBytes, r.Batch, r.BareRate, r.AgentRate, r.SendRatio)
	fmt.Fprintf(t, "late, 1000 a second, p50\tclock_nanosleep %.1f µs\tagent %.1f µs\t\n", r.BareLate.P50, r.AgentLate.P50)
	fmt.Fprintf(t, "late, p99\tclock_nanosleep %.1f µs\tagent %.1f µs\tratio %.2f\n", r.BareLate.P99, r.AgentLate.P99, r.LateRatio)
	fmt.Fprintf(t, "late, most\tclock_nanosleep %.1f µs\tagent %.1f µs\t\n", r.BareLate.Max, r.AgentLate.Max)
	return t.Flush()
}

// lateness sums up arrivals, in ns since 1970, of frames that were due at multiples of a period.
func lateness(arrivals []int64, period int64) (l Late) {
	late := make([]float64, len(arrivals))
	for k, at := range arrivals {
		late[k] = float64(at%period) / 1000
	}
	if len(late) == 0 {
		return l
	}
	slices.Sort(late)
	return Late{late[len(late)/2], late[len(late)*99/100], late[len(late)-1]}
}
