package ask

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// FilmFormats are the formats of [Film.WriteFiles].
var FilmFormats = []string{"npy", "arrow", "png"}

// WriteFiles writes a film into a directory: nodes.csv and windows.csv name rows, columns and windows. The values are a file with the
// name of the metric (npy, arrow), or one for each window (png). No file is overwritten.
func (f *Film) WriteFiles(dir, format string) error {
	nodes := [][]string{{"row", "node", "name"}}
	for i, n := range f.Nodes {
		nodes = append(nodes, []string{strconv.Itoa(i), strconv.FormatUint(uint64(n.ID), 10), n.Name})
	}
	windows := [][]string{{"window", "end"}}
	for i, end := range f.Windows {
		windows = append(windows, []string{strconv.Itoa(i), time.UnixMilli(end).UTC().Format("2006-01-02T15:04:05.000Z")})
	}
	for name, rows := range map[string][][]string{"nodes.csv": nodes, "windows.csv": windows} {
		if err := writeNew(filepath.Join(dir, name), func(w *os.File) error { return csv.NewWriter(w).WriteAll(rows) }); err != nil {
			return err
		}
	}
	switch format {
	case "npy":
		return writeNew(filepath.Join(dir, f.Metric+".npy"), func(w *os.File) error { return f.WriteNumPy(w) })
	case "arrow":
		return writeNew(filepath.Join(dir, f.Metric+".arrow"), func(w *os.File) error { return f.WriteArrow(w) })
	case "png":
		for k := range f.Windows {
			if err := writeNew(filepath.Join(dir, fmt.Sprintf("%04d.png", k)), func(w *os.File) error { return f.WritePNG(w, k) }); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%q is no format of a film", format)
}

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

// Present counts the values of a film that are there.
func (f *Film) Present() (n int) {
	for _, values := range f.Values {
		for _, v := range values {
			if v == v {
				n++
			}
		}
	}
	return n
}
