package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/internal/testkit"
	programs "github.com/hopscope/hopscope/p4/emu/program"
)

// digestCapture writes a capture of frames, a millisecond apart.
func digestCapture(t *testing.T, link layers.LinkType, n int, frame func(i int) []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	if err := w.WriteFileHeader(65535, link); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f := frame(i)
		ci := gopacket.CaptureInfo{Timestamp: time.Unix(1.7e9, int64(i)*1e6), CaptureLength: len(f), Length: len(f)}
		if err := w.WritePacket(ci, f); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "digests.pcap")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func runReplay(t *testing.T, args ...string) (s collector.Summary) {
	t.Helper()
	var out, diag bytes.Buffer
	c := replayCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(&out)
	c.SetErr(&diag)
	c.SetArgs(append(args, "--format", "json"))
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("replay %q: %v\n%s", args, err, diag.String())
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Frames of the published programs, made by code independent of the decoder, yield the paths that they took.
func TestReplayTracesPaths(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	packet := func(id int) *programs.PublishedPacket {
		return &programs.PublishedPacket{Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 9}, SrcPort: 53, DstPort: 53, ID: uint16(id)}
	}
	mininet := []uint32{17, 3, 99, 120, 8, 64, 41, 5}
	ids := rng.Perm(60000)
	file := digestCapture(t, layers.LinkTypeEthernet, 400, func(i int) []byte { return packet(1+ids[i]).AppendMininet(nil, mininet) })
	check := func(s collector.Summary, want []uint32, digests int) {
		t.Helper()
		if len(s.Flows) != 1 || s.Digests == nil || int(s.Digests.Digests) != digests {
			t.Fatalf("seed %d: %d flows, %+v", seed, len(s.Flows), s.Digests)
		}
		p := s.Flows[0].Path
		ok := p.Complete && len(p.NodeIDs) == len(want) && p.Confidence >= 1-1e-6 && p.Digests > 0 && p.Digests < uint64(digests)/2
		for i := 0; ok && i < len(want); i++ {
			ok = p.NodeIDs[i] != nil && *p.NodeIDs[i] == want[i]
		}
		if !ok || len(s.Findings) > 0 {
			t.Errorf("seed %d: path %s of %d digests, complete %v, confidence %v, want %d; findings %+v", seed, pathOf(p), p.Digests, p.Complete, p.Confidence, want, s.Findings)
		}
	}
	check(runReplay(t, file, "--profile", "pint-mininet", "--nodes", "0-127"), mininet, 400)

	// Without nodes the digests are counted, and no path is claimed.
	if s := runReplay(t, file, "--profile", "pint-mininet"); s.Digests.Unread != 400 || len(s.Flows[0].Path.NodeIDs) != 0 || s.Flows[0].Path.Complete {
		t.Errorf("without nodes: %+v, path %s", s.Digests, pathOf(s.Flows[0].Path))
	}
	// With wrong nodes a finding says so.
	if s := runReplay(t, file, "--profile", "pint-mininet", "--nodes", "0-20"); s.Flows[0].Path.Complete || len(s.Findings) != 1 || s.Findings[0].Kind != "strange-digests" {
		t.Errorf("seed %d: with wrong nodes: path %s, findings %+v", seed, pathOf(s.Flows[0].Path), s.Findings)
	}

	hpcc := digestCapture(t, layers.LinkTypePPP, 500, func(i int) []byte {
		return packet(i).AppendHPCC(nil, uint32(i), []float64{.1, .75, .3}, 1.05, 1, rng.Float64)
	})
	if s := runReplay(t, hpcc, "--profile", "pint-hpcc"); s.Flows[0].Load == nil || s.Flows[0].Load.Mean < .72 || s.Flows[0].Load.Mean > .78 {
		t.Errorf("seed %d: utilisation %+v, want 0.75", seed, s.Flows[0].Load)
	}
}

func pathOf(p collector.PathSummary) string {
	b, _ := json.Marshal(p.NodeIDs) // numbers and null
	return string(b)
}

// decode --nodes prints for each digest the hops that wrote and the nodes they can have been.
func TestDecodeDigests(t *testing.T) {
	p := programs.PublishedPacket{ID: 7, SrcPort: 53, DstPort: 53}
	file := digestCapture(t, layers.LinkTypeEthernet, 1, func(int) []byte { return p.AppendMininet(nil, []uint32{0, 1, 2, 3, 4}) })
	out, _, err := runDecode(t.Context(), file, "--profile", "pint-mininet", "--nodes", "0-4")
	if err != nil || !strings.Contains(out, `"digest":"0x009d00050000"`) || !strings.Contains(out, `"writers":[3],"candidates":[2]}`) {
		t.Errorf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"--nodes", "4-0"}, {"--nodes", "x"}, {"--nodes", "0-4", "--topology", "fat-tree:4"}, {"--topology", "no-such-file"}} {
		if out, _, err := runDecode(t.Context(), append([]string{file, "--profile", "pint-mininet"}, args...)...); err == nil || out != "" {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
}
