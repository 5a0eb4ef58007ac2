package servertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/internal/testkit"
)

// version is the one that tests run against.
const version = "4.1.0"

// BrokerOptions are the requirements of a broker for its clients. The zero value has none.
type BrokerOptions struct {
	// TLS encrypts Addr with a certificate of Authority, or of one of its own; ClientCerts asks clients for certificates
	// of the same authority.
	TLS         bool
	ClientCerts bool
	authority   *authority

	// Users may log in at Addr with PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. The password of a user is [Password].
	Users []string

	// ACLs forbids what no ACL allows. Clients of Internal may do everything.
	ACLs bool

	// Properties are further lines of server.properties, such as message.max.bytes.
	Properties map[string]string
}

// Password is the password of a user.
func Password(user string) string { return user + "-secret" }

// Broker is a running (or stopped) broker.
type Broker struct {
	// Addr is where clients connect, with the security that the options ask for. Internal is a second port, without any,
	// for what tests themselves do.
	Addr     string
	Internal string

	// Prefix begins the names of topics and groups of this test, and of no other one.
	Prefix string

	Authority *authority // that signed the broker's certificate; nil without TLS

	t testing.TB
	*process
}

// process holds the servers that tests share.
type process struct {
	opt  BrokerOptions
	dir  string
	cmd  *exec.Cmd
	out  *os.File
	done chan error

	mu     sync.Mutex
	topics map[string]bool // that tests created: a broker that was killed answers before it knows them again
}

var tests atomic.Int64

// shared is the broker of [SharedBroker].
var shared struct {
	sync.Mutex
	main   bool
	broker *Broker
	failed bool
}

// Main runs the tests of a package and then ends the broker that they shared. TestMain calls it.
func Main(m *testing.M) {
	shared.main = true
	code := m.Run()
	if b := shared.broker; b != nil {
		b.end(syscall.SIGKILL)
		os.RemoveAll(b.dir)
	}
	os.Exit(code)
}

// SharedBroker returns the broker that all tests of the package share, without security. No test may stop it.
func SharedBroker(t testing.TB) *Broker {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.main {
		t.Fatal("servertest: TestMain of this package does not call servertest.Main")
	}
	if shared.failed {
		t.Fatal("servertest: the broker that all tests share did not start")
	}
	if shared.broker == nil {
		shared.failed = true
		dir, err := os.MkdirTemp("", "servertest")
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if shared.failed {
				os.RemoveAll(dir)
			}
		}()
		shared.broker = startBroker(t, dir, BrokerOptions{})
		shared.failed = false
	}
	b := *shared.broker
	b.t, b.Prefix = t, prefix()
	return &b
}

// StartBroker starts a broker with empty logs and ends it with the test.
func StartBroker(t testing.TB, opt BrokerOptions) *Broker {
	t.Helper()
	// Not t.TempDir, whose name has that of the test in it: Kafka takes a comma in a path for the end of it.
	dir, err := os.MkdirTemp("", "servertest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := startBroker(t, dir, opt)
	t.Cleanup(func() { b.end(syscall.SIGKILL) })
	return b
}

func prefix() string { return fmt.Sprintf("t%d.", tests.Add(1)) }

// startBroker starts a broker. The caller ends it.
func startBroker(t testing.TB, dir string, opt BrokerOptions) *Broker {
	t.Helper()
	b := &Broker{t: t, Prefix: prefix(), process: &process{opt: opt, dir: dir}}
	if opt.TLS {
		if b.Authority = opt.authority; b.Authority == nil {
			b.Authority = NewAuthority(t)
		}
	}
	b.requireLib()
	b.Addr, b.Internal = testkit.FreeAddr(t), testkit.FreeAddr(t)
	b.configure(testkit.FreeAddr(t))
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *Broker) path(name string) string { return filepath.Join(b.dir, name) }

// lib is the folder of the jars.
func lib() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache", "kafka", version, "lib"), nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return "", errors.New("servertest: no go.mod above the test")
}

