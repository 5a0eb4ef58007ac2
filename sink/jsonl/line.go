package jsonl

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
)

// AppendPoint appends p and a line break to dst. Fields whose value is not finite are left out; dropped counts them. A
// point without a field left appends nothing.
func AppendPoint(dst []byte, p *sink.Point) (line []byte, dropped int) {
	start := len(dst)
	dst = append(dst, `{"measurement":`...)
	dst = appendString(dst, p.Measurement)
	dst = append(dst, `,"time":"`...)
	dst = appendTime(dst, p.Time)
	dst = append(dst, `","tags":{`...)
	for i := range p.Tags {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, p.Tags[i].Key)
		dst = append(dst, ':')
		dst = appendString(dst, p.Tags[i].Value)
	}
	dst = append(dst, `},"fields":{`...)
	first := len(dst)
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Kind == sink.Float && (math.IsNaN(f.Float) || math.IsInf(f.Float, 0)) {
			dropped++
			continue
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = appendString(dst, f.Key)
		dst = append(dst, ':')
		switch f.Kind {
		case sink.Int:
			dst = strconv.AppendInt(dst, f.Int, 10)
		case sink.Float:
			dst = appendFloat(dst, f.Float)
		default:
			dst = appendString(dst, f.Str)
		}
	}
	if len(dst) == first {
		return dst[:start], dropped
	}
	return append(dst, "}}\n"...), dropped
}

// appendTime appends ns since 1970 as UTC with nine digits behind the second (RFC 3339).
func appendTime(dst []byte, ns int64) []byte {
	t := time.Unix(0, ns).UTC()
	dst = t.AppendFormat(dst, time.RFC3339) // the layout that is formatted without being parsed
	dst = append(dst[:len(dst)-1], '.')     // instead of Z
	n := len(dst)
	dst = append(dst, "000000000Z"...)
	for i, frac := n+8, t.Nanosecond(); frac > 0; i, frac = i-1, frac/10 {
		dst[i] = byte('0' + frac%10)
	}
	return dst
}

// appendFloat appends a finite number. One that is an integer gets a fraction of 0.
func appendFloat(dst []byte, v float64) []byte {
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) { // as in JavaScript and encoding/json
		return strconv.AppendFloat(dst, v, 'e', -1, 64)
	}
	n := len(dst)
	dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
	for _, c := range dst[n:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// plain are the bytes that stand for themselves in a JSON string, whatever follows.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\' && c != 0x7f
	}
	return t
}()

// appendString appends s in quotes (RFC 8259 §7).
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0 // what follows is not yet appended
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 || !strconv.IsPrint(r) {
				dst = names.AppendEscaped(append(dst, s[from:i]...), r)
				from = i + n
			}
			i += n
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = names.AppendEscaped(dst, rune(c))
		}
		i++
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}
