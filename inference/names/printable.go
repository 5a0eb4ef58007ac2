package names

import (
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable keeps a text of others, such as an error of a store, from steering a terminal: what is not printed is
// replaced.
func Printable(s string) string { return printable(s, 0) }

// PrintableLines is Printable for a text of several lines.
func PrintableLines(s string) string { return printable(s, '\n') }

func printable(s string, kept rune) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) || r != 0 && r == kept {
			return r
		}
		return '\ufffd'
	}, s)
}

// Readable shortens a text from the network to some bytes, and makes it safe to display on a page. The result is valid UTF-8,
// without control characters and without invisible ones that change the direction of text.
func Readable(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…" // not within a character
	}
	return strings.Map(func(r rune) rune {
		if r == '\u2028' || r == '\u2029' || unicode.In(r, unicode.Cc, unicode.Cf) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Screen returns a writer of text for people that keeps what comes from others from steering a terminal, as
// [PrintableLines] does; tabs pass, too. Bytes that are no UTF-8 are replaced one by one. A write that ends within a
// character waits for its rest.
func Screen(w io.Writer) io.Writer { return &screen{w: w, replace: asMark} }

// ScreenJSON is Screen for JSON. A character that is not printed becomes its escape, such as \u202e, so that a parser
// gets the original. Bytes that are no UTF-8 are replaced.
func ScreenJSON(w io.Writer) io.Writer { return &screen{w: w, replace: AppendEscaped} }

// EscapeJSON is [ScreenJSON] for a whole document. It returns doc itself if nothing has to be replaced.
func EscapeJSON(doc []byte) []byte {
	if n := printed(doc); n < len(doc) {
		return screened(append(make([]byte, 0, len(doc)+64), doc[:n]...), doc[n:], AppendEscaped)
	}
	return doc
}

type screen struct {
	w       io.Writer
	replace func([]byte, rune) []byte
	rest    []byte // the beginning of a character
	out     []byte
}

func (s *screen) Write(p []byte) (int, error) {
	if len(s.rest) == 0 && printed(p) == len(p) {
		return s.w.Write(p)
	}
	in := append(s.rest, p...)
	whole := len(in)
	for back := 1; back < utf8.UTFMax && back <= len(in); back++ {
		if b := in[len(in)-back]; utf8.RuneStart(b) {
			if !utf8.FullRune(in[len(in)-back:]) {
				whole = len(in) - back
			}
			break
		}
	}
	s.out = screened(s.out[:0], in[:whole], s.replace)
	s.rest = append([]byte(nil), in[whole:]...)
	if _, err := s.w.Write(s.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printed returns how many bytes at the beginning of p are printed ASCII, tabs or line ends. It tests eight bytes at
// once for the top bit: of each byte, of the byte less a space, and of the byte plus one.
func printed(p []byte) int {
	const each = 0x0101010101010101
	i := 0
	for i < len(p) {
		if len(p)-i >= 8 {
			if w := binary.LittleEndian.Uint64(p[i:]); (w|(w-each*' ')|(w+each))&(each<<7) == 0 {
				i += 8
				continue
			}
		}
		for end := min(i+8, len(p)); i < end; i++ {
			if c := p[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
				return i
			}
		}
	}
	return i
}

// screened appends in to dst, with each character that is not printed replaced by the result of replace.
func screened(dst, in []byte, replace func([]byte, rune) []byte) []byte {
	for len(in) > 0 {
		r, n := utf8.DecodeRune(in)
		if strconv.IsPrint(r) || r == '\n' || r == '\t' {
			dst = utf8.AppendRune(dst, r)
		} else {
			dst = replace(dst, r)
		}
		in = in[n:]
	}
	return dst
}

func asMark(dst []byte, _ rune) []byte { return utf8.AppendRune(dst, utf8.RuneError) }

// AppendEscaped appends the escape of a character that is not printed, in JSON (RFC 8259 §7). A character beyond the
// first plane has one escape for each surrogate. [utf8.RuneError] stands for itself.
func AppendEscaped(dst []byte, r rune) []byte {
	if r == utf8.RuneError {
		return utf8.AppendRune(dst, r)
	}
	if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
		return appendUnit(appendUnit(dst, hi), lo)
	}
	return appendUnit(dst, r)
}

func appendUnit(dst []byte, u rune) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
}
