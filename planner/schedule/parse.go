package schedule

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/planner/topo"
)

// ParseClass reads NAME=LINKS:PERIOD, whose period is read by millis. Tiers are those of a graph, which may be nil.
func ParseClass(spec string, g *topo.Graph, millis func(string) (float64, error)) (class Class, err error) {
	name, rest, ok := strings.Cut(spec, "=")
	at := strings.LastIndexByte(rest, ':')
	if !ok || name == "" || at < 0 {
		return class, fmt.Errorf("it is NAME=LINKS:PERIOD, such as core=@core:200ms")
	}
	period, err := millis(rest[at+1:])
	if err != nil {
		return class, err
	}
	class = Class{Name: name, Period: period}
	for word := range strings.SplitSeq(rest[:at], ",") {
		word = strings.TrimSpace(word)
		tier, ok := strings.CutPrefix(word, "@")
		switch {
		case word == "":
			return class, fmt.Errorf("a link without a name")
		case !ok:
			class.Links = append(class.Links, word)
		case g == nil:
			return class, fmt.Errorf("%s is of a tier, and only a topology has tiers", word)
		default:
			n := len(class.Links)
			for l := range g.NumLinks() {
				a, b := g.Ends(l)
				if g.Tier(g.Node(a)).String() == tier || g.Tier(g.Node(b)).String() == tier {
					class.Links = append(class.Links, g.LinkName(l))
				}
			}
			if n == len(class.Links) {
				return class, fmt.Errorf("no link has an end in tier %q", tier)
			}
		}
	}
	return class, nil
}

// ParseRate reads bits per second with a unit.
func ParseRate(text string) (float64, error) {
	for _, u := range []struct {
		name string
		unit float64
	}{{"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}} {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			if x, err := strconv.ParseFloat(strings.TrimSpace(n), 64); err == nil && x > 0 {
				return x * u.unit, nil
			}
			break
		}
	}
	return 0, fmt.Errorf("%q is not a number above 0 of bps, kbps, Mbps or Gbps", text)
}
