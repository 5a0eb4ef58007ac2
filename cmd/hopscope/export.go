package main

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/sink/web"
	"github.com/hopscope/hopscope/sink/web/ask"
)

func exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export",
		Short: "Write what a running collector or console keeps into files",
		Args:  noCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(exportImagesCommand())
	return c
}

func exportImagesCommand() *cobra.Command {
	var a cli.Asker
	var metric, format, dir string
	var windows int
	c := &cobra.Command{
		Use:   "images",
		Short: "Write windows as pictures of switches by switches",
		Long: `Write one value of every link in the latest windows. A window is a matrix: the cell at
row a and column b is the value of the link from switch a to switch b. Neighbours are
near each other in the order of rows. A cell without a link, or without a report in
the window, is absent, which is not zero.

The files, in the directory of --out, which must be empty or absent:

  nodes.csv      the switch of each row and column
  windows.csv    the end of each window
  METRIC.npy     --format npy: float32 of windows x rows x columns, NaN for absent cells
  METRIC.arrow   --format arrow: a row for each link and window with a value
  NNNN.png       --format png: a picture for each window, dark for great values`,
		Example: `  hopscope export images --out images
  hopscope export images --metric latency_p99 --windows 180 --format arrow --out images
  hopscope export images --format png --out pictures`,
		Args: exactArgs(0),
	}
	f := c.Flags()
	f.StringVar(&a.URL, "url", "http://127.0.0.1:8080", "page of the running collector")
	f.StringVar(&a.TokenFile, "token-file", "", "file with the page's token, where it wants one")
	f.StringVar(&metric, "metric", "queue_p99", "value of the links; the API's metrics of hops")
	f.StringVar(&format, "format", "npy", "npy, arrow or png")
	f.StringVar(&dir, "out", "", "directory of the files")
	f.IntVar(&windows, "windows", 60, "latest windows")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case !slices.Contains(ask.FilmFormats, format):
			return usagef("--format %q is not npy, arrow or png", format)
		case dir == "":
			return usagef("--out names the directory of the files")
		case windows < 1 || windows > 10_000:
			return usagef("--windows is from 1 to 10000")
		case !slices.Contains(web.MetricNames(), metric):
			return usagef("--metric %q is none of %v", metric, web.MetricNames())
		}
		var film ask.Film
		q := url.Values{"metric": {metric}, "limit": {strconv.Itoa(windows)}}
		if err := a.Into(c.Context(), "/api/film?"+q.Encode(), &film); err != nil {
			return err
		}
		film.Metric = metric // a name of a file does not come from the answer
		if err := film.Check(); err != nil {
			return fmt.Errorf("%s: %w", a.URL, err)
		}
		if len(film.Directions) == 0 || len(film.Windows) == 0 {
			return fmt.Errorf("%s shows %d windows and %d links so far: a map comes from a topology or from flows", a.URL, len(film.Windows), len(film.Directions)/2)
		}
		if err := emptyDir(dir); err != nil {
			return err
		}
		if err := film.WriteFiles(dir, format); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%d windows of %d x %d switches, %d of %d values present, in %s\n", len(film.Windows), len(film.Nodes), len(film.Nodes),
			film.Present(), len(film.Windows)*len(film.Directions), dir)
		if film.Omitted > 0 {
			fmt.Fprintf(c.OutOrStdout(), "%d older windows are left out\n", film.Omitted)
		}
		if film.Unplaced > 0 {
			fmt.Fprintf(c.OutOrStdout(), "%d hops are on no link of the map, such as those to hosts\n", film.Unplaced)
		}
		return nil
	}
	return c
}

// emptyDir makes a directory, or takes one without files.
func emptyDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return usagef("--out %s has files already", dir)
	}
	return err
}
