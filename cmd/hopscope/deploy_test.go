package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/influx"
)

// The tests of this file hold what surrounds the program, units, images and dashboards, against the program.
const deploy = "../../deploy/"

type dashboard struct {
	Title      string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Annotations struct {
		List []struct {
			Name   string
			Target target
		}
	}
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Targets     []target
}

type target struct {
	Query      string
	Datasource struct{ Type, UID string }
}

func loadDashboard(t *testing.T) *dashboard {
	t.Helper()
	b, err := os.ReadFile(deploy + "grafana/hopscope.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// queries returns every Flux query of the dashboard by where it stands.
func (d *dashboard) queries() map[string]string {
	out := map[string]string{}
	for _, p := range d.Panels {
		for i, t := range p.Targets {
			out[fmt.Sprintf("panel %d %q target %d", p.ID, p.Title, i)] = t.Query
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			out[fmt.Sprintf("variable %q", v.Name)] = v.Query
		}
	}
	for _, a := range d.Annotations.List {
		out[fmt.Sprintf("annotation %q", a.Name)] = a.Target.Query
	}
	return out
}

func TestDashboardIsWhole(t *testing.T) {
	d := loadDashboard(t)
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: number used twice, or no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q, or leaves the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Description == "" {
			t.Errorf("panel %q has no query or no description", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" || target.Datasource.Type != "influxdb" {
				t.Errorf("panel %q names its own data source", p.Title)
			}
		}
	}
	variables := []string{"datasource"}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	for where, q := range d.queries() {
		for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(q, -1) {
			if !slices.Contains(variables, m[1]) {
				t.Errorf("%s: there is no variable %s", where, m[1])
			}
		}
	}
}

var (
	measurement = regexp.MustCompile(`r\._measurement == "(\w+)"`)
	field       = regexp.MustCompile(`r\._field == "(\w+)"`)
	tagUse      = regexp.MustCompile(`\br\.(\w+)`)
	columnList  = regexp.MustCompile(`(?:columns|rowKey|groupColumns): \[([^\]]*)\]`)
	quoted      = regexp.MustCompile(`"(\w+)"`)
)

// Every measurement, field, tag and column that a query names is one that the collector stores.
func TestDashboardNamesSeries(t *testing.T) {
	used := map[string]bool{}
	for where, q := range loadDashboard(t).queries() {
		ms := measurement.FindAllStringSubmatch(q, -1)
		if len(ms) == 0 {
			t.Errorf("%s: no measurement", where)
			continue
		}
		s := sink.FindSeries(ms[0][1])
		if s == nil {
			t.Errorf("%s: there is no measurement %q", where, ms[0][1])
			continue
		}
		used[s.Measurement] = true
		known := []string{"_time", "_value", "_field", "_start", "_stop", "_measurement"}
		for _, tag := range s.Tags {
			known = append(known, tag.Key)
		}
		for _, m := range ms {
			if m[1] != s.Measurement {
				t.Errorf("%s: two measurements, %s and %s", where, m[1], s.Measurement)
			}
		}
		fields := field.FindAllStringSubmatch(q, -1)
		if len(fields) == 0 {
			t.Errorf("%s: no field", where)
		}
		for _, f := range fields {
			if s.Field(f[1]) == nil {
				t.Errorf("%s: %s has no field %q", where, s.Measurement, f[1])
			}
			known = append(known, f[1])
		}
		for _, m := range regexp.MustCompile(`[({,] ?(\w+): `).FindAllStringSubmatch(q, -1) {
			known = append(known, m[1]) // columns that the query makes itself
		}
		for _, m := range regexp.MustCompile(`with (\w+):`).FindAllStringSubmatch(q, -1) {
			known = append(known, m[1])
		}
		names := tagUse.FindAllStringSubmatch(q, -1)
		for _, l := range columnList.FindAllStringSubmatch(q, -1) {
			names = append(names, quoted.FindAllStringSubmatch(l[1], -1)...)
		}
		for _, m := range names {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s: %s has no %q", where, s.Measurement, m[1])
			}
		}
	}
	for _, s := range sink.AllSeries {
		if !used[s.Measurement] && s.Measurement != "names" && s.Measurement != "flow_path" { // which docs/inventory.md and docs/pint.md ask
			t.Errorf("no query reads %s", s.Measurement)
		}
	}
}

