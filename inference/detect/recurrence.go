package detect

// A fault that comes back is the same fault. A finding that begins soon after the end of the one before it belongs to
// it. That one stays open over the windows between, for three times as long as they ever were, and counts how often it
// was active. So a port that is overloaded in fifteen of every forty windows has one finding, and one whose traffic
// comes in bursts has one, too.

// recurrence is how often what is open of a statistic, or was open last, was active.
type recurrence struct {
	times  uint32 // that it was active; 1 for one that did not come back
	gap    uint32 // longest run of windows between two of them
	since  uint32 // windows since the last one, up to more than matters; 0 if there is none
	lastly Cause
}

// recursWithin is within how many windows what begins belongs with what was before.
const recursWithin = 720

// comesBackAfter is how often something has to be active to be expected again.
const comesBackAfter = 4

func (r *recurrence) begin(c Cause) {
	if r.lastly != c || r.since == 0 || r.since > recursWithin {
		r.times, r.gap = 0, 0
	} else {
		r.gap = max(r.gap, r.since)
	}
	r.times++
	r.lastly, r.since = c, 0
}

func (r *recurrence) end() { r.since = 1 }

// rest counts a window in which nothing is active.
func (r *recurrence) rest() {
	if r.since > 0 && r.since <= recursWithin {
		r.since++
	}
}

// comesBack reports whether what is open was active before, and is likely to be so again.
func (r *recurrence) comesBack() bool { return r.times >= comesBackAfter }

// over reports whether it did not come back for so long that it is over.
func (r *recurrence) over() bool { return r.since > min(3*r.gap+12, recursWithin) }

// Times returns how often the open finding was active, its present time included.
func (h *Hop) Times() int { return int(h.recurrence().times) }

// recurrence is that of the finding that is open.
func (h *Hop) recurrence() *recurrence { return h.recurrenceOf(h.open.Statistic) }

func (h *Hop) recurrenceOf(s statistic) *recurrence { return &h.recurrences[s] }

// Resting reports whether the hop is as usual at present, while a finding that came back before is still open.
func (h *Hop) Resting() bool { return h.resting }

// AsUsual reports whether the condition of an open finding is absent at present. The hop rests, or its last EndAfter
// windows are as usual. A finding ends later than that, so that it does not begin anew with each lull.
func (h *Hop) AsUsual(cfg *Config) bool {
	return h.resting || h.open.Cause <= Fall && h.open.Cause != none && h.age < uint32(cfg.Adopt) && h.back >= uint32(cfg.EndAfter)
}

// learnsOutside reports whether windows beyond a limit are taken into tails. On a young hop they may be habitual, and
// the first windows are taken. On others the first one is, unless the finding is a recurrence.
func (h *Hop) learnsOutside(s statistic) bool {
	if h.windows < learnBursts {
		return !h.active() || h.age < 18
	}
	since := h.recurrences[s].since
	return !h.active() && (since == 0 || since > recursWithin)
}