func (b *Broker) requireLib() {
	b.t.Helper()
	dir, err := lib()
	if err != nil {
		b.t.Fatal(err)
	}
	_, javaErr := exec.LookPath("java")
	if _, err := os.Stat(filepath.Join(dir, "kafka_2.13-"+version+".jar")); err != nil || javaErr != nil {
		b.t.Fatalf("Kafka %s is not there: run `make kafka`", version)
	}
}

// configure writes the settings and makes the folder of the logs.
func (b *Broker) configure(controller string) {
	b.t.Helper()
	security := "PLAINTEXT"
	switch {
	case b.opt.TLS && len(b.opt.Users) > 0:
		security = "SASL_SSL"
	case b.opt.TLS:
		security = "SSL"
	case len(b.opt.Users) > 0:
		security = "SASL_PLAINTEXT"
	}
	p := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        "1",
		"controller.quorum.voters":       "1@" + controller,
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "INTERNAL",
		"listeners":                      fmt.Sprintf("CLIENT://%s,INTERNAL://%s,CONTROLLER://%s", b.Addr, b.Internal, controller),
		"advertised.listeners":           fmt.Sprintf("CLIENT://%s,INTERNAL://%s", b.Addr, b.Internal),
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,CLIENT:" + security,
		"log.dirs":                       b.path("data"),
		"auto.create.topics.enable":      "false",
		"min.insync.replicas":            "1",

		// One broker has one copy of everything, and starts with little.
		"offsets.topic.num.partitions":                     "1",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.num.partitions":             "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.num.partitions":     "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
		"group.initial.rebalance.delay.ms":                 "0",
		"group.min.session.timeout.ms":                     "1000",
		"num.network.threads":                              "2",
		"num.io.threads":                                   "2",
		"num.recovery.threads.per.data.dir":                "1",
		"log.cleaner.dedupe.buffer.size":                   "8388608",
		"log.cleaner.io.buffer.size":                       "65536",
		"log.index.size.max.bytes":                         "1048576",
	}
	if b.opt.TLS {
		cert, key := b.path("broker.pem"), b.path("broker-key.pem")
		b.Authority.IssueTo("broker", cert, key)
		b.joinKeystore()
		p["listener.name.client.ssl.keystore.type"] = "PEM"
		p["listener.name.client.ssl.keystore.location"] = b.path("keystore.pem")
		p["listener.name.client.ssl.truststore.type"] = "PEM"
		p["listener.name.client.ssl.truststore.location"] = b.Authority.File
		if b.opt.ClientCerts {
			p["listener.name.client.ssl.client.auth"] = "required"
		}
	}
	if len(b.opt.Users) > 0 {
		plain := "org.apache.kafka.common.security.plain.PlainLoginModule required"
		for _, u := range b.opt.Users {
			plain += fmt.Sprintf(" user_%s=%q", u, Password(u))
		}
		p["listener.name.client.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
		p["listener.name.client.plain.sasl.jaas.config"] = plain + ";"
		for _, m := range []string{"scram-sha-256", "scram-sha-512"} {
			p["listener.name.client."+m+".sasl.jaas.config"] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
		}
	}
	if b.opt.ACLs {
		p["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		p["super.users"] = "User:ANONYMOUS"
	}
	maps.Copy(p, b.opt.Properties)
	var text strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&text, "%s=%s\n", k, p[k])
	}
	b.write("server.properties", text.String())
	b.write("log4j2.properties", `status = warn
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
`)
	b.format()
}

// formatted is the folder that the tool makes of an empty one, for the users that it was given. It is the same for
// every broker of this process, and the tool takes as long to start as a broker.
var formatted struct {
	sync.Mutex
	data map[string]fs.FS
}

