package influx

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hopscope/hopscope/sink"
)

// Line protocol: measurement[,tag=value]... field=value[,field=value]... time. Reference: InfluxDB 2.7, "Line
// protocol", "Special characters", and what models/points.go of 1.8.10 and 2.7.12 really does:
//
//   - comma, equals sign and space in names and tag values are escaped by a backslash (in a measurement the equals
//     sign needs none, and an escape before it would stay);
//   - a backslash itself cannot be escaped there. In front of a special character, or at the end, it would swallow the
//     separator; such a backslash is written as a slash;
//   - a line break ends the point, so it is written as \n in names; other control characters as U+FFFD;
//   - text in fields is quoted, quote and backslash are escaped, line breaks and tabs stay, other control
//     characters become U+FFFD as well;
//   - a quote in a field key opens a text for some readers, so it is written as an apostrophe;
//   - a tag with an empty value is the same as no tag;
//   - NaN and the infinities have no spelling.
const (
	nameSpecial  = 1 << iota // to be looked at in a measurement
	tagSpecial               // in tag keys and tag values
	fieldSpecial             // in field keys
	textSpecial              // in text
)

var special = func() (t [256]uint8) {
	for c := range 256 {
		if c < ' ' || c == 0x7f || c >= 0x80 || c == ' ' || c == ',' || c == '\\' {
			t[c] |= nameSpecial | tagSpecial | fieldSpecial
		}
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f || c == '"' || c == '\\' {
			t[c] |= textSpecial
		}
	}
	t['='] |= tagSpecial | fieldSpecial
	t['"'] |= fieldSpecial
	return t
}()

// AppendPoint appends p and a line break to dst. Fields whose value is not finite are left out; dropped counts them. A
// point without a measurement or without a field left appends nothing.
func AppendPoint(dst []byte, p *sink.Point) (line []byte, dropped int) {
	start := len(dst)
	if p.Measurement == "" || p.Measurement[0] == '#' { // a line that begins with # is a comment
		return dst, 0
	}
	dst = appendName(dst, p.Measurement, nameSpecial)
	for i := range p.Tags {
		t := &p.Tags[i]
		if t.Key == "" || t.Value == "" {
			continue
		}
		dst = append(dst, ',')
		dst = appendName(dst, t.Key, tagSpecial)
		dst = append(dst, '=')
		dst = appendName(dst, t.Value, tagSpecial)
	}
	sep := byte(' ')
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Key == "" {
			continue
		}
		if f.Kind == sink.Float && (math.IsNaN(f.Float) || math.IsInf(f.Float, 0)) {
			dropped++
			continue
		}
		dst = append(dst, sep)
		sep = ','
		dst = appendName(dst, f.Key, fieldSpecial)
		dst = append(dst, '=')
		switch f.Kind {
		case sink.Int:
			dst = strconv.AppendInt(dst, f.Int, 10)
			dst = append(dst, 'i')
		case sink.Float:
			dst = strconv.AppendFloat(dst, f.Float, 'g', -1, 64)
		default:
			dst = appendText(dst, f.Str)
		}
	}
	if sep == ' ' {
		return dst[:start], dropped
	}
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, p.Time, 10)
	return append(dst, '\n'), dropped
}

// appendName appends a measurement, key or tag value.
func appendName(dst []byte, s string, class uint8) []byte {
	for i := range len(s) {
		if special[s[i]]&class != 0 {
			return appendNameSlow(dst, s, i, class)
		}
	}
	return append(dst, s...)
}

