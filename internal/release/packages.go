package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strconv"
)

// nfpm makes packages. It is run and not linked: it needs 70 modules that nothing else here does.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.48.0"

// writePackages makes packages of a program for Linux, for Debian and Red Hat.
func (r *release) writePackages(b *built) error {
	program := filepath.Dir(b.path)
	if err := os.WriteFile(filepath.Join(program, "copyright"), licenceTexts(b.parts), 0o644); err != nil {
		return err
	}
	pages, err := filesIn(filepath.Join(r.stage, "man1"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(r.stage, "man1.gz"), 0o755); err != nil {
		return err
	}
	for _, page := range pages {
		if err := compress(filepath.Join(r.stage, "man1", page), filepath.Join(r.stage, "man1.gz", page+".gz")); err != nil {
			return err
		}
	}
	if err := compress("CHANGELOG.md", filepath.Join(r.stage, "CHANGELOG.md.gz")); err != nil {
		return err
	}
	dist, err := filepath.Abs(r.dist)
	if err != nil {
		return err
	}
	env := []string{
		"GOFLAGS=-trimpath", "CGO_ENABLED=0", "VERSION=" + r.version, "ARCH=" + b.arch, "STAGE=" + r.stage, "PROGRAM=" + program,
		"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.when.Unix(), 10),
	}
	for _, kind := range []string{"deb", "rpm"} {
		if err := run(env, "go", "run", nfpm, "package", "--config", r.packaging, "--packager", kind, "--target", dist+string(filepath.Separator)); err != nil {
			return err
		}
	}
	return nil
}

// compress writes a file as gzip, without its name and time.
func compress(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}
