package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// asked is a request with so many points.
func asked(points int) *metrics.MetricsData {
	g := &metrics.Gauge{}
	for i := range points {
		g.DataPoints = append(g.DataPoints, &metrics.NumberDataPoint{
			TimeUnixNano: uint64(1e18 + i), Value: &metrics.NumberDataPoint_AsInt{AsInt: int64(i)},
			Attributes: []*common.KeyValue{{Key: "interface", Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: fmt.Sprint("swp", i)}}}},
		})
	}
	return &metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{{ScopeMetrics: []*metrics.ScopeMetrics{{Metrics: []*metrics.Metric{{
		Name: "m", Data: &metrics.Metric_Gauge{Gauge: g}}}}}}}}
}

// serve runs a source whose frames go to take.
func serve(t *testing.T, change func(*Config), receive func(f *ingest.Frame)) (s *Source, grpcAddr, httpURL string) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Enabled, cfg.GRPC, cfg.HTTP = true, "127.0.0.1:0", "127.0.0.1:0"
	change(&cfg)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Run(ctx, func(worker int, b *ingest.Batch) {
			if worker != 0 || len(b.Frames) != 1 || b.Frames[0].Link != ingest.LinkOTLP {
				t.Errorf("worker %d, %d frames", worker, len(b.Frames))
			}
			receive(&b.Frames[0])
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the source ended with %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	addrs := s.Addrs()
	return s, addrs[0].String(), "http://" + addrs[1].String() + "/v1/metrics"
}

// exporter calls the service as the client does that is generated of its definition. A request and MetricsData have the same form.
type exporter struct{ *grpc.ClientConn }

func (e exporter) Export(ctx context.Context, r *metrics.MetricsData, options ...grpc.CallOption) (*dynamicpb.Message, error) {
	to := dynamicpb.NewMessage(response)
	return to, e.Invoke(ctx, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", r, to, options...)
}

// response is the definition of ExportMetricsServiceResponse. The package that is generated of it needs a gateway beside gRPC.
var response = func() protoreflect.MessageDescriptor {
	field := func(name string, n int32, kind descriptorpb.FieldDescriptorProto_Type, of string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &n, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		if of != "" {
			f.TypeName = &of
		}
		return f
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("response.proto"), Package: proto.String("p"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("Response"), Field: []*descriptorpb.FieldDescriptorProto{field("partial_success", 1, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, ".p.Partial")}},
			{Name: proto.String("Partial"), Field: []*descriptorpb.FieldDescriptorProto{
				field("rejected_data_points", 1, descriptorpb.FieldDescriptorProto_TYPE_INT64, ""), field("error_message", 2, descriptorpb.FieldDescriptorProto_TYPE_STRING, ""),
			}},
		},
	}, nil)
	if err != nil {
		panic(err)
	}
	return file.Messages().ByName("Response")
}()

// partial is the refused part in a response.
func partial(r *dynamicpb.Message) (set bool, refused int64, why string) {
	f := response.Fields().ByName("partial_success")
	p, of := r.Get(f).Message(), f.Message().Fields()
	return r.Has(f), p.Get(of.ByNumber(1)).Int(), p.Get(of.ByNumber(2)).String()
}

func client(t *testing.T, addr string) exporter {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return exporter{conn}
}

// post sends a request over HTTP.
func post(t *testing.T, url, form, encoding string, body []byte) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", form)
	if encoding != "" {
		r.Header.Set("Content-Encoding", encoding)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, text
}

func packed(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// The same request comes by all transports as the same bytes. The answer contains what was refused of it, in the form
// of the request.
func TestWays(t *testing.T) {
	want := asked(3)
	var answer ingest.Answer
	frames := 0
	s, addr, url := serve(t, func(*Config) {}, func(f *ingest.Frame) {
		var got metrics.MetricsData
		if err := proto.Unmarshal(f.Data, &got); err != nil || !proto.Equal(&got, want) {
			t.Errorf("%v: %v", err, &got)
		}
		if f.Src.Addr() != netip.MustParseAddr("127.0.0.1") || f.Src.Port() == 0 || time.Since(time.Unix(0, f.Time)) > time.Minute {
			t.Errorf("from %v at %v", f.Src, time.Unix(0, f.Time))
		}
		*f.Answer = answer
		frames++
	})
	c := client(t, addr)
	binary, _ := proto.Marshal(want)
	inText, _ := protojson.Marshal(want)
	inText = append([]byte(`{"of a later version":[1],`), bytes.TrimPrefix(inText, []byte("{"))...)
	for _, refused := range []int{0, 2} {
		answer = ingest.Answer{Refused: refused, Why: "2 of 3 data points were refused: 2 bad-count"}
		check := func(way string, r *dynamicpb.Message) {
			t.Helper()
			if set, n, why := partial(r); n != int64(refused) || refused > 0 && why != answer.Why || set != (refused > 0) || len(r.GetUnknown()) > 0 {
				t.Errorf("%s: answer %v, want %+v", way, r, answer)
			}
		}
		for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor("gzip")}} {
			r, err := c.Export(t.Context(), want, options...)
			if err != nil {
				t.Fatal(err)
			}
			check("gRPC", r)
		}
		for _, encoding := range []string{"", "gzip"} {
			pack := func(b []byte) []byte { return b }
			if encoding != "" {
				pack = packed
			}
			r := dynamicpb.NewMessage(response)
			resp, body := post(t, url, "application/x-protobuf", encoding, pack(binary))
			if err := proto.Unmarshal(body, r); err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/x-protobuf" {
				t.Errorf("%s: %v %q", resp.Status, err, body)
			}
			check("HTTP", r)
			resp, body = post(t, url, "application/json; charset=utf-8", encoding, pack(inText))
			if err := protojson.Unmarshal(body, r); err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %v %q", resp.Status, err, body)
			}
			check("JSON", r)
		}
	}
	if st := s.Stats(); frames != 12 || st.Frames != 12 || st.Refused+st.Damaged != 0 {
		t.Errorf("%d frames, %+v", frames, st)
	}
}

