package plan

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// noneText is the value of a list flag for an empty list in place of the topology's.
const noneText = "none"

// problem reads the flags.
func (o *coverFlags) problem(c *cobra.Command) (*cover.Problem, error) {
	if err := o.checkProblem(); err != nil {
		return nil, err
	}
	asked, err := o.measured.asked(c)
	if err != nil {
		return nil, err
	}
	if asked && o.minimise != string(cover.Cost) {
		return nil, cli.Usagef("--from-collector gives the costs of links: it goes with --minimise cost")
	}
	g, err := o.graph()
	if err != nil {
		return nil, err
	}
	if asked {
		if g, err = o.costs(c, g); err != nil {
			return nil, cli.Failure{Err: err}
		}
	}
	p := &cover.Problem{Graph: g, Directed: o.directed, MaxHops: o.maxHops, MaxPort: o.maxPort, Redundant: o.redundant,
		MaxDelay: o.maxDelay.Nanoseconds()}
	if o.minimise != string(cover.Links) {
		p.Minimise = cover.Measure(o.minimise)
	}
	if err := o.limits(p); err != nil {
		return nil, err
	}
	if err := p.SkipLinks(o.skip); err != nil {
		return nil, cli.Usagef("--skip: %w", err)
	}
	if err := p.SkipNodes(o.skipNode); err != nil {
		return nil, cli.Usagef("--skip-node: %w", err)
	}
	if o.depots != "" {
		if p.Depots, err = readDepots(o.depots, g); err != nil {
			return nil, err
		}
	}
	if err := o.readHosts(p); err != nil {
		return nil, err
	}
	if o.agents != noneText {
		p.UseAgents()
	}
	o.betweenHosts(p)
	// Where routes depend on it and the topology lacks it, a node with one link may be a host or a switch.
	if o.sr != "" && o.hosts == "" && !topo.IsGenerator(o.topology) {
		if v, ok := p.MaybeHost(); ok {
			return nil, cli.Usagef("--sr: the node %q has a single link; a route has to know whether it is a host or a switch: list the hosts with --hosts, or say --hosts none", g.NodeName(v))
		}
	}
	return p, p.Validate()
}

// checkProblem returns what is wrong with the flags themselves.
func (o *coverFlags) checkProblem() error {
	switch {
	case o.topology == "":
		return cli.Usagef("--topology is missing: a file, or one of %s", topo.Generators)
	case o.maxHops < 0:
		return cli.Usagef("--max-hops %d is negative", o.maxHops)
	case o.maxPort < 0:
		return cli.Usagef("--max-port %d is negative", o.maxPort)
	case o.maxDelay < 0:
		return cli.Usagef("--max-delay %v is negative", o.maxDelay)
	case o.defaultDelay < 0:
		return cli.Usagef("--default-delay %v is negative", o.defaultDelay)
	case o.mtu < 1:
		return cli.Usagef("--mtu %d is not positive", o.mtu)
	case o.redundant && o.directed:
		return cli.Usagef("--redundant does not go with --directed: its two covers pass the two directions of every link")
	case o.sr != "" && o.dialect != "":
		return cli.Usagef("--dialect does not go with --sr: both say what a probe carries")
	case o.attention != 0 && !(o.attention > 0 && o.attention < 1):
		return cli.Usagef("--attention-share %v lies between 0 and 1, such as 0.03", o.attention)
	case o.attention != 0 && (o.dialect == "" || strings.Count(o.bitmap, ",") != 1):
		return cli.Usagef("--attention-share needs to know what probes carry: --dialect with --bitmap BASIC,DETAILED, such as 0xF161,0xFFFF")
	case o.attention == 0 && strings.Contains(o.bitmap, ","):
		return cli.Usagef("--bitmap %s has two bitmaps, which are of --attention-share", o.bitmap)
	case o.attention != 0 && (o.redundant || o.replan != ""):
		return cli.Usagef("--attention-share goes with neither --redundant nor --replan: it makes one cover anew")
	case o.dialect == "" && o.bitmap != "":
		return cli.Usagef("--bitmap is of a --dialect")
	case o.minimise == string(cover.Bytes) && o.dialect == "" && o.sr == "":
		return cli.Usagef("--minimise bytes needs to know what a probe carries: --dialect with --bitmap, or --sr")
	}
	return nil
}

// graph reads the topology, with its agents, and fills in delays that it does not state.
func (o *coverFlags) graph() (*topo.Graph, error) {
	g, err := load.Topology(o.topology)
	if err != nil {
		return nil, err
	}
	if o.agents != "" && o.agents != noneText {
		f, err := os.Open(o.agents)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if g, err = load.Agents(o.agents, f, g); err != nil {
			return nil, err
		}
	}
	if o.byDistance {
		g = g.WithPlaceDelays()
	}
	if o.defaultDelay > 0 {
		g = g.WithDelay(o.defaultDelay)
	}
	return g, nil
}