// appendNameSlow continues at the first special character of s.
func appendNameSlow(dst []byte, s string, i int, class uint8) []byte {
	dst = append(dst, s[:i]...)
	for i < len(s) {
		c := s[i]
		switch {
		case special[c]&class == 0:
			dst = append(dst, c)
		case c == '\\':
			// A whole run is decided by what follows it.
			end := i + len(s[i:]) - len(strings.TrimLeft(s[i:], `\`))
			if end == len(s) || s[end] == ',' || s[end] == ' ' || s[end] == '=' {
				c = '/'
			}
			for ; i < end; i++ {
				dst = append(dst, c)
			}
			continue
		case c == ',' || c == ' ' || c == '=':
			dst = append(dst, '\\', c)
		case c == '"':
			dst = append(dst, '\'')
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < utf8.RuneSelf:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		default:
			r, n := utf8.DecodeRuneInString(s[i:]) // RuneError of width 1 where s is not UTF-8
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
	}
	return dst
}

// appendText appends a quoted text.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case special[c]&textSpecial == 0:
			n := i + 1
			for n < len(s) && special[s[n]]&textSpecial == 0 {
				n++
			}
			dst = append(dst, s[i:n]...)
			i = n
			continue
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < utf8.RuneSelf:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}

// nextLine cuts the first point off payload, line break included. A line break within quotes does not end the point.
// The last line may lack a line break.
func nextLine(payload []byte) (line, rest []byte) {
	i, n := 0, len(payload)
	for ; i < n && payload[i] != ' ' && payload[i] != '\n'; i++ {
		if payload[i] == '\\' {
			i++
		}
	}
	for quoted := false; i < n; i++ {
		switch payload[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++
		case '\n':
			if !quoted {
				return payload[:i+1], payload[i+1:]
			}
		}
	}
	return payload, nil
}

// countLines is the number of points in payload.
func countLines(payload []byte) (n int) {
	for len(payload) > 0 {
		_, payload = nextLine(payload)
		n++
	}
	return n
}

// split cuts payload after its first n points.
func split(payload []byte, n int) (head, tail []byte) {
	rest := payload
	for ; n > 0 && len(rest) > 0; n-- {
		_, rest = nextLine(rest)
	}
	return payload[:len(payload)-len(rest)], rest
}

// divide cuts refused lines into pieces of which some may be accepted. The form of a point is its measurement and the
// keys of its fields. Points of one form are mostly refused together, so pieces are divided by form first, then into
// halves.
func divide(lines []byte) [][]byte {
	const most = 16 // forms; more of them are no help
	var forms []string
	var pieces [][]byte
	for rest := lines; len(rest) > 0; {
		var line []byte
		line, rest = nextLine(rest)
		form := formOf(line)
		i := slices.Index(forms, form)
		if i < 0 {
			if i = len(forms); i == most {
				break
			}
			forms, pieces = append(forms, form), append(pieces, nil)
		}
		pieces[i] = append(pieces[i], line...)
	}
	if n := len(forms); n > 1 && n < most {
		return pieces
	}
	head, tail := split(lines, countLines(lines)/2)
	return [][]byte{head, tail}
}

// nameEnd is the index of the first of the characters ends in b that is not escaped.
func nameEnd(b []byte, ends string) int {
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\\':
			i++
		case strings.IndexByte(ends, b[i]) >= 0:
			return i
		}
	}
	return len(b)
}

var nameUnescape = strings.NewReplacer(`\,`, ",", `\ `, " ")

// measurementOf returns the measurement of a line.
func measurementOf(line []byte) string {
	return nameUnescape.Replace(string(line[:nameEnd(line, ", \n")]))
}

// formOf returns the measurement and the keys of the fields of a line.
func formOf(line []byte) string {
	form := append([]byte{}, line[:nameEnd(line, ", \n")]...)
	rest := line[nameEnd(line, " \n"):]
	for len(rest) > 1 {
		rest = rest[1:] // the space or the comma
		n := nameEnd(rest, "= \n")
		form = append(append(form, '\n'), rest[:n]...)
		if rest = rest[n:]; len(rest) < 2 || rest[0] != '=' {
			break
		}
		rest = rest[1:]
		if rest[0] == '"' {
			rest = rest[1:]
			if n = nameEnd(rest, `"`) + 1; n > len(rest) {
				break
			}
			rest = rest[n:]
		} else {
			rest = rest[nameEnd(rest, ", \n"):]
		}
		if len(rest) == 0 || rest[0] != ',' {
			break
		}
	}
	return string(form)
}

// placeOf returns the series of a line with its tags, and its time.
func placeOf(line []byte) string {
	series := line[:nameEnd(line, " \n")]
	line = bytes.TrimRight(line, "\n")
	return string(series) + " " + string(line[bytes.LastIndexByte(line, ' ')+1:])
}
