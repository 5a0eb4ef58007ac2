package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hopscope/hopscope/internal/testkit"
)

// Two releases of one system have the same bytes, hold what they should, and their programs and lists agree.
func TestRelease(t *testing.T) {
	testkit.Long(t)
	t.Chdir("../..")
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	const version = "0.1.0-dev.7+0123abcd"
	host := runtime.GOOS + "/" + runtime.GOARCH
	var made [2]map[string][]byte
	for i := range made {
		r := release{version: version, dist: filepath.Join(t.TempDir(), "dist"), systems: []string{host}}
		if err := r.make(); err != nil {
			t.Fatal(err)
		}
		made[i] = read(t, r.dist)
	}
	for name, b := range made[0] {
		if !bytes.Equal(b, made[1][name]) {
			t.Errorf("%s has other bytes in the second run", name)
		}
	}
	if len(made[0]) != len(made[1]) {
		t.Errorf("%d files, then %d", len(made[0]), len(made[1]))
	}

	base := "hopscope_" + version + "_" + strings.Replace(host, "/", "_", 1)
	files := untar(t, made[0][base+".tar.gz"])
	for _, name := range []string{
		"LICENSE", "README.md", "CHANGELOG.md", "THIRD-PARTY-LICENSES.txt", "man1/hopscope.1", "man1/hopscope-plan-cover.1",
		"completions/hopscope.bash", "completions/_hopscope", "completions/hopscope.fish", "completions/hopscope.ps1",
		"examples/hopscope.yaml", "examples/hopscope.service",
	} {
		if len(files[base+"/"+name]) == 0 {
			t.Errorf("the archive has no %s", name)
		}
	}
	if chart := untar(t, made[0]["hopscope-"+version+".tgz"]); !strings.Contains(string(chart["hopscope/Chart.yaml"]), "\nversion: "+version+"\nappVersion: "+version+"\n") || len(chart["hopscope/templates/collector.yaml"]) == 0 {
		t.Errorf("the chart is of\n%s", chart["hopscope/Chart.yaml"])
	}
	program := filepath.Join(t.TempDir(), "hopscope")
	if err := os.WriteFile(program, files[base+"/hopscope"], 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "--version").CombinedOutput(); err != nil || string(out) != "hopscope version "+version+"\n" {
		t.Errorf("the program says %q, %v", out, err)
	}

	var bom struct {
		Metadata   struct{ Timestamp string }
		Components []struct {
			Name, Version, PURL string
			Licenses            []json.RawMessage
		}
	}
	if err := json.Unmarshal(made[0][base+".cdx.json"], &bom); err != nil {
		t.Fatal(err)
	}
	if bom.Metadata.Timestamp != "2026-09-21T14:13:20Z" {
		t.Errorf("the list of parts is of %s", bom.Metadata.Timestamp)
	}
	holds(t, made[0][base+".cdx.json"])
	// go version -m is another reader of what the linker noted.
	out, err := exec.Command("go", "version", "-m", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	var linked []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "dep" {
			linked = append(linked, f[1]+" "+f[2])
		}
	}
	texts := string(files[base+"/THIRD-PARTY-LICENSES.txt"])
	var listed []string
	for _, c := range bom.Components {
		if len(c.Licenses) == 0 || !strings.Contains(texts, "\n"+c.Name+" "+c.Version+": ") || strings.Count(texts, "\n"+c.Name+" "+c.Version+"\n===") != 1 {
			t.Errorf("%s %s: no licence, or no text", c.Name, c.Version)
		}
		if strings.HasPrefix(c.PURL, "pkg:golang/") && c.Name != "Go standard library" {
			listed = append(listed, c.Name+" "+c.Version)
		}
	}
	slices.Sort(linked)
	slices.Sort(listed)
	if !slices.Equal(linked, listed) || len(linked) < 20 {
		t.Errorf("linked are\n%s\nand listed\n%s", strings.Join(linked, "\n"), strings.Join(listed, "\n"))
	}

	sums := strings.Split(strings.TrimSpace(string(made[0]["SHA256SUMS"])), "\n")
	if len(sums) != len(made[0])-1 {
		t.Errorf("%d sums of %d files", len(sums), len(made[0])-1)
	}
}

