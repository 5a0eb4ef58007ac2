package main

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/inference/detect"
)

// openTable opens a file, or standard input for "-", and unpacks it where it is packed.
func openTable(c *cobra.Command, path string) (io.ReadCloser, error) {
	var f io.ReadCloser = io.NopCloser(c.InOrStdin())
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		f = file
	}
	b := bufio.NewReaderSize(f, 1<<16)
	if head, _ := b.Peek(3); string(head) == "\ufeff" {
		b.Discard(3) // a byte order mark, which spreadsheets write
	}
	if head, _ := b.Peek(2); string(head) != "\x1f\x8b" {
		return &table{b, f}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, f.Close()))
	}
	return &table{z, f}, nil
}

type table struct {
	io.Reader
	file io.Closer
}

func (t *table) Close() error { return t.file.Close() }

// Limits of a table.
const (
	maxTableHops   = 1 << 17
	maxTableWindow = 1e7
)

// tableColumns are those that a table must have.
var tableColumns = []string{"hop", "window", "count", "p50", "p90", "p99"}

// read takes the rows of a table as they come.
func (d *detection) read(in io.Reader) error {
	r := csv.NewReader(in)
	r.ReuseRecord = true
	header, err := r.Read()
	if err == io.EOF {
		return fmt.Errorf("the table is empty; its first line names the columns: %v", tableColumns)
	}
	if err != nil {
		return err
	}
	var at [6]int
	for k, name := range tableColumns {
		if at[k] = slices.Index(header, name); at[k] < 0 {
			return fmt.Errorf("line 1: there is no column %q among %q", name, header)
		}
		if slices.Contains(header[at[k]+1:], name) {
			return fmt.Errorf("line 1: there are two columns %q", name)
		}
	}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the packed file is cut off")
		}
		if err != nil {
			return err
		}
		if err := d.row(row, at); err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (d *detection) row(row []string, at [6]int) error {
	field := func(k int) string { return row[at[k]] }
	window, err := strconv.Atoi(field(1))
	if err != nil || window < 0 || window > maxTableWindow {
		return fmt.Errorf("window %q is not a whole number up to %d: windows are counted, times have to be divided by a window's length", field(1), int(maxTableWindow))
	}
	var w detect.Window
	if w.Count, err = strconv.ParseUint(field(2), 10, 64); err != nil {
		return fmt.Errorf("count %q is not a whole number", field(2))
	}
	for k, v := range []*float64{&w.P50, &w.P90, &w.P99} {
		if *v, err = strconv.ParseFloat(field(3+k), 64); w.Count > 0 && (err != nil || !(*v >= 0 && *v <= 1e18)) {
			return fmt.Errorf("%s %q is not a number from 0 to 1e18", tableColumns[3+k], field(3+k))
		}
	}
	k, ok := d.byName[field(0)]
	if !ok {
		if k = len(d.hops); k == maxTableHops {
			return fmt.Errorf("more than %d hops", maxTableHops)
		}
		name := string([]byte(field(0)))
		d.byName[name] = k
		d.hops = append(d.hops, tableHop{name: name, next: window, open: -1})
	}
	h := &d.hops[k]
	if window < h.next {
		return fmt.Errorf("window %d of hop %q comes after window %d", window, h.name, h.next-1)
	}
	for h.next < window {
		d.add(h, detect.Window{})
	}
	d.add(h, w)
	d.windows++
	d.last = max(d.last, window)
	return nil
}