// format makes the folder of the logs.
func (b *Broker) format() {
	b.t.Helper()
	formatted.Lock()
	defer formatted.Unlock()
	dir := cmp.Or(b.opt.Properties["log.dirs"], b.path("data"))
	key := strings.Join(b.opt.Users, " ")
	if data := formatted.data[key]; data != nil {
		if err := os.CopyFS(dir, data); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	args := []string{"kafka.tools.StorageTool", "format", "-t", "aG9wc2NvcGUtdGVzdHMtMQ", "-c", b.path("server.properties")}
	for _, u := range b.opt.Users {
		for _, m := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", m, u, Password(u)))
		}
	}
	if out, err := b.java(args...).CombinedOutput(); err != nil {
		b.t.Fatalf("servertest: formatting the logs: %v\n%s", err, out)
	}
	data := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var text []byte
			text, err = os.ReadFile(filepath.Join(dir, name))
			data[name] = &fstest.MapFile{Data: text, Mode: 0o600}
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if formatted.data == nil {
		formatted.data = map[string]fs.FS{}
	}
	formatted.data[key] = data
}

func (b *Broker) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// joinKeystore makes of certificate and key the one file that Kafka reads.
func (b *Broker) joinKeystore() {
	b.t.Helper()
	var all []byte
	for _, name := range []string{"broker-key.pem", "broker.pem"} {
		part, err := os.ReadFile(b.path(name))
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, part...)
	}
	write(b.t, b.path("keystore.pem"), all)
}

// Certify gives a stopped broker a new certificate, of an authority which from then on also signs those of clients.
func (b *Broker) Certify(a *authority) {
	b.t.Helper()
	text, err := os.ReadFile(a.File)
	if err != nil {
		b.t.Fatal(err)
	}
	a.IssueTo("broker", b.path("broker.pem"), b.path("broker-key.pem"))
	b.joinKeystore()
	write(b.t, b.Authority.File, text)
	b.Authority = a
}

// java makes a command of the broker's programs: quick to start and small rather than fast after an hour.
func (b *Broker) java(args ...string) *exec.Cmd {
	dir, _ := lib()
	cmd := exec.Command("java", append([]string{
		"-Xms64m", "-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-Djava.awt.headless=true", "-Dlog4j2.configurationFile=" + b.path("log4j2.properties"),
		"-cp", filepath.Join(dir, "*"),
	}, args...)...)
	cmd.Dir = b.dir
	endWithUs(cmd)
	return cmd
}

// Start starts a stopped broker again, at the same address and with the same logs, and waits until it serves.
func (b *Broker) Start() {
	b.t.Helper()
	if err := b.start(); err != nil {
		b.t.Fatal(err)
	}
}

// Restart stops the broker, if it is not stopped, and starts it again.
func (b *Broker) Restart() {
	b.t.Helper()
	b.Stop()
	b.Start()
}