// What is no request is refused with the status that senders do not try again for, and counted.
func TestDamaged(t *testing.T) {
	s, addr, url := serve(t, func(c *Config) { c.MaxRequestBytes = 1 << 16 }, func(f *ingest.Frame) {
		f.Answer.Broken = "otlp: request at byte 0: short"
	})
	// A server that leaves bytes unread resets the connection, and the client may not get to read the answer.
	long := make([]byte, 1<<16+1)
	for _, c := range []struct {
		name, form, encoding string
		body                 []byte
		code                 int
		text                 string
	}{
		{"broken", "application/x-protobuf", "", []byte{1}, 400, "request at byte 0"},
		{"no JSON", "application/json", "", []byte("{"), 400, "JSON"},
		{"no gzip", "application/x-protobuf", "gzip", []byte("x"), 400, "gzip"},
		{"cut gzip", "application/x-protobuf", "gzip", packed([]byte("xxxxxxxxxxxxxx"))[:12], 400, "EOF"},
		{"other packing", "application/x-protobuf", "zstd", nil, 415, "gzip is"},
		{"other form", "text/plain", "", nil, 415, "x-protobuf"},
		{"long", "application/x-protobuf", "", long, 413, "max_request_bytes"},
		{"long unpacked", "application/x-protobuf", "gzip", packed(make([]byte, 1<<20)), 413, "max_request_bytes"},
	} {
		resp, body := post(t, url, c.form, c.encoding, c.body)
		if resp.StatusCode != c.code || !strings.Contains(string(body), c.text) || resp.Header.Get("Retry-After") != "" {
			t.Errorf("%s: %s %q", c.name, resp.Status, body)
		}
	}
	if resp, err := http.Get(url); err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %v %v", resp, err)
	}
	_, err := client(t, addr).Export(t.Context(), asked(1))
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "at byte 0") {
		t.Errorf("broken over gRPC: %v", err)
	}
	_, err = client(t, addr).Export(t.Context(), asked(10_000))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("long over gRPC: %v", err)
	}
	_, err = client(t, addr).Export(t.Context(), asked(10_000), grpc.UseCompressor("gzip"))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("long unpacked over gRPC: %v", err)
	}
	// gRPC answers what it cannot read before the handler can count it.
	testkit.Until(t, "all is counted", func() bool { st := s.Stats(); return st.Damaged+st.TooLong >= 12 })
	if st := s.Stats(); st.Damaged != 8 || st.TooLong != 4 || st.Refused != 0 {
		t.Errorf("%+v, want 8 damaged, with the GET, and 4 too long", st)
	}
}

