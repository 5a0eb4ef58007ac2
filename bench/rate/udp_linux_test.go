package rate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/ingest/udp"
	"github.com/hopscope/hopscope/internal/testkit"
)

const procNetUDP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops             
  414: 0100007F:7FFE 00000000:0000 07 00000000:00000300 00:00000000 00000000     0        0 5261 2 0000000000000000 17
  415: 0100007F:7FFE 00000000:0000 07 00000000:00000A00 00:00000000 00000000     0        0 5262 2 0000000000000000 4
  416: 7FFE007F:0035 00000000:7FFE 07 00000000:00000001 00:00000000 00000000     0        0 5263 2 0000000000000000 1
`

func TestParseSockets(t *testing.T) {
	got, err := parseSockets([]byte(procNetUDP), 0x7ffe)
	if want := (socketCounters{sockets: 2, queued: 0xd00, drops: 21}); err != nil || got != want {
		t.Errorf("parseSockets = %+v, %v, want %+v", got, err, want)
	}
	if got, err := parseSockets([]byte(procNetUDP), 1); err != nil || got.sockets != 0 {
		t.Errorf("parseSockets of another port = %+v, %v", got, err)
	}
}

// The files of this kernel are read as they are.
func TestReadSockets(t *testing.T) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := readSockets(c.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	if err != nil || got.sockets != 1 {
		t.Errorf("readSockets = %+v, %v, want one socket", got, err)
	}
	if _, err := readBacklogDrops(0); err != nil {
		t.Errorf("readBacklogDrops: %v", err)
	}
	if d, err := processTime(os.Getpid()); err != nil || d < 0 {
		t.Errorf("processTime = %v, %v", d, err)
	}
}

func TestParseBacklogDrops(t *testing.T) {
	const stat = "0001 0002 0 0 0 0 0 0 0 0 0 0 00000000 0 0\n0003 000a 0 0 0 0 0 0 0 0 0 0 00000003 0 0\n"
	for cpu, want := range map[int]uint64{0: 2, 3: 10} {
		if got, err := parseBacklogDrops([]byte(stat), cpu); err != nil || got != want {
			t.Errorf("CPU %d: %d, %v, want %d", cpu, got, err, want)
		}
	}
	if _, err := parseBacklogDrops([]byte(stat), 1); err == nil {
		t.Error("no error for a CPU that is not there")
	}
}

func TestParseProcessTime(t *testing.T) {
	b := []byte("77 (a b) c) S 1 2 3 4 5 6 7 8 9 10 120 30 0 0 20 0")
	if d, err := parseProcessTime(b); err != nil || d != 1500*time.Millisecond {
		t.Errorf("parseProcessTime = %v, %v, want 1.5s", d, err)
	}
}

func TestNetflow5(t *testing.T) {
	n := newNetflow5(2)
	be := binary.BigEndian
	flows := map[string]bool{}
	for i := range uint32(100) {
		b := n.NextFrom(int(i%2), nil)
		if len(b) != 72 || len(b) != n.Bytes() || be.Uint16(b) != 5 || be.Uint16(b[2:]) != 1 || be.Uint32(b[16:]) != i/2 {
			t.Fatalf("datagram %d: % x", i, b)
		}
		flows[string(b[24:28])+string(b[56:58])] = true
	}
	if len(flows) < 90 {
		t.Errorf("%d different flows of 100", len(flows))
	}
}

// Every receiver receives what is sent, decodes it where it does that, and ends when asked.
func TestReceivers(t *testing.T) {
	for _, r := range receivers {
		t.Run(r.name, func(t *testing.T) {
			o := receiverOptions{Name: r.name, UDP: udp.DefaultConfig(), FlowBytes: 16 << 20}
			o.UDP.Listen, o.UDP.ReceiveBufferBytes = []string{"127.0.0.1:0"}, 1<<20
			if strings.HasSuffix(r.name, "bare") {
				o.sum = new(sum)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var count atomic.Uint64
			addr := make(chan netip.AddrPort, 1)
			done := make(chan error, 1)
			go func() { done <- r.run(ctx, o, &count, func(a netip.AddrPort) { addr <- a }) }()
			var to netip.AddrPort
			select {
			case to = <-addr:
			case err := <-done:
				if (r.name == "plain" || r.name == "batch") && os.Geteuid() != 0 {
					t.Skipf("needs CAP_NET_ADMIN for its buffer: %v", err)
				}
				t.Fatal(err)
			}
			g, err := traffic.New(traffic.DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			sent := &summed{Datagrams: g}
			const n = 2000
			for total := 0; total < n; total += 100 {
				if _, err := traffic.Send(ctx, traffic.SendConfig{To: to, Count: 100}, sent); err != nil {
					t.Fatal(err)
				}
				for deadline := time.Now().Add(testkit.Patience); count.Load() < uint64(total+100); time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("%d of %d received", count.Load(), total+100)
					}
				}
			}
			cancel()
			if err := <-done; err != nil || count.Load() != n {
				t.Errorf("%d received, %v, want %d", count.Load(), err, n)
			}
			if o.sum != nil && *o.sum != sent.sum {
				t.Errorf("received %+v, sent %+v", *o.sum, sent.sum)
			}
		})
	}
}

// summed adds up the datagrams of a load.
type summed struct {
	traffic.Datagrams
	sum sum
}

func (s *summed) NextFrom(exporter int, buf []byte) []byte {
	b := s.Datagrams.NextFrom(exporter, buf)
	s.sum.add(b)
	return b
}

func TestUDPFlags(t *testing.T) {
	parse := func(args ...string) (o UDP, err error) {
		f := pflag.NewFlagSet("udp", pflag.ContinueOnError)
		o.Flags(f)
		return o, errors.Join(f.Parse(args), o.Check())
	}
	o, err := parse("--receivers", "discard,pipeline", "--floods", "1e5,0", "--flows", "7", "--bytes", "208")
	if err != nil || len(o.receivers) != 2 || len(o.floods) != 2 || o.floods[0] != 100_000 || o.traffic.Flows != 7 || o.traffic.Bytes != 208 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{
		{"--receivers", "nobody"}, {"--floods", "x"}, {"--floods", "-1"}, {"--bytes", "3"}, {"--send-cpu", "0"}, {"--payload", "x"}, {"--rounds", "0"}, {"--to", "x"},
		{"--sender", "x"}, {"--pairs", "-1"}, {"--pairs", "3", "--sender", "socket"}, {"--pairs", "3", "--payload", "netflow5"}, {"--to", "[::1]:2055"},
	} {
		if _, err := parse(args...); err == nil {
			t.Errorf("parse(%q) gave no error", args)
		}
	}
}

// The receiver's process speaks the protocol of its parent.
func TestServe(t *testing.T) {
	in, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, stdout := os.Stdin, os.Stdout
	os.Stdin, os.Stdout = in, out
	defer func() { os.Stdin, os.Stdout = stdin, stdout }()
	done := make(chan error, 1)
	go func() { done <- serve() }()
	if _, err := io.WriteString(inW, `{"Name":"discard","UDP":{"Listen":["127.0.0.1:0"],"Workers":1,"Steering":"hash","ReceiveBufferBytes":65536,"MaxDatagramBytes":2048,"BatchSize":8}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	reply := bufio.NewReader(outR)
	line, err := reply.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := netip.ParseAddrPort(string(bytes.TrimSpace(line))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(inW, "\n"); err != nil {
		t.Fatal(err)
	}
	if line, err = reply.ReadBytes('\n'); err != nil || string(line) != "0\n" {
		t.Errorf("count is %q, %v, want 0", line, err)
	}
	inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Datagrams that programs received are those of the second line of UDP over IPv4.
func TestParseDelivered(t *testing.T) {
	n, err := parseDelivered([]byte("Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts\nUdp: 1234 5\nUdpLite: InDatagrams\nUdpLite: 7\n"))
	if n != 1234 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, wrong := range []string{"", "Udp: InDatagrams NoPorts\n", "Udp: x\n"} {
		if n, err := parseDelivered([]byte(wrong)); err == nil {
			t.Errorf("%q gives %d", wrong, n)
		}
	}
	if _, err := readDelivered(); err != nil {
		t.Error(err)
	}
}
