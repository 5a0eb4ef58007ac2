package p4_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/pintplan"
)

// command is a table_add, without prefixes of names. All words of numbers are numbers, and ranges are two.
type command struct {
	table, action string
	numbers       []uint64
}

func (c command) String() string { return fmt.Sprint(c.table, " ", c.action, c.numbers) }

func parseCommand(t *testing.T, line string) command {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(line, "->", " "), "=> ", ""))
	c := command{table: words[1], action: words[2][strings.LastIndexByte(words[2], '.')+1:]}
	for _, w := range words[3:] {
		n, err := strconv.ParseUint(w, 0, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		c.numbers = append(c.numbers, n)
	}
	return c
}

// written is the output of decode/pint for a plan, for any program, as entries of pint.p4. Names are those of its
// controls, a gap is its logarithm, and a path of two instances has two tables.
func written(t *testing.T, p *pint.Plan) (entries []string) {
	var text bytes.Buffer
	if err := pint.WriteTables(&text, p); err != nil {
		t.Fatal(err)
	}
	path := p.Queries[0].Scheme.Config()
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "table_add") {
			continue
		}
		c := parseCommand(t, line)
		copies := []string{strings.TrimPrefix(c.table, "pint_")}
		if query, kind, ok := strings.Cut(copies[0], "_"); ok && query == "path" {
			copies = copies[:0]
			for i := range path.Instances {
				copies = append(copies, fmt.Sprintf("path%d.%s", i, kind))
			}
		}
		for i, name := range copies {
			c, n := c, slices.Clone(c.numbers)
			switch c.table = strings.Replace(name, "_", ".", 1); {
			case strings.HasPrefix(name, "path") && strings.HasSuffix(name, "slot"):
				n[1] += uint64(i * path.Bits)
			case c.action == "level":
				n[4] = uint64(math.Round(math.Log2(float64(n[4])) * 65536))
			}
			c.numbers = n
			entries = append(entries, c.String())
		}
	}
	return entries
}

// The two writers of tables agree: tables.py, whose entries the switches had that were recorded, and decode/pint. Constants of hashes
// stand in comments there; TestDigests holds them against what the switches wrote.
func TestTablesAgree(t *testing.T) {
	file, err := p4.Recorded("pint")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(file.Groups, func(g *p4.Group) bool { return g.Name == "transit" })
	got := map[uint8][]string{}
	for _, line := range file.Groups[i].Commands {
		if !strings.HasPrefix(line, "table_add egress.") || strings.Contains(line, "envelope") {
			continue
		}
		c := parseCommand(t, line)
		c.table = strings.TrimPrefix(c.table, "egress.")
		switch n := c.numbers; {
		case c.table == "pint_replace":
			c.table, c.action = "replace", "limit"
			for e := range plans(t) {
				got[e] = append(got[e], c.String())
			}
			continue
		case c.table == "pint_set":
			c.table = "set"
		case strings.HasSuffix(c.table, ".slot"):
			c.numbers = n[:3] // epoch, set, shift
		case strings.HasSuffix(c.table, ".code"):
			c.table = strings.Replace(c.table, ".encode", "", 1)
		case !strings.HasSuffix(c.table, ".layer"):
			continue
		}
		epoch := uint8(c.numbers[0])
		c.numbers = c.numbers[1:]
		got[epoch] = append(got[epoch], c.String())
	}
	for epoch, p := range plans(t) {
		want := written(t, p)
		count := map[string]int{}
		for _, w := range want {
			count[w]++
		}
		for _, g := range got[epoch] {
			count[g]--
		}
		maps.DeleteFunc(count, func(_ string, n int) bool { return n == 0 })
		if len(count) > 0 || len(want) < 100 {
			t.Errorf("epoch %d: of %d and %d entries these are not in both (1: of decode/pint, -1: of tables.py): %v", epoch, len(want), len(got[epoch]), count)
		}
	}
}

// held is what a switch holds in the tables that plans are in, priorities aside, which the command line counts the other way.
func held(s *program.Switch) map[string]int {
	held := map[string]int{}
	for _, e := range s.Store().Read("") {
		switch {
		case !strings.HasPrefix(e.Table, "egress."), e.Default(), strings.Contains(e.Table, "envelope"):
		case e.Table == "egress.egress_port", e.Table == "egress.line.lines":
		default:
			held[e.String()]++
		}
	}
	return held
}

// Entries that are written in Go equal those of the recorded switches, to the last one. They fit into the tables, and
// the two plans do so beside each other.
func TestSwitchEntries(t *testing.T) {
	file, err := p4.Recorded("pint")
	if err != nil {
		t.Fatal(err)
	}
	made, err := program.New("pint")
	if err != nil {
		t.Fatal(err)
	}
	entries := pintplan.SwitchShared()
	for _, p := range plans(t) {
		list, err := pintplan.SwitchEntries(p)
		if err != nil {
			t.Fatal(err)
		}
		if last := list[len(list)-1].Table; last != "egress.plan" {
			t.Errorf("epoch %d takes effect with %s, and not with the last entry", p.Epoch, last)
		}
		entries = append(entries, list...)
	}
	for _, e := range entries {
		if err := made.Store().Insert(e); err != nil {
			t.Fatalf("%v: %v", &e, err)
		}
	}
	got := held(made)
	compared := 0
	for _, g := range file.Groups {
		if strings.HasPrefix(g.Name, "no plan") {
			continue
		}
		recorded, err := program.New("pint")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range g.Commands {
			if list, ok := strings.CutPrefix(c, "# logarithms: "); ok {
				err = recorded.Logarithms(strings.Fields(list)...)
			} else if !strings.HasPrefix(c, "set_queue") {
				err = recorded.Command(c)
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", g.Name, c, err)
			}
		}
		want := held(recorded)
		if !maps.Equal(got, want) {
			for e := range want {
				if got[e] == 0 {
					t.Errorf("%s: only the switch has %s", g.Name, e)
				}
			}
			for e := range got {
				if want[e] == 0 {
					t.Errorf("%s: the switch does not have %s", g.Name, e)
				}
			}
		}
		compared++
	}
	if compared < 5 || len(got) < 11*1024+64+500 {
		t.Errorf("%d entries compared with %d switches", len(got), compared)
	}
}

// Plans that pint.p4 does not carry out are refused, instead of written in part.
func TestSwitchEntriesRefused(t *testing.T) {
	for name, change := range map[string]func(p *pint.Plan){
		"mix":                func(p *pint.Plan) { p.Hash = pint.HashMix },
		"queue":              func(p *pint.Plan) { p.Queries[1].Value = pint.QueueValue },
		"latency per packet": func(p *pint.Plan) { p.Queries[2].Value = pint.LatencyValue },
		"two paths": func(p *pint.Plan) {
			p.Queries[1] = p.Queries[0]
			p.Queries[1].Name = "again"
			p.Bits = 64
			at, slots := 0, slices.Clone(p.Sets[0].Slots)
			for k := range slots {
				slots[k].Shift = at
				at += p.Queries[slots[k].Query].Bits
			}
			p.Sets[0].Slots = slots
		},
	} {
		p := *plans(t)[24]
		p.Queries, p.Sets = slices.Clone(p.Queries), slices.Clone(p.Sets)
		change(&p)
		if list, err := pintplan.SwitchEntries(&p); !errors.Is(err, pintplan.ErrProgram) || list != nil {
			t.Errorf("%s: %d entries, %v", name, len(list), err)
		}
	}
}
