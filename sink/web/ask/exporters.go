package ask

// ExporterTotals are sums since the exporter was first seen. Lost can go down when late reports fill a gap.
// Provisional is no sum: it is the number still missing at the end of the newest window.
type ExporterTotals struct {
	Reports     int64 `json:"reports"`
	Lost        int64 `json:"lost"`
	Duplicated  int64 `json:"duplicated"`
	Reordered   int64 `json:"reordered"`
	Late        int64 `json:"late"`
	Down        int64 `json:"down"`
	Provisional int64 `json:"provisional"`
	Restarts    int64 `json:"restarts"`
	Malformed   int64 `json:"malformed"`
}

// NamelessRow is the hops whose records hold no node id, at one position in the reports of one exporter, in one window.
type NamelessRow struct {
	Exporter   string `json:"exporter"` // empty for packets of the network
	Position   string `json:"position"` // in the report, from 1, or "other" for all that had no place
	Count      uint64 `json:"count"`
	LatencyP50 Value  `json:"latency_p50"`
	LatencyP99 Value  `json:"latency_p99"`
	QueueP50   Value  `json:"queue_p50"`
	QueueP99   Value  `json:"queue_p99"`
}

// ExporterRow is an exporter, with its totals.
type ExporterRow struct {
	Address string `json:"address"`
	Node    string `json:"node"` // empty where its reports name none
	HWID    string `json:"hw_id"`
	ExporterTotals
	RecentReports int64   `json:"recent_reports"` // in the recent windows
	RecentLost    int64   `json:"recent_lost"`
	LastMS        int64   `json:"last_ms"` // end of the last window with a report, 0 if there was none
	Silent        bool    `json:"silent"`  // an open finding reports it silent
	Idle          bool    `json:"idle"`    // no report in the latest windows, which may be usual
	Trend         []Value `json:"trend"`   // reports, the kept windows, oldest first
	Compared
}

func (r *ExporterRow) key() string { return r.Address + " " + r.Node + " " + r.HWID }

// ExporterList holds some of the exporters.
type ExporterList struct {
	Total         int           `json:"total"`
	RecentWindows int           `json:"recent_windows"`
	IdleWindows   int           `json:"idle_windows"`
	Exporters     []ExporterRow `json:"exporters"`
	Nameless      []NamelessRow `json:"hops_without_node_id,omitempty"` // of the newest window that had some, while it is recent
	Range         *Range        `json:"range,omitempty"`                // of an answer out of the history
}