// Where all is full, a sender is asked to come again, at once, and what waits is taken later.
func TestBusy(t *testing.T) {
	hold, taken := make(chan struct{}), make(chan struct{}, 100)
	s, addr, url := serve(t, func(c *Config) { c.MaxRequests, c.Timeout = 2, time.Minute }, func(*ingest.Frame) {
		taken <- struct{}{}
		<-hold
	})
	var free sync.Once
	release := func() { free.Do(func() { close(hold) }) }
	defer release() // before the source ends, whatever fails
	c := client(t, addr)
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			if _, err := c.Export(context.Background(), asked(1)); err != nil {
				t.Errorf("a request that there was room for: %v", err)
			}
		})
	}
	<-taken
	testkit.Until(t, "the second request comes", func() bool { return len(s.slots) == 2 })
	_, err := c.Export(t.Context(), asked(1))
	st, _ := status.FromError(err)
	var retry *errdetails.RetryInfo
	for _, d := range st.Details() {
		retry, _ = d.(*errdetails.RetryInfo)
	}
	if st.Code() != codes.Unavailable || retry == nil || retry.RetryDelay.AsDuration() != retryAfter {
		t.Errorf("gRPC: %v, %v", err, retry)
	}
	body, _ := proto.Marshal(asked(1))
	resp, text := post(t, url, "application/x-protobuf", "", body)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !bytes.Contains(text, []byte("come again")) {
		t.Errorf("HTTP: %s %q", resp.Status, text)
	}
	for range 16 { // ten times as many as there is room for
		if _, err := c.Export(t.Context(), asked(1)); status.Code(err) != codes.Unavailable {
			t.Errorf("gRPC: %v", err)
		}
	}
	release()
	waiting.Wait()
	if st := s.Stats(); st.Refused != 18 || st.Frames != 2 {
		t.Errorf("%+v, want 18 of 20 refused", st)
	}
	// A call over gRPC gives its place back after it has been answered.
	testkit.Until(t, "the places are free", func() bool { return len(s.slots) == 0 })
	if _, err := c.Export(t.Context(), asked(1)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A worker that does not come to a request in time does not keep its sender waiting, and does not take it afterwards.
func TestTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Source{cfg: Config{Timeout: time.Minute}, queue: make(chan *request, 3), slots: make(chan struct{}, 3)}
		defer close(s.queue)
		hold, frames := make(chan struct{}), 0
		go func() {
			b := &ingest.Batch{Frames: make([]ingest.Frame, 1)}
			for r := range s.queue {
				s.handle(r, b, func(int, *ingest.Batch) {
					frames++
					<-hold
				})
			}
		}()
		call := func() error {
			_, err := s.call(calls{s}.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: export}), nil)
			return err
		}
		first := make(chan error, 1)
		go func() { first <- call() }()
		synctest.Wait() // the worker has it
		began := time.Now()
		if err := call(); status.Code(err) != codes.Unavailable || time.Since(began) != time.Minute {
			t.Errorf("while the worker is busy: %v after %v", err, time.Since(began))
		}
		close(hold)
		if err := <-first; err != nil {
			t.Errorf("a request that the worker has: %v", err)
		}
		if err := call(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		if frames != 2 || s.Stats().Refused != 1 {
			t.Errorf("%d requests were taken, want 2: the first and the last; %+v", frames, s.Stats())
		}
	})
}

// What is wrong with settings is said all at once, with the key.
func TestValidate(t *testing.T) {
	c := Config{Enabled: true, GRPC: "4317", HTTP: "x:y", TLSKeyFile: "k", TLSClientCAFile: "a"}
	err := c.Validate()
	for _, want := range []string{"grpc: ", "http: ", "tls_cert_file, tls_key_file", "tls_client_ca_file: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	c = DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if src, err := c.Open(); src != nil || err != nil {
		t.Errorf("not switched on: %v, %v", src, err)
	}
	if c.GRPC, c.HTTP, c.Enabled = "", "", true; c.Validate() == nil {
		t.Error("a source without an address is right")
	}
}

// A port that is taken is an error with the address, and the other port is released.
func TestTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := DefaultConfig()
	cfg.Enabled, cfg.GRPC, cfg.HTTP = true, "127.0.0.1:0", l.Addr().String()
	if _, err := cfg.Open(); err == nil || !strings.Contains(err.Error(), l.Addr().String()) || errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// With certificates both ways are TLS, and with authorities of senders one without a certificate gets no further than the handshake.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	for _, mutual := range []bool{false, true} {
		s, addr, url := serve(t, func(c *Config) {
			if c.TLSCertFile, c.TLSKeyFile = certFile, keyFile; mutual {
				c.TLSClientCAFile = certFile
			}
		}, func(*ingest.Frame) {})
		url = strings.Replace(url, "http:", "https:", 1)
		body, _ := proto.Marshal(asked(1))
		for _, conf := range []*tls.Config{{RootCAs: pool}, {RootCAs: pool, Certificates: []tls.Certificate{cert}}} {
			want := !mutual || conf.Certificates != nil
			conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(conf)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (exporter{conn}).Export(t.Context(), asked(1)); (err == nil) != want {
				t.Errorf("gRPC, mutual %v, %d certificates: %v", mutual, len(conf.Certificates), err)
			}
			conn.Close()
			c := &http.Client{Transport: &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true}}
			resp, err := c.Post(url, "application/x-protobuf", bytes.NewReader(body))
			if (err == nil && resp.StatusCode == 200) != want {
				t.Errorf("HTTP, mutual %v, %d certificates: %v %v", mutual, len(conf.Certificates), resp, err)
			}
			if err == nil {
				resp.Body.Close()
			}
			c.CloseIdleConnections()
		}
		if n := s.Stats().Frames; n != map[bool]uint64{false: 4, true: 2}[mutual] {
			t.Errorf("mutual %v: %d requests", mutual, n)
		}
	}
}
