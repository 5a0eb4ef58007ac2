package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	Line int    // from 1; 0 where no line is to blame (a missing value, a rule over several keys)
	Path string // "udp.workers", "exporters[2].prefix"
	Text string // "300 is outside 1..255"
}

func (p Problem) String() string {
	s := p.Text
	if p.Path != "" {
		s = p.Path + ": " + s
	}
	if p.Line > 0 {
		s = fmt.Sprintf("line %d: %s", p.Line, s)
	}
	return s
}

// Problems is everything that is wrong with a file, in the order of its lines.
type Problems struct {
	File string
	List []Problem
}

// NewProblems is the error of these problems of a file, or nil where there are none. What two checks found alike is reported once.
func NewProblems(file string, list []Problem) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	seen := make(map[Problem]bool, len(list))
	list = slices.DeleteFunc(list, func(p Problem) bool {
		duplicate := seen[p]
		seen[p] = true
		return duplicate
	})
	return &Problems{file, list}
}

// Error names every problem on a line of its own.
func (p *Problems) Error() string {
	var b strings.Builder
	n := len(p.List)
	fmt.Fprintf(&b, "%s: %d problem%s", p.File, n, map[bool]string{false: "s"}[n == 1])
	for _, q := range p.List {
		fmt.Fprintf(&b, "\n  %s", q)
	}
	return b.String()
}
