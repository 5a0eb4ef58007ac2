package rate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
)

// peersBroker is a Kafka broker in the namespace of the measurement, on the sender's CPU.
type peersBroker struct {
	cmd  *exec.Cmd
	addr string
}

// brokerSettings are those of one process that makes topics by itself.
const brokerSettings = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
advertised.listeners=CLIENT://127.0.0.1:9092
inter.broker.listener.name=CLIENT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENT:PLAINTEXT
log.dirs=%s
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
log.retention.bytes=268435456
log.segment.bytes=67108864
`

// startPeersBroker starts the broker of a folder of jars, with its files in dir.
func startPeersBroker(ctx context.Context, jars, dir string) (b *peersBroker, err error) {
	settings := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(settings, fmt.Appendf(nil, brokerSettings, filepath.Join(dir, "kafka")), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "kafka.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	java := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, "java", append([]string{"-Xmx512m", "-cp", jars + "/*"}, args...)...)
		c.Dir, c.Stdout, c.Stderr = dir, log, log
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return c
	}
	if err := java("kafka.tools.StorageTool", "format", "-t", "hopscopepeersbroker000", "-c", settings).Run(); err != nil {
		return nil, fmt.Errorf("format the logs of Kafka (%s): %w", log.Name(), err)
	}
	b = &peersBroker{cmd: java("kafka.Kafka", settings), addr: "127.0.0.1:9092"}
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", b.addr, time.Second)
		if err == nil {
			err = c.Close()
		}
		if err == nil {
			return b, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			b.stop()
			return nil, errors.Join(fmt.Errorf("the Kafka broker does not answer (%s)", log.Name()), err)
		}
	}
}

func (b *peersBroker) stop() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// messages is the number of messages that all topics ever received. New topics have no leader at first.
func (b *peersBroker) messages(ctx context.Context) (sum uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := &kafka.Client{Addr: kafka.TCP(b.addr), Transport: &kafka.Transport{MetadataTTL: 100 * time.Millisecond}}
	for {
		if sum, err = ends(ctx, client); err == nil || ctx.Err() != nil {
			return sum, err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// ends adds up the ends of all partitions.
func ends(ctx context.Context, client *kafka.Client) (sum uint64, err error) {
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return 0, err
	}
	ask := map[string][]kafka.OffsetRequest{}
	for _, t := range meta.Topics {
		for _, p := range t.Partitions {
			ask[t.Name] = append(ask[t.Name], kafka.LastOffsetOf(p.ID))
		}
	}
	if len(ask) == 0 {
		return 0, nil
	}
	r, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: ask})
	if err != nil {
		return 0, err
	}
	for _, partitions := range r.Topics {
		for _, p := range partitions {
			if p.Error != nil {
				return 0, p.Error
			}
			sum += uint64(max(p.LastOffset, 0))
		}
	}
	return sum, nil
}