// examples are a few points of every series, minutes ago, as the collector writes them.
func examples(now time.Time) (out []sink.Point) {
	for i := range sink.AllSeries {
		s := &sink.AllSeries[i]
		for k := range int64(3) {
			p := sink.Point{Measurement: s.Measurement, Time: now.Add(-time.Duration(k+1) * time.Minute).UnixNano()}
			for _, tag := range s.Tags {
				value := "1"
				switch tag.Key {
				case "hop":
					value = "0"
				case "flow":
					value = "10.0.0.1:80 > 10.0.0.2:5001 tcp"
				case "address":
					value = "2001:db8::1"
				case "severity":
					value = "critical"
				}
				p.Tags = append(p.Tags, sink.Tag{Key: tag.Key, Value: value})
			}
			for _, f := range s.Fields {
				p.Fields = append(p.Fields, sink.Field{Key: f.Key, Kind: f.Kind, Int: 10 * k, Float: 0.5, Str: "text"})
			}
			out = append(out, p)
		}
	}
	return out
}

// The compose file, the provisioning and the settings of the container are well-formed and agree.
func TestCompose(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Environment map[string]string
			Volumes     []string
			Build       struct{ Context, Dockerfile string }
		}
	}
	unmarshal(t, deploy+"compose.yaml", &compose)
	for name, service := range compose.Services {
		for _, v := range service.Volumes {
			if host, _, _ := strings.Cut(v, ":"); strings.HasPrefix(host, ".") {
				if _, err := os.Stat(filepath.Join(deploy, host)); err != nil {
					t.Errorf("%s mounts what is not there: %v", name, err)
				}
			}
		}
	}
	build := compose.Services["hopscope"].Build
	if _, err := os.Stat(filepath.Join(deploy, build.Context, build.Dockerfile)); err != nil {
		t.Error(err)
	}

	cfg := defaultConfig()
	if err := settings.LoadFile(deploy+"compose/hopscope.yaml", &cfg); err != nil {
		t.Fatal(err)
	}
	env := compose.Services["influxdb"].Environment
	if cfg.Influx.Config.Org != env["DOCKER_INFLUXDB_INIT_ORG"] || cfg.Influx.Config.Bucket != env["DOCKER_INFLUXDB_INIT_BUCKET"] || !cfg.Influx.Enabled {
		t.Errorf("hopscope writes to %s/%s, InfluxDB is made with %v", cfg.Influx.Config.Org, cfg.Influx.Config.Bucket, env)
	}
	for _, service := range []string{"hopscope", "grafana"} {
		if compose.Services[service].Environment[cfg.Influx.Config.TokenEnv] == "" {
			t.Errorf("%s is not given %s", service, cfg.Influx.Config.TokenEnv)
		}
	}
	var source struct {
		Datasources []struct {
			JSONData struct {
				Version       string
				Organization  string
				DefaultBucket string `yaml:"defaultBucket"`
			} `yaml:"jsonData"`
		}
	}
	unmarshal(t, deploy+"grafana/provisioning/datasources/influxdb.yaml", &source)
	if d := source.Datasources[0].JSONData; d.Version != "Flux" || d.Organization != cfg.Influx.Config.Org || d.DefaultBucket != cfg.Influx.Config.Bucket {
		t.Errorf("Grafana reads %+v", d)
	}
	var provider struct{ Providers []map[string]any }
	unmarshal(t, deploy+"grafana/provisioning/dashboards/hopscope.yaml", &provider)
	if len(provider.Providers) != 1 {
		t.Errorf("providers %v", provider)
	}
}

