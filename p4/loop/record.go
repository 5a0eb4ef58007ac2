package loop

import (
	"encoding/json"
	"strconv"

	"github.com/hopscope/hopscope/planner/control"
)

// appendRecord appends the JSON of a record, byte for byte as encoding/json has it. A change of plan has two records for every device, and most
// of their texts need no escapes.
func appendRecord(b []byte, r *control.Record) []byte {
	b = strconv.AppendInt(append(b, `{"time_ns":`...), r.Time, 10)
	b = appendText(append(b, `,"what":`...), string(r.What))
	if r.Device != "" {
		b = appendText(append(b, `,"device":`...), r.Device)
	}
	if r.Request != 0 {
		b = strconv.AppendUint(append(b, `,"request":`...), uint64(r.Request), 10)
	}
	if r.Epoch != 0 {
		b = strconv.AppendUint(append(b, `,"epoch":`...), uint64(r.Epoch), 10)
	}
	if r.Count != 0 {
		b = strconv.AppendInt(append(b, `,"count":`...), int64(r.Count), 10)
	}
	for _, x := range [...]struct {
		name string
		list []string
	}{{`,"on":[`, r.On}, {`,"off":[`, r.Off}, {`,"left":[`, r.Left}} {
		if len(x.list) == 0 {
			continue
		}
		b = append(b, x.name...)
		for k, s := range x.list {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendText(b, s)
		}
		b = append(b, ']')
	}
	if r.Why != "" {
		b = appendText(append(b, `,"why":`...), r.Why)
	}
	if len(r.Entries) > 0 {
		if text, err := json.Marshal(r.Entries); err == nil { // as it is for every entry
			b = append(append(b, `,"entries":`...), text...)
		}
	}
	if r.Found != nil {
		b = strconv.AppendInt(append(b, `,"found":`...), int64(*r.Found), 10)
	}
	if r.Unchecked {
		b = append(b, `,"unchecked":true`...)
	}
	return append(b, '}')
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte {
	for k := range len(s) {
		if c := s[k]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			if text, err := json.Marshal(s); err == nil { // as it is for every string
				return append(b, text...)
			}
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
