//go:build install

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The tests of this file install packages in a bare Debian (.ci/debian.sh) in a directory, run what they install, and remove them.
// They need root, and make namespaces.

// packages are those of two versions, and the image of the second. The one before has other settings.
type packages struct {
	versions [2]string
	deb, rpm [2]string
	image    string
}

const before = "web:\n  listen: 127.0.0.1:8080\n"

func makePackages(t *testing.T) (p packages) {
	t.Chdir("../..")
	p.versions = [2]string{"0.0.9", "0.1.0-dev.7+0123abcd"}
	for i, version := range p.versions {
		r := release{version: version, packaging: "deploy/packages/nfpm.yaml", dist: t.TempDir(), stage: t.TempDir(), when: time.Unix(1790000000+int64(i), 0).UTC()}
		if i == 0 {
			settings, packaging := filepath.Join(r.stage, "before.yaml"), filepath.Join(r.stage, "nfpm.yaml")
			write(t, settings, before)
			write(t, packaging, strings.Replace(readText(t, r.packaging), "src: deploy/packages/hopscope.yaml", "src: "+settings, 1))
			r.packaging = packaging
		}
		if err := r.writeManual(); err != nil {
			t.Fatal(err)
		}
		b, err := r.build("linux/" + runtime.GOARCH)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.writePackages(b); err != nil {
			t.Fatal(err)
		}
		if i > 0 { // the same bytes, again
			again := r
			again.dist = t.TempDir()
			if err := again.writePackages(b); err != nil {
				t.Fatal(err)
			}
			for name, first := range read(t, r.dist) {
				if !bytes.Equal(first, read(t, again.dist)[name]) {
					t.Errorf("%s has other bytes when it is made again", name)
				}
			}
		}
		for ending, into := range map[string]*string{".deb": &p.deb[i], ".rpm": &p.rpm[i]} {
			made, err := filepath.Glob(filepath.Join(r.dist, "*"+ending))
			if err != nil || len(made) != 1 {
				t.Fatalf("packages %v, %v", made, err)
			}
			*into = made[0]
		}
		if err := r.writeImage([]*built{b}); err != nil {
			t.Fatal(err)
		}
		p.image = filepath.Join(r.dist, "hopscope_"+version+"_image.tar")
	}
	return p
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// machine is a Debian in a directory.
type machine struct {
	t    *testing.T
	root string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t, t.TempDir()}
	if out, err := exec.Command("tar", "-C", m.root, "-xf", ".cache/debian/bookworm.tar").CombinedOutput(); err != nil {
		t.Fatalf("there is no Debian to install in (.ci/debian.sh makes it): %v\n%s", err, out)
	}
	return m
}

// run runs a command on the machine and returns its output.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	return m.host("chroot", append([]string{m.root, "/usr/bin/env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, args...)...)
}

