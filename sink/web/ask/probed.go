package ask

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// Probed are the paths of probes between agents, those first that lose or damage the greatest share of their probes.
type Probed struct {
	Total         int
	RecentWindows int `json:"recent_windows"`
	Paths         []struct {
		From, To    string
		Path, Epoch uint32
		Sent        uint64
		Received    uint64
		Lost        int64
		Forward     int64 `json:"lost_forward"`
		Back        int64 `json:"lost_back"`
		Late        uint64
		Twice       uint64 `json:"duplicated"`
		Corrupt     uint64
		Reordered   uint64
		DelayP50    *float64 `json:"delay_p50_ns"`
		DelayP99    *float64 `json:"delay_p99_ns"`
		Judgement   string
		LastMS      int64 `json:"last_ms"`
	}
}

// Write writes the paths as text.
func (a *Probed) Write(w io.Writer) error {
	if len(a.Paths) == 0 {
		_, err := fmt.Fprintln(w, "No agent reported probes yet.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "from\tto\tpath\tepoch\tsent\treceived\tlost\tout\thome\tlate\ttwice\treordered\tcorrupt\tdelay p50\tp99\tdelay is\tlast seen")
	for i := range a.Paths {
		x := &a.Paths[i]
		judged := x.Judgement
		if judged == "" {
			judged = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", x.From, x.To, decode.PathText(x.Path), x.Epoch, x.Sent, x.Received, x.Lost, x.Forward, x.Back, x.Late,
			x.Twice, x.Reordered, x.Corrupt, metricCell("latency_p50", x.DelayP50), metricCell("latency_p99", x.DelayP99), judged, time.UnixMilli(x.LastMS).Format("15:04:05"))
	}
	if more := a.Total - len(a.Paths); more > 0 {
		fmt.Fprintf(t, "and %d more\n", more)
	}
	return t.Flush()
}

// ProbedRow is one path of probes. Counts are of the recent windows, or of the last one with the path, if that is further back.
type ProbedRow struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Path      uint32 `json:"path"`
	Epoch     uint32 `json:"epoch"`
	Sent      uint64 `json:"sent"`
	Received  uint64 `json:"received"`
	Lost      int64  `json:"lost"`
	Forward   int64  `json:"lost_forward"`
	Back      int64  `json:"lost_back"`
	Late      uint64 `json:"late"`
	Twice     uint64 `json:"duplicated"`
	Corrupt   uint64 `json:"corrupt"`
	Reordered uint64 `json:"reordered"`
	DelayP50  Value  `json:"delay_p50_ns"` // the worst of the recent windows
	DelayP99  Value  `json:"delay_p99_ns"`
	Judgement string `json:"judgement,omitempty"` // of the delay: "judged", or why it was not: "too-young", "too-few"
	LastMS    int64  `json:"last_ms"`
	Compared
}

func (r *ProbedRow) key() string { return fmt.Sprint(r.From, " ", r.To, " ", r.Path, " ", r.Epoch) }
