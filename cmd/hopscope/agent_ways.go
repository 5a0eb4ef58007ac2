package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/stamp"
	"github.com/hopscope/hopscope/p4/steer"
)

// agentWays is the choice that "hopscope agent ways" prints.
type agentWays struct {
	Ways     []stamp.Way `json:"ways"` // that are chosen
	Of       int         `json:"of"`   // ways that agents know
	Bound    int         `json:"lower_bound"`
	Links    int         `json:"links"`         // that the ways have
	Unknown  int         `json:"unknown_links"` // next to routers that did not answer
	Separate bool        `json:"separate"`
}

func agentWaysCommand() *cobra.Command {
	o := asker{Program: "agent"}
	var urls []string
	var separate bool
	var answers string
	var rounds int
	var seed uint64
	var lossy bool
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "ways",
		Short: "Ask running agents for the ways of their ports, and choose some or name lossy links",
		Long: `Ask running agents which routers are on the ways of their sessions with a port
(stamp.sessions, port and ports), and choose the fewest whose ways have every link
that any of them has. With --separate the chosen ways distinguish every two links that
any of the ways distinguishes, so that a loss names the link. No choice has fewer than
the bound that is printed.

With --lossy the agents are asked twice, and the links are named that explain the
requests that were lost on their way out between the two questions, although no switch
reports: ways that cross such a link lose, and those that cross its neighbours do not.

Routers answer by the address of the interface that packets come by, as most do, or by
one address whatever the interface is: --answers router. Exit status 1 if an agent
cannot be asked, or if no way is known yet.`,
		Example: `  hopscope agent ways
  hopscope agent ways --url http://192.0.2.1:9464 --url http://192.0.2.2:9464 --separate
  hopscope agent ways --url http://192.0.2.1:9464 --url http://192.0.2.2:9464 --lossy --for 1m`,
		Args: exactArgs(0),
	}
	f := c.Flags()
	f.StringArrayVar(&urls, "url", []string{"http://127.0.0.1:9464"}, "status.listen of a running agent (repeatable)")
	f.StringVar(&o.Format, "format", "table", "table or json")
	f.BoolVar(&separate, "separate", false, "choose ways that distinguish links")
	f.StringVar(&answers, "answers", "interface", "what the address of a router is of: interface or router")
	f.BoolVar(&lossy, "lossy", false, "name the links that explain what is lost meanwhile, in place of a choice")
	f.DurationVar(&lasts, "for", 10*time.Second, "between the two questions of --lossy, 1s to 1h")
	f.IntVar(&rounds, "rounds", 300, "of the search for fewer ways")
	f.Uint64Var(&seed, "seed", 1, "of the search")
	c.RunE = func(c *cobra.Command, _ []string) error {
		by, ok := map[string]stamp.AnswersBy{"interface": stamp.ByInterface, "router": stamp.ByRouter}[answers]
		switch {
		case !ok:
			return usagef("--answers %q is neither interface nor router", answers)
		case lasts < time.Second || lasts > time.Hour:
			return usagef("--for %v is outside 1s..1h", lasts)
		case lossy && separate:
			return usagef("--lossy names links, and --separate is of a choice")
		case rounds < 0:
			return usagef("--rounds %d is negative", rounds)
		case o.Format != "table" && o.Format != "json":
			return usagef("--format %q is neither table nor json", o.Format)
		}
		format := o.Format
		o.Format = "table" // of one agent: the answer is read
		ask := func() (list []agent.WayCount, err error) {
			for _, o.URL = range urls {
				var x agent.StatusAnswer
				if err := o.Get(c.Context(), "/status", &x, c.OutOrStdout()); err != nil {
					return nil, err
				}
				list = append(list, x.Ways()...)
			}
			if len(list) == 0 {
				err = fmt.Errorf("no way is known: sessions need a port (stamp.sessions), an answer of their reflector, and routers on their way that answer")
			}
			return list, err
		}
		counts, err := ask()
		if err != nil {
			return err
		}
		if lossy {
			select {
			case <-c.Context().Done():
				return c.Context().Err()
			case <-time.After(lasts):
			}
			after, err := ask()
			if err != nil {
				return err
			}
			x := steer.NewLosses(counts, after, by, lasts)
			if format == "json" {
				return json.NewEncoder(c.OutOrStdout()).Encode(x)
			}
			return x.Write(c.OutOrStdout())
		}
		var ways []stamp.Way
		for _, w := range counts {
			ways = append(ways, w.Way)
		}
		p := stamp.Choose(ways, by, separate, rounds, seed)
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
		what = "distinguish all"
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
