package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

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
		write, ok := filmFormats[format]
		switch {
		case !ok:
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
		if err := writeFilm(dir, &film, write); err != nil {
			return err
		}
		present := 0
		for _, values := range film.Values {
			for _, v := range values {
				if v == v {
					present++
				}
			}
		}
		fmt.Fprintf(c.OutOrStdout(), "%d windows of %d x %d switches, %d of %d values present, in %s\n", len(film.Windows), len(film.Nodes), len(film.Nodes),
			present, len(film.Windows)*len(film.Directions), dir)
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

// filmFormats write the values of a film into a directory.
var filmFormats = map[string]func(dir string, f *ask.Film) error{
	"npy": func(dir string, f *ask.Film) error {
		return writeNew(filepath.Join(dir, f.Metric+".npy"), func(w *os.File) error { return f.WriteNumPy(w) })
	},
	"arrow": func(dir string, f *ask.Film) error {
		return writeNew(filepath.Join(dir, f.Metric+".arrow"), func(w *os.File) error { return f.WriteArrow(w) })
	},
	"png": func(dir string, f *ask.Film) error {
		for k := range f.Windows {
			if err := writeNew(filepath.Join(dir, fmt.Sprintf("%04d.png", k)), func(w *os.File) error { return f.WritePNG(w, k) }); err != nil {
				return err
			}
		}
		return nil
	},
}

func writeFilm(dir string, f *ask.Film, write func(dir string, f *ask.Film) error) error {
	err := writeNew(filepath.Join(dir, "nodes.csv"), func(w *os.File) error {
		rows := [][]string{{"row", "node", "name"}}
		for i, n := range f.Nodes {
			rows = append(rows, []string{strconv.Itoa(i), strconv.FormatUint(uint64(n.ID), 10), n.Name})
		}
		return writeCSV(w, rows)
	})
	if err != nil {
		return err
	}
	err = writeNew(filepath.Join(dir, "windows.csv"), func(w *os.File) error {
		rows := [][]string{{"window", "end"}}
		for i, end := range f.Windows {
			rows = append(rows, []string{strconv.Itoa(i), time.UnixMilli(end).UTC().Format("2006-01-02T15:04:05.000Z")})
		}
		return writeCSV(w, rows)
	})
	if err != nil {
		return err
	}
	return write(dir, f)
}

func writeCSV(w io.Writer, rows [][]string) error { return csv.NewWriter(w).WriteAll(rows) }

// writeNew writes a file that does not exist yet.
func writeNew(name string, write func(w *os.File) error) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = write(file)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