func (b *Broker) start() error {
	if b.cmd != nil {
		return errors.New("servertest: started twice")
	}
	out, err := os.OpenFile(b.path("log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := b.java("kafka.Kafka", b.path("server.properties"))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		out.Close()
		return err
	}
	b.cmd, b.out, b.done = cmd, out, make(chan error, 1)
	done := b.done
	go func() { done <- cmd.Wait() }()

	deadline := time.After(5 * time.Minute)
	for {
		if b.serves() {
			return nil
		}
		select {
		case err := <-b.done:
			b.done <- err
			b.end(syscall.SIGKILL)
			return fmt.Errorf("servertest: Kafka %s ended: %v\n%s", version, err, b.Log())
		case <-deadline:
			b.end(syscall.SIGKILL)
			return fmt.Errorf("servertest: Kafka %s does not answer\n%s", version, b.Log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// serves reports whether the broker is a member of its own cluster, and all partitions have a leader.
func (b *Broker) serves() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := net.DialTimeout("tcp", b.Internal, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	client, done := b.client()
	defer done()
	m, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil || len(m.Brokers) != 1 || m.Brokers[0].Port == 0 {
		return false
	}
	known := map[string]bool{}
	for _, topic := range m.Topics {
		known[topic.Name] = topic.Error == nil
		for _, p := range topic.Partitions {
			if p.Leader.Port == 0 {
				return false
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for topic := range b.topics {
		if !known[topic] {
			return false
		}
	}
	conn, err = net.DialTimeout("tcp", b.Addr, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// Log returns the end of the broker's log.
func (b *Broker) Log() string {
	text, _ := os.ReadFile(b.path("log"))
	return string(text[max(0, len(text)-8192):])
}

// Stop ends the broker as an operator would, Kill as a power cut of the process would. Both wait for its end. A broker
// that is stopped stays so.
func (b *Broker) Stop() { b.end(syscall.SIGTERM) }

// Kill is Stop by SIGKILL.
func (b *Broker) Kill() { b.end(syscall.SIGKILL) }

func (p *process) end(sig os.Signal) {
	if p.cmd == nil {
		return
	}
	if sig == syscall.SIGTERM {
		resume(p.cmd.Process)
	}
	p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		p.cmd.Process.Kill()
		<-p.done
	}
	p.out.Close()
	p.cmd = nil
}

// Pause makes the broker stand still, with its connections open; Continue lets it go on.
func (b *Broker) Pause() {
	b.t.Helper()
	if err := pause(b.cmd.Process); err != nil {
		b.t.Fatal(err)
	}
}

// Continue ends a Pause.
func (b *Broker) Continue() {
	b.t.Helper()
	if err := resume(b.cmd.Process); err != nil {
		b.t.Fatal(err)
	}
}

// Client returns a client of Internal, which may do everything.
func (b *Broker) Client() *kafka.Client {
	b.t.Helper()
	client, done := b.client()
	b.t.Cleanup(done)
	return client
}

func (b *Broker) client() (*kafka.Client, func()) {
	transport := &kafka.Transport{MetadataTTL: 100 * time.Millisecond, DialTimeout: 5 * time.Second}
	return &kafka.Client{Addr: kafka.TCP(b.Internal), Timeout: 10 * time.Second, Transport: transport}, transport.CloseIdleConnections
}

// CreateTopic creates a topic, with settings such as "cleanup.policy=compact", and waits until all its partitions have a
// leader.
func (b *Broker) CreateTopic(topic string, partitions int, settings ...string) {
	b.t.Helper()
	client, done := b.client()
	defer done()
	conf := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		conf.ConfigEntries = append(conf.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	err := settled(func() error {
		resp, err := client.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{conf}})
		if err == nil {
			err = resp.Errors[topic]
		}
		return err
	})
	if err != nil {
		b.t.Fatalf("servertest: creating topic %s: %v", topic, err)
	}
	b.eventually("topic "+topic+" has leaders", func() bool {
		m, err := client.Metadata(context.Background(), &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil || len(m.Topics) != 1 || m.Topics[0].Error != nil || len(m.Topics[0].Partitions) != partitions {
			return false
		}
		for _, p := range m.Topics[0].Partitions {
			if p.Error != nil || p.Leader.Port == 0 {
				return false
			}
		}
		// Metadata name a leader before it serves.
		requests := make([]kafka.OffsetRequest, partitions)
		for i := range requests {
			requests[i] = kafka.LastOffsetOf(i)
		}
		offsets, err := client.ListOffsets(context.Background(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: requests}})
		if err != nil || len(offsets.Topics[topic]) != partitions {
			return false
		}
		return !slices.ContainsFunc(offsets.Topics[topic], func(p kafka.PartitionOffsets) bool { return p.Error != nil })
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.topics == nil {
		b.topics = map[string]bool{}
	}
	b.topics[topic] = true
}

// Await waits until the leaders of all partitions that a topic has serve them, which is some moments after it was made.
func (b *Broker) Await(topic string) {
	b.t.Helper()
	client, done := b.client()
	defer done()
	b.eventually("topic "+topic+" is served", func() bool {
		m, err := client.Metadata(context.Background(), &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil || len(m.Topics) != 1 || m.Topics[0].Error != nil || len(m.Topics[0].Partitions) == 0 {
			return false
		}
		ask := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{}}
		for p := range m.Topics[0].Partitions {
			ask.Topics[topic] = append(ask.Topics[topic], kafka.LastOffsetOf(p))
		}
		resp, err := client.ListOffsets(context.Background(), ask)
		return err == nil && len(resp.Topics[topic]) == len(ask.Topics[topic]) &&
			!slices.ContainsFunc(resp.Topics[topic], func(p kafka.PartitionOffsets) bool { return p.Error != nil })
	})
}

func (b *Broker) eventually(what string, f func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("servertest: it never came about that %s", what)
		}
	}
}

// Message is a record of a partition.
type Message struct {
	Offset     int64
	Time       time.Time
	Key, Value []byte
	Headers    []kafka.Header
}

// Header returns the value of a header, or nil.
func (m *Message) Header(key string) []byte {
	for _, h := range m.Headers {
		if h.Key == key {
			return h.Value
		}
	}
	return nil
}

// Write appends a record to a partition, of the present time. Offset and Time of m are ignored. It tries for a minute,
// so that the record may be there twice where the broker's answer was lost.
func (b *Broker) Write(topic string, partition int, m Message) {
	b.t.Helper()
	var err error
	written := testkit.Await(func() bool {
		client, done := b.client() // another one each time, as in Read
		defer done()
		r := kafka.Record{Time: time.Now(), Headers: m.Headers}
		if m.Key != nil {
			r.Key = kafka.NewBytes(m.Key)
		}
		if m.Value != nil {
			r.Value = kafka.NewBytes(m.Value)
		}
		var resp *kafka.ProduceResponse
		resp, err = client.Produce(context.Background(), &kafka.ProduceRequest{
			Topic: topic, Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(r),
		})
		if err == nil {
			err = resp.Error
		}
		return err == nil
	})
	if !written {
		b.t.Fatalf("servertest: writing to %s/%d: %v", topic, partition, err)
	}
}

// Offsets returns the first offset of a partition and the one behind its last.
func (b *Broker) Offsets(topic string, partition int) (first, end int64) {
	b.t.Helper()
	client, done := b.client()
	defer done()
	var p kafka.PartitionOffsets
	err := settled(func() error {
		resp, err := client.ListOffsets(context.Background(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
			topic: {kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition)},
		}})
		if err != nil {
			return err
		}
		if len(resp.Topics[topic]) != 1 {
			return errors.New("no answer")
		}
		p = resp.Topics[topic][0]
		return p.Error
	})
	if err != nil {
		b.t.Fatalf("servertest: offsets of %s/%d: %v", topic, partition, err)
	}
	return p.FirstOffset, p.LastOffset
}

// Read returns all records of a partition from an offset on to its present end.
func (b *Broker) Read(topic string, partition int, from int64) []Message {
	b.t.Helper()
	first, end := b.Offsets(topic, partition)
	var list []Message
	for at := max(from, first); at < end; {
		var resp *kafka.FetchResponse
		err := settled(func() (err error) {
			client, done := b.client() // another one each time: what a client knows of topics may stay old for long on a busy machine
			defer done()
			resp, err = client.Fetch(context.Background(), &kafka.FetchRequest{
				Topic: topic, Partition: partition, Offset: at, MinBytes: 1, MaxBytes: 16 << 20, MaxWait: time.Second,
			})
			if err == nil {
				err = resp.Error
			}
			return err
		})
		if err != nil {
			b.t.Fatalf("servertest: reading %s/%d at %d: %v", topic, partition, at, err)
		}
		before := at
		for {
			r, err := resp.Records.ReadRecord()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.t.Fatalf("servertest: reading %s/%d at %d: %v", topic, partition, at, err)
			}
			if r.Offset < at {
				continue // a batch is sent whole
			}
			list = append(list, Message{Offset: r.Offset, Time: r.Time, Key: all(r.Key), Value: all(r.Value), Headers: cloneHeaders(r.Headers)})
			at = r.Offset + 1
		}
		if at == before {
			break // what is left was compacted away
		}
	}
	return list
}

func all(b kafka.Bytes) []byte {
	if b == nil {
		return nil
	}
	defer b.Close()
	v, _ := io.ReadAll(b)
	return v
}

func cloneHeaders(list []kafka.Header) []kafka.Header {
	out := make([]kafka.Header, len(list))
	for i, h := range list {
		out[i] = kafka.Header{Key: h.Key, Value: bytes.Clone(h.Value)}
	}
	return out
}
