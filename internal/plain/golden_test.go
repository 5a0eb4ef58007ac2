package plain_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/gopacket/pcapgo"
	"github.com/hopscope/hopscope/internal/plain"
)

var folder = flag.String("captures", "", "folder with captures, and expected/index.csv with their readings, that is read instead of testdata")

// recording is a capture with the profile that it is read with.
type recording struct {
	name, file string
	profile    string
	ports      []uint16
	want       string // the golden reading
}

// elsewhere are the captures of other packages.
var elsewhere = []recording{
	{name: "int05-in-report05", profile: "prometheus-exporter"},
	{name: "fabric-report05", profile: "fabric-tna"},
	{name: "geant-int10-reports", profile: "geant"},
	{name: "geant-int10-maxhop", profile: "geant"},
	{name: "geant-int10-network", profile: "geant"},
	{name: "onos-int10-reports", profile: "onos"},
	{name: "onos-int10-network", profile: "onos"},
	{name: "onos-int10-network.auto", profile: "auto"},
	{name: "postcard-reports", profile: "postcard-braine"},
	{name: "hostint05-reports", profile: "host-int"},
	{name: "hostint05-network", profile: "host-int"},
	{name: "int-path", profile: "int-path", file: "../../decode/srint/testdata/int-path.pcap", want: "../../decode/srint/testdata/int-path.jsonl"},
	{name: "int-probe", profile: "int-probe", file: "../../decode/srint/testdata/int-probe.pcap", want: "../../decode/srint/testdata/int-probe.jsonl"},
	{name: "ioam6-linux", profile: "ioam-ipv6", file: "../../decode/ioam/testdata/ioam6-linux.pcap", want: "../../decode/ioam/testdata/ioam6-linux.jsonl.gz"},
	{name: "ioam6-linux.auto", profile: "auto", file: "../../decode/ioam/testdata/ioam6-linux.pcap", want: "../../decode/ioam/testdata/ioam6-linux.jsonl.gz"},
	{name: "ioam6-linux-inside", profile: "ioam-ipv6", file: "../../decode/ioam/testdata/ioam6-linux-inside.pcap", want: "../../decode/ioam/testdata/ioam6-linux-inside.jsonl.gz"},
}

func init() {
	for i := range elsewhere {
		if r := &elsewhere[i]; r.file == "" {
			r.file = filepath.Join("../../decode/testdata", r.name+".pcap")
			r.want = filepath.Join("../../decode/testdata", r.name+".jsonl.gz")
		}
	}
}

// recordings lists the captures that tests read.
func recordings(t testing.TB) (list []recording) {
	t.Helper()
	dir := "testdata"
	if *folder != "" {
		dir = *folder
	} else {
		list = slices.Clone(elsewhere)
	}
	f, err := os.Open(filepath.Join(dir, "expected", "index.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if _, ok := plain.Profiles[row[1]]; !ok {
			continue
		}
		r := recording{name: strings.TrimSuffix(row[0], ".pcap"), profile: row[1], file: filepath.Join(dir, row[0])}
		if r.profile == "auto" {
			r.name += ".auto"
		}
		if row[2] != "" {
			port, err := strconv.ParseUint(row[2], 10, 16)
			if err != nil {
				t.Fatal(err)
			}
			r.ports = []uint16{uint16(port)}
		}
		r.want = filepath.Join(dir, "expected", r.name+".jsonl.gz")
		list = append(list, r)
	}
	return list
}

// frames reads a capture.
func frames(t testing.TB, file string) (list []plain.Frame) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, plain.Frame{
			Number: uint64(len(list) + 1), Time: info.Timestamp.UnixNano(), Link: uint16(r.LinkType()),
			Data: data, Length: info.Length,
		})
	}
}

// parse reads one JSON object without loss; flags are a set.
func parse(t testing.TB, text []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if flags, ok := o["flags"].([]any); ok {
		slices.SortFunc(flags, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	}
	return o
}

// text writes an object with its keys in order.
func text(t testing.TB, o any) []byte {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func goldenReports(t testing.TB, file string) (list []map[string]any) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		list = append(list, parse(t, lines.Bytes()))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// The plain decoder reads all captures as in their golden lines.
func TestGolden(t *testing.T) {
	for _, c := range recordings(t) {
		t.Run(c.name, func(t *testing.T) {
			p := plain.Profiles[c.profile]
			if c.ports != nil {
				p.ReportPorts = c.ports
			}
			want := goldenReports(t, c.want)
			n, wrong := 0, 0
			for _, f := range frames(t, c.file) {
				for _, o := range plain.Decode(p, f) {
					got := parse(t, text(t, o))
					if n < len(want) && !reflect.DeepEqual(got, want[n]) {
						if wrong++; wrong < 4 {
							t.Errorf("frame %d:\n%s, want\n%s", f.Number, text(t, got), text(t, want[n]))
						}
					}
					n++
				}
			}
			if n != len(want) {
				t.Errorf("%d objects, want %d", n, len(want))
			}
		})
	}
}
