package web

import (
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
)

// NewMember is a row of the roster of a fleet.
func NewMember(m *roster.Member, state string) member {
	row := member{
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
