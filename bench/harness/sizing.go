package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/sflow"
)

// Sizing compares what "hopscope config size" predicts with what a collector takes. Both are the program that users
// run: settings are a file, the load comes over loopback, and all measured values are those of its metrics and of its
// directories.
type Sizing struct {
	Program string        // hopscope
	Influxd string        // server of InfluxDB 1.8 for the set-up with all stores, or "" for that set-up without it
	Rounds  int           // turns of the unit and the load, of each set-up
	Turn    time.Duration // of the load
	Only    []string      // names of set-ups, all if empty
	Rate    float64       // reports or datagrams a second, in place of the set-up's; 0 leaves that
}

// setup is a collector and its load.
type setup struct {
	name   string
	load   traffic.Config
	rate   float64 // reports a second
	hops   int     // that the load has
	stores bool    // Parquet, and InfluxDB if there is one
	sflow  bool    // datagrams of sFlow with counters, in place of reports
}

// interval is the time between two ends of windows in every set-up.
const interval = 10 * time.Second

// setups are a small collector, a middle one, a fast one, and one with stores.
var setups = []setup{
	{"small", traffic.Config{Seed: 1, Flows: 10_000, Hops: 0, Exporters: 12, Bytes: 120}, 5_000, 96, false, false},
	{"middle", traffic.Config{Seed: 1, Flows: 200_000, Hops: 5, Exporters: 16, Bytes: 200}, 40_000, 640, false, false},
	{"fast", traffic.Config{Seed: 1, Flows: 10_000, Hops: 5, Exporters: 16, Bytes: 200}, 200_000, 640, false, false},
	{"stores", traffic.Config{Seed: 1, Flows: 50_000, Hops: 5, Exporters: 64, Bytes: 200}, 20_000, 1024, true, false},
	{"records", traffic.Config{Flows: 1, Exporters: 20}, 2_000, 1, false, true},
}

// SetupNames are the names of all set-ups.
func SetupNames() (names []string) {
	for _, s := range setups {
		names = append(names, s.name)
	}
	return names
}

// SizingRow is one value of a set-up, predicted and measured.
type SizingRow struct {
	Setup, Value        string
	Predicted, Measured float64
	Digits              int // behind the point
}

// Error is how far the prediction is off, in percent of the measured value.
func (r *SizingRow) Error() float64 { return 100 * (r.Predicted/r.Measured - 1) }

// SizingResult holds the rows of all set-ups.
type SizingResult struct{ Rows []SizingRow }

// Print writes a table.
func (r *SizingResult) Print(w io.Writer) error {
	t := Columns(w, 2, tabwriter.AlignRight)
	fmt.Fprintln(t, "set-up\tvalue\tpredicted\tmeasured\terror, %\t")
	for _, x := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%.*f\t%.*f\t%+.0f\t\n", x.Setup, x.Value, x.Digits, x.Predicted, x.Digits, x.Measured, x.Error())
	}
	return t.Flush()
}

// Run measures all set-ups, one after the other. With an error it returns those before.
func (o *Sizing) Run(ctx context.Context, progress func(string)) (*SizingResult, error) {
	var all SizingResult
	for i := range setups {
		s := &setups[i]
		if o.Rate > 0 {
			with := *s
			with.rate = o.Rate
			s = &with
		}
		if len(o.Only) > 0 && !slices.Contains(o.Only, s.name) {
			continue
		}
		progress(s.name)
		rows, err := o.one(ctx, s)
		if err != nil {
			return &all, fmt.Errorf("%s: %w", s.name, err)
		}
		all.Rows = append(all.Rows, rows...)
	}
	return &all, nil
}

