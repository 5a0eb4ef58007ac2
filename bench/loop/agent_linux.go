package loop

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/probe"
)

// Waking is measured by ten probes that take turns. A frame has the number of its probe, so that one that is a few
// milliseconds late still shows when it was due.
const (
	period = int64(time.Millisecond) // between two starts
	turns  = 10
)

// Agent measures. It makes a network of its own with two joined interfaces, which needs CAP_SYS_ADMIN and iproute2.
func Agent(ctx context.Context, cfg AgentConfig) (r AgentResult, err error) {
	done := make(chan struct{})
	go func() { // whose thread ends with it, and so the network
		defer close(done)
		runtime.LockOSThread()
		r, err = runAgent(ctx, &cfg)
	}()
	<-done
	return r, err
}

func runAgent(ctx context.Context, cfg *AgentConfig) (r AgentResult, err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return r, fmt.Errorf("make a network namespace: %w: run it as root, or under unshare --user --map-root-user --net", err)
	}
	if cfg.Digest {
		dir, err := os.MkdirTemp("", "hopscope-bench")
		if err != nil {
			return r, err
		}
		defer os.RemoveAll(dir)
		cfg.keys = filepath.Join(dir, "keys")
		if err := os.WriteFile(cfg.keys, []byte("1 "+strings.Repeat("5a", 32)+"\n"), 0o600); err != nil {
			return r, err
		}
	}
	for _, line := range []string{"link set lo up", "link add name host0 type veth peer name net0", "address add 10.0.0.1/24 dev host0", "link set host0 up", "link set net0 up"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return r, fmt.Errorf("ip %s (of iproute2): %w: %s", line, err, out)
		}
	}
	p := probe.Plan{Epoch: 1, Dialect: probe.INT21}
	p.Basic, p.Detailed = p.Dialect.Bitmaps()
	var frames [turns][]byte
	for k := range frames {
		if frames[k], err = exampleFrame(&p, uint32(k)); err != nil {
			return r, err
		}
		if cfg.Digest {
			frames[k] = append(frames[k], make([]byte, digestLen)...)
		}
	}
	frame := frames[0]
	r.Batch, r.FrameBytes, r.WakesAsked = cfg.Batch, len(frame), int(cfg.wake/time.Duration(period))
	var sends, lates []float64
	var bare, ours []float64
	var bareLate, oursLate []Late
	for range cfg.Rounds {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		var x pair
		if x.BareRate, err = bareSends(frame, cfg); err != nil {
			return r, err
		}
		if x.AgentRate, err = agentSends(ctx, cfg); err != nil {
			return r, err
		}
		b, err := arrivals(func() error { return bareWakes(frames[:], cfg.wake) })
		if err != nil {
			return r, err
		}
		a, err := arrivals(func() error { return agentRuns(ctx, cfg, turns, turns*time.Duration(period), cfg.wake, nil) })
		if err != nil {
			return r, err
		}
		x.BareP99, x.AgentP99 = b.P99, a.P99
		bareLate, oursLate = append(bareLate, b), append(oursLate, a)
		bare, ours = append(bare, x.BareRate), append(ours, x.AgentRate)
		sends, lates = append(sends, x.AgentRate/x.BareRate), append(lates, x.AgentP99/x.BareP99)
		r.RatioOfRounds = append(r.RatioOfRounds, x)
	}
	r.BareRate, r.AgentRate, r.SendRatio, r.LateRatio = harness.Median(bare), harness.Median(ours), harness.Median(sends), harness.Median(lates)
	r.BareLate, r.AgentLate = medians(bareLate), medians(oursLate)
	return r, nil
}

func medians(list []Late) Late {
	of := func(get func(l *Late) float64) float64 {
		var v []float64
		for k := range list {
			v = append(v, get(&list[k]))
		}
		return harness.Median(v)
	}
	return Late{of(func(l *Late) float64 { return l.P50 }), of(func(l *Late) float64 { return l.P99 }), of(func(l *Late) float64 { return l.Max })}
}

// agentRoute is the route of all probes here.
var agentRoute = []int{1, 2, 3, 4}

// numberAt is where a frame has the lower byte of its probe's number: in the source port of UDP.
const numberAt = 14 + 2 + 2*4 + 2 + 20 + 1

// digestLen is the bytes that a digest adds to a frame: the number of its key, and itself.
const digestLen = 4 + 8

// exampleFrame is a frame of the agent.
func exampleFrame(p *probe.Plan, number uint32) ([]byte, error) {
	own := netip.MustParseAddr("10.0.0.1")
	e := probe.Ends{From: own, To: own, Mark: 27}
	for k := range e.ToMAC {
		e.ToMAC[k] = 0xff
	}
	t, err := probe.NewTemplate(p, &probe.Probe{ID: "p", Route: agentRoute, Interval: time.Second}, number, &e)
	if err != nil {
		return nil, err
	}
	return t.AppendFrame(nil, 1), nil
}

