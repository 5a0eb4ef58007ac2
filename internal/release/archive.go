package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// file is one file of an archive, or a directory, whose name ends with a slash.
type file struct {
	name  string // in the archive
	from  string // path of its content, or
	text  []byte // its content
	mode  int64  // 0 is readable by all
	owner int    // 0 is root
}

// examples are what users copy and edit, by their place in an archive.
var examples = []string{
	"hopscope.yaml", "agent.yaml", "control.yaml",
	"hopscope.service", "hopscope-agent.service", "hopscope-console.service", "hopscope-consume.service",
}

// writeArchive writes what users of a system unpack: a zip for Windows, and a tar for others.
func (r *release) writeArchive(b *built) error {
	files := []file{
		{name: filepath.Base(b.path), from: b.path, mode: 0o755},
		{name: "LICENSE", from: "LICENSE"},
		{name: "THIRD-PARTY-LICENSES.txt", text: licenceTexts(b.parts)},
		{name: "README.md", from: "README.md"},
		{name: "CHANGELOG.md", from: "CHANGELOG.md"},
	}
	for _, dir := range []string{"man1", "completions"} {
		names, err := filesIn(filepath.Join(r.stage, dir))
		if err != nil {
			return err
		}
		for _, name := range names {
			files = append(files, file{name: dir + "/" + name, from: filepath.Join(r.stage, dir, name)})
		}
	}
	for _, name := range examples {
		if !strings.HasSuffix(name, ".service") || b.os == "linux" {
			files = append(files, file{name: "examples/" + name, from: filepath.Join("deploy", name)})
		}
	}
	write, ending := writeTar, ".tar.gz"
	if b.os == "windows" {
		write, ending = writeZip, ".zip"
	}
	var out bytes.Buffer
	if err := write(&out, r.base(b), files, r.when); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, r.base(b)+ending), out.Bytes(), 0o644)
}

// content is what is in the file.
func (f *file) content() ([]byte, error) {
	if f.from == "" { // so of a directory
		return f.text, nil
	}
	return os.ReadFile(f.from)
}

func (f *file) isDir() bool { return strings.HasSuffix(f.name, "/") }

func (f *file) permissions() int64 {
	switch {
	case f.mode != 0:
		return f.mode
	case f.isDir():
		return 0o755
	}
	return 0o644
}

// writeTar writes files below a directory as a tar that is compressed.
func writeTar(w io.Writer, dir string, files []file, when time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeFiles(z, dir, files, when); err != nil {
		return err
	}
	return z.Close()
}

// writeFiles writes files below a directory as a tar, all of one time.
func writeFiles(w io.Writer, dir string, files []file, when time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		b, err := f.content()
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(dir, f.name), Size: int64(len(b)), Mode: f.permissions(), ModTime: when, Uid: f.owner, Gid: f.owner}
		if f.isDir() {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		}
		if f.owner == 0 {
			h.Uname, h.Gname = "root", "root"
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(b); err != nil {
			return err
		}
	}
	return t.Close()
}

// writeZip is [writeTar] for Windows.
func writeZip(w io.Writer, dir string, files []file, when time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		b, err := f.content()
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: path.Join(dir, f.name), Method: zip.Deflate, Modified: when.UTC()}
		h.SetMode(os.FileMode(f.permissions()))
		out, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return z.Close()
}
