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
	for i, unit := range units {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(append(b, unit.name...), '=')
		switch {
		case unit.value != nil:
			b = strconv.AppendUint(b, *unit.value(u), 10)
		case u.LatencyCalc:
			b = append(b, '1')
		default:
			b = append(b, '0')
		}
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

// unit is a unit of a stream: its name, and its value in a set of units.
type unit struct {
	name  string
	value func(u *decode.Units) *uint64 // nil for latency_calc, which is 0 or 1
}

var units = [...]unit{
	{"latency_ns", func(u *decode.Units) *uint64 { return &u.LatencyNS }}, {"time_ns", func(u *decode.Units) *uint64 { return &u.TimeNS }},
	{"queue_bytes", func(u *decode.Units) *uint64 { return &u.QueueBytes }}, {"tx_full_scale", func(u *decode.Units) *uint64 { return &u.TxFullScale }},
	{"latency_calc", nil}, {"header_time_ns", func(u *decode.Units) *uint64 { return &u.HeaderTimeNS }},
}

var errUnits = errors.New("is no list of units")

// parseUnits parses the output of appendUnits. Unknown words are of a later version.
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
		i := slices.IndexFunc(units[:], func(u unit) bool { return u.name == name })
		if i < 0 {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return nil, errUnits
		}
		if units[i].value != nil {
			*units[i].value(u) = n
		} else {
			u.LatencyCalc = n != 0
		}
	}
	return u, nil
}
