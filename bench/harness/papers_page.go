package harness

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

const head = `# Papers

Each figure, table, algorithm, theorem and stated result of five texts, with ours beside it. ` + "`go test ./bench/harness -run TestPapersPage -update`" + ` writes the page from
[bench/harness](../bench/harness/papers.go) and [bench/results](../bench/results). ` + "`make papers`" + ` measures what is not measured yet.

Parentheses have the range of a published figure: by its digits, the error of reading a curve from its description (our texts lack the pictures), and the spread of its experiment. Ours reproduces it
within that range; a figure outside is bold, and its remark has the reason. Times are of other machines: only orders of size and shapes are compared. An empty place, run or test is that of the row above.
` + "`go test ./PACKAGE -run '^TEST$'`" + ` runs a test.

`

// PapersPage writes docs/papers.md.
func PapersPage(read ResultFiles) (string, error) {
	states := []PaperState{Reproduced, Tested, Outside, Unmeasured, Missing, Drawing}
	var sum, body strings.Builder
	sum.WriteString("| text | items |")
	for _, s := range states {
		fmt.Fprintf(&sum, " %s |", s)
	}
	sum.WriteString("\n| --- |" + strings.Repeat(" --- |", len(states)+1) + "\n")
	for k := range Papers {
		t := &Papers[k]
		count, err := t.write(&body, read)
		if err != nil {
			return "", fmt.Errorf("%s, %w", t.Name, err)
		}
		fmt.Fprintf(&sum, "| [%s](#%s) | %d |", t.Name, strings.ToLower(t.Name), len(t.Items))
		for _, s := range states {
			fmt.Fprintf(&sum, " %d |", count[s])
		}
		sum.WriteString("\n")
	}
	return head + sum.String() + body.String(), nil
}

// write writes the section of a text: the commands, the published figures and ours, tables of the items without a figure, and the
// places with nothing to measure.
func (t *Paper) write(b *strings.Builder, read ResultFiles) (map[PaperState]int, error) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", t.Name, t.Title)
	runs := t.commands(read)
	if len(runs) > 0 {
		b.WriteString("\n")
	}
	for k, c := range runs {
		if len(runs) > 1 {
			c += fmt.Sprintf("    # run %d", k+1)
		}
		b.WriteString("    " + c + "\n")
	}
	count := map[PaperState]int{}
	var figures strings.Builder
	tables := map[PaperState]*strings.Builder{Tested: {}, Missing: {}}
	places := map[string][]string{} // of items with nothing to measure, by the reason
	var reasons []string
	last := "" // test of the row above
	for k := range t.Items {
		i := &t.Items[k]
		state, ours, err := i.Judge(read)
		if err != nil {
			return nil, err
		}
		count[state]++
		switch {
		case len(i.Values) > 0:
			i.writeFigures(&figures, state, ours, runs, read)
		case state == Tested:
			test := ""
			if i.Test != last {
				pkg, name, _ := strings.Cut(i.Test, " ")
				test, last = fmt.Sprintf("`%s` `%s`", pkg, name), i.Test
			}
			row(tables[state], i.Place, join(i.What, i.Note), test)
		case state == Drawing:
			if places[i.Why] == nil {
				reasons = append(reasons, i.Why)
			}
			places[i.Why] = append(places[i.Why], i.Place)
		default:
			row(tables[state], i.Place, i.What, join(i.Why, i.Note))
		}
	}
	if figures.Len() > 0 {
		head := []string{"place", "what", "published", "ours"}
		if len(runs) > 1 {
			head = append(head, "run")
		}
		table(b, figures.String(), append(head, "remark")...)
	}
	table(b, tables[Tested].String(), "place", "what", "held by the test")
	table(b, tables[Missing].String(), "place", "what", "missing, since")
	for k, why := range reasons {
		reasons[k] = strings.Join(places[why], ", ") + " (" + why + ")"
	}
	if len(reasons) > 0 {
		fmt.Fprintf(b, "\nNothing to measure: %s.\n", strings.Join(reasons, "; "))
	}
	return count, nil
}

// commands lists the commands that measure a text, in the order of the items.
func (t *Paper) commands(read ResultFiles) (list []string) {
	for k := range t.Items {
		for n := range t.Items[k].Values {
			if c := t.Items[k].Values[n].command(read); !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}

// command is the one that measured the file of a value, or that would.
func (v *PaperValue) command(read ResultFiles) string {
	if r, err := read(v.At.File); err == nil {
		return r.Bench
	}
	return PaperCommand(v.At.File)
}

// writeFigures writes a row for each value of an item, and the remark on the first.
func (i *PaperItem) writeFigures(b *strings.Builder, state PaperState, ours []float64, runs []string, read ResultFiles) {
	remark := i.Note
	if state != Reproduced {
		remark = "**" + string(state) + "**"
		if i.Why != "" {
			remark += ": " + i.Why
		}
		remark = join(remark, i.Note)
	}
	place, what, last := i.Place, i.What, ""
	for k := range i.Values {
		v := &i.Values[k]
		figure := ""
		if !math.IsNaN(ours[k]) {
			figure = Number(ours[k])
			if !v.Within(ours[k]) {
				figure = "**" + figure + "**"
			}
		}
		text := what
		if v.What != "" {
			text = strings.TrimPrefix(what+": "+v.What, ": ")
		}
		cells := []string{place, text, v.published(), figure}
		if len(runs) > 1 {
			run := strconv.Itoa(1 + slices.Index(runs, v.command(read)))
			if run == last {
				run = ""
			} else {
				last = run
			}
			cells = append(cells, run)
		}
		row(b, append(cells, remark)...)
		place, what, remark = "", "", ""
	}
}

// join joins two texts as sentences, of which either may be empty.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ". " + b
}

// table writes a table with a heading, unless it has no rows.
func table(b *strings.Builder, rows string, columns ...string) {
	if rows == "" {
		return
	}
	b.WriteString("\n")
	row(b, columns...)
	b.WriteString(strings.Repeat("| --- ", len(columns)) + "|\n" + rows)
}

func row(b *strings.Builder, cells ...string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(Line(c), "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}

// published writes the published figure, with the range of its possible values unless it is that alone.
func (v *PaperValue) published() string {
	values := ""
	switch {
	case math.IsInf(v.High, 1):
		values = "≥" + Number(v.Low)
	case math.IsInf(v.Low, -1) || v.Low == 0 && v.High > 0:
		values = "≤" + Number(v.High)
	case v.Low == v.High:
		values = Number(v.Low)
	case v.Low < 0:
		values = Number(v.Low) + " to " + Number(v.High)
	default:
		values = Number(v.Low) + "–" + Number(v.High)
	}
	if v.Low == v.High && strings.HasSuffix(v.Published, values) {
		return v.Published
	}
	return v.Published + " (" + values + ")"
}
