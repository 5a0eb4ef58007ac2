package agent

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/p4/stamp"
	"github.com/hopscope/hopscope/planner/show"
)

// ReadPlan reads the files of the plan, nil where none is named.
func (cfg *Config) ReadPlan() (*probe.Plan, error) {
	if !cfg.Files.Named() {
		return nil, nil
	}
	plan, err := cfg.Files.Read(nextEpoch(0))
	if err != nil {
		return nil, err
	}
	limits := cfg.Limits()
	if _, err := plan.Check(&limits); err != nil {
		return nil, fmt.Errorf("the plan is refused:\n%w", err)
	}
	return plan, nil
}

// Describe writes what an agent with these settings would do with the plan, which may be nil.
func (cfg *Config) Describe(w io.Writer, plan *probe.Plan) error {
	if cfg.Interface == "" {
		if _, err := fmt.Fprintln(w, "no problems; there is no interface, and so STAMP alone"); err != nil {
			return err
		}
		return cfg.STAMP.describe(w)
	}
	if plan == nil {
		from := "there is no plan: name files (--probes, plan.probes) or a controller (controller.address)"
		if cfg.Controller.Address != "" {
			from = "plans come from the controller " + cfg.Controller.Name + " at " + cfg.Controller.Address
		}
		if _, err := fmt.Fprintf(w, "no problems; %s\n", from); err != nil {
			return err
		}
		return cfg.describeInterface(w)
	}
	limits := cfg.Limits()
	load, err := plan.Check(&limits)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "no problems; agent %s\nsends %d of %d probes, %d of them in detail, %.4g a second, %s (at most %s)\nreceives %d, %s (at most %s)\n",
		cfg.Name, load.Sends, len(plan.Probes), load.Detailed, load.ProbesPerSecond, show.BitRate(load.SendBPS), show.BitRate(cfg.SendLimit),
		load.Received, show.BitRate(load.ReceiveBPS), show.BitRate(cfg.ReceiveLimit))
	if warning := cfg.notNamed(plan); err == nil && warning != "" {
		_, err = fmt.Fprintln(w, warning)
	}
	if err != nil {
		return err
	}
	return cfg.describeInterface(w)
}

// describeInterface reports a missing interface of this machine. It is no error: settings are checked elsewhere, too.
func (cfg *Config) describeInterface(w io.Writer) error {
	if err := cfg.STAMP.describe(w); err != nil {
		return err
	}
	if _, err := net.InterfaceByName(cfg.Interface); err == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "this machine has no interface %s; \"ip link\" lists them\n", cfg.Interface)
	return err
}

// describe writes what is sent and answered, if anything is.
func (c *STAMP) describe(w io.Writer) error {
	if perSecond, bps := c.load(); perSecond > 0 {
		signed := "without authentication"
		if c.Keys != "" {
			signed = "authenticated"
		}
		if _, err := fmt.Fprintf(w, "sends %d sessions of STAMP, %.4g packets a second, at most %s, %s\n", c.count(), perSecond, show.BitRate(bps), signed); err != nil {
			return err
		}
		if err := c.describeHeaders(w); err != nil {
			return err
		}
	}
	for _, at := range c.Reflector.Listen {
		a, err := listenAddress(at)
		if err != nil {
			return err
		}
		clients := "all that reach it"
		switch {
		case a.Addr().IsLoopback():
			clients = "programs of this machine"
		case len(c.Reflector.Allow) > 0:
			clients = strings.Join(c.Reflector.Allow, ", ")
		case c.Reflector.Keys != "":
			clients = "all"
		}
		if c.Reflector.Keys != "" {
			clients += " that have a key"
		}
		traces := ""
		if c.Reflector.IOAM {
			traces = "; reports their IOAM traces"
		}
		if _, err := fmt.Fprintf(w, "answers STAMP at %s, to %s%s\n", a, clients, traces); err != nil {
			return err
		}
	}
	return nil
}

// describeHeaders writes which requests carry a trace, and which pass segments, if any do.
func (c *STAMP) describeHeaders(w io.Writer) error {
	traced, routed, both := 0, 0, 0
	for k := range c.Sessions {
		s := &c.Sessions[k]
		if s.IOAM {
			traced += s.sockets()
		}
		if len(s.Segments) > 0 {
			routed += s.sockets()
		}
		if s.IOAM && len(s.Segments) > 0 {
			both += s.sockets()
		}
	}
	if kind, err := c.IOAM.TraceType(); err == nil && traced > 0 {
		if _, err := fmt.Fprintf(w, "%d of them with an IOAM trace of namespace %d and type %#06x, for %d routers with %d bytes each; this needs CAP_NET_RAW\n",
			traced, c.IOAM.Namespace, kind, c.IOAM.Nodes, stamp.NodeBytes(kind)); err != nil {
			return err
		}
	}
	if routed > 0 {
		if _, err := fmt.Fprintf(w, "%d of them over segments of SRv6\n", routed); err != nil {
			return err
		}
	}
	if both > 0 {
		if _, err := fmt.Fprintf(w, "%d of them with both, which nodes of segments that run Linux lose\n", both); err != nil {
			return err
		}
	}
	return nil
}

// notNamed reports that a plan has no probe for the agent, and lists the agents for which it has some.
func (cfg *Config) notNamed(plan *probe.Plan) string {
	var names []string
	for k := range plan.Probes {
		x := &plan.Probes[k]
		if x.Agent == cfg.Name {
			return ""
		}
		names = append(names, x.Agent)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	const most = 8
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d others", len(names)-most)
	}
	return fmt.Sprintf("no probe of the plan is sent by %q: its agents are %s%s (--name)", cfg.Name, strings.Join(names, ", "), more)
}

// nextEpoch is the epoch of a plan from files. It is the time in seconds, so that plans after a restart are later to
// receivers of the agent's probes. It is always above the last one.
func nextEpoch(last uint32) uint32 { return max(uint32(time.Now().Unix()), last+1) }
