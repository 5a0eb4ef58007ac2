package rate

// trial is one period of sending at one rate.
type trial struct {
	Asked    float64 `json:"asked"` // datagrams a second; 0: as fast as possible
	Sent     float64 `json:"sent"`  // a second, as all the following
	Received float64 `json:"received"`
	Lost     uint64  `json:"lost"` // in all
	CPU      float64 `json:"cpu"`  // of the receiver's process, as a share of one core
}

// limitTries is how often a rate is tried before the sender's failure to reach it is taken as its limit. Other
// processes may have had the CPU.
const limitTries = 3

// retrying tries a rate again when nothing was lost but the sender could not follow.
func retrying(try func(rate float64) (trial, error)) func(rate float64) (trial, error) {
	return func(rate float64) (best trial, err error) {
		for range limitTries {
			t, err := try(rate)
			if err != nil || t.Lost > 0 || !t.limited() {
				return t, err
			}
			if t.Sent > best.Sent {
				best = t
			}
		}
		return best, nil
	}
}

// limited reports whether the sender, and not the receiver, was at its limit.
func (t trial) limited() bool { return t.Asked > 0 && t.Sent < 0.97*t.Asked }

// search finds the highest rate without loss, to within step (0.03: 3 %). It doubles the rate from start until
// something is lost or the sender cannot follow, and halves the interval after that. A rate that passed is tried once
// more in the end, and lowered by step until it passes twice. The result is the trial at that rate. Its Sent is 0 if
// every rate lost.
func search(start, step float64, try func(rate float64) (trial, error)) (best trial, err error) {
	const lowest = 100
	good, bad := 0.0, 0.0
	for rate := start; ; rate *= 2 {
		t, err := try(rate)
		if err != nil {
			return best, err
		}
		if t.Lost > 0 {
			bad = rate
			break
		}
		if good = rate; t.Sent > best.Sent {
			best = t
		}
		if t.limited() && t.Sent < 0.6*rate { // further away will not be nearer
			return best, nil
		}
	}
	for good == 0 { // the first rate was too high already
		if bad /= 2; bad < lowest {
			return trial{}, nil
		}
		t, err := try(bad)
		if err != nil {
			return best, err
		}
		if t.Lost == 0 {
			good, best, bad = bad, t, 2*bad
		}
	}
	for bad > good*(1+step) {
		rate := (good + bad) / 2
		t, err := try(rate)
		if err != nil {
			return best, err
		}
		if t.Lost > 0 {
			bad = rate
			continue
		}
		good, best = rate, t
		if t.limited() {
			break
		}
	}
	for rate := good; rate >= lowest; rate *= 1 - step {
		t, err := try(rate)
		if err != nil {
			return best, err
		}
		if t.Lost == 0 {
			return t, nil
		}
	}
	return trial{}, nil
}
