package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

var chartVersion = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// writeChart writes the chart of Helm in deploy/helm as an archive, with the version of the release.
func (r *release) writeChart() error {
	const dir = "deploy/helm"
	var files []file
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f := file{name: filepath.ToSlash(name), from: path}
		if name == "Chart.yaml" {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			f.from, f.text = "", chartVersion.ReplaceAll(text, []byte("$1: "+r.version))
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := writeTar(&out, "hopscope", files, r.when); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, "hopscope-"+r.version+".tgz"), out.Bytes(), 0o644)
}