func unmarshal(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// The unit runs without root, grants nothing, and gives the program the time that its settings take.
func TestUnit(t *testing.T) {
	f, err := os.Open(deploy + "hopscope.service")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unit := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Errorf("line %q", line)
		}
		unit[key] += value
	}
	for key, want := range map[string]string{
		"DynamicUser": "yes", "CapabilityBoundingSet": "", "AmbientCapabilities": "", "NoNewPrivileges": "yes", "ProtectSystem": "strict",
		"StateDirectory": "hopscope",
		// 2 is a crash of Go, after which it has to start again.
		"Restart": "on-failure", "RestartPreventExitStatus": strconv.Itoa(exitUsage), "ExecStartPre": "",
	} {
		if unit[key] != want {
			t.Errorf("%s=%s, want %s", key, unit[key], want)
		}
	}
	stop, err := time.ParseDuration(unit["TimeoutStopSec"])
	if drain := defaultConfig().DrainTimeout; err != nil || stop <= drain {
		t.Errorf("TimeoutStopSec=%s, drain_timeout is %v", unit["TimeoutStopSec"], drain)
	}
}

// TestOldSeriesMigrate runs the copy that the operating guide gives for series without the tag instance on a real server.
func TestOldSeriesMigrate(t *testing.T) {
	guide, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, flux, ok := strings.Cut(string(guide), "```flux\n")
	if flux, _, _ = strings.Cut(flux, "```"); !ok || !strings.Contains(flux, `to(bucket: "new")`) {
		t.Fatalf("the guide has no query that copies: %q", flux)
	}
	version := servertest.InfluxVersions[0]
	s := servertest.StartInflux(t, version)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(s.Token+" "), 0o600); err != nil {
		t.Fatal(err)
	}
	c := influx.DefaultConfig()
	c.URL, c.Org, c.Bucket = s.URL, s.Org, s.Bucket
	const fresh = "fresh"
	if version == servertest.Influx2 {
		c.TokenFile = token
		rows := s.MustQuery(`import "influxdata/influxdb/schema" buckets() |> filter(fn: (r) => r.name == BUCKET)`)
		body := fmt.Sprintf(`{"orgID": %q, "name": "fresh"}`, rows[0]["organizationID"])
		r, err := http.NewRequest(http.MethodPost, s.URL+"/api/v2/buckets", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Token "+s.Token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusCreated {
			t.Fatal(resp.Status)
		}
	} else {
		t.Log("the Flux of InfluxDB 1.8 writes nothing; the copy is tested against 2.7")
		return
	}
	w, err := influx.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	points := examples(time.Now())
	fields := 0
	for i := range points {
		points[i].Tags = slices.DeleteFunc(points[i].Tags, func(t sink.Tag) bool { return t.Key == "instance" })
		fields += len(points[i].Fields)
	}
	if err := w.Write(t.Context(), &sink.Batch{Points: points}); err != nil {
		t.Fatal(err)
	}
	copying := strings.NewReplacer(`"old"`, fmt.Sprintf("%q", s.Bucket), `"new"`, fmt.Sprintf("%q", fresh)).Replace(flux)
	s.MustQuery(copying)
	rows := s.MustQuery(fmt.Sprintf(`from(bucket: %q) |> range(start: -1h)`, fresh))
	for _, row := range rows {
		if row["instance"] != "collector-1" {
			t.Fatalf("a copied point has the instance %v: %v", row["instance"], row)
		}
	}
	if len(rows) != fields {
		t.Errorf("%d of %d values were copied", len(rows), fields)
	}
	second := s.MustQuery(fmt.Sprintf(`from(bucket: %q) |> range(start: -1h) |> filter(fn: (r) => (not exists r.instance or r.instance == "collector-1"))`, s.Bucket))
	if len(second) != fields {
		t.Errorf("the query that takes both kinds finds %d of %d values", len(second), fields)
	}
}
