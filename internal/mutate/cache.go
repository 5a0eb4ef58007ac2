package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// outcome is the result of the tests of a target for its mutants.
type outcome struct {
	Total int
	Alive []string // labels, each with how it is alive
	Took  time.Duration
}

// cache is the directory that keeps the outcomes of finished targets, or "" for none.
type cache string

// file returns the place of an outcome. Its name is a hash of the target, of the test binaries, of the files of their
// packages, and of the settings of tests. Files that a test reads elsewhere are not part of it.
func (c cache) file(t *target, suites []*suite) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", *t)
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return !strings.HasPrefix(v, "HOPSCOPE_") })
	slices.Sort(env)
	fmt.Fprintf(h, "%q\n", env)
	add := func(path string) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := io.Copy(h, f)
		fmt.Fprintf(h, "\n%d\n", n)
		return err
	}
	for _, s := range suites {
		if err := add(s.binary); err != nil {
			return "", err
		}
		err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			fmt.Fprintf(h, "%q\n", path)
			return add(path)
		})
		if err != nil {
			return "", err
		}
	}
	return filepath.Join(string(c), fmt.Sprintf("%x.json", h.Sum(nil)[:16])), nil
}

// load reads an outcome. A file that is missing or broken has none.
func (c cache) load(file string) (o outcome, ok bool) {
	data, err := os.ReadFile(file)
	return o, c != "" && err == nil && json.Unmarshal(data, &o) == nil && o.Total > 0
}

// save writes an outcome, so that a run that ends in between leaves the whole file or none.
func (c cache) save(file string, o outcome) error {
	if c == "" {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(c), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
