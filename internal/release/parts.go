package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// part is a work of others that the program contains: a module of Go, Go's own library, or a package of npm in the page.
type part struct {
	name, version string
	url           string // package URL (purl)
	sum           string // as in go.sum, of modules
	licences      []string
	text          []byte // of the licence, and of notices
}

// partsOf are the parts of a program, by name. A part without a licence that is known, and that lets it be a part, is an error.
func partsOf(program string) ([]part, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	version := strings.TrimPrefix(strings.Fields(info.GoVersion)[0], "go")
	parts := []part{{name: "Go standard library", version: version, url: "pkg:golang/std@" + version}}
	dirs := []string{strings.TrimSpace(string(goroot))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", m.Path).Output()
		dir := strings.TrimSpace(string(out))
		if err != nil || dir == "" {
			return nil, fmt.Errorf("module %s: it is not in the module cache (%v)", m.Path, err)
		}
		parts = append(parts, part{name: m.Path, version: m.Version, url: "pkg:golang/" + m.Path + "@" + m.Version, sum: m.Sum})
		dirs = append(dirs, dir)
	}
	for i, dir := range dirs {
		if parts[i].text, err = licenceFiles(dir); err != nil {
			return nil, err
		}
	}
	page, err := pageParts(filepath.Join("sink", "web", "dist", "LICENSES.txt"))
	if err != nil {
		return nil, err
	}
	parts = append(parts, page...)
	var problems []error
	for i := range parts {
		if parts[i].licences, err = recognise(parts[i].text); err != nil {
			problems = append(problems, fmt.Errorf("%s %s: %w", parts[i].name, parts[i].version, err))
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return parts, nil
}

var (
	licenceNames  = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|copyright|notice)([-_.].*)?$`)
	introductions = regexp.MustCompile(`(?i)^readme([-_.].*)?$`)
)

// licenceFiles are the texts of all files at the top of a module that have a licence or a notice. Where there is none, they are in
// the file that introduces it.
func licenceFiles(dir string) ([]byte, error) {
	names, err := filesIn(dir)
	if err != nil {
		return nil, err
	}
	var text []byte
	for _, wanted := range []*regexp.Regexp{licenceNames, introductions} {
		for _, name := range names {
			if text != nil && wanted == introductions || !wanted.MatchString(name) || strings.HasSuffix(name, ".go") {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return nil, err
			}
			text = append(append(text, bytes.TrimSpace(b)...), "\n\n"...)
		}
	}
	return text, nil
}

// pageHead is how the build of the page heads the licence of a package.
var pageHead = regexp.MustCompile(`(?m)^=+\n(.+) \(npm package (\S+) (\S+)\)\n=+\n`)

// pageParts are the packages of npm in the page, from the file of licences beside it.
func pageParts(path string) ([]part, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var parts []part
	heads := pageHead.FindAllSubmatchIndex(text, -1)
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		name, version := string(text[h[4]:h[5]]), string(text[h[6]:h[7]])
		parts = append(parts, part{name: name, version: version, url: "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + version, text: text[h[1]:end]})
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%s names no package", path)
	}
	return parts, nil
}

// permitted are licences that a program under the Apache License can pass on with the notices that they ask for. One that is not
// here has to be read by a person first. The file of Arrow names HPND, NCSA and OpenSSL, for what its libraries in C++ contain.
var permitted = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "HPND", "ISC", "MIT", "NCSA", "OFL-1.1", "OpenSSL", "Zlib"}

// recognise names the licences in a text by their identifiers of SPDX. It fails where there is none, and where one is not
// permitted.
func recognise(text []byte) ([]string, error) {
	var ids []string
	for _, m := range licensecheck.Scan(text).Match {
		switch {
		case m.IsURL || slices.Contains(ids, m.ID):
		case !slices.Contains(permitted, m.ID):
			return nil, fmt.Errorf("the licence %s is not among those that may be parts: %s", m.ID, strings.Join(permitted, ", "))
		default:
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("no licence is recognised in its text: %q", firstLine(text))
	}
	slices.Sort(ids)
	return ids, nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// licenceTexts are the licences of all parts, as a file that goes with the program.
func licenceTexts(parts []part) []byte {
	var b bytes.Buffer
	b.WriteString("hopscope is under the Apache License 2.0. It contains these works of others, under the licences below.\n\n")
	for _, p := range parts {
		fmt.Fprintf(&b, "%s %s: %s\n", p.name, p.version, strings.Join(p.licences, ", "))
	}
	line := strings.Repeat("=", 100)
	for _, p := range parts {
		fmt.Fprintf(&b, "\n%s\n%s %s\n%s\n\n%s\n", line, p.name, p.version, line, bytes.TrimSpace(p.text))
	}
	return b.Bytes()
}
