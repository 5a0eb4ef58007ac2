package roster

import (
	"github.com/hopscope/hopscope/inference/fleet"
)

// States of members.
const (
	Alive   = "alive"
	Missing = "missing" // windows are without it, or it has not written a record for a while
	Dead    = "dead"    // it is not waited for any more
	Left    = "left"    // it ended in order
)

// Row is a member as pages and commands show it, in JSON. Fields that its role does not have are zero. Texts come from
// the network.
type Row struct {
	Role             string   `json:"role"` // "collector" or "consumer"
	Name             string   `json:"name"`
	State            string   `json:"state"`
	Version          string   `json:"version"`
	Page             string   `json:"page,omitempty"` // its own
	Problems         []string `json:"problems,omitempty"`
	StartMS          int64    `json:"start_ms"`
	UpdatedMS        int64    `json:"updated_ms"` // when it reported so
	WindowMS         int64    `json:"window_ms"`  // end of the last window that it sent or stored
	ReportsPerSecond float64  `json:"reports_per_second"`

	Received   uint64 `json:"received"` // reports; of a consumer: merged, each once
	Stored     uint64 `json:"stored"`   // of a collector: confirmed by Kafka
	InFlight   uint64 `json:"in_flight"`
	Dropped    uint64 `json:"dropped"`
	SpoolBytes uint64 `json:"spool_bytes"`

	Partitions int    `json:"partitions"`
	Lag        uint64 `json:"lag"` // records
	Late       uint64 `json:"late"`
	Duplicates uint64 `json:"duplicates"`
	Conflicts  uint64 `json:"conflicts"`
	Rebalances uint64 `json:"rebalances"`
}

// Row is the row of m in a state.
func (m *Member) Row(state string) Row {
	row := Row{
		Role: m.Role, Name: m.Name, State: state, Version: m.Version, Problems: m.Faults, StartMS: m.Start / 1e6, UpdatedMS: m.Updated / 1e6,
		WindowMS: m.Window / 1e6, ReportsPerSecond: m.Rate, SpoolBytes: m.Spool, Lag: m.Lag, Rebalances: m.Rebalances,
	}
	if len(m.Pages) > 0 {
		row.Page = m.Pages[0]
	}
	balance := m.All
	if balance == nil {
		balance = m.Run
	}
	if balance != nil {
		row.Received, row.Stored, row.InFlight, row.Dropped = balance.Received, balance.Stored, sumOf(balance.InFlight), sumOf(balance.Dropped)
	}
	for i := range m.Parts {
		a := &m.Parts[i]
		if !a.Held {
			continue
		}
		row.Partitions++
		row.Lag += a.Lag
		row.Late += a.Late
		row.Duplicates += a.Duplicates
		row.Conflicts += a.Conflicts
		row.Dropped += sumOf(a.Dropped)
		if a.Topic == fleet.Windows {
			row.Received += a.Taken
		}
	}
	return row
}

func sumOf(stages map[string]uint64) (n uint64) {
	for _, v := range stages {
		n += v
	}
	return n
}
