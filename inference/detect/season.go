package detect

import "math"

// A season is a period in which things come back: an hour in minutes, and a day in half hours.
const (
	seasons = 2
	maxBins = 60
)

var (
	seasonBin  = [seasons]int64{int64(minute), int64(halfHour)}
	seasonBins = [seasons]int64{60, 48}
	seasonAge  = [seasons]uint32{120, 720} // age of a finding from which on its values do not become what is usual
)

// season is the bin of a period that is under way.
type season struct {
	bin   int8 // plus one; 0 before the first
	count int32
	sum   [statistics]float32 // of differences from the reference
}

// profile holds what was seen in each bin of a period in its last two visits, in twentieths of a logarithm.
type profile [2][maxBins]int8

const twentieths = 20

// turn closes the bin of a season when the next one begins.
func (h *Hop) turn(cfg *Config, end int64) {
	begin := end - int64(cfg.Window)
	for k := range h.seasons {
		s := &h.seasons[k]
		bins := seasonBins[k]
		bin := int8((begin/seasonBin[k]%bins + bins) % bins)
		if s.bin == bin+1 {
			continue
		}
		if s.count > 0 && (h.open.Cause == None || h.age <= seasonAge[k]) {
			for i := range h.stats {
				p := &h.stats[i].season[k]
				p[1][s.bin-1] = p[0][s.bin-1]
				p[0][s.bin-1] = int8(max(-127, min(127, math.RoundToEven(float64(s.sum[i])/float64(s.count)*twentieths))))
			}
		}
		*s = season{bin: bin + 1}
	}
}

// excuse takes off a value what the last two visits of its time of hour or day had as well: what comes back is no news.
func (h *Hop) excuse(s *series, which Statistic, y float64) float64 {
	ref := float64(s.mean[reference])
	for k := range h.seasons {
		h.seasons[k].sum[which] += float32(y - ref)
		if which == P50 {
			h.seasons[k].count++
		}
	}
	if h.windows < warmup {
		return y
	}
	for k := range h.seasons {
		e := s.season[k].near(int64(h.seasons[k].bin-1), seasonBins[k])
		sign := 0
		if e <= 0 {
			sign = 1
		}
		if math.Abs(e) <= max(.7, 5*math.Sqrt(float64(s.square[sign][2]))) {
			continue
		}
		if d := y - ref; d*e > 0 {
			y -= math.Copysign(min(math.Abs(d), math.Abs(1.25*e)), e)
		}
	}
	return y
}

// near gives the largest difference that both of the last visits had, within two bins around the present one.
func (p *profile) near(bin, bins int64) (e float64) {
	for o := bins - 2; o <= bins+2; o++ {
		b := (bin + o) % bins
		x, y := int(p[0][b]), int(p[1][b])
		if x*y <= 0 {
			continue
		}
		least := x
		if max(y, -y) < max(x, -x) {
			least = y
		}
		if v := float64(least) / twentieths; math.Abs(v) > math.Abs(e) {
			e = v
		}
	}
	return e
}
