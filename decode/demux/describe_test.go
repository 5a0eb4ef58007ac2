package demux

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
)

var update = flag.Bool("update", false, "write the table of profiles anew")

// TestFormatsPage holds the table of profiles in docs/formats.md against the profiles.
func TestFormatsPage(t *testing.T) {
	const path, begin, end = "../../docs/formats.md", "<!-- profiles: written by make docs -->\n", "<!-- end of profiles -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatalf("%s has no place for the table of profiles", path)
	}
	var want bytes.Buffer
	want.WriteString(before + begin + "\n")
	if err := WriteTable(&want); err != nil {
		t.Fatal(err)
	}
	want.WriteString("\n" + end + after)
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(page, want.Bytes()) {
		t.Errorf("the profiles in %s differ from those of the program; write them with: make docs", path)
	}
}

func TestDescribe(t *testing.T) {
	for _, d := range Describe() {
		var s strings.Builder
		if err := d.Write(&s); err != nil || d.About == "" || !strings.Contains(s.String(), d.About) {
			t.Errorf("%s: %v in\n%s", d.Name, err, s.String())
		}
	}
	p := profile(t, "fabric-tna")
	if got := p.Units.DropReason(29); got != "no route" {
		t.Errorf("drop reason 29 is %q", got)
	}
	p.Wrong, p.Units.QueueBytes = decode.HopLatency|decode.HopDeqOccupancy, 80
	p.INT.Domains = []intmd.Domain{{ID: 7}}
	d := p.Describe()
	if got := strings.Join(d.Wrong, " "); got != "latency deq_occupancy" || d.Units.String() != "ns, queue 80 bytes" || d.Deviations[0] != "INT 2.x: domain 0x0007" {
		t.Errorf("%+v", d)
	}
}

// Fields that are filled wrongly are absent, in reports and in packets of the network, and the rest stays.
func TestWrongFields(t *testing.T) {
	p := profile(t, "auto")
	p.Wrong = decode.HopLatency | decode.HopTxUtilization
	payload := datagrams()[1].payload
	var right, wrong decode.Batch
	New(profile(t, "auto")).Datagram(&right, exporter, payload, 7)
	d := New(p)
	d.Datagram(&wrong, exporter, payload, 7)
	frame := ether(t, ipv4(0, 17, udp(32766, payload)))
	d.Frame(&wrong, 1, frame, len(frame), 7)
	for _, r := range wrong.Reports {
		for i := range r.Hops {
			want := right.Reports[0].Hops[i]
			want.Latency = 0
			want.Has &^= decode.HopLatency
			if r.Hops[i] != want || want.Has == 0 {
				t.Errorf("hop %d: %+v, want %+v", i, r.Hops[i], want)
			}
		}
	}
	var b decode.Batch
	if n := testing.AllocsPerRun(100, func() { b.Reset(); d.Datagram(&b, exporter, payload, 7) }); n != 0 {
		t.Errorf("%v allocations a datagram", n)
	}
}
