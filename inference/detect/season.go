package detect

import "math"

// A season is a period in which things come back: an hour in minutes, and a day in half hours.
const (
	seasons  = 2
	hourBins = 60
	dayBins  = 48
)

var (
	seasonBin  = [seasons]int64{int64(minute), int64(halfHour)}
	seasonBins = [seasons]int64{hourBins, dayBins}
	seasonMost = [seasons]int{15, 32}      // bins that may have what one is excused for: what comes at all times is no matter of the time
	seasonAge  = [seasons]uint32{120, 720} // age of a finding from which on its values do not become usual
)

// season is the bin of a period that is under way.
type season struct {
	bin   int8 // plus one; 0 before the first
	count uint32
}

// profile holds what was seen in each bin of a period in its last two visits, in twentieths of a logarithm.
type profile struct {
	hour [2][hourBins]int8
	day  [2][dayBins]int8
}

// seasonal is the state of a statistic by the time of hour and day.
type seasonal struct {
	recurring [seasons]float32 // difference that the last two visits of this time of a period share
	sum       [seasons]float32 // of differences from the reference, in the bin under way
	profile   profile
}

// visits returns the bins of the last visit, and those of the one before.
func (p *profile) visits(k int) (last, before []int8) {
	if k == 0 {
		return p.hour[0][:], p.hour[1][:]
	}
	return p.day[0][:], p.day[1][:]
}

const twentieths = 20

// turn closes the bin of a season when the next one begins.
func (h *Hop) turn(at *Moment) {
	for k := range h.seasons {
		s := &h.seasons[k]
		bin := at.bin[k]
		if s.bin == bin+1 {
			continue
		}
		keep := s.count > 0 && (!h.active() || h.age <= seasonAge[k])
		for i := range h.stats {
			st := h.stats[i].seasonal
			if st == nil {
				continue
			}
			last, before := st.profile.visits(k)
			if keep {
				before[s.bin-1] = last[s.bin-1]
				mean := math.RoundToEven(float64(st.sum[k]) / float64(s.count) * twentieths)
				last[s.bin-1] = int8(max(-127, min(127, mean)))
			}
			st.sum[k] = 0
			st.recurring[k] = near(last, before, int(bin))
			if e := st.recurring[k]; e != 0 && shared(last, before, e) > seasonMost[k] {
				st.recurring[k] = 0
			}
		}
		*s = season{bin: bin + 1}
	}
}

// excuse subtracts from a value the part that the last two visits of its time of hour or day had as well. A recurring
// deviation is usual.
func (x *seasonal) excuse(s *series, y float32, judged bool) float32 {
	ref := s.mean[reference]
	for k := range x.sum {
		x.sum[k] += y - ref
	}
	if !judged {
		return y
	}
	for _, e := range x.recurring {
		if e == 0 {
			continue
		}
		sign := upward
		if e < 0 {
			sign = downward
		}
		if abs(e) <= max(.7, 5*sqrt(s.scale[threeUsual][sign].square)) {
			continue
		}
		d := y - ref
		if d*e <= 0 {
			continue
		}
		// No farther than to the usual level: where that has gone the same way as the value, there is nothing to excuse.
		less := y - float32(math.Copysign(float64(min(abs(d), abs(1.25*e))), float64(e)))
		if usually := s.mean[usual]; e > 0 {
			y = max(less, min(y, usually))
		} else {
			y = min(less, max(y, usually))
		}
	}
	return y
}

// shared counts the bins in which both of the last visits had half of a difference.
func shared(last, before []int8, e float32) (n int) {
	half := e * twentieths / 2
	for b := range last {
		if x, y := float32(last[b]), float32(before[b]); e > 0 && min(x, y) >= half || e < 0 && max(x, y) <= half {
			n++
		}
	}
	return n
}

// near returns the largest difference that both of the last visits had, within two bins around the present one.
func near(last, before []int8, bin int) float32 {
	e := 0
	for o := -2; o <= 2; o++ {
		b := bin + o
		if b < 0 {
			b += len(last)
		} else if b >= len(last) {
			b -= len(last)
		}
		x, y := int(last[b]), int(before[b])
		if x*y <= 0 {
			continue
		}
		if max(y, -y) < max(x, -x) {
			x = y
		}
		if max(x, -x) > max(e, -e) {
			e = x
		}
	}
	return float32(e) / twentieths
}
