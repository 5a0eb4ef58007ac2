package harness

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// block is a part of a page that is written from a result. A comment names file and table, and optionally the
// columns. The content follows, and a comment that ends it.
var block = regexp.MustCompile(`(?s)(<!-- result (\S+) (\d+)(?: columns ([^\n]*?))? -->\n).*?(<!-- end of result -->)`)

// Page writes the blocks of a page anew, each from the first result of its file, which read returns. A block is
//
//	<!-- result pint-5 1 columns scheme | median | p99 -->
//	<!-- end of result -->
//
// for table 1 of pint-5.json. The rest of the page stays as it is.
func Page(page string, read func(name string) (*Result, error)) (string, error) {
	var failed error
	page = block.ReplaceAllStringFunc(page, func(b string) string {
		m := block.FindStringSubmatch(b)
		text, err := func() (string, error) {
			r, err := read(m[2])
			if err != nil {
				return "", err
			}
			n, err := strconv.Atoi(m[3])
			if err != nil || n < 1 || n > len(r.Tables) {
				return "", fmt.Errorf("table %s of %d", m[3], len(r.Tables))
			}
			return r.markdown(&r.Tables[n-1], m[4])
		}()
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", strings.TrimSpace(m[1]), err)
		}
		return m[1] + text + m[5]
	})
	return page, failed
}

// markdown writes a table with the names of some columns, or all of them, and where it is from.
func (r *Result) markdown(t *Table, columns string) (string, error) {
	var of []int
	for c := range t.Columns {
		if columns == "" {
			of = append(of, c)
		}
	}
	for name := range strings.SplitSeq(columns, " | ") {
		if columns == "" {
			break
		}
		c := t.Index(name)
		if c < 0 {
			return "", fmt.Errorf("no column %q; there are %s", name, strings.Join(t.Columns, " | "))
		}
		of = append(of, c)
	}
	var b strings.Builder
	seed := ""
	if r.Seed != nil {
		seed = fmt.Sprintf(", seed %d", *r.Seed)
	}
	fmt.Fprintf(&b, "\n    %s\n\n", r.Bench)
	line := func(cell func(c int) string) {
		for _, c := range of {
			b.WriteString("| " + strings.ReplaceAll(Line(cell(c)), "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	line(func(c int) string { return t.Columns[c] })
	line(func(int) string { return "---" })
	for _, row := range t.Rows {
		line(func(c int) string {
			if c >= len(row) {
				return ""
			}
			return Cell(row[c])
		})
	}
	fmt.Fprintf(&b, "\nVersion %s%s; %s.\n\n", r.Version, seed, &r.Machine)
	return b.String(), nil
}
