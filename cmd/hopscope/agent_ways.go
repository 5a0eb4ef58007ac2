package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/sweep"
)

// agentWays is the choice that "hopscope agent ways" prints.
type agentWays struct {
	Ways     []sweep.Way `json:"ways"` // that are chosen
	Of       int         `json:"of"`   // ways that agents know
	Bound    int         `json:"lower_bound"`
	Links    int         `json:"links"`         // that the ways have
	Unknown  int         `json:"unknown_links"` // next to routers that did not answer
	Separate bool        `json:"separate"`
}

func agentWaysCommand() *cobra.Command {
	o := asker{Who: "agent"}
	var urls []string
	var separate bool
	var answers string
	var rounds int
	var seed uint64
	c := &cobra.Command{
		Use:   "ways",
		Short: "Ask running agents for the ways of their ports, and choose the fewest that have every link",
		Long: `Ask running agents which routers are on the ways of their sessions with a port
(stamp.sessions, port and ports), and choose the fewest whose ways have every link
that any of them has. With --separate the chosen ways tell every two links apart that
any of the ways tells apart, so that a loss names the link. No choice has fewer than
the bound that is printed.

Routers answer by the address of the interface that packets come by, as most do, or by
one address whatever the interface is: --answers router. Exit status 1 if an agent
cannot be asked, or if no way is known yet.`,
		Example: `  hopscope agent ways
  hopscope agent ways --url http://192.0.2.1:9464 --url http://192.0.2.2:9464 --separate`,
		Args: exactArgs(0),
	}
	f := c.Flags()
	f.StringArrayVar(&urls, "url", []string{"http://127.0.0.1:9464"}, "status.listen of a running agent (repeatable)")
	f.StringVar(&o.Format, "format", "table", "table or json")
	f.BoolVar(&separate, "separate", false, "choose ways that tell links apart")
	f.StringVar(&answers, "answers", "interface", "what the address of a router is of: interface or router")
	f.IntVar(&rounds, "rounds", 300, "of the search for fewer ways")
	f.Uint64Var(&seed, "seed", 1, "of the search")
	c.RunE = func(c *cobra.Command, _ []string) error {
		by, ok := map[string]sweep.Answers{"interface": sweep.ByInterface, "router": sweep.ByRouter}[answers]
		switch {
		case !ok:
			return usagef("--answers %q is neither interface nor router", answers)
		case rounds < 0:
			return usagef("--rounds %d is negative", rounds)
		case o.Format != "table" && o.Format != "json":
			return usagef("--format %q is neither table nor json", o.Format)
		}
		format := o.Format
		o.Format = "table" // of one agent: the answer is read
		var ways []sweep.Way
		for _, o.URL = range urls {
			var x agent.StatusAnswer
			if err := o.Get(c.Context(), "/status", &x, c.OutOrStdout()); err != nil {
				return err
			}
			ways = append(ways, x.Ways()...)
		}
		if len(ways) == 0 {
			return fmt.Errorf("no way is known: sessions need a port (stamp.sessions), an answer of their reflector, and routers on their way that answer")
		}
		p := sweep.Choose(ways, by, separate, rounds, seed)
		x := agentWays{Of: len(ways), Bound: p.Bound, Links: p.Links, Unknown: p.Unknown, Separate: separate}
		for _, i := range p.Chosen {
			x.Ways = append(x.Ways, ways[i])
		}
		if format == "json" {
			return json.NewEncoder(c.OutOrStdout()).Encode(&x)
		}
		return x.write(c.OutOrStdout())
	}
	return c
}

// write writes the choice as text.
func (x *agentWays) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "from\tto\tport\trouters")
	for _, way := range x.Ways {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", way.From, way.To, way.Port, routersText(way.Hops))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	what := "have all"
	if x.Separate {
		what = "tell apart all"
	}
	proof := fmt.Sprintf("at least %d are needed", x.Bound)
	if x.Bound == len(x.Ways) {
		proof = "no choice has fewer"
	}
	_, err := fmt.Fprintf(w, "%d of %d ways %s %d links; %s\n", len(x.Ways), x.Of, what, x.Links, proof)
	if err == nil && x.Unknown > 0 {
		_, err = fmt.Fprintf(w, "%d links are next to routers that did not answer, and not among them\n", x.Unknown)
	}
	return err
}

// routersText lists routers, "*" for one that did not answer.
func routersText(hops []netip.Addr) string {
	list := make([]string, len(hops))
	for i, h := range hops {
		if list[i] = "*"; h.IsValid() {
			list[i] = h.String()
		}
	}
	return strings.Join(list, " > ")
}
