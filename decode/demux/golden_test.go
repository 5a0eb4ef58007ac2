package demux

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/reportjson"
)

// frame is one record of a capture.
type frame struct {
	data   []byte
	length int
	time   int64
}

// capture reads a classic pcap of Ethernet frames, little-endian, microseconds.
func capture(t testing.TB, file string) (frames []frame) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	if len(b) < 24 || le.Uint32(b) != 0xa1b2c3d4 {
		t.Fatalf("%s is no such capture", file)
	}
	for b = b[24:]; len(b) >= 16; {
		n := int(le.Uint32(b[8:]))
		frames = append(frames, frame{
			data: b[16 : 16+n : 16+n], length: int(le.Uint32(b[12:])),
			time: int64(le.Uint32(b))*1e9 + int64(le.Uint32(b[4:]))*1e3,
		})
		b = b[16+n:]
	}
	return frames
}

// object parses one JSON object without loss; flags are a set.
func object(t testing.TB, text []byte) map[string]any {
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

func goldenReports(t testing.TB, file string) (objects []map[string]any) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		objects = append(objects, object(t, lines.Bytes()))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return objects
}

var captures = []struct{ name, profile string }{
	{"int05-in-report05", "prometheus-exporter"},
	{"fabric-report05", "fabric-tna"},
	{"geant-int10-reports", "geant"},
	{"geant-int10-maxhop", "geant"},
	{"geant-int10-network", "geant"},
	{"onos-int10-reports", "onos"},
	{"onos-int10-network", "onos"},
	{"onos-int10-network.auto", "auto"},
	{"postcard-reports", "postcard-braine"},
	{"hostint05-reports", "host-int"},
	{"hostint05-network", "host-int"},
	{"../ioam/testdata/ioam6-linux", "ioam-ipv6"},
	{"../ioam/testdata/ioam6-linux", "auto"},
	{"../ioam/testdata/ioam6-linux-inside", "ioam-ipv6"},
}

func TestGolden(t *testing.T) {
	for _, c := range captures {
		t.Run(filepath.Base(c.name)+"/"+c.profile, func(t *testing.T) {
			want := goldenReports(t, filepath.Join("../testdata", c.name+".jsonl.gz"))
			d := New(profile(t, c.profile))
			var b decode.Batch
			var line []byte
			n := 0
			for i, f := range capture(t, filepath.Join("../testdata", c.name+".pcap")) {
				b.Reset()
				if got := d.Frame(&b, 1, f.data, f.length, f.time); got != len(b.Reports) {
					t.Errorf("frame %d: Frame = %d, %d reports", i+1, got, len(b.Reports))
				}
				for _, r := range b.Reports {
					line = reportjson.Append(line[:0], uint64(i+1), r)
					if n < len(want) && !reflect.DeepEqual(object(t, line), want[n]) {
						t.Errorf("frame %d:\n%s, want\n%v", i+1, line, want[n])
					}
					n++
				}
			}
			if n != len(want) || n == 0 {
				t.Errorf("%d reports, want %d", n, len(want))
			}
		})
	}
}

func profile(t testing.TB, name string) Profile {
	t.Helper()
	p, ok := Lookup(name)
	if !ok {
		t.Fatalf("no profile %s", name)
	}
	return p
}
