package ask

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// Interfaces are the interfaces of a collector whose counters come, those first that lose the greatest share of their packets.
type Interfaces struct {
	Total         int
	RecentWindows int `json:"recent_windows"`
	Interfaces    []struct {
		Node        inference.HopName
		Interface   string
		Speed       float64  `json:"speed_bps"` // 0 where unknown
		Utilization *float64 `json:"tx_utilization"`
		Received    *float64 `json:"rx_utilization"`
		InPackets   *float64 `json:"in_packets"`
		OutPackets  *float64 `json:"out_packets"`
		InErrors    *float64 `json:"in_errors"`
		OutErrors   *float64 `json:"out_errors"`
		InDiscards  *float64 `json:"in_discards"`
		OutDiscards *float64 `json:"out_discards"`
		InOctets    *float64 `json:"in_octets"`
		OutOctets   *float64 `json:"out_octets"`
		QueueP99    *float64 `json:"queue_p99_bytes"`
		LastMS      int64    `json:"last_ms"`
	}
}

// Write writes the interfaces as text, with their names.
func (a *Interfaces) Write(w io.Writer, called *names.Names) error {
	if len(a.Interfaces) == 0 {
		_, err := fmt.Fprintln(w, "No counters of interfaces came yet.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "node\tinterface\tspeed\tuse in\tout\toctets in\tout\tpackets in\tout\terrors in\tout\tdiscards in\tout\tqueue p99\tlast seen")
	for i := range a.Interfaces {
		x := &a.Interfaces[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", called.HopNode(x.Node.HopKey), egressCell(called, x.Node, x.Interface), speedCell(x.Speed),
			metricCell("tx_utilization_max", x.Received), metricCell("tx_utilization_max", x.Utilization), bytesCell(x.InOctets), bytesCell(x.OutOctets), plainCell(x.InPackets), plainCell(x.OutPackets), plainCell(x.InErrors), plainCell(x.OutErrors),
			plainCell(x.InDiscards), plainCell(x.OutDiscards), bytesCell(x.QueueP99), time.UnixMilli(x.LastMS).Format("15:04:05"))
	}
	if more := a.Total - len(a.Interfaces); more > 0 {
		fmt.Fprintf(t, "and %d more\n", more)
	}
	return t.Flush()
}

// speedCell writes bits a second, "-" if they are not known.
func speedCell(bps float64) string {
	unit := "bit/s"
	for _, next := range [...]string{"kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"} {
		if bps < 1000 {
			break
		}
		bps, unit = bps/1000, next
	}
	if bps <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.4g %s", bps, unit)
}

// InterfaceRow is one interface. Counts are of the recent windows, or of the last one in which counters came, if that is further back.
type InterfaceRow struct {
	Node        string  `json:"node"`
	Interface   string  `json:"interface"`
	Speed       float64 `json:"speed_bps"`      // 0 where unknown
	Utilization Value   `json:"tx_utilization"` // of what it sends, the worst of the recent windows
	Received    Value   `json:"rx_utilization"` // the same, of what it receives
	InPackets   *uint64 `json:"in_packets"`
	OutPackets  *uint64 `json:"out_packets"`
	InErrors    *uint64 `json:"in_errors"`
	OutErrors   *uint64 `json:"out_errors"`
	InDiscards  *uint64 `json:"in_discards"`
	OutDiscards *uint64 `json:"out_discards"`
	InOctets    *uint64 `json:"in_octets"`
	OutOctets   *uint64 `json:"out_octets"`
	QueueP99    Value   `json:"queue_p99_bytes"` // the worst of the recent windows
	LastMS      int64   `json:"last_ms"`
	Compared
}

func (r *InterfaceRow) key() string { return r.Node + ":" + r.Interface }
