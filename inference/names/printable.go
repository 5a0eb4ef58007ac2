package names

import (
	"strconv"
	"strings"
)

// Printable keeps a text of others, such as an error of a store, from steering a terminal: what is not printed is replaced.
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