// host runs a command beside it.
func (m *machine) host(name string, args ...string) string {
	m.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// put brings a file to the machine.
func (m *machine) put(path string) string {
	m.t.Helper()
	name := filepath.Base(path)
	write(m.t, filepath.Join(m.root, name), readText(m.t, path))
	return "/" + name
}

func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

func (m *machine) has(name string) bool {
	_, err := os.Lstat(m.path(name))
	return err == nil
}

// state are the files of the service, by their path.
func (m *machine) state() map[string]string {
	m.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(m.path("/var/lib/hopscope"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files[path] = readText(m.t, path)
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return files
}

// service is a run of the unit.
type service struct {
	m      *machine
	cmd    *exec.Cmd
	ended  chan struct{}
	output bytes.Buffer // to be read when it has ended
}

// start runs what the unit runs, as its account.
func (m *machine) start() *service {
	m.t.Helper()
	unit := readText(m.t, m.path("/usr/lib/systemd/system/hopscope.service"))
	command := regexp.MustCompile(`(?m)^ExecStart=(.+)$`).FindStringSubmatch(unit)
	if command == nil || !strings.Contains(unit, "\nStateDirectory=hopscope\n") || !strings.Contains(unit, "\nWorkingDirectory=%S/hopscope\n") {
		m.t.Fatalf("the unit does not say what to run, and where:\n%s", unit)
	}
	// The directory of state is the manager's to make.
	m.run("install", "-d", "-m", "750", "-o", "hopscope", "-g", "hopscope", "/var/lib/hopscope")
	return m.serve(strings.TrimSpace(m.run("id", "-u", "hopscope")), strings.TrimSpace(m.run("id", "-g", "hopscope")), command[1])
}

// serve runs a command as an account, with a network and a list of processes of its own, until it is ready.
func (m *machine) serve(uid, gid, command string) *service {
	m.t.Helper()
	s := &service{m: m, ended: make(chan struct{})}
	s.cmd = exec.Command("unshare", "--net", "--mount", "sh", "-c",
		`ip link set lo up && mount -t proc proc "$0/proc" && umask 027 && exec nsenter --root="$0" --wd="$0/var/lib/hopscope" --setuid "$1" --setgid "$2" $3`, m.root, uid, gid, command)
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	go func() { s.cmd.Wait(); close(s.ended) }()
	m.t.Cleanup(func() { s.cmd.Process.Kill(); <-s.ended })
	testkit.Until(m.t, "the service is ready", func() bool {
		select {
		case <-s.ended:
			m.t.Fatalf("the service ended: %v\n%s", s.cmd.ProcessState, &s.output)
		default:
		}
		return s.ready()
	})
	return s
}

// ready asks /readyz of the service, in its network.
func (s *service) ready() bool {
	args := []string{fmt.Sprintf("--net=/proc/%d/ns/net", s.cmd.Process.Pid), "chroot", s.m.root, "/usr/bin/hopscope", "health"}
	return exec.Command("nsenter", args...).Run() == nil
}

// stop ends the service as its manager does.
func (s *service) stop() {
	s.m.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.m.t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(testkit.Patience):
		s.m.t.Fatal("the service does not end")
	}
	if !s.cmd.ProcessState.Success() {
		s.m.t.Errorf("the service ended with %v\n%s", s.cmd.ProcessState, &s.output)
	}
}

// edited are settings as an operator leaves them: a store that does not answer, whose windows wait on the disk.
const edited = `window: 1s
drain_timeout: 1s
web:
  listen: 127.0.0.1:8080
influx:
  enabled: true
  url: http://127.0.0.1:1
  org: hopscope
  bucket: hopscope
  token_file: /etc/hopscope/influx-token
`

// edit changes the settings, and gives the account the token that they name.
func (m *machine) edit() {
	m.t.Helper()
	write(m.t, m.path("/etc/hopscope/hopscope.yaml"), edited)
	write(m.t, m.path("/etc/hopscope/influx-token"), "0123456789abcdef")
	m.run("chown", "hopscope:hopscope", "/etc/hopscope/influx-token")
	m.run("chmod", "600", "/etc/hopscope/influx-token")
}

// life is what happens to a machine, whatever its packages are: a version with its settings, changes, the next version, its end.
type life struct {
	install func(i int)
	fresh   string // where settings are put that do not take the place of edited ones
	remove  func()
}

func (m *machine) live(p packages, l life) {
	m.t.Helper()
	l.install(0)
	if got := m.run("hopscope", "--version"); got != "hopscope version "+p.versions[0]+"\n" {
		m.t.Errorf("installed is %q", got)
	}
	if account := m.run("getent", "passwd", "hopscope"); !strings.HasSuffix(account, ":/var/lib/hopscope:/usr/sbin/nologin\n") {
		m.t.Errorf("account %q", account)
	}
	for _, unit := range []string{"hopscope", "hopscope-agent", "hopscope-console", "hopscope-consume"} {
		if readText(m.t, m.path("/usr/lib/systemd/system/"+unit+".service")) != readText(m.t, "deploy/"+unit+".service") {
			m.t.Errorf("the unit %s is not that of deploy", unit)
		}
	}
	for _, file := range []string{
		"/usr/lib/sysctl.d/30-hopscope.conf", "/usr/share/man/man1/hopscope-plan-cover.1.gz", "/usr/share/bash-completion/completions/hopscope",
		"/usr/share/fish/vendor_completions.d/hopscope.fish", "/usr/share/doc/hopscope/copyright", "/usr/share/doc/hopscope/examples/hopscope.yaml",
	} {
		if !m.has(file) {
			m.t.Errorf("the package has no %s", file)
		}
	}
	m.start().stop() // with the settings of the package

	m.edit()
	s := m.start()
	testkit.Until(m.t, "windows wait on the disk", func() bool {
		return m.has("/var/lib/hopscope/spool/influx/collector.state") || m.has("/var/lib/hopscope/spool/collector.state")
	})
	s.stop()
	kept := m.state()
	if len(kept) < 2 {
		m.t.Errorf("state %v", kept)
	}

	l.install(1)
	if got := m.run("hopscope", "--version"); got != "hopscope version "+p.versions[1]+"\n" {
		m.t.Errorf("the upgrade gave %q", got)
	}
	if got := readText(m.t, m.path("/etc/hopscope/hopscope.yaml")); got != edited {
		m.t.Errorf("the upgrade left the settings\n%s", got)
	}
	if got := readText(m.t, m.path(l.fresh)); got != readText(m.t, "deploy/packages/hopscope.yaml") {
		m.t.Errorf("%s is\n%s", l.fresh, got)
	}
	for path, text := range m.state() {
		if kept[path] != text {
			m.t.Errorf("the upgrade changed %s", path)
		}
		delete(kept, path)
	}
	if len(kept) > 0 {
		m.t.Errorf("the upgrade removed %d files of state", len(kept))
	}
	s = m.start()
	s.stop()
	if strings.Contains(s.output.String(), "state.bad") || m.has("/var/lib/hopscope/spool/influx/state.bad") {
		m.t.Errorf("the new version does not read the state of the one before:\n%s", &s.output)
	}

	l.remove()
	for _, gone := range []string{"/usr/bin/hopscope", "/usr/lib/systemd/system/hopscope.service", "/usr/lib/sysctl.d/30-hopscope.conf", "/usr/share/man/man1/hopscope.1.gz"} {
		if m.has(gone) {
			m.t.Errorf("the removal left %s", gone)
		}
	}
	if !m.has("/var/lib/hopscope/spool") {
		m.t.Error("the removal took the data")
	}
}

func TestInstall(t *testing.T) {
	p := makePackages(t)
	t.Run("Debian", func(t *testing.T) { installDebian(t, p) })
	t.Run("RedHat", func(t *testing.T) { installRedHat(t, p) })
	t.Run("Image", func(t *testing.T) { runImage(t, p) })
}

func installDebian(t *testing.T, p packages) {
	m := newMachine(t)
	m.live(p, life{
		install: func(i int) {
			m.run("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--force-confold", "--install", m.put(p.deb[i]))
			if out := m.run("dpkg", "--verify", "hopscope"); i == 0 && out != "" { // behind it, the settings are others
				t.Errorf("dpkg finds other files than it installed: %s", out)
			}
			if got := m.run("dpkg-query", "--show", "--showformat", "${Version} ${Conffiles}", "hopscope"); !strings.HasPrefix(got, strings.Replace(p.versions[i], "-", "~", 1)+" ") || !strings.Contains(got, "/etc/hopscope/hopscope.yaml ") {
				t.Errorf("dpkg says %q", got)
			}
		},
		fresh:  "/etc/hopscope/hopscope.yaml.dpkg-dist",
		remove: func() { m.run("dpkg", "--remove", "hopscope") },
	})
	if got := readText(t, m.path("/etc/hopscope/hopscope.yaml")); got != edited {
		t.Errorf("the removal left the settings\n%s", got)
	}
	m.run("dpkg", "--purge", "hopscope")
	for _, gone := range []string{"/etc/hopscope", "/var/lib/hopscope"} {
		if m.has(gone) {
			t.Errorf("the purge left %s", gone)
		}
	}
	if out := m.run("dpkg-query", "--show", "--showformat", "${Package} ${Status}\n"); strings.Contains(out, "hopscope") {
		t.Errorf("dpkg remembers %s", out)
	}
}

func installRedHat(t *testing.T, p packages) {
	m := newMachine(t)
	for i, path := range p.rpm {
		if out := m.host("rpm", "--checksig", "--nosignature", path); !strings.Contains(out, "digests OK") {
			t.Errorf("rpm says %q", out)
		}
		if got := m.host("rpm", "-qp", "--queryformat", "%{VERSION}-%{RELEASE} %{ARCH} %{LICENSE} %{BUILDHOST}", path); !strings.HasPrefix(got, strings.Replace(p.versions[i], "-", "~", 1)+"-1 ") || !strings.HasSuffix(got, " Apache-2.0 localhost") {
			t.Errorf("rpm says %q", got)
		}
		if got := m.host("rpm", "-qp", "--configfiles", path); got != "/etc/hopscope/hopscope.yaml\n" {
			t.Errorf("settings are %q", got)
		}
	}
	// Both kinds of packages have the same files, but for where zsh looks.
	var deb []string
	for line := range strings.Lines(m.host("dpkg-deb", "--contents", p.deb[1])) {
		if f := strings.Fields(line); line[0] != 'd' {
			deb = append(deb, strings.TrimPrefix(f[5], "."))
		}
	}
	rpm := strings.Fields(m.host("rpm", "-qp", "--list", p.rpm[1]))
	for i, path := range rpm {
		rpm[i] = strings.Replace(path, "/zsh/site-functions/", "/zsh/vendor-completions/", 1)
	}
	slices.Sort(deb)
	slices.Sort(rpm)
	if !slices.Equal(deb, rpm) {
		t.Errorf("deb has\n%s\nrpm has\n%s", strings.Join(deb, "\n"), strings.Join(rpm, "\n"))
	}
	m.live(p, life{
		install: func(i int) { // what it needs has other names here, and Debian has it
			m.host("rpm", "--root", m.root, "--nodeps", "--upgrade", p.rpm[i])
			if i == 0 { // behind it, the settings are others
				m.host("rpm", "--root", m.root, "--verify", "--nodeps", "hopscope")
			}
		},
		fresh:  "/etc/hopscope/hopscope.yaml.rpmnew",
		remove: func() { m.host("rpm", "--root", m.root, "--erase", "hopscope") },
	})
	if got := readText(t, m.path("/etc/hopscope/hopscope.yaml.rpmsave")); got != edited {
		t.Errorf("the removal left the settings\n%s", got)
	}
}

// runImage reads the image by another program than wrote it, and runs what it says.
func runImage(t *testing.T, p packages) {
	archive := "oci-archive:" + p.image + ":" + p.versions[1]
	m := &machine{t, t.TempDir()}
	var config struct {
		Config struct {
			User, WorkingDir string
			Entrypoint, Cmd  []string
			ExposedPorts     map[string]struct{}
		}
	}
	if err := json.Unmarshal([]byte(m.host("skopeo", "inspect", "--config", archive)), &config); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m.host("skopeo", "copy", "--quiet", archive, "dir:"+dir)
	var manifest struct{ Layers []struct{ Digest string } }
	if err := json.Unmarshal([]byte(readText(t, filepath.Join(dir, "manifest.json"))), &manifest); err != nil {
		t.Fatal(err)
	}
	for _, l := range manifest.Layers {
		m.host("tar", "-C", m.root, "-xzf", filepath.Join(dir, strings.TrimPrefix(l.Digest, "sha256:")))
	}
	uid, gid, _ := strings.Cut(config.Config.User, ":")
	if config.Config.WorkingDir != "/var/lib/hopscope" || uid == "0" {
		t.Errorf("the image runs as %s in %s", uid, config.Config.WorkingDir)
	}
	for _, d := range []string{"proc", "run/secrets"} { // a container has them
		if err := os.MkdirAll(m.path(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := strings.Join(append(config.Config.Entrypoint, config.Config.Cmd...), " ")
	if out, err := exec.Command("chroot", append([]string{m.root}, strings.Fields(command)...)...).CombinedOutput(); err == nil || !strings.Contains(string(out), "/run/secrets/page-token") {
		t.Errorf("without a token the image says %s, %v", out, err)
	}
	write(t, m.path("run/secrets/page-token"), "0123456789abcdef")
	s := m.serve(uid, gid, command)
	for port := range config.Config.ExposedPorts {
		number, protocol, _ := strings.Cut(port, "/")
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		// Every address is all zeros.
		sockets := readText(t, fmt.Sprintf("/proc/%d/net/%s6", s.cmd.Process.Pid, protocol))
		if !strings.Contains(sockets, fmt.Sprintf(" %032d:%04X ", 0, n)) {
			t.Errorf("the image publishes %s, and does not listen there:\n%s", port, sockets)
		}
	}
	s.stop()
	m.host("skopeo", "inspect", "oci-archive:"+p.image) // its one name need not be said
}
