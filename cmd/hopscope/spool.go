package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
)

func spoolCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "spool",
		Short: "Look at the points that a store refused, and send them again",
		Long: `A store can refuse points for good: their field has another type there, or they are
older than what it keeps. The collector puts them aside, in the directory "refused" of
the store's spool, with what the store said. Once the cause is mended, "hopscope spool
resend" sends them again; it may run beside the collector.`,
		Example: `  hopscope spool list --config hopscope.yaml
  hopscope spool show --config hopscope.yaml 00000001789012345678-000000.refused
  hopscope spool resend --config hopscope.yaml`,
		Args: exactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(spoolListCommand(), spoolShowCommand(), spoolResendCommand())
	return c
}

// spoolPlace selects the place of refused points.
type spoolPlace struct {
	config, dir, format string
}

func (p *spoolPlace) flags(c *cobra.Command) {
	c.Flags().StringVar(&p.config, "config", "", "settings file: the spools of all its stores")
	c.Flags().StringVar(&p.dir, "dir", "", "directory of one spool, instead of --config")
	c.Flags().StringVar(&p.format, "format", "table", "table or json")
}

// folders returns the directories with refused points.
func (p *spoolPlace) folders() (dirs []string, err error) {
	if err := checkFormat(p.format); err != nil {
		return nil, err
	}
	switch {
	case p.config != "" && p.dir != "":
		return nil, usagef("--config and --dir both say where the spool is; choose one")
	case p.dir != "":
		dir, err := refusedIn(p.dir)
		return []string{dir}, err
	case p.config == "":
		return nil, usagef("say where the spool is: --config FILE, or its directory")
	}
	cfg, err := loadConfig(p.config)
	if err != nil {
		return nil, err
	}
	spools := collector.Spools(&cfg)
	for _, name := range slices.Sorted(maps.Keys(spools)) {
		dirs = append(dirs, collector.RefusedDir(spools[name]))
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%s: no store with a spool is enabled", p.config)
	}
	return dirs, nil
}

// refusedIn finds the refused points of the spool in dir, which may be named itself.
func refusedIn(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", wrongInput(err)
	}
	if !info.IsDir() {
		return "", usagef("%s is no directory", dir)
	}
	if inner := collector.RefusedDir(dir); filepath.Base(filepath.Clean(dir)) != filepath.Base(inner) {
		return inner, nil
	}
	return dir, nil
}

// printable is a text of others, fit for a terminal.
func printable(s string, lines bool) string {
	if lines {
		return names.PrintableLines(s)
	}
	return names.Printable(s)
}

func writeIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func spoolListCommand() *cobra.Command {
	var at spoolPlace
	c := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List what stores refused: when, how much, and why",
		Example: `  hopscope spool list --config hopscope.yaml
  hopscope spool list /var/lib/hopscope/spool/influx --format json`,
		Args: maxArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				if at.dir != "" {
					return usagef("%s and --dir both name a directory; choose one", args[0])
				}
				at.dir = args[0]
			}
			dirs, err := at.folders()
			if err != nil {
				return err
			}
			entries := []stores.RefusedEntry{}
			for _, dir := range dirs {
				list, err := sink.ListRefused(dir)
				if err != nil {
					return err
				}
				for _, name := range list {
					entries = append(entries, stores.ReadRefused(dir, name, false))
				}
			}
			if at.format == "json" {
				return writeIndented(c.OutOrStdout(), entries)
			}
			return stores.WriteRefused(c.OutOrStdout(), entries)
		},
	}
	at.flags(c)
	return c
}

func spoolShowCommand() *cobra.Command {
	var at spoolPlace
	c := &cobra.Command{
		Use:     "show ENTRY...",
		Short:   "Show refused points, with the reasons of the store",
		Example: `  hopscope spool show --config hopscope.yaml 00000001789012345678-000000.refused`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s wants the names of entries; hopscope spool list has them", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			dirs, err := at.folders()
			if err != nil {
				return err
			}
			found, err := stores.FindRefused(dirs, args)
			if err != nil {
				return err
			}
			var entries []stores.RefusedEntry
			for _, dir := range dirs {
				for _, name := range found[dir] {
					e := stores.ReadRefused(dir, name, true)
					if e.Problem != "" {
						return errors.New(e.Problem)
					}
					entries = append(entries, e)
				}
			}
			if at.format == "json" {
				return writeIndented(c.OutOrStdout(), entries)
			}
			for i := range entries {
				if err := entries[i].Write(c.OutOrStdout()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	at.flags(c)
	return c
}

func spoolResendCommand() *cobra.Command {
	var o struct{ config, format string }
	c := &cobra.Command{
		Use:   "resend [ENTRY...]",
		Short: "Send refused points to their store again",
		Long: `Send refused points, or only the named entries, to the store that refused them, as
the settings reach it. What it stores now is removed; what it refuses again stays, with
what it says now. A running collector is not disturbed, except that Parquet files and
files of JSON lines belong to one process: stop the collector for those.

A run that is killed in between leaves entries that are stored already; sending them
again changes nothing in InfluxDB, and repeats rows elsewhere. The ledger of the
collector counts refused points as refused, whatever becomes of them later.`,
		Example: `  hopscope spool resend --config hopscope.yaml`,
	}
	c.Flags().StringVar(&o.config, "config", "", "settings file: the stores and their spools")
	c.Flags().StringVar(&o.format, "format", "table", "table or json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.config == "" {
			return usagef("say which settings name the store: --config FILE")
		}
		if err := checkFormat(o.format); err != nil {
			return err
		}
		cfg, err := loadConfig(o.config)
		if err != nil {
			return err
		}
		if err := settings.Check(&cfg); err != nil {
			return usageError{Err: err}
		}
		spools := collector.Spools(&cfg)
		var dirs []string
		names := slices.Sorted(maps.Keys(spools))
		for _, name := range names {
			dirs = append(dirs, collector.RefusedDir(spools[name]))
		}
		if len(dirs) == 0 {
			return fmt.Errorf("%s: no store with a spool is enabled", o.config)
		}
		found, err := stores.FindRefused(dirs, args)
		if err != nil {
			return err
		}
		results := []stores.Resent{}
		for i, dir := range dirs {
			if len(found[dir]) == 0 {
				continue
			}
			r, rerr := stores.Resend(c.Context(), &cfg, names[i], dir, found[dir])
			results = append(results, r)
			err = errors.Join(err, rerr)
		}
		if o.format == "json" {
			return errors.Join(writeIndented(c.OutOrStdout(), results), err)
		}
		if len(results) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "no points are refused")
		}
		for _, r := range results {
			fmt.Fprintf(c.OutOrStdout(), "%s: %d points stored, %d refused again, %d not tried\n", r.Sink, r.Stored, r.Refused, r.Left)
		}
		return err
	}
	return c
}
