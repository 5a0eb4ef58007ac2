// Command release makes what users download, below dist: an archive for each system with the program, its manual, completions and
// licences, a list of its parts (SBOM) beside it, packages and an image for Linux, a chart of Helm, and the sums of all files.
//
//	go run ./internal/release -version 0.1.0 [-dist dist] [-systems linux/amd64,windows/amd64] [-packages=false]
//
// Two runs from the same sources, with the same release of Go, give the same bytes: paths and build ids of the machine are left out
// of programs, and all times are SOURCE_DATE_EPOCH, or else that of the commit.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	r := release{packaging: "deploy/packages/nfpm.yaml"}
	flag.StringVar(&r.version, "version", "", "version of the release, without v; .ci/version.sh prints it")
	flag.StringVar(&r.dist, "dist", "dist", "directory for what is made; what is in it is removed")
	flag.BoolVar(&r.packages, "packages", true, "make packages for Debian and Red Hat too")
	systems := flag.String("systems", "linux/amd64", "systems and processors, separated by commas")
	flag.Parse()
	r.systems = strings.Split(*systems, ",")
	if err := r.make(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what one run makes.
type release struct {
	version, dist string
	systems       []string
	packages      bool
	packaging     string    // what is in packages, for nfpm
	when          time.Time // of everything in archives
	stage         string    // directory for what archives are made of
}

// versions are those of Semantic Versioning that releases and what is between them have.
var versions = regexp.MustCompile(`^\d+\.\d+\.\d+(-dev(\.\d+)?)?(\+[0-9a-z.]+)?$`)

func (r *release) make() error {
	if !versions.MatchString(r.version) {
		return fmt.Errorf("version %q is not of the form 0.1.0 or 0.1.0-dev.7+76b05551", r.version)
	}
	if err := checkChangelog("CHANGELOG.md", r.version); err != nil {
		return err
	}
	var err error
	if r.when, err = epoch(); err != nil {
		return err
	}
	if r.stage, err = os.MkdirTemp("", "hopscope-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.stage)
	if err := os.RemoveAll(r.dist); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dist, 0o755); err != nil {
		return err
	}
	if err := r.writeManual(); err != nil {
		return err
	}
	var programs []*built
	for _, system := range r.systems {
		fmt.Fprintln(os.Stderr, "release:", system)
		b, err := r.build(system)
		if err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
		programs = append(programs, b)
		writers := []func(*built) error{r.writeSBOM, r.writeArchive}
		if r.packages && b.os == "linux" {
			writers = append(writers, r.writePackages)
		}
		for _, write := range writers {
			if err := write(b); err != nil {
				return fmt.Errorf("%s: %w", system, err)
			}
		}
	}
	if err := r.writeImage(programs); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := r.writeChart(); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return r.writeSums()
}

// checkChangelog holds a release to a changelog that names it as released, and all between releases to one that does not.
func checkChangelog(path, version string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	heading := regexp.MustCompile(`(?m)^## (\d.*)$`).FindStringSubmatch(string(text))
	if heading == nil {
		return fmt.Errorf("%s has no heading with a version", path)
	}
	named, state, _ := strings.Cut(heading[1], " ")
	number, rest, _ := strings.Cut(version, "-dev")
	switch between := rest != "" || strings.Contains(version, "-dev"); {
	case named != number:
		return fmt.Errorf("version %s, and the newest heading of %s is %q", version, path, heading[1])
	case !between && !regexp.MustCompile(`^\(\d{4}-\d\d-\d\d\)$`).MatchString(state):
		return fmt.Errorf("version %s is a release, and the heading %q of %s does not have its date, as in \"%s (2026-12-01)\"", version, heading[1], path, number)
	}
	return nil
}

// epoch is the time of all that is made.
func epoch() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, errors.New("the sources have no commit: set SOURCE_DATE_EPOCH to the time of the release, in seconds since 1970")
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// built is the program for one system.
type built struct {
	os, arch string
	path     string
	parts    []part
}

// base is the name of files of b, without their endings.
func (r *release) base(b *built) string {
	return fmt.Sprintf("hopscope_%s_%s_%s", r.version, b.os, b.arch)
}

// build compiles the program, unless that was done, and names what it consists of.
func (r *release) build(system string) (*built, error) {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return nil, errors.New("a system is of the form linux/amd64")
	}
	b := &built{os: goos, arch: goarch, path: filepath.Join(r.stage, goos+"_"+goarch, "hopscope")}
	if goos == "windows" {
		b.path += ".exe"
	}
	if _, err := os.Stat(b.path); err == nil {
		b.parts, err = partsOf(b.path)
		return b, err
	}
	// Settings of this machine for variants of processors would make another program.
	err := run([]string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + goarch, "GOFLAGS=-trimpath -buildvcs=false", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT="},
		"go", "build", "-ldflags", "-s -w -X main.release="+r.version, "-o", b.path, "./cmd/hopscope")
	if err != nil {
		return nil, err
	}
	b.parts, err = partsOf(b.path)
	return b, err
}

// run runs a program with additions to the environment. Its output is that of the release.
func run(env []string, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// writeManual leaves the pages of the manual in stage/man1, and completions in stage/completions. The program for this machine
// writes them.
func (r *release) writeManual() error {
	host, err := r.build(runtime.GOOS + "/" + runtime.GOARCH)
	if err != nil {
		return err
	}
	if err := run(nil, host.path, "man", "--dir", filepath.Join(r.stage, "man1")); err != nil {
		return err
	}
	dir := filepath.Join(r.stage, "completions")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "hopscope.bash", "zsh": "_hopscope", "fish": "hopscope.fish", "powershell": "hopscope.ps1"} {
		out, err := exec.Command(host.path, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("completion %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), out, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeSums writes SHA256SUMS, which "sha256sum -c" reads.
func (r *release) writeSums() error {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		sum, err := sumOf(filepath.Join(r.dist, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.dist, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// filesIn are the names of the files in a directory, sorted.
func filesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, err
}
