package harness

import (
	"fmt"
	"math"
	"strings"
)

const head = `# Papers

Each figure, table, algorithm, theorem and stated result of five texts, and ours beside it. The page is written from the list in
[bench/harness](../bench/harness/papers.go) and the files of [bench/results](../bench/results), by
` + "`go test ./bench/harness -run TestPapersPage -update`" + `; a test fails where they differ. ` + "`make papers`" + ` measures what is not measured yet.

Places are those of the texts. A published figure stands with what it can be: its digits, the error of reading a curve from what the text
says of it (the pictures themselves are not in the texts that we have), and the spread of the experiment that it is of. Ours is reproduced if it lies between.
Times are of other machines, so that only orders of size and shapes are compared. How each paper was read is in the pages of the
plans ([cover](plan-cover.md#readings-of-the-papers), [orchestrate](plan-orchestrate.md#readings-of-the-paper), [attention](plan-attention.md#readings-of-the-paper),
[delivery](plan-delivery.md#readings-of-the-paper)) and in [PINT's](pint.md).

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
	for _, t := range Papers {
		count := map[PaperState]int{}
		fmt.Fprintf(&body, "\n## %s\n\n%s\n\n| place | what | published | can be | ours | state, and command or test |\n| --- | --- | --- | --- | --- | --- |\n", t.Name, t.Title)
		for k := range t.Items {
			state, err := t.Items[k].write(&body, read)
			if err != nil {
				return "", fmt.Errorf("%s, %w", t.Name, err)
			}
			count[state]++
		}
		fmt.Fprintf(&sum, "| [%s](#%s) | %d |", t.Name, strings.ToLower(t.Name), len(t.Items))
		for _, s := range states {
			fmt.Fprintf(&sum, " %d |", count[s])
		}
		sum.WriteString("\n")
	}
	return head + sum.String() + body.String(), nil
}

// write writes the lines of an item: one for each value, and the reason on the first.
func (i *PaperItem) write(b *strings.Builder, read ResultFiles) (PaperState, error) {
	state, ours, err := i.Judge(read)
	if err != nil {
		return "", err
	}
	line := func(cells ...string) {
		for _, c := range cells {
			b.WriteString("| " + strings.ReplaceAll(Line(c), "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	end := "**" + string(state) + "**"
	if i.Why != "" {
		end += ": " + i.Why
	}
	if i.Note != "" {
		end += ". " + i.Note
	}
	if i.Test != "" {
		pkg, name, _ := strings.Cut(i.Test, " ")
		end += fmt.Sprintf("; `go test ./%s -run '^%s$'`", pkg, name)
	}
	if len(i.Values) == 0 {
		line(i.Place, i.What, "", "", "", end)
		return state, nil
	}
	place, what, last := i.Place, i.What, ""
	for k := range i.Values {
		v := &i.Values[k]
		figure, from := "", ""
		if !math.IsNaN(ours[k]) {
			figure = Number(ours[k])
			if !v.Within(ours[k]) {
				figure += " (outside)"
			}
		}
		if v.At.File != last {
			last = v.At.File
			command := PaperCommand(last)
			if r, err := read(last); err == nil {
				command = r.Bench
			}
			from = "`" + command + "`"
		}
		text := what
		if v.What != "" {
			text = strings.TrimPrefix(what+": "+v.What, ": ")
		}
		if k == 0 {
			from = strings.TrimSpace(end + " " + from)
		}
		line(place, text, v.Published, span(v.Low, v.High), figure, from)
		place, what = "", ""
	}
	return state, nil
}

// span writes the possible values of a figure.
func span(low, high float64) string {
	switch {
	case math.IsInf(high, 1):
		return "from " + Number(low)
	case math.IsInf(low, -1) || low == 0 && high > 0:
		return "up to " + Number(high)
	case low == high:
		return Number(low)
	}
	return Number(low) + " to " + Number(high)
}
