package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The versions that there are.
const (
	Influx2 = "2.7.12"
	Influx1 = "1.8.10"
)

// The names in a started server. The token is that of a 2.7 server; 1.8 runs without authentication.
const (
	org   = "hopscope"
	token = "a-token-of-tests-only"
)

// Influx is a running (or stopped) server of its own: free loopback port, temporary folder.
type Influx struct {
	Version string
	URL     string
	Bucket  string // as the v2 API wants it
	Org     string // empty for 1.8
	Token   string // empty for 1.8

	t    testing.TB
	bin  string
	dir  string
	addr string
	rpc  string // 1.8 has a second port
	cmd  *exec.Cmd
	out  *os.File
	done chan error

	killed bool // since the last start
}

// EachInflux runs f as a subtest against every version that tests run against. All of them have to be there.
func EachInflux(t *testing.T, f func(t *testing.T, s *Influx)) {
	t.Helper()
	for _, version := range InfluxVersions {
		t.Run(version, func(t *testing.T) { f(t, StartInflux(t, version)) })
	}
}

func influxBinary(t testing.TB, version string) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache", "influxdb", version, "influxd")
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	t.Fatal("servertest: no go.mod above the test")
	return ""
}

// StartInflux starts a server with an empty store and stops it when the test ends.
func StartInflux(t testing.TB, version string) *Influx {
	t.Helper()
	s := &Influx{Version: version, t: t, bin: influxBinary(t, version), addr: testkit.FreeAddr(t)}
	if _, err := os.Stat(s.bin); err != nil {
		t.Fatalf("InfluxDB %s is not built: run `.ci/influxdb.sh %[1]s`", version)
	}
	s.dir = t.TempDir()
	s.URL = "http://" + s.addr
	t.Cleanup(s.Kill)
	if version == Influx1 {
		s.rpc = testkit.FreeAddr(t)
		s.Bucket = "hopscope/autogen"
		s.Start()
		s.post("/query?q="+url.QueryEscape(`CREATE DATABASE "hopscope"`), nil)
		return s
	}
	s.Org, s.Bucket, s.Token = org, "hopscope", token
	s.Start()
	s.post("/api/v2/setup", map[string]any{
		"username": "test", "password": "test-password", "org": org, "bucket": s.Bucket, "token": token,
	})
	return s
}

func (s *Influx) post(path string, body any) {
	s.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.Post(s.URL+path, "application/json", bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	if resp.StatusCode >= 300 {
		s.t.Fatalf("%s: %s: %s", path, resp.Status, answer)
	}
}

// Start starts a stopped server again, on the same port and with what it had stored, and waits until it answers.
//
// If InfluxDB is killed in the middle of a write, half an entry remains at the end of its log. The next run writes behind
// it. At its next start it cuts off what it acknowledged since ("File corrupt" in its log). So it is started first where
// no client writes to it, as the operating guide advises: the second start finds a whole log.
func (s *Influx) Start() {
	s.t.Helper()
	if s.killed {
		s.start(testkit.FreeAddr(s.t))
		s.Stop()
	}
	s.killed = false
	s.start(s.addr)
}

func (s *Influx) start(addr string) {
	s.t.Helper()
	if s.cmd != nil {
		s.t.Fatal("servertest: started twice")
	}
	path := func(name string) string { return filepath.Join(s.dir, name) }
	var cmd *exec.Cmd
	if s.Version == Influx1 {
		cmd = exec.Command(s.bin, "run", "-config", os.DevNull)
		cmd.Env = append(os.Environ(),
			"INFLUXDB_HTTP_FLUX_ENABLED=true", "INFLUXDB_REPORTING_DISABLED=true",
			"INFLUXDB_DATA_DIR="+path("data"), "INFLUXDB_DATA_WAL_DIR="+path("wal"), "INFLUXDB_META_DIR="+path("meta"),
			"INFLUXDB_HTTP_BIND_ADDRESS="+addr, "INFLUXDB_BIND_ADDRESS="+s.rpc,
			"GOGC=400") // each start takes seconds of processor time for Flux
	} else {
		cmd = exec.Command(s.bin, "--reporting-disabled", "--http-bind-address", addr,
			"--bolt-path", path("bolt"), "--sqlite-path", path("sqlite"), "--engine-path", path("engine"))
	}
	out, err := os.OpenFile(path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	endWithUs(cmd)
	if err := cmd.Start(); err != nil {
		out.Close()
		s.t.Fatal(err)
	}
	s.cmd, s.out, s.done = cmd, out, make(chan error, 1)
	go func() { s.done <- cmd.Wait() }()

	deadline := time.After(5 * time.Minute)
	for {
		if resp, err := http.Get("http://" + addr + "/ping"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusNoContent {
				return
			}
		}
		select {
		case err := <-s.done:
			s.done <- err
			s.t.Fatalf("InfluxDB %s ended: %v\n%s", s.Version, err, s.log())
		case <-deadline:
			s.t.Fatalf("InfluxDB %s does not answer\n%s", s.Version, s.log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Influx) log() string {
	b, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(b[max(0, len(b)-4096):])
}

// Stop ends the server as an operator would, Kill as a power cut of the process would. Both wait for its end.
func (s *Influx) Stop() { s.end(syscall.SIGTERM) }

// Kill is Stop by SIGKILL. Without a running server it does nothing.
func (s *Influx) Kill() { s.end(syscall.SIGKILL) }

func (s *Influx) end(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Signal(sig)
	select {
	case <-s.done:
	case <-time.After(30 * time.Second):
		sig = syscall.SIGKILL
		s.cmd.Process.Kill()
		<-s.done
	}
	s.out.Close()
	s.cmd, s.killed = nil, sig == syscall.SIGKILL
}

// row is one value that a query gave.
type row map[string]any

// Query runs a Flux query and returns all records. In the query, BUCKET stands for the server's bucket in quotes.
func (s *Influx) Query(flux string) ([]row, error) {
	opt := influxdb2.DefaultOptions()
	opt.SetHTTPRequestTimeout(120)
	client := influxdb2.NewClientWithOptions(s.URL, s.Token, opt)
	defer client.Close()
	res, err := client.QueryAPI(s.Org).Query(context.Background(), strings.ReplaceAll(flux, "BUCKET", fmt.Sprintf("%q", s.Bucket)))
	if err != nil {
		return nil, err
	}
	defer res.Close()
	var rows []row
	for res.Next() {
		rows = append(rows, res.Record().Values())
	}
	return rows, res.Err()
}

// MustQuery is Query that ends the test on an error.
func (s *Influx) MustQuery(flux string) []row {
	s.t.Helper()
	rows, err := s.Query(flux)
	if err != nil {
		s.t.Fatalf("%s: %v", flux, err)
	}
	return rows
}
