package traffic

import (
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// Step is the result of one load on a collector.
type Step struct {
	Asked    float64          `json:"asked_per_second"` // 0: as fast as possible
	Sent     uint64           `json:"sent"`
	Rate     float64          `json:"sent_per_second"`
	Stored   uint64           `json:"counted"` // reports that reached a window
	Dropped  map[string]int64 `json:"dropped"`
	Lost     int64            `json:"lost_by_sequence"` // as the exporter tracking saw it
	Missing  int64            `json:"missing"`          // sent and found nowhere: 0, or the ledger lies
	Verdict  string           `json:"verdict"`
	KeepsUp  bool             `json:"keeps_up"`
	balanced bool
}

// Search tries rate if it is set. Otherwise it looks for the highest rate without loss: it doubles the rate until
// something is lost, then halves the interval to within a tenth.
func Search(rate float64, try func(float64) (Step, error)) (best Step, err error) {
	if rate > 0 {
		s, err := try(rate)
		if s.KeepsUp {
			best = s
		}
		return best, err
	}
	low, high := 0.0, 0.0
	for next := 100_000.0; ; {
		s, err := try(next)
		if err != nil {
			return best, err
		}
		// If a sender cannot reach the rate, the step shows only that the collector keeps up with what was sent.
		reached := !s.senderLimited()
		if s.KeepsUp {
			low = next
			if s.Rate > best.Rate {
				best = s
			}
		}
		if !s.KeepsUp || !reached {
			high = next
		}
		switch {
		case high == 0:
			next *= 2
		case high-low <= high/10 || high < 1000:
			return best, nil
		default:
			next = (low + high) / 2
		}
	}
}

// senderLimited reports whether the sender reached less than it was asked for: the collector may keep up with more.
func (s *Step) senderLimited() bool { return s.Rate < 0.95*s.Asked }

// Judge compares the sent reports with the ledger.
func (s *Step) Judge(b *sink.Balance) {
	dropped := int64(0)
	for _, n := range b.Dropped {
		dropped += n
	}
	s.Missing = int64(s.Sent) - int64(b.Received)
	s.balanced = s.Missing == 0 && b.Unsettled == 0
	s.KeepsUp = s.balanced && dropped == 0 && s.Lost == 0
	switch {
	case !s.balanced:
		s.Verdict = "ledger wrong"
	case s.KeepsUp && s.senderLimited():
		s.Verdict = "keeps up; the sender reached no more"
	case s.KeepsUp:
		s.Verdict = "keeps up"
	default:
		s.Verdict = "loses " + inference.Percent(float64(dropped)/float64(max(s.Sent, 1)), 2)
	}
}

// Balanced reports whether every report that was sent is somewhere in the ledger.
func (s *Step) Balanced() bool { return s.balanced }