// holds checks a list of parts against the schema that CycloneDX publishes.
func holds(t *testing.T, list []byte) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	for name, url := range map[string]string{
		"bom-1.6.schema.json": "http://cyclonedx.org/schema/bom-1.6.schema.json", "spdx.schema.json": "http://cyclonedx.org/schema/spdx.schema.json",
		"jsf-0.82.schemax.json": "http://cyclonedx.org/schema/jsf-0.82.schema.json",
	} {
		f, err := os.Open(filepath.Join(strings.TrimSpace(string(out)), "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(url, doc); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
	doc.(map[string]any)["components"].([]any)[0].(map[string]any)["type"] = "thing"
	if schema.Validate(doc) == nil {
		t.Error("the schema takes anything")
	}
}

// read returns the files of a directory.
func read(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	names, err := filesIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// untar returns the files of an archive.
func untar(t *testing.T, b []byte) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return untarred(t, b)
}

func untarred(t *testing.T, b []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if mine := h.Uname == "root" && h.Uid == 0; h.ModTime.Unix() != 1790000000 || mine == (h.Name == "var/lib/hopscope/") {
			t.Errorf("%s is of %v, at %v", h.Name, h.Uname, h.ModTime)
		}
	}
}

// A zip has the same files, and its time does not depend on where it was made.
func TestZip(t *testing.T) {
	var out [2]bytes.Buffer
	for i, zone := range []*time.Location{time.UTC, time.FixedZone("here", 3600)} {
		files := []file{{name: "hopscope.exe", text: []byte("MZ"), mode: 0o755}, {name: "examples/a.yaml", text: []byte("a: 1\n")}}
		if err := writeZip(&out[i], "hopscope", files, time.Unix(1790000000, 0).In(zone)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out[0].Bytes(), out[1].Bytes()) {
		t.Error("two zips differ")
	}
	z, err := zip.NewReader(bytes.NewReader(out[0].Bytes()), int64(out[0].Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); err != nil || len(b) == 0 || f.Modified.Unix() != 1790000000 {
			t.Errorf("%s: %q, %v, of %v", f.Name, b, err, f.Modified)
		}
	}
	if len(z.File) != 2 || path.Base(z.File[0].Name) != "hopscope.exe" || z.File[0].Mode() != 0o755 {
		t.Errorf("files %v", z.File)
	}
}

func TestRecognise(t *testing.T) {
	apache, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	gpl := "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version."
	for _, test := range []struct{ name, text, want, err string }{
		{"ours", string(apache), "Apache-2.0", ""},
		{"none", "Do as you like, or not.", "", "no licence is recognised"},
		{"empty", "", "", "no licence is recognised"},
		{"a share-alike licence", gpl, "", "is not among those that may be parts"},
		{"a share-alike licence behind ours", string(apache) + gpl, "", "is not among those that may be parts"},
	} {
		ids, err := recognise([]byte(test.text))
		if got := strings.Join(ids, " "); got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
	}
}

// A module without a licence, and a page without any, fail the release.
func TestPartsWithoutLicence(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "license.go"), []byte("package license\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := licenceFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := recognise(text); err == nil {
		t.Errorf("a module without a licence has %q", ids)
	}
	empty := filepath.Join(dir, "LICENSES.txt")
	if err := os.WriteFile(empty, []byte("The page contains parts of these packages.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pageParts(empty); err == nil {
		t.Error("a page without packages is taken")
	}
}

func TestChangelogOfVersion(t *testing.T) {
	for _, test := range []struct{ heading, version, err string }{
		{"0.1.0 (unreleased)", "0.1.0-dev.7+0123abcd", ""},
		{"0.1.0 (unreleased)", "0.1.0-dev", ""},
		{"0.1.0 (unreleased)", "0.1.0", "does not have its date"},
		{"0.1.0", "0.1.0", "does not have its date"},
		{"0.1.0 (2026-12-01)", "0.1.0", ""},
		{"0.1.0 (2026-12-01)", "0.2.0", "the newest heading"},
		{"0.2.0 (unreleased)", "0.1.0-dev", "the newest heading"},
	} {
		path := filepath.Join(t.TempDir(), "CHANGELOG.md")
		if err := os.WriteFile(path, []byte("# Changelog\n\n## "+test.heading+"\n\n## 0.0.9 (2025-01-01)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkChangelog(path, test.version)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s under %q: %v", test.version, test.heading, err)
		}
	}
	r := release{version: "v0.1.0", dist: t.TempDir(), systems: []string{"linux/amd64"}}
	if err := r.make(); err == nil || !strings.Contains(err.Error(), "is not of the form") {
		t.Errorf("version v0.1.0: %v", err)
	}
}

// The image is a layout whose blobs have their names, says what deploy/Dockerfile says, and publishes what its settings listen on.
func TestImage(t *testing.T) {
	t.Chdir("../..")
	program := filepath.Join(t.TempDir(), "hopscope")
	if err := os.WriteFile(program, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	var made [2][]byte
	for i := range made {
		r := release{version: "0.1.0", dist: t.TempDir(), stage: t.TempDir(), when: time.Unix(1790000000, 0).UTC()}
		programs := []*built{{os: "linux", arch: "amd64", path: program}, {os: "windows", arch: "amd64", path: "nowhere"}, {os: "linux", arch: "arm64", path: program}}
		if err := r.writeImage(programs); err != nil {
			t.Fatal(err)
		}
		made[i] = read(t, r.dist)["hopscope_0.1.0_image.tar"]
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("two images differ")
	}
	files := untarred(t, made[0])
	type descriptor struct {
		Digest, MediaType string
		Platform          struct{ OS, Architecture string }
	}
	blob := func(d descriptor, into any) []byte {
		t.Helper()
		b := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if d.Digest != fmt.Sprintf("sha256:%x", sha256.Sum256(b)) {
			t.Fatalf("%s is not what it is called", d.Digest)
		}
		if into != nil {
			if err := json.Unmarshal(b, into); err != nil {
				t.Fatal(err)
			}
		}
		return b
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &index); err != nil || len(index.Manifests) != 1 || string(files["oci-layout"]) == "" {
		t.Fatalf("%v, %s", err, files["index.json"])
	}
	blob(index.Manifests[0], &index)
	if len(index.Manifests) != 2 || index.Manifests[1].Platform.Architecture != "arm64" {
		t.Fatalf("images %+v", index)
	}
	for _, d := range index.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		blob(d, &manifest)
		var config struct {
			Created      time.Time
			Architecture string
			Config       struct {
				User, WorkingDir string
				Entrypoint, Cmd  []string
				ExposedPorts     map[string]struct{}
			}
			RootFS struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		blob(manifest.Config, &config)
		c := config.Config
		if config.Architecture != d.Platform.Architecture || config.Created.Unix() != 1790000000 || len(config.RootFS.DiffIDs) != 1 {
			t.Errorf("config %+v", config)
		}
		layer := untar(t, blob(manifest.Layers[0], nil))
		if string(layer["usr/bin/hopscope"]) != "program" || bytes.Count(layer["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")) < 100 {
			t.Error("the image has no program, or no authorities")
		}
		settings := string(layer["etc/hopscope/hopscope.yaml"])
		var listened, exposed []string
		for _, m := range regexp.MustCompile(`"\[::\]:(\d+)( auto)?"`).FindAllStringSubmatch(settings, -1) {
			listened = append(listened, m[1]+map[bool]string{true: "/udp", false: "/tcp"}[m[2] != ""])
		}
		for port := range c.ExposedPorts {
			exposed = append(exposed, port)
		}
		slices.Sort(listened)
		slices.Sort(exposed)
		dockerfile, err := os.ReadFile("deploy/Dockerfile")
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Fields(regexp.MustCompile(`(?m)^EXPOSE (.*)$`).FindStringSubmatch(string(dockerfile))[1])
		slices.Sort(said)
		if !slices.Equal(listened, exposed) || !slices.Equal(said, exposed) || len(exposed) != 5 {
			t.Errorf("the image publishes %q, its settings listen on %q, the Dockerfile publishes %q", exposed, listened, said)
		}
		quoted := func(list []string) string { return `["` + strings.Join(list, `", "`) + `"]` }
		for _, line := range []string{"USER " + c.User, "WORKDIR " + c.WorkingDir, "ENTRYPOINT " + quoted(c.Entrypoint), "CMD " + quoted(c.Cmd)} {
			if !strings.Contains(string(dockerfile), "\n"+line+"\n") {
				t.Errorf("the Dockerfile has no line %q", line)
			}
		}
	}
}
