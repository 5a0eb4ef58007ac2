package arrow

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/decode"
)

// appendUnits writes units as words of the form name=number; a name of a drop reason is quoted:
//
//	latency_ns=1 time_ns=1 queue_bytes=80 tx_full_scale=10000 latency_calc=1 header_time_ns=1 drop.5="no route"
func appendUnits(b []byte, u *decode.Units) []byte {
	for i, v := range unitValues(u) {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(append(b, unitNames[i]...), '=')
		b = strconv.AppendUint(b, v, 10)
	}
	if u.DropReasons != nil {
		for _, r := range slices.Sorted(maps.Keys(*u.DropReasons)) {
			b = append(b, " drop."...)
			b = strconv.AppendUint(b, uint64(r), 10)
			b = append(b, '=')
			b = strconv.AppendQuoteToASCII(b, (*u.DropReasons)[r])
		}
	}
	return b
}

var unitNames = [...]string{"latency_ns", "time_ns", "queue_bytes", "tx_full_scale", "latency_calc", "header_time_ns"}

func unitValues(u *decode.Units) [len(unitNames)]uint64 {
	var calc uint64
	if u.LatencyCalc {
		calc = 1
	}
	return [...]uint64{u.LatencyNS, u.TimeNS, u.QueueBytes, u.TxFullScale, calc, u.HeaderTimeNS}
}

var errUnits = errors.New("is no list of units")

// parseUnits reads what appendUnits wrote. Words that it does not know are those of a later version.
func parseUnits(s string) (*decode.Units, error) {
	u := &decode.Units{}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, errUnits
		}
		value, err := strconv.QuotedPrefix(rest)
		if err != nil {
			value, _, _ = strings.Cut(rest, " ")
		}
		s = rest[len(value):]
		if reason, ok := strings.CutPrefix(name, "drop."); ok {
			n, err := strconv.ParseUint(reason, 10, 8)
			if err != nil {
				return nil, errUnits
			}
			meaning, err := strconv.Unquote(value)
			if err != nil {
				return nil, errUnits
			}
			if u.DropReasons == nil {
				u.DropReasons = &decode.DropReasons{}
			}
			(*u.DropReasons)[uint8(n)] = meaning
			continue
		}
		i := slices.Index(unitNames[:], name)
		if i < 0 {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return nil, errUnits
		}
		switch i {
		case 0:
			u.LatencyNS = n
		case 1:
			u.TimeNS = n
		case 2:
			u.QueueBytes = n
		case 3:
			u.TxFullScale = n
		case 4:
			u.LatencyCalc = n != 0
		case 5:
			u.HeaderTimeNS = n
		}
	}
	return u, nil
}
