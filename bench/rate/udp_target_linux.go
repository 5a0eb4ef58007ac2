package rate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/collector/traffic"
)

// target is a receiver's process.
type target struct {
	cmd   *exec.Cmd
	addr  netip.AddrPort
	cpu   int
	ask   io.WriteCloser // nil for a command, which reports nothing
	reply *bufio.Reader
	ring  bool // the socket that the kernel counts drops of takes nothing

	frames *frameSender // nil: a socket sends
}

// startTarget starts a receiver on its CPU and waits until it listens.
func startTarget(o *UDP, name string, frames *frameSender) (*target, error) {
	t := &target{frames: frames, addr: o.to, cpu: o.receiveCPU, ring: strings.HasPrefix(name, "ring") || strings.HasPrefix(name, "xdp")}
	if name == "command" {
		args := strings.Fields(o.command)
		t.cmd = exec.Command(args[0], args[1:]...)
		t.cmd.Stdout, t.cmd.Stderr = nil, os.Stderr
		if o.log != nil {
			t.cmd.Stdout, t.cmd.Stderr, t.cmd.Dir = o.log, o.log, filepath.Dir(o.log.Name())
		}
		t.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := startOn(t.cmd, o.receiveCPU); err != nil {
			return nil, err
		}
		return t, t.waitForSocket()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t.cmd = exec.Command(self, "udp")
	t.cmd.Env = append(os.Environ(), roleEnv+"="+roleReceiver)
	t.cmd.Stderr = os.Stderr
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if t.ask, err = t.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.reply = bufio.NewReader(out)
	if frames != nil {
		fd, err := unix.FcntlInt(uintptr(frames.count.FD()), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		count := os.NewFile(uintptr(fd), "count")
		defer count.Close()
		t.cmd.ExtraFiles = []*os.File{count}
	}
	if err := startOn(t.cmd, o.receiveCPU); err != nil {
		return nil, err
	}
	line := ""
	err = json.NewEncoder(t.ask).Encode(receiverOptions{Name: name, UDP: o.udp, FlowBytes: o.flowBytes, CPUProfile: o.profile, Counts: frames != nil})
	if err == nil {
		line, err = t.reply.ReadString('\n')
	}
	if err == nil {
		t.addr, err = netip.ParseAddrPort(strings.TrimSpace(line))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the receiver did not start: %w", err), t.stop())
	}
	return t, nil
}

func (t *target) waitForSocket() error {
	for range 1000 {
		c, err := readSockets(t.addr.Port())
		if err != nil {
			return errors.Join(err, t.stop())
		}
		if c.sockets > 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.Join(fmt.Errorf("nothing listens on %v after 10 s", t.addr), t.stop())
}

// stop ends the process and waits for it.
func (t *target) stop() error {
	if t.ask != nil {
		return errors.Join(t.ask.Close(), t.cmd.Wait())
	}
	if err := t.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.AfterFunc(10*time.Second, func() { _ = t.cmd.Process.Kill() })
	defer timer.Stop()
	_ = t.cmd.Wait() // how a foreign command ends is its own business
	return nil
}

// counters is the state of a receiver at a moment.
type counters struct {
	received uint64 // that it states itself, or, of a command, that the kernel gave it
	socket   socketCounters
	backlog  uint64
	cpu      time.Duration
}

func (t *target) counters() (c counters, err error) {
	if t.ask != nil {
		if _, err := io.WriteString(t.ask, "\n"); err != nil {
			return c, err
		}
		line, err := t.reply.ReadString('\n')
		if err != nil {
			return c, fmt.Errorf("the receiver ended: %w", err)
		}
		if c.received, err = strconv.ParseUint(strings.TrimSpace(line), 10, 64); err != nil {
			return c, err
		}
	}
	if t.ask == nil {
		if c.received, err = readDelivered(); err != nil {
			return c, err
		}
	}
	if c.socket, err = readSockets(t.addr.Port()); err != nil {
		return c, err
	}
	if c.socket.sockets == 0 {
		return c, fmt.Errorf("nothing listens on %v any more", t.addr)
	}
	if c.backlog, err = readBacklogDrops(t.cpu); err != nil {
		return c, err
	}
	for _, pid := range family(t.cmd.Process.Pid) {
		d, err := processTime(pid)
		if err != nil && pid == t.cmd.Process.Pid {
			return c, err
		}
		c.cpu += d // of a process that ended, 0
	}
	return c, nil
}

// try sends for a period and returns the result.
func (t *target) try(ctx context.Context, load traffic.Datagrams, rate float64, period time.Duration) (trial, error) {
	before, err := t.settle()
	if err != nil {
		return trial{}, err
	}
	sent, err := t.send(ctx, load, rate, period)
	if err != nil {
		return trial{}, err
	}
	if err := ctx.Err(); err != nil {
		return trial{}, err
	}
	end, err := t.counters()
	if err != nil {
		return trial{}, err
	}
	after, err := t.settle()
	if err != nil {
		return trial{}, err
	}
	seconds := sent.Elapsed.Seconds()
	dropped := after.socket.drops - before.socket.drops + after.backlog - before.backlog
	r := trial{Asked: rate, Sent: sent.Rate(), Lost: dropped, CPU: (end.cpu - before.cpu).Seconds() / seconds}
	// What a command received is the kernel's count of this network namespace. Drops of the CPU's backlog are of all of them.
	received := min(after.received-before.received, sent.Sent)
	r.Lost = sent.Sent - received
	if t.ask != nil {
		if r.Lost != dropped && !t.ring {
			fmt.Fprintf(os.Stderr, "at %.0f/s: %d sent, %d received, but the kernel counts %d dropped\n", rate, sent.Sent, received, dropped)
		}
	}
	r.Received = float64(received) / seconds
	return r, nil
}

// send sends for a period, at a rate or as fast as the sender can.
func (t *target) send(ctx context.Context, load traffic.Datagrams, rate float64, period time.Duration) (traffic.Result, error) {
	if t.frames == nil {
		return traffic.Send(ctx, traffic.SendConfig{To: t.addr, Rate: rate, Duration: period}, load)
	}
	r, err := t.frames.send(sending{rate: rate, period: period}, nil)
	return traffic.Result{Sent: r.frames, Elapsed: r.elapsed}, err
}

// drops are the datagrams that the kernel had no room for, before the receiver.
func (t *target) drops() (uint64, error) {
	n, err := readBacklogDrops(t.cpu)
	if err != nil || t.ring {
		return n, err
	}
	c, err := readSockets(t.addr.Port())
	return n + c.drops, err
}

// settle waits until the socket is empty and nothing moves any more.
func (t *target) settle() (counters, error) {
	last, err := t.counters()
	for range 100 {
		if err != nil {
			return last, err
		}
		time.Sleep(20 * time.Millisecond)
		var c counters
		c, err = t.counters()
		quiet := c.socket == last.socket && c.socket.queued == 0 && c.received == last.received
		last = c
		if quiet {
			break
		}
	}
	return last, err
}
