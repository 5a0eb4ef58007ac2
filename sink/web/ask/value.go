package ask

import (
	"math"
	"strconv"
)

// Value is a number that may be absent.
type Value float32

// Absent is the value of a figure that was not reported. It is not zero.
var Absent = Value(math.NaN())

// MarshalJSON returns null for an absent value.
func (v Value) MarshalJSON() ([]byte, error) { return v.Append(nil), nil }

// UnmarshalJSON reads null as an absent value.
func (v *Value) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Absent
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 32)
	if err != nil {
		return err
	}
	*v = Value(f)
	return nil
}

// Append writes v with at most four digits behind the point; large values are whole numbers.
func (v Value) Append(b []byte) []byte {
	f := float64(v)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	if f >= 16 && f < 1<<63 {
		return strconv.AppendInt(b, int64(math.Round(f)), 10)
	}
	return strconv.AppendFloat(b, math.Round(f*1e4)/1e4, 'f', -1, 64)
}