// open opens a packet socket on an interface.
func open(name string, protocol uint16) (int, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if protocol == 0 {
		err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1)
	} else {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifi.Index, Protocol: protocol})
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// bareSends is the plainest sender: sendmmsg of the same frames, over and over.
func bareSends(frame []byte, cfg *AgentConfig) (rate float64, err error) {
	fd, err := open("host0", 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	hdrs, iovs := make([]mmsghdr, cfg.Batch), make([]unix.Iovec, cfg.Batch)
	for i := range hdrs {
		own := append([]byte(nil), frame...)
		iovs[i].Base = &own[0]
		iovs[i].SetLen(len(own))
		hdrs[i].hdr.Iov = &iovs[i]
		hdrs[i].hdr.SetIovlen(1)
	}
	sent, begin := 0, time.Now()
	for time.Since(begin) < cfg.Send {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&hdrs[0])), uintptr(len(hdrs)), 0, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		sent += int(n)
	}
	return float64(sent) / time.Since(begin).Seconds(), nil
}

// agentSends is an agent with a plan that asks for far more than can be sent: 1,000 probes, each every 100 µs.
func agentSends(ctx context.Context, cfg *AgentConfig) (rate float64, err error) {
	err = agentRuns(ctx, cfg, 1000, 100*time.Microsecond, cfg.Send, func(n uint64, d time.Duration) { rate = float64(n) / d.Seconds() })
	return rate, err
}

// agentRuns runs an agent with a number of probes for a time. It calls report with the number of sent frames and the
// duration of each part of the time.
func agentRuns(ctx context.Context, cfg *AgentConfig, probes int, interval, d time.Duration, report func(n uint64, d time.Duration)) error {
	c := agent.DefaultConfig()
	c.Name, c.Interface, c.BatchSize = "a", "host0", cfg.Batch
	c.SendLimit, c.ProbesPerSecond = 1e12, 1e8
	c.Collectors, c.DigestKeys = []string{"127.0.0.1:9"}, cfg.keys
	a, err := agent.Open(c, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return err
	}
	defer a.Close()
	p := probe.Plan{Epoch: 1, Dialect: probe.INT21}
	p.Basic, p.Detailed = p.Dialect.Bitmaps()
	for k := range probes {
		p.Probes = append(p.Probes, probe.Probe{ID: fmt.Sprint(k), Route: agentRoute, Interval: interval, Phase: interval / time.Duration(probes) * time.Duration(k), Agent: "a"})
	}
	if _, err := a.Adopt(&p, "bench"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ended sync.WaitGroup
	var failed error
	ended.Go(func() { failed = a.Run(ctx) })
	const warm = 50 * time.Millisecond
	time.Sleep(warm)
	n, begin := a.Stats().Sent, time.Now()
	time.Sleep(d)
	if report != nil {
		report(a.Stats().Sent-n, time.Since(begin))
	}
	cancel()
	ended.Wait()
	return failed
}

// bareWakes is the plainest program that sends in time: clock_nanosleep until the next millisecond, and a frame.
func bareWakes(frames [][]byte, d time.Duration) error {
	fd, err := open("host0", 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	failed := make(chan error)
	go func() { // a thread of its own, as the agent's sender has
		runtime.LockOSThread()
		failed <- wake(fd, frames, d)
	}()
	return <-failed
}

func wake(fd int, frames [][]byte, d time.Duration) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return err
	}
	var mono unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
		return err
	}
	now := time.Now().UnixNano()
	offset := now - mono.Nano()
	for due := now - now%period + period; due < now+int64(d); due += period {
		at := unix.NsecToTimespec(due - offset)
		for {
			if err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil); err == nil {
				break
			} else if err != unix.EINTR {
				return err
			}
		}
		if err := unix.Send(fd, frames[due/period%turns], 0); err != nil {
			return err
		}
	}
	return nil
}

// arrivals runs a sender and sums up when its frames came to the other interface, by the kernel's time.
func arrivals(send func() error) (Late, error) {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], unix.ETH_P_ALL)
	fd, err := open("net0", binary.NativeEndian.Uint16(b[:]))
	if err != nil {
		return Late{}, err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}); err != nil {
		return Late{}, err
	}
	var list []int64
	var ended sync.WaitGroup
	over := make(chan struct{})
	ended.Go(func() {
		frame, control := make([]byte, 2048), make([]byte, 128)
		for {
			n, c, _, _, err := unix.Recvmsg(fd, frame, control, 0)
			if err != nil {
				select {
				case <-over:
					return
				default:
					continue
				}
			}
			if n > numberAt && frame[12] == 7 {
				if at := receiveTime(control[:c]); at > 0 {
					list = append(list, at-int64(frame[numberAt])*period) // as if all were due at the same time of ten milliseconds
				}
			}
		}
	})
	err = send()
	close(over)
	ended.Wait()
	if len(list) == 0 {
		return Late{}, errors.Join(err, errors.New("no frame came to the other interface"))
	}
	return lateness(list, turns*period), err
}

// receiveTime reads the kernel's time.
func receiveTime(control []byte) int64 {
	list, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range list {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			ne := binary.NativeEndian
			return int64(ne.Uint64(m.Data))*1e9 + int64(ne.Uint64(m.Data[8:]))
		}
	}
	return 0
}