// one measures one set-up, in a directory of its own.
func (o *Sizing) one(ctx context.Context, s *setup) (rows []SizingRow, err error) {
	dir, err := os.MkdirTemp("", "hopscope-sizing-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	influx := ""
	if s.stores && o.Influxd != "" {
		stop, address, err := startInflux(ctx, o.Influxd, filepath.Join(dir, "influxdb"))
		if err != nil {
			return nil, err
		}
		defer stop()
		influx = address
	}
	to, page, err := freePorts()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "hopscope.yaml")
	if err := os.WriteFile(file, []byte(s.settings(to, page, dir, influx)), 0o600); err != nil {
		return nil, err
	}
	ended, m, err := o.start(ctx, file, page)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ended()) }()
	gen, err := s.datagrams()
	if err != nil {
		return nil, err
	}
	var (
		units, cpu   []float64
		sent         uint64
		elapsed, all time.Duration
		last         map[string]float64
		records      float64 // of the history when the first was seen, which is of a part of a minute
		recordBytes  float64
	)
	began := time.Now()
	for range o.Rounds {
		unit, err := traffic.Unit(time.Second)
		if err != nil {
			return nil, err
		}
		before, err := m.read(ctx)
		if err != nil {
			return nil, err
		}
		r, err := traffic.Send(ctx, traffic.SendConfig{To: to, Rate: s.rate, Duration: o.Turn}, gen)
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		if last, err = m.read(ctx); err != nil {
			return nil, err
		}
		if records == 0 {
			records, recordBytes = last[historyRecords], last[historyBytes]
		}
		units, cpu = append(units, unit.Seconds()), append(cpu, (last[processorSeconds]-before[processorSeconds])/r.Elapsed.Seconds())
		sent, elapsed = sent+r.Sent, elapsed+r.Elapsed
	}
	all = time.Since(began)
	rate := float64(sent) / elapsed.Seconds()
	predicted, err := o.predict(ctx, s, file, rate, all)
	if err != nil {
		return nil, err
	}
	row := func(value string, predicted, measured float64, digits int) {
		rows = append(rows, SizingRow{s.name, value, predicted, measured, digits})
	}
	row("processor, units a datagram", predicted["processor"]/predictedUnit.Seconds()/rate, Median(cpu)/Median(units)/rate, 3)
	row("memory, MB", predicted["memory"]/1e6, last["process_resident_memory_bytes"]/1e6, 0)
	if n := last[historyRecords] - records; n > 0 {
		row("history, MB a day", predicted["  history"]/1e6, (last[historyBytes]-recordBytes)/n*recordsADay/1e6, 0)
	}
	if s.stores {
		made := last["hopscope_ledger_points_made_total{sink=\"parquet\"}"]
		row("points a second", predicted["points"], made/all.Seconds(), 0)
	}
	return rows, nil
}

// recordsADay are those of minutes, ten minutes, hours, and the day.
const recordsADay = 1440 + 144 + 24 + 1

// predictedUnit is what the prediction is asked for, which is then divided by it.
const predictedUnit = time.Microsecond

// predict returns the values of "hopscope config size" by their names.
func (o *Sizing) predict(ctx context.Context, s *setup, file string, rate float64, life time.Duration) (map[string]float64, error) {
	load := "--reports=" + strconv.FormatFloat(rate, 'f', 0, 64)
	if s.sflow {
		load = "--reports=0 --records=" + strconv.FormatFloat(rate*counterSamples, 'f', 0, 64)
	}
	args := append([]string{"config", "size", file, "--format=json"}, strings.Fields(load)...)
	c := exec.CommandContext(ctx, o.Program, append(args, "--path="+strconv.Itoa(max(s.load.Hops, 1)),
		"--flows="+strconv.Itoa(s.load.Flows), "--hops="+strconv.Itoa(s.hops), "--exporters="+strconv.Itoa(s.load.Exporters), "--life="+life.String(), "--unit="+predictedUnit.String())...)
	c.Stderr = os.Stderr
	b, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s config size: %w", o.Program, err)
	}
	var answer struct {
		Parts []struct {
			Of    string
			Value float64
		}
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return nil, fmt.Errorf("%s config size: %w", o.Program, err)
	}
	values := map[string]float64{}
	for _, p := range answer.Parts {
		values[p.Of] = p.Value
	}
	return values, nil
}

