package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

// An entry is [ADDRESS:]PORT [TYPE], on loopback without an address.
func TestParsePort(t *testing.T) {
	for text, want := range map[string]string{
		"6343": "127.0.0.1:6343 {0 false false}", "6343 auto": "127.0.0.1:6343 {0 false false}", "[::]:6343 sflow": "[::]:6343 {2 false false}",
		" 0.0.0.0:4739   ipfix ": "0.0.0.0:4739 {3 false false}", "32766 reports": "127.0.0.1:32766 {1 false false}",
		"4317 otlp-grpc": "127.0.0.1:4317 {0 true false}", "[::1]:4318 otlp-http": "[::1]:4318 {0 true true}",
		"": "is not", "1 2 3": "is not", "6343 sFlow": `type "sFlow" is none of auto, ipfix, otlp-grpc, otlp-http, reports, sflow`, "70000": "above 65535",
		"localhost:6343": "names are not looked up", "auto": "no port", ":6343": "no address",
	} {
		a, p, err := parsePort(text)
		got := fmt.Sprint(a, p)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// The default list counts as long as no older setting names addresses; a list of the settings counts beside them.
func TestListen(t *testing.T) {
	cfg := defaultConfig()
	var all []string
	for _, p := range cfg.UDP.Ports {
		all = append(all, p.Addr.String())
		if !p.Addr.Addr().IsLoopback() || !p.Spare || p.Only != ingest.Anything {
			t.Errorf("%+v", p)
		}
	}
	for _, p := range cfg.OTLP.Ports {
		all = append(all, p.Addr)
	}
	if want := []string{"127.0.0.1:32766", "127.0.0.1:6343", "127.0.0.1:4739", "127.0.0.1:2055", "127.0.0.1:4317", "127.0.0.1:4318"}; !slices.Equal(all, want) {
		t.Errorf("the default is %v, want %v", all, want)
	}
	for text, want := range map[string]string{
		"udp: {listen: [\"[::]:7\"]}\n":                                 "[[::]:7] [] []",
		"otlp: {enabled: true}\nudp: {listen: [\"127.0.0.1:7\"]}\n":     "[127.0.0.1:7] [] []",
		"udp: {listen: [\"127.0.0.1:7\"]}\nports: [\"8 sflow\"]\n":      "[127.0.0.1:7] [{127.0.0.1:8 2 false}] []",
		"otlp: {enabled: true}\nports: [\"8\", \"[::]:9 otlp-http\"]\n": "[] [{127.0.0.1:8 0 false}] [{[::]:9 true false}]",
		"ports: [\"[::]:6343 sflow\", \"4739 ipfix\", 32766 reports]\n": "[] [{[::]:6343 2 false} {127.0.0.1:4739 3 false} {127.0.0.1:32766 1 false}] []",
	} {
		cfg, err := readConfig(writeFile(t, text))
		if err == nil {
			_, err = examine(&cfg, nil, true)
		}
		if got := fmt.Sprint(cfg.UDP.Listen, cfg.UDP.Ports, cfg.OTLP.Ports); got != want || err != nil {
			t.Errorf("%q gives %s, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"ports: [\"6343\", \"127.0.0.1:6343 sflow\"]\n":                     "line 1: ports[1]: 127.0.0.1:6343 is the address of ports[0], too",
		"udp: {listen: [\"127.0.0.1:7\"]}\nports: [\"7\"]\n":                "line 2: ports[0]: 127.0.0.1:7 is the address of udp.listen[0], too",
		"otlp: {enabled: true}\nports: [4317 otlp-grpc]\n":                  "ports[0]: 127.0.0.1:4317 is the address of otlp.grpc, too",
		"ports: [\"6343 netflow\"]\n":                                       `ports[0]: "6343 netflow": type "netflow" is none of`,
		"ports: []\n":                                                       "nothing is received",
		"ports: [\"6343\", \"127.0.0.1:6343 otlp-grpc\", \"[::1]:6343\"]\n": "",
	} {
		cfg, err := readConfig(writeFile(t, text))
		_, err = examine(&cfg, err, true)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Reports that a port of a type does not accept are counted and named with the setting, and are in no statistics. A
// port without a type accepts everything.
func TestPortTypes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	report, err := testkit.Vector("tr20-group")
	if err != nil {
		t.Fatal(err)
	}
	message := ipfix.AppendMessage(nil, &ipfix.Message{Version: ipfix.V10, Domain: 1, Time: 1_790_000_000}, func(b []byte) []byte {
		return ipfix.AppendSet(b, 2, 0, func(b []byte) []byte {
			return ipfix.AppendTemplate(b, &decode.Template{Version: ipfix.V10, ID: 300, Fields: []decode.Element{{ID: 10, Length: 4}}})
		})
	})
	five := make([]byte, 24+48)
	binary.BigEndian.PutUint32(five, 5<<16|1)
	send := map[string][]byte{"telemetry-report": report, "sflow": plain.RandomSFlow(rnd, false), "ipfix": message, "netflow-5": five, "": []byte("GET / HTTP/1.1\r\n\r\n")}
	takes := map[ingest.Kind][]string{
		ingest.Anything: {"telemetry-report", "sflow", "ipfix"}, ingest.Reports: {"telemetry-report"}, ingest.SFlow: {"sflow"}, ingest.IPFIX: {"ipfix"},
	}
	const each = 20
	for only, want := range takes {
		cfg := defaultConfig()
		cfg.Ports, cfg.Web.Listen, cfg.Window, cfg.Shards, cfg.UDP.Workers = []string{"127.0.0.1:0"}, "", 100*time.Millisecond, 1, 1
		for name, p := range portTypes {
			if p.only == only && !p.tcp {
				cfg.Ports[0] = "127.0.0.1:0 " + name
			}
		}
		r, err := openLive(&cfg, collector.Options{Seed: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		port := r.Addrs()[0].Port()
		c, err := net.Dial("udp", r.Addrs()[0].String())
		if err != nil {
			t.Fatal(err)
		}
		for range each {
			for _, b := range send {
				if _, err := c.Write(b); err != nil {
					t.Fatal(err)
				}
			}
		}
		testkit.Until(t, "all datagrams", func() bool { s := r.Summary(1, 1); return s.Ledger.Received >= uint64(each*len(send)) })
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		s := r.Summary(1, 1)
		for format := range send {
			if format == "" {
				continue
			}
			n := uint64(0)
			for kind, k := range s.ByKind {
				if strings.HasPrefix(kind, format+" ") {
					n += k
				}
			}
			if read := slices.Contains(want, format); read != (n > 0) {
				t.Errorf("a port of %s stored %d of %s", cfg.Ports[0], n, format)
			}
			if bad := s.MalformedReasons[format+" not-read"]; !slices.Contains(want, format) && bad != each && format != "telemetry-report" {
				t.Errorf("a port of %s counts %d of %s as not read, want %d: %v", cfg.Ports[0], bad, format, each, s.MalformedReasons)
			}
		}
		named := map[string]bool{}
		for _, d := range s.Dialects {
			for format, text := range map[string]string{"telemetry-report": "telemetry report", "sflow": "sFlow,", "ipfix": "IPFIX,", "netflow-5": "NetFlow 5", "": "of no format that is known"} {
				if only == ingest.Anything || strings.Contains(d.Text, text) && strings.Contains(d.Text, fmt.Sprintf("UDP port %d takes ", port)) && strings.Contains(d.Text, "setting ports") {
					named[format] = true
				}
			}
		}
		for format := range send {
			if only != ingest.Anything && !slices.Contains(want, format) && !named[format] && (format != "" || only != ingest.Reports) {
				t.Errorf("a port of %s does not name %q: %+v", cfg.Ports[0], format, s.Dialects)
			}
		}
	}
}
