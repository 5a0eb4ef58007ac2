package kafka_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	client "github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

const childEnv = "HOPSCOPE_LEAD_CHILD"

// A process that has the variable of a child in its environment is that controller.
func init() {
	asChild = func() bool {
		text := os.Getenv(childEnv)
		if text == "" {
			return false
		}
		var c child
		err := json.Unmarshal([]byte(text), &c)
		if err == nil {
			err = c.run()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "error", err)
			os.Exit(1)
		}
		return true
	}
}

// child is a controller of one agent, to which it sends a plan as often as it can.
type child struct{ Name, Broker, Topic, Group, Agent string }

// push is what the agent is given.
type push struct {
	From   string
	Term   uint64
	Epoch  uint32
	Before plan // that the term began with
}

type plan struct {
	Of    string
	Epoch uint32
}

const session = 6 * time.Second // the least that brokers allow

func (c *child) run() error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	k := &client.Client{Addr: client.TCP(c.Broker), Timeout: 10 * time.Second}
	log := kafka.NewLog(k, kafka.DefaultLogConfig())
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	group := kafka.NewGroup(k, log, kafka.GroupConfig{Name: c.Group, Topics: map[string]int{c.Topic: 1}, Session: session, Rebalance: session}, logger)
	cfg := kafka.LeadConfig{Log: log, Group: group, Topic: c.Topic, Name: c.Name, Timeout: 2 * time.Second, Logger: logger}
	return kafka.Lead(ctx, cfg, func(ctx context.Context, t *kafka.Term) error {
		p := push{From: c.Name, Term: t.Number(), Epoch: t.Epoch()}
		if b := t.Plan(); b != nil {
			if err := json.Unmarshal(b, &p.Before); err != nil {
				return err
			}
		}
		for ctx.Err() == nil {
			p.Epoch++
			b, err := json.Marshal(plan{c.Name, p.Epoch})
			if err != nil {
				return err
			}
			if err := t.Put(ctx, p.Epoch, b); err != nil {
				p.Epoch--
				continue
			}
			b, err = json.Marshal(p)
			if err != nil {
				return err
			}
			// Without ctx: what has left cannot be called back.
			r, err := http.Post(c.Agent, "application/json", bytes.NewReader(b))
			if err != nil {
				return err
			}
			r.Body.Close()
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
}

// device takes plans as agents do: none of a lower epoch than the one in force.
type device struct {
	mu      sync.Mutex
	inForce push
	taken   []push
	refused []push
	hold    string        // whose pushes stay under way
	held    chan struct{} // gets one for each of them
	release chan struct{}
}

func (d *device) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var p push
	b, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		panic(err)
	}
	d.mu.Lock()
	hold := d.hold == p.From
	d.mu.Unlock()
	if hold {
		d.held <- struct{}{}
		<-d.release
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.Epoch <= d.inForce.Epoch {
		d.refused = append(d.refused, p)
		return
	}
	d.inForce = p
	d.taken = append(d.taken, p)
}

// of returns what was taken of a controller, and count how often something of it was refused.
func (d *device) of(name string) (list []push, refused int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.taken {
		if p.From == name {
			list = append(list, p)
		}
	}
	for _, p := range d.refused {
		if p.From == name {
			refused++
		}
	}
	return list, refused
}

// controller is a child that runs.
type controller struct {
	*exec.Cmd
	mu   sync.Mutex
	said []string
}

func (c *controller) says(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(strings.Join(c.said, "\n"), text)
}

func start(t *testing.T, c child) *controller {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	x := &controller{Cmd: exec.Command(os.Args[0])}
	x.Env = append(os.Environ(), childEnv+"="+string(text))
	x.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := x.StderrPipe()
	if err == nil {
		err = x.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			x.mu.Lock()
			x.said = append(x.said, lines.Text())
			x.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = x.Process.Kill()
		<-read
		_ = x.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", c.Name, strings.Join(x.said, "\n"))
		}
	})
	return x
}

