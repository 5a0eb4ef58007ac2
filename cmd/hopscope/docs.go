package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/docs"
)

func docsCommand() *cobra.Command {
	var search, listen string
	c := &cobra.Command{
		Use:   "docs [PAGE[#SECTION]]",
		Short: "Read and search the documentation",
		Long: `List the pages of the documentation, or print one of them, or one section, as
Markdown. With --search, list the sections that have all words of a query, the best
first. With --listen, serve the pages to a browser until SIGINT or SIGTERM.

The program holds all pages: no file and no network is needed. The page of a collector
or console shows them, too, at /docs.`,
		Example: `  hopscope docs
  hopscope docs operating
  hopscope docs findings#high-queue
  hopscope docs --search "spool full"
  hopscope docs --listen 127.0.0.1:8900`,
		Args: cobra.MaximumNArgs(1),
	}
	c.Flags().StringVar(&search, "search", "", "list the sections that have these words")
	c.Flags().StringVar(&listen, "listen", "", "serve the pages at this address, HOST:PORT")
	c.RunE = func(c *cobra.Command, args []string) error {
		given := len(args)
		for _, flag := range []string{"search", "listen"} {
			if c.Flags().Changed(flag) {
				given++
			}
		}
		if given > 1 {
			return usagef("give a page, --search or --listen, and only one of them")
		}
		out := c.OutOrStdout()
		switch {
		case c.Flags().Changed("search"):
			return searchDocs(out, search)
		case c.Flags().Changed("listen"):
			return serveDocs(c, listen)
		case given == 1:
			return printDocs(out, args[0])
		}
		for i, g := range docs.Pages {
			if i > 0 {
				fmt.Fprintln(out)
			}
			fmt.Fprintf(out, "%s: %s\n", g.Name, g.About)
			for _, page := range g.Pages {
				fmt.Fprintf(out, "  %-31s %s\n", page, docs.Title(page))
			}
		}
		return nil
	}
	return c
}

// printDocs prints a page, or the section of it that stands behind a #.
func printDocs(out io.Writer, name string) error {
	page, anchor, part := strings.Cut(strings.TrimPrefix(name, "docs/"), "#")
	page = strings.TrimSuffix(page, ".md")
	text, ok := docs.Page(page)
	if !ok {
		return usagef("there is no page %q: hopscope docs lists them", page)
	}
	if part {
		if text, ok = docs.Section(page, anchor); !ok {
			return usagef("page %s has no section %q: its headings in lower case, with dashes for spaces, name its sections", page, anchor)
		}
	}
	_, err := io.WriteString(out, text)
	return err
}

// searchDocs lists the sections that have the words of a query.
func searchDocs(out io.Writer, query string) error {
	hits, all := docs.Search(query)
	if all == 0 {
		return fmt.Errorf("no section has all words of %q: try fewer words, or beginnings of words", query)
	}
	for _, h := range hits {
		name := h.Page
		if h.Anchor != "" {
			name += "#" + h.Anchor
		}
		fmt.Fprintf(out, "%s\n    %s\n    %s\n", name, h.Title, h.Text)
	}
	if more := all - len(hits); more > 0 {
		fmt.Fprintf(out, "and %d more: add a word to narrow the search\n", more)
	}
	return nil
}

// serveDocs serves the documentation until the command ends.
func serveDocs(c *cobra.Command, address string) error {
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return usagef("--listen %s: %w", address, err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", address, err)
	}
	fmt.Fprintf(c.OutOrStdout(), "the documentation is at http://%s/docs/\n", l.Addr())
	mux := http.NewServeMux()
	mux.Handle("/docs/", http.StripPrefix("/docs", docs.Handler()))
	mux.Handle("/", http.RedirectHandler("/docs/", http.StatusFound))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		<-c.Context().Done()
		_ = server.Close() // requests take milliseconds
		close(ended)
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-ended
	return nil
}