// costs reads the utilisation of links from a running collector.
func (o *coverFlags) costs(c *cobra.Command, g *topo.Graph) (*topo.Graph, error) {
	if err := o.measured.open(c.Context()); err != nil {
		return nil, err
	}
	g, known, err := o.measured.costs(c.Context(), g)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c.ErrOrStderr(), "measured: the use of %d of %d directions of links; others are taken to be idle\n", known, 2*g.NumLinks())
	return g, nil
}

// limits sets what the format of probes can carry.
func (o *coverFlags) limits(p *cover.Problem) (err error) {
	var hops, port int
	var size cover.Size
	switch {
	case o.sr != "":
		hops, port, size, err = probe.RouteLimits(o.sr, o.mtu)
	case o.dialect != "":
		basic, detailed, two := strings.Cut(o.bitmap, ",")
		if !two {
			detailed = o.bitmap
		}
		if hops, size, err = o.stackLimits(detailed); err == nil && two {
			err = o.attend(p, basic, detailed)
		}
	default:
		return nil
	}
	switch {
	case errors.As(err, new(*probe.RoomError)):
		return cli.Usagef("--mtu %d %w", o.mtu, err)
	case err != nil && o.sr != "":
		return cli.Usagef("--sr %w", err)
	case err != nil:
		return err
	}
	o.stack = hops
	p.MaxHops, p.MaxPort = lower(p.MaxHops, hops), lower(p.MaxPort, port)
	if o.dialect != "" || p.Minimise == cover.Bytes {
		p.Size = size
	}
	return nil
}

// lower is the lower of two limits, of which 0 is none.
func lower(asked, most int) int {
	if asked == 0 || most == 0 {
		return max(asked, most)
	}
	return min(asked, most)
}

// betweenHosts lets probes whose two ends are always hosts have two links more: hosts add nothing to them.
func (o *coverFlags) betweenHosts(p *cover.Problem) {
	if o.dialect == "" || p.Hosts == nil || len(p.Depots) == 0 {
		return
	}
	for _, v := range p.Depots {
		if !p.Hosts[v] {
			return
		}
	}
	p.MaxHops = lower(o.maxHops, o.stack+2)
	p.Size.Header -= p.Size.PerHop // nothing is added before the first link
}

// stackLimits returns the most links of a probe with the metadata of --dialect, and its size.
func (o *coverFlags) stackLimits(bitmap string) (hops int, size cover.Size, err error) {
	p, bits, err := o.instructions(bitmap)
	if err != nil {
		return 0, size, err
	}
	hops, size, err = probe.StackLimits(&p.INT, bits, o.mtu)
	if err != nil && !errors.As(err, new(*probe.RoomError)) {
		err = cli.Usagef("--dialect %s: %w", o.dialect, err)
	}
	return hops, size, err
}

// instructions are what switches of --dialect are asked for.
func (o *coverFlags) instructions(bitmap string) (p demux.Profile, bits uint16, err error) {
	p, ok := demux.Lookup(o.dialect)
	if !ok {
		return p, 0, cli.Usagef("--dialect %q is none of the built-in ones, which `hopscope config profiles` lists", o.dialect)
	}
	if bitmap == "" {
		return p, 0, cli.Usagef("--dialect needs the --bitmap of what switches write, such as 0xFFFF")
	}
	n, err := strconv.ParseUint(bitmap, 0, 16)
	if err != nil {
		return p, 0, cli.Usagef("--bitmap %q is no number from 1 to 0xFFFF", bitmap)
	}
	return p, uint16(n), nil
}

// attend sets what a loop with attention carries.
func (o *coverFlags) attend(p *cover.Problem, basic, detailed string) error {
	p.Attention = &cover.Attention{Share: o.attention}
	for bitmap, to := range map[string]*int{basic: &p.Attention.Basic, detailed: &p.Attention.Detailed} {
		profile, bits, err := o.instructions(bitmap)
		if err != nil {
			return err
		}
		if _, *to, err = profile.INT.StackBytes(bits); err != nil {
			return cli.Usagef("--bitmap %s: %w", bitmap, err)
		}
	}
	if p.Attention.Detailed < p.Attention.Basic {
		return cli.Usagef("--bitmap %s: the first bitmap, the basic one, takes more bytes than the second", o.bitmap)
	}
	return nil
}

// readHosts reads which nodes are hosts: those of --hosts, and those that the topology marks.
func (o *coverFlags) readHosts(p *cover.Problem) error {
	g, some := p.Graph, false
	hosts := make([]bool, g.NumNodes())
	if o.hosts == "" {
		for v := range hosts {
			hosts[v] = g.Host(v)
			some = some || hosts[v]
		}
	} else if o.hosts != noneText {
		list, err := readNames("hosts", o.hosts)
		if err != nil {
			return err
		}
		for k, name := range list.names {
			v, ok := g.Lookup(name)
			if !ok {
				return list.wrong(k, fmt.Errorf("the topology has no node %q", name))
			}
			hosts[v], some = true, true
		}
	}
	if some {
		p.Hosts = hosts
	}
	return nil
}