// start starts a collector, and returns the function that ends it and its metrics.
func (o *Sizing) start(ctx context.Context, file, page string) (end func() error, m *metrics, err error) {
	var log bytes.Buffer
	c := exec.Command(o.Program, "collect", "--config", file)
	c.Dir = filepath.Dir(file)
	c.Stderr = &log
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	end = func() error {
		if c.Process.Signal(os.Interrupt) != nil { // it ended, or the system has no such signal
			_ = c.Process.Kill()
		}
		return <-ended
	}
	m = &metrics{url: "http://" + page + "/metrics"}
	for {
		if _, err = m.read(ctx); err == nil {
			return end, m, nil
		}
		select {
		case err := <-ended:
			return nil, nil, fmt.Errorf("%s collect: %w\n%s", o.Program, err, log.Bytes())
		case <-ctx.Done():
			return nil, nil, errors.Join(context.Cause(ctx), end())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// settings is the file of the set-up.
func (s *setup) settings(to netip.AddrPort, page, dir, influx string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ports: [\"%v\"]\nweb: {listen: \"%s\"}\nhistory: {dir: \"%s\"}\nwindow: %v\n", to, page, filepath.Join(dir, "history"), interval)
	if s.stores {
		fmt.Fprintf(&b, "parquet: {enabled: true, dir: \"%s\", rotate_interval: 1m, spool: {dir: \"%s\"}}\n", filepath.Join(dir, "parquet"), filepath.Join(dir, "spool-parquet"))
		if influx != "" {
			fmt.Fprintf(&b, "influx: {enabled: true, url: \"%s\", bucket: hopscope/autogen, org: \"\", spool: {dir: \"%s\"}}\n", influx, filepath.Join(dir, "spool-influx"))
		}
	}
	return b.String()
}

// datagrams makes the load.
func (s *setup) datagrams() (traffic.Datagrams, error) {
	if s.sflow {
		return &counterLoad{seq: make([]uint32, s.load.Exporters)}, nil
	}
	return traffic.New(s.load)
}

// counterLoad is datagrams of sFlow with counters of interfaces, which take turns.
type counterLoad struct{ seq []uint32 }

const (
	counterSamples    = 4 // of a datagram
	counterInterfaces = 16
)

func (c *counterLoad) Exporters() int { return len(c.seq) }
func (c *counterLoad) Bytes() int     { return 1024 }

func (c *counterLoad) NextFrom(exporter int, buf []byte) []byte {
	c.seq[exporter]++
	seq := c.seq[exporter]
	b := sflow.AppendDatagram(buf[:0], &sflow.Datagram{Agent: decode.AddrFrom4([]byte{10, 9, 0, byte(exporter + 1)}), IPv: 4, Seq: seq, Uptime: seq, Samples: counterSamples})
	for i := range uint32(counterSamples) {
		n := seq*counterSamples + i
		at := n%counterInterfaces + 1
		b = sflow.AppendSample(b, &sflow.Sample{Kind: sflow.Counters, Has: sflow.HasInterface, Seq: n, Index: at, Interface: sflow.Interface{
			Index: at, Type: 6, Speed: 100e9, Direction: 1, Status: 3, InOctets: uint64(n) * 100_000, InUnicast: n * 100, OutOctets: uint64(n) * 90_000, OutUnicast: n * 90,
		}})
	}
	return b
}

// freePorts returns an address for reports and one for the page, which nothing listens on.
func freePorts() (to netip.AddrPort, page string, err error) {
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return to, "", err
	}
	defer u.Close()
	t, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return to, "", err
	}
	defer t.Close()
	return u.LocalAddr().(*net.UDPAddr).AddrPort(), t.Addr().String(), nil
}

// metrics reads the metrics of a collector.
type metrics struct{ url string }

const (
	processorSeconds = "process_cpu_seconds_total"
	historyRecords   = "hopscope_history_written_total"
	historyBytes     = "hopscope_history_written_bytes_total"
)

func (m *metrics) read(ctx context.Context) (values map[string]float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url, nil)
	if err != nil {
		return nil, err
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(r.Body, 16<<20))
	values = map[string]float64{}
	for lines.Scan() {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if v, err := strconv.ParseFloat(lines.Text()[at+1:], 64); err == nil && at > 0 {
			values[lines.Text()[:at]] = v
		}
	}
	return values, lines.Err()
}

// startInflux starts a server of InfluxDB 1.8 in dir, with a database.
func startInflux(ctx context.Context, program, dir string) (stop func(), address string, err error) {
	_, web, err := freePorts()
	if err != nil {
		return nil, "", err
	}
	_, rpc, err := freePorts()
	if err != nil {
		return nil, "", err
	}
	c := exec.Command(program)
	c.Env = append(os.Environ(), "INFLUXDB_REPORTING_DISABLED=true", "INFLUXDB_META_DIR="+dir+"/meta", "INFLUXDB_DATA_DIR="+dir+"/data", "INFLUXDB_DATA_WAL_DIR="+dir+"/wal",
		"INFLUXDB_HTTP_BIND_ADDRESS="+web, "INFLUXDB_BIND_ADDRESS="+rpc, "INFLUXDB_MONITOR_STORE_ENABLED=false")
	if err := c.Start(); err != nil {
		return nil, "", err
	}
	stop = func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	address = "http://" + web
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		r, err := http.PostForm(address+"/query", url.Values{"q": {"CREATE DATABASE hopscope"}})
		if err == nil {
			err = r.Body.Close()
			if err == nil && r.StatusCode == http.StatusOK {
				return stop, address, nil
			}
		}
		if time.Now().After(end) || ctx.Err() != nil {
			stop()
			return nil, "", errors.Join(fmt.Errorf("%s does not answer", program), err)
		}
	}
}