// One controller is killed and one stands still. Another one takes over each time, above every used epoch, with the
// last written plan. Nothing of the former controller is accepted any more.
func TestTakeOver(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	b := servertest.SharedBroker(t)
	topic := b.Prefix + "plans"
	b.CreateTopic(topic, 1, "cleanup.policy=compact")
	d := &device{held: make(chan struct{}, 10), release: make(chan struct{})}
	server := httptest.NewServer(d)
	defer server.Close()
	of := func(name string) child {
		return child{Name: name, Broker: b.Internal, Topic: topic, Group: b.Prefix + "control", Agent: server.URL}
	}
	works := func(name string, n int) func() bool {
		return func() bool { list, _ := d.of(name); return len(list) >= n }
	}

	one := start(t, of("one"))
	testkit.Until(t, "one is in charge", works("one", 3))
	two := start(t, of("two"))
	testkit.Until(t, "two stands by", func() bool { return two.says("standing by") })
	first, _ := d.of("one")
	testkit.Until(t, "one goes on", works("one", len(first)+3))
	if one.says("not in charge") {
		t.Error("the term of one did not go on when two came")
	}
	if err := one.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "two takes over from one that was killed", works("two", 3))

	three := start(t, of("three"))
	testkit.Until(t, "three stands by", func() bool { return three.says("standing by") })
	d.mu.Lock()
	d.hold = "two"
	d.mu.Unlock()
	<-d.held
	if err := two.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "three takes over from two that stands still", works("three", 3))
	_, before := d.of("two")
	close(d.release) // what was under way comes now
	testkit.Until(t, "what was under way is refused", func() bool { _, n := d.of("two"); return n > before })
	if err := two.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "two knows", func() bool { return two.says("not in charge any more") })
	list, _ := d.of("three")
	testkit.Until(t, "three goes on", works("three", len(list)+3))
	if _, n := d.of("two"); n != before+1 {
		t.Errorf("%d pushes of two came after it had stood still, want the one that was under way", n-before)
	}
	testkit.Until(t, "two is a member again", func() bool { return two.says("standing by") && two.says("not in charge any more") })

	// In order, it goes at once.
	mine, _ := d.of("two")
	if err := three.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "two takes over from three that leaves", works("two", len(mine)+3))
	d.check(t)

	// Of all terms, the last one alone has a key that is not taken away. A busy machine may make terms that push nothing.
	left := map[string]bool{}
	first64, _ := b.Offsets(topic, 0)
	for _, m := range b.Read(topic, 0, first64) {
		left[string(m.Key)] = len(m.Value) > 0
	}
	n := 0
	for _, has := range left {
		if has {
			n++
		}
	}
	if terms := d.terms(); n != 1 || len(left) < terms {
		t.Errorf("of %d keys %d have a value, want 1 of at least %d, one for each term that pushed", len(left), n, terms)
	}
}

// terms is the number of terms of which pushes were taken.
func (d *device) terms() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := map[uint64]bool{}
	for _, p := range d.taken {
		seen[p.Term] = true
	}
	return len(seen)
}

// check compares the accepted pushes with the promises of a term.
func (d *device) check(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var order []string
	for i, p := range d.taken {
		if i == 0 || p.From != d.taken[i-1].From {
			order = append(order, p.From)
		}
		if i == 0 {
			continue
		}
		last := d.taken[i-1]
		if p.Term < last.Term || p.Epoch <= last.Epoch || (p.Term == last.Term) != (p.From == last.From) {
			t.Errorf("%+v was taken after %+v", p, last)
		}
		// What was written last may not have been pushed any more.
		if p.From != last.From && (p.Before.Of != last.From || p.Before.Epoch < last.Epoch || p.Epoch <= p.Before.Epoch) {
			t.Errorf("%s begins with the plan %+v and the epoch %d, after %+v", p.From, p.Before, p.Epoch, last)
		}
	}
	if got := strings.Join(order, " "); got != "one two three two" {
		t.Errorf("in charge were %s", got)
	}
}
