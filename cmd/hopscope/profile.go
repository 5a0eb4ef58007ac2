package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode/demux"
)

// lookupProfile returns the profile of that name, with other report ports if any are given.
func lookupProfile(e *collector.Exporters, name string, ports []uint) (demux.Profile, error) {
	p, err := e.Lookup(name)
	if err != nil {
		return p, noProfile(e, name)
	}
	if len(ports) > 0 {
		p.ReportPorts = nil
		for _, n := range ports {
			if n < 1 || n > 65535 {
				return p, usagef("--report-port %d is outside 1..65535", n)
			}
			p.ReportPorts = append(p.ReportPorts, uint16(n))
		}
	}
	return p, nil
}

// pintFlags overrides the settings with the flags --nodes and --topology.
func pintFlags(c collector.PINT, nodes, topology string) (collector.PINT, error) {
	c.Nodes, c.Topology = nodes, topology
	if err := c.Validate(); err != nil {
		return c, usagef("%v", err)
	}
	return c, nil
}

func profilesCommand() *cobra.Command {
	var format, config string
	c := &cobra.Command{
		Use:   "profiles [NAME]",
		Short: "List the dialects, or describe one in full",
		Long: `List the dialects that "--profile" and the settings exporters.profile and
exporters.profiles take: what each reads, the UDP ports of its reports, the marks of
packets of the network, and the units of its numbers. With NAME, print everything about
one. With --config, those that the settings define (exporters.dialects) follow the
built-in ones.`,
		Example: `  hopscope config profiles
  hopscope config profiles geant
  hopscope config profiles my-switch --config hopscope.yaml
  hopscope config profiles --format json`,
		Args: maxArgs(1),
	}
	c.Flags().StringVar(&format, "format", "table", "table or json")
	c.Flags().StringVar(&config, "config", "", "settings file with dialects of its own")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkFormat(format); err != nil {
			return err
		}
		cfg, err := loadConfig(config)
		if err != nil {
			return err
		}
		list, w := cfg.Exporters.Describe(), c.OutOrStdout()
		if len(args) == 0 {
			if format == "json" {
				return json.NewEncoder(w).Encode(list)
			}
			return demux.WriteDescriptions(w, list)
		}
		i := slices.IndexFunc(list, func(d demux.Description) bool { return d.Name == args[0] })
		if i < 0 {
			return noProfile(&cfg.Exporters, args[0])
		}
		if format == "json" {
			return json.NewEncoder(w).Encode(&list[i])
		}
		return list[i].Write(w)
	}
	return c
}

func noProfile(e *collector.Exporters, name string) error {
	return usagef("no profile %q; there are %s", name, strings.Join(e.ProfileNames(), ", "))
}
