package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/hopscope/hopscope/collector/settings"
)

// The tests of this file compare what runs a fleet with each other and with the program: units, the compose file and
// the manifests of Kubernetes.

// units are the services of deploy.
func units(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(deploy + "*.service")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no units: %v", err)
	}
	return paths
}

// systemd takes the units as they are, but for the path of the program.
func TestUnitsVerify(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("there is no systemd on this machine; the other tests of units ran")
		return
	}
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range units(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(string(text), "=/usr/bin/hopscope ", "="+program+" ")
		if changed == string(text) {
			t.Errorf("%s does not start /usr/bin/hopscope", path)
		}
		copied := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := os.WriteFile(copied, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(tool, "verify", copied).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}

// All units are hardened alike: from LimitNOFILE on they are the same.
func TestUnitsAreHardened(t *testing.T) {
	_, want, ok := strings.Cut(readText(t, deploy+"hopscope.service"), "\nLimitNOFILE=")
	if !ok || !strings.Contains(want, "\nSystemCallFilter=@system-service\n") {
		t.Fatal("the unit of the collector is not hardened")
	}
	for _, path := range units(t) {
		text := readText(t, path)
		if filepath.Base(path) == "hopscope-agent.service" { // a sender of frames has that one right, and that one family of sockets
			for _, more := range []string{"CAP_NET_RAW", " AF_PACKET"} {
				if !strings.Contains(text, more+"\n") {
					t.Errorf("%s does not have%s", path, more)
				}
				text = strings.ReplaceAll(text, more+"\n", "\n")
			}
			// It asks how far the clock may be off.
			text = strings.Replace(text, "\nSystemCallFilter=adjtimex\n", "\n", 1)
			text = strings.Replace(text, "\nProtectHostname=yes\n", "\nProtectClock=yes\nProtectHostname=yes\n", 1)
		}
		if _, got, _ := strings.Cut(text, "\nLimitNOFILE="); got != want {
			t.Errorf("%s is hardened otherwise than hopscope.service", path)
		}
		for _, line := range []string{"Type=notify", "DynamicUser=yes", "CapabilityBoundingSet=", "AmbientCapabilities=", "RestartPreventExitStatus=" + strconv.Itoa(exitUsage)} {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("%s has no line %q", path, line)
			}
		}
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

// yamlFiles are all YAML files below a folder.
func yamlFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml")) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// otherKinds are keys by which YAML files are recognised that are no settings of hopscope.
var otherKinds = []string{"services", "apiVersion", "groups", "rule_files", "scrape_configs", "contents"}

// settingsKeys are the keys at the top of a settings file.
func settingsKeys() []string {
	cfg := defaultConfig()
	var text bytes.Buffer
	if err := settings.Print(&text, &cfg); err != nil {
		panic(err)
	}
	var keys []string
	for _, m := range regexp.MustCompile(`(?m)^(\w+):`).FindAllStringSubmatch(text.String(), -1) {
		keys = append(keys, m[1])
	}
	return keys
}

// fleetSections are sections of settings that only members of a fleet have.
var fleetSections = []string{"kafka", "consume"}

// settingsFiles are the settings of hopscope in deploy, by path. Sections that this build does not have are left out.
func settingsFiles(t *testing.T) map[string]string {
	t.Helper()
	keys := settingsKeys()
	files := map[string]string{}
	for _, path := range yamlFiles(t, deploy) {
		if name := filepath.Base(path); name == "agent.yaml" || name == "control.yaml" {
			continue // those of agent and control are of another kind; TestPages holds them
		}
		if strings.HasPrefix(path, filepath.Clean(helm)+string(filepath.Separator)) {
			continue // values and templates; TestHelm holds them
		}
		text := readText(t, path)
		var top map[string]any
		if err := yaml.NewDecoder(strings.NewReader(text)).Decode(&top); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		ours, other := false, false
		for key := range top {
			ours = ours || slices.Contains(keys, key)
			other = other || slices.Contains(otherKinds, key)
		}
		switch {
		case ours == other:
			t.Errorf("%s: settings of hopscope, or what else?", path)
		case ours:
			for _, section := range fleetSections {
				if !slices.Contains(keys, section) {
					text = regexp.MustCompile(`(?m)^`+section+`:\n(?:  .*\n)*`).ReplaceAllString(text, "")
				}
			}
			files[path] = text
		}
	}
	return files
}

// config check finds nothing wrong with the settings in deploy, once the secrets are there that they name.
func TestDeployedSettings(t *testing.T) {
	files := settingsFiles(t)
	if len(files) < 8 {
		t.Fatalf("%d settings files", len(files))
	}
	secrets := t.TempDir()
	authority := testAuthority(t)
	t.Setenv("INFLUX_TOKEN", "0123456789abcdef")
	for path, text := range files {
		for _, m := range regexp.MustCompile(`/run/secrets/(\S+)`).FindAllStringSubmatch(text, -1) {
			secret := filepath.Join(secrets, m[1])
			content := []byte("0123456789abcdef\n")
			if strings.HasSuffix(secret, ".pem") {
				content = authority
			}
			if err := os.MkdirAll(filepath.Dir(secret), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(secret, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		copied := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(copied, []byte(strings.ReplaceAll(text, "/run/secrets/", secrets+"/")), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := readConfig(copied)
		warnings, err := examine(&cfg, err, true)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, w := range warnings {
			// TLS is the proxy's in front, the networks of compose files are their own, and memory is that of the machine of
			// the test.
			inside := strings.Contains(path, "kubernetes/") || !strings.Contains(w.Path, "influx") && !strings.Contains(w.Path, "kafka.brokers")
			if s := w.String(); inside && !strings.Contains(s, "without TLS") && !strings.Contains(s, "the settings allow") {
				t.Errorf("%s: %s", path, s)
			}
		}
	}
}

// testAuthority is a certificate that may sign others.
func testAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// fleetSettings are the settings of a member, with the section kafka, whether this build has it or not.
type fleetSettings struct {
	UDP struct{ Listen []string }
	Web struct {
		Listen    string
		TokenFile string `yaml:"token_file"`
	}
	Kafka struct {
		Brokers []string
		Fleet   string
		Enabled bool
	}
	Influx struct {
		URL, Org, Bucket string
	}
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	n, nerr := strconv.Atoi(port)
	if err != nil || nerr != nil {
		t.Fatalf("%q is no address", address)
	}
	return n
}

// mentioned are the secrets that a settings file names, by their file below /run/secrets.
func mentioned(t *testing.T, path string) (secrets []string) {
	for _, m := range regexp.MustCompile(`(?m)^[^#]*/run/secrets/(\S+)$`).FindAllStringSubmatch(readText(t, path), -1) {
		secrets = append(secrets, m[1])
	}
	return secrets
}

type composeService struct {
	Command, Networks, Secrets, Volumes, Ports []string
	Hostname                                   string
	Environment                                map[string]string
	Build                                      struct{ Context, Dockerfile string }
	Healthcheck                                struct {
		Test    []string
		Disable bool
	}
	DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
	MemLimit  string                                `yaml:"mem_limit"`
}

// The services of the fleet in one compose file agree with each other and with their settings, and what they mount is there.
func TestComposeFleet(t *testing.T) {
	var compose struct {
		Services map[string]composeService
		Networks map[string]any
		Volumes  map[string]any
		Secrets  map[string]struct{ File string }
	}
	// What is given beside a merged mapping takes the place of what is in it, which this reader calls a duplicate.
	text := readText(t, deploy+"compose.fleet.yaml")
	if err := yaml.NewDecoder(strings.NewReader(text), yaml.AllowDuplicateMapKey()).Decode(&compose); err != nil {
		t.Fatal(err)
	}
	if compose.Services["collector-1"].Healthcheck.Test[3] != "--alive" || !compose.Services["topics"].Healthcheck.Disable {
		t.Fatalf("merged mappings are not overridden: %+v", compose.Services)
	}
	published := map[string]string{}
	count := map[string]int{}
	for name, s := range compose.Services {
		for _, n := range s.Networks {
			if _, ok := compose.Networks[n]; !ok {
				t.Errorf("%s: no network %s", name, n)
			}
		}
		for _, secret := range s.Secrets {
			if compose.Secrets[secret].File == "" {
				t.Errorf("%s: no secret %s", name, secret)
			}
		}
		for _, p := range s.Ports {
			host := p[:strings.LastIndexByte(p, ':')]
			if other := published[host]; other != "" {
				t.Errorf("%s and %s publish %s", name, other, host)
			}
			published[host] = name
		}
		for other, d := range s.DependsOn {
			on, ok := compose.Services[other]
			if !ok || d.Condition == "service_healthy" && len(on.Healthcheck.Test) == 0 {
				t.Errorf("%s waits for %s, %s", name, other, d.Condition)
			}
		}
		if len(s.Healthcheck.Test) == 0 && !s.Healthcheck.Disable {
			t.Errorf("%s has no health check", name)
		}
		mounts := map[string]string{}
		for _, v := range s.Volumes {
			from, to, _ := strings.Cut(v, ":")
			if to, _, _ = strings.Cut(to, ":"); strings.HasPrefix(from, ".") {
				if _, err := os.Stat(deploy + from); err != nil {
					t.Errorf("%s mounts what is not there: %v", name, err)
				}
				mounts[to] = deploy + from
			} else if _, ok := compose.Volumes[from]; !ok {
				t.Errorf("%s: no volume %s", name, from)
			}
		}
		for _, value := range s.Environment {
			if secret, ok := strings.CutPrefix(value, "/run/secrets/"); ok && !slices.Contains(s.Secrets, secret) {
				t.Errorf("%s is not given the secret %s", name, secret)
			}
		}
		at := slices.Index(s.Command, "--config")
		if at < 0 {
			continue
		}
		count[s.Command[0]]++
		file := mounts[s.Command[at+1]]
		if file == "" {
			t.Errorf("%s has no file %s", name, s.Command[at+1])
			continue
		}
		for _, secret := range mentioned(t, file) {
			if !slices.Contains(s.Secrets, secret) {
				t.Errorf("%s is not given the secret %s of %s", name, secret, file)
			}
		}
		var cfg fleetSettings
		unmarshal(t, file, &cfg)
		for _, b := range cfg.Kafka.Brokers {
			host, _, _ := net.SplitHostPort(b)
			if !strings.Contains(compose.Services[host].Environment["KAFKA_ADVERTISED_LISTENERS"], "://"+b) {
				t.Errorf("%s: no broker says that it is %s", name, b)
			}
		}
		for _, p := range s.Ports {
			want := portOf(t, cfg.Web.Listen)
			if port, udp := strings.CutSuffix(p, "/udp"); udp {
				want, p = portOf(t, cfg.UDP.Listen[0]), port
			}
			if !strings.HasSuffix(p, fmt.Sprint(":", want)) {
				t.Errorf("%s publishes %s, and listens on %d", name, p, want)
			}
		}
		if s.Command[0] == "collect" && !cfg.Kafka.Enabled || s.Command[0] == "consume" && cfg.Kafka.Enabled {
			t.Errorf("%s: kafka.enabled is %v", name, cfg.Kafka.Enabled)
		}
		if cfg.Influx.URL != "" {
			env := compose.Services["influxdb"].Environment
			if cfg.Influx.Org != env["DOCKER_INFLUXDB_INIT_ORG"] || cfg.Influx.Bucket != env["DOCKER_INFLUXDB_INIT_BUCKET"] || cfg.Influx.URL != "http://influxdb:8086" {
				t.Errorf("%s writes to %+v", name, cfg.Influx)
			}
		}
		if s.Command[0] == "collect" {
			enoughMemory(t, name, file, bytesOf(t, s.MemLimit))
		}
	}
	if count["collect"] != 2 || count["consume"] != 2 || count["console"] != 1 || count["kafka"] != 1 {
		t.Errorf("members of the fleet: %v", count)
	}
	var prometheus struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string                       `yaml:"job_name"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	unmarshal(t, deploy+"fleet/prometheus.yaml", &prometheus)
	for _, file := range prometheus.RuleFiles {
		if !slices.ContainsFunc(compose.Services["prometheus"].Volumes, func(v string) bool { return strings.Contains(v, ":"+file+":") }) {
			t.Errorf("Prometheus has no file %s", file)
		}
	}
	asked := prometheus.ScrapeConfigs[0].StaticConfigs[0].Targets
	if prometheus.ScrapeConfigs[0].JobName != "hopscope" || len(asked) != count["collect"]+count["consume"]+count["console"] {
		t.Errorf("Prometheus asks %v", asked)
	}
	for _, target := range asked {
		if host, _, _ := net.SplitHostPort(target); !slices.Contains(compose.Services[host].Networks, "fleet") {
			t.Errorf("Prometheus asks %s, which is not there", target)
		}
	}
	ignored := readText(t, "../../.gitignore") + readText(t, deploy+"Dockerfile.dockerignore")
	if strings.Count(ignored, "deploy/secrets") != 2 || strings.Count(ignored, "deploy/kubernetes/secrets.yaml") != 2 {
		t.Error("secrets may get into the repository or the image")
	}
}

// bytesOf reads 2g, 512Mi and the like.
func bytesOf(t *testing.T, text string) int64 {
	t.Helper()
	digits := strings.TrimRight(text, "gmkibBGMK")
	n, err := strconv.ParseInt(digits, 10, 32)
	unit := map[byte]int64{'g': 1 << 30, 'm': 1 << 20, 'k': 1 << 10}[strings.ToLower(text[len(digits):] + " ")[0]]
	if err != nil || unit == 0 {
		t.Fatalf("%q is no size", text)
	}
	return n * unit
}

// enoughMemory checks that a limit is above what the settings allow, with something for what is not Go's.
func enoughMemory(t *testing.T, name, file string, limit int64) {
	t.Helper()
	cfg := defaultConfig()
	text := settingsFiles(t)[filepath.Clean(file)]
	if text == "" {
		t.Fatalf("%s are no settings", file)
	}
	if err := settings.Load(file, []byte(text), &cfg); err != nil {
		t.Fatal(err)
	}
	if need := cfg.memory(); limit < need+need/10 {
		t.Errorf("%s may take %s by its settings, and gets %s", name, mebibytes(need), mebibytes(limit))
	}
}

// manifest is as much of an object of Kubernetes as the tests look at.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Type                  string
		ClusterIP             string         `yaml:"clusterIP"`
		ExternalTrafficPolicy string         `yaml:"externalTrafficPolicy"`
		SessionAffinity       string         `yaml:"sessionAffinity"`
		ServiceName           string         `yaml:"serviceName"`
		Selector              map[string]any // of labels, or with matchLabels
		PodSelector           map[string]any `yaml:"podSelector"`
		Ports                 []struct {
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				AutomountServiceAccountToken *bool          `yaml:"automountServiceAccountToken"`
				SecurityContext              map[string]any `yaml:"securityContext"`
				Containers                   []struct {
					Image           string
					Args            []string
					SecurityContext map[string]any `yaml:"securityContext"`
					Env             []struct{ Name, Value string }
					Ports           []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					Resources      struct{ Limits map[string]string }
					ReadinessProbe *struct {
						HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
					} `yaml:"readinessProbe"`
					LivenessProbe *struct {
						HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
					} `yaml:"livenessProbe"`
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name      string
					ConfigMap *struct{ Name string } `yaml:"configMap"`
					Secret    *struct {
						SecretName string `yaml:"secretName"`
					}
				}
			}
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
	StringData map[string]string `yaml:"stringData"`
}

func manifests(t *testing.T, path string) (out []manifest) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(readText(t, path)))
	for {
		var m manifest
		switch err := d.Decode(&m); err {
		case nil:
			out = append(out, m)
		case io.EOF:
			return out
		default:
			t.Fatalf("%s: %v", path, err)
		}
	}
}

const kubernetes = deploy + "kubernetes/"

// The manifests of Kubernetes refer to each other, to their settings and to their secrets as they should.
func TestKubernetes(t *testing.T) {
	var k struct {
		Resources          []string
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		} `yaml:"configMapGenerator"`
		Images []struct{ Name string }
	}
	unmarshal(t, kubernetes+"kustomization.yaml", &k)
	listed := append(slices.Clone(k.Resources), k.ConfigMapGenerator[0].Files...)
	listed = append(listed, "kustomization.yaml", "secrets.example.yaml")
	for _, path := range yamlFiles(t, kubernetes) {
		if name, _ := filepath.Rel(kubernetes, path); !slices.Contains(listed, name) {
			t.Errorf("%s is not in the kustomization", path)
		}
	}
	secret := manifests(t, kubernetes+"secrets.example.yaml")[0]
	for key, value := range secret.StringData {
		if value != "" {
			t.Errorf("the example of secrets holds one: %s", key)
		}
	}

	var all []manifest
	for _, name := range k.Resources {
		all = append(all, manifests(t, kubernetes+name)...)
	}
	components := map[string]*manifest{} // pods, by component
	protected := map[any]bool{}
	for i := range all {
		m := &all[i]
		if c := m.Spec.Template.Metadata.Labels["app.kubernetes.io/component"]; c != "" {
			components[c] = m
		}
		if m.Kind == "PodDisruptionBudget" {
			protected[m.Spec.Selector["matchLabels"].(map[string]any)["app.kubernetes.io/component"]] = true
		}
	}
	const component = "app.kubernetes.io/component"
	for _, m := range all {
		switch m.Kind {
		case "Service":
			name, _ := m.Spec.Selector[component].(string)
			pod := components[name]
			if pod == nil {
				t.Errorf("service %s selects nobody", m.Metadata.Name)
				continue
			}
			for _, p := range m.Spec.Ports {
				if !slices.ContainsFunc(pod.Spec.Template.Spec.Containers[0].Ports, func(c struct {
					Name          string
					ContainerPort int `yaml:"containerPort"`
				}) bool {
					return c.Name == p.TargetPort
				}) {
					t.Errorf("service %s: %s has no port %s", m.Metadata.Name, name, p.TargetPort)
				}
			}
			if m.Spec.Type == "LoadBalancer" && (m.Spec.ExternalTrafficPolicy != "Local" || m.Spec.SessionAffinity != "ClientIP") {
				t.Errorf("service %s does not keep an exporter with a collector", m.Metadata.Name)
			}
		case "NetworkPolicy":
			if labels, ok := m.Spec.PodSelector["matchLabels"].(map[string]any); ok && components[fmt.Sprint(labels[component])] == nil {
				t.Errorf("policy %s is for nobody", m.Metadata.Name)
			}
		}
	}
	if len(components) != 4 {
		t.Errorf("components %v", components)
	}
	for name, m := range components {
		pod := m.Spec.Template.Spec
		c := pod.Containers[0]
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || pod.SecurityContext["runAsNonRoot"] != true ||
			c.SecurityContext["allowPrivilegeEscalation"] != false || c.SecurityContext["readOnlyRootFilesystem"] != true {
			t.Errorf("%s has rights that it does not need", name)
		}
		if c.Image != k.Images[0].Name {
			t.Errorf("%s: image %s", name, c.Image)
		}
		file := kubernetes + "settings/" + filepath.Base(c.Args[slices.Index(c.Args, "--config")+1])
		if rel, _ := filepath.Rel(kubernetes, file); !slices.Contains(k.ConfigMapGenerator[0].Files, rel) {
			t.Errorf("%s has no file %s", name, file)
			continue
		}
		var cfg fleetSettings
		unmarshal(t, file, &cfg)
		for _, s := range mentioned(t, file) {
			key, ok := strings.CutPrefix(s, "hopscope/")
			if _, known := secret.StringData[key]; !ok || !known {
				t.Errorf("%s: there is no secret %s", file, s)
			}
		}
		for _, v := range pod.Volumes {
			if v.ConfigMap != nil && v.ConfigMap.Name != k.ConfigMapGenerator[0].Name || v.Secret != nil && v.Secret.SecretName != secret.Metadata.Name {
				t.Errorf("%s: volume %s", name, v.Name)
			}
		}
		for _, mount := range c.VolumeMounts {
			known := false
			for _, v := range pod.Volumes {
				known = known || v.Name == mount.Name
			}
			for _, v := range m.Spec.VolumeClaimTemplates {
				known = known || v.Metadata.Name == mount.Name
			}
			if !known {
				t.Errorf("%s: no volume %s", name, mount.Name)
			}
		}
		if m.Kind == "Job" {
			continue
		}
		for _, p := range c.Ports {
			want := portOf(t, cfg.Web.Listen)
			if p.Name == "reports" {
				want = portOf(t, cfg.UDP.Listen[0])
			}
			if p.ContainerPort != want {
				t.Errorf("%s: port %s is %d, and it listens on %d", name, p.Name, p.ContainerPort, want)
			}
		}
		if c.ReadinessProbe == nil || c.LivenessProbe == nil || c.LivenessProbe.HTTPGet.Path != "/healthz" {
			t.Errorf("%s is not asked whether it lives and is ready", name)
		} else if ready := c.ReadinessProbe.HTTPGet.Path; ready != map[bool]string{true: "/healthz", false: "/readyz"}[name == "collector"] {
			t.Errorf("%s is ready by %s", name, ready)
		}
		if !protected[name] {
			t.Errorf("%s has no disruption budget", name)
		}
		limit := bytesOf(t, c.Resources.Limits["memory"])
		if c.Resources.Limits["cpu"] != "" {
			t.Errorf("%s is throttled", name)
		}
		if name == "collector" {
			enoughMemory(t, name, file, limit)
		} else if len(c.Env) != 1 || c.Env[0].Name != "GOMEMLIMIT" {
			t.Errorf("%s has no GOMEMLIMIT", name)
		} else if go1 := bytesOf(t, c.Env[0].Value); go1 > limit*95/100 || go1 < limit*3/4 {
			t.Errorf("%s: GOMEMLIMIT is %s of %s", name, mebibytes(go1), mebibytes(limit))
		}
	}
	tool, err := exec.LookPath("kubectl")
	if err != nil {
		t.Log("there is no kubectl on this machine; everything else was compared")
		return
	}
	if out, err := exec.Command(tool, "kustomize", kubernetes).CombinedOutput(); err != nil {
		t.Errorf("kubectl kustomize: %v\n%s", err, out)
	}
}
