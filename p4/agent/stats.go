package agent

import (
	"sync/atomic"

	"github.com/hopscope/hopscope/p4/probe"
)

// Stats counts what an agent did. All may be read at any time.
type Stats struct {
	Sent, SentBytes uint64 // probes that the kernel took
	Skipped         uint64 // starts that were over when their turn came
	SendErrors      uint64 // probes that the kernel did not take
	ClockSteps      uint64 // times that the clock was set, so that the schedule began anew

	Frames        uint64 // that came, of those that the filter let through
	Received      uint64 // probes among them
	Malformed     [probe.NumReasons]uint64
	KernelDropped uint64
	Lost          int64  // rounds of followed probes that did not come; one that comes late is taken off again
	Twice         uint64 // probes that came again
	OldEpoch      uint64 // probes of an earlier plan
	Unfollowed    uint64 // probes for whose rounds there was no room
	Unplanned     uint64 // probes that the plan does not have
	Odd           uint64 // probes whose round or epoch cannot be by the plan, and that changed nothing
	Unchecked     uint64 // probes without checksum and digest
	SharedID      uint64 // probes with a switch that has the agent's own node id
	Limited       uint64 // probes with a switch that added nothing: hop limit or MTU

	Datagrams, ReportErrors uint64 // of reports

	StatusClosed, StatusBusy uint64 // connections to the status that were closed for others; requests that were sent back

	Accepted, Refused uint64 // plans
	Late, Transit     probe.TimesNow
}

// reasons calls each with the reasons and their counts.
func (s *Stats) reasons(each func(reason string, count uint64)) {
	for r := probe.Foreign; r < probe.NumReasons; r++ {
		each(r.String(), s.Malformed[r])
	}
}

// counters are what Stats reads.
type counters struct {
	sent, sentBytes, skipped, sendErrors, clockSteps atomic.Uint64
	frames, received, kernelDropped, twice, oldEpoch atomic.Uint64
	unfollowed, limited, datagrams, reportErrors     atomic.Uint64
	unplanned, odd, unchecked, sharedID, stray       atomic.Uint64
	accepted, refused, statusClosed, statusBusy      atomic.Uint64
	malformed                                        [probe.NumReasons]atomic.Uint64
	late, transit                                    probe.Times
}

func (c *counters) now() Stats {
	s := Stats{
		Sent: c.sent.Load(), SentBytes: c.sentBytes.Load(), Skipped: c.skipped.Load(), SendErrors: c.sendErrors.Load(), ClockSteps: c.clockSteps.Load(),
		Frames: c.frames.Load(), Received: c.received.Load(), KernelDropped: c.kernelDropped.Load(), Twice: c.twice.Load(),
		OldEpoch: c.oldEpoch.Load(), Unfollowed: c.unfollowed.Load(), Limited: c.limited.Load(), Datagrams: c.datagrams.Load(),
		ReportErrors: c.reportErrors.Load(), Accepted: c.accepted.Load(), Refused: c.refused.Load(), Late: c.late.Now(), Transit: c.transit.Now(),
		Unplanned: c.unplanned.Load(), Odd: c.odd.Load(), Unchecked: c.unchecked.Load(), SharedID: c.sharedID.Load(),
		StatusClosed: c.statusClosed.Load(), StatusBusy: c.statusBusy.Load(),
	}
	for k := range s.Malformed {
		s.Malformed[k] = c.malformed[k].Load()
	}
	return s
}
