package plain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/sflow"
)

// product returns the product's reading of b, in the words of sFlow.
func product(b []byte) (lines []string, failed bool) {
	var rd sflow.Reader
	var d sflow.Datagram
	if !rd.Start(&d, b, 0, len(b)) {
		return nil, true
	}
	agent := ""
	switch d.IPv {
	case 4:
		agent = fmt.Sprintf("%x", d.Agent[12:])
	case 6:
		agent = fmt.Sprintf("%x", d.Agent[:])
	}
	lines = append(lines, fmt.Sprintf("agent %s sub %d seq %d up %d samples %d", agent, d.SubAgent, d.Seq, d.Uptime, d.Samples))
	var s sflow.Sample
	for rd.Next(&s) {
		line := fmt.Sprintf("seq %d source %d/%d", s.Seq, s.Class, s.Index)
		switch s.Kind {
		case sflow.Flow:
			line = fmt.Sprintf("flow %s rate %d pool %d drops %d %d/%d %d/%d", line, s.Rate, s.Pool, s.Drops, s.Input.Format, s.Input.Value, s.Output.Format, s.Output.Value)
		case sflow.Counters:
			line = "counters " + line
		case sflow.Discard:
			line = fmt.Sprintf("discard %s drops %d in %d out %d reason %d", line, s.Drops, s.Input.Value, s.Output.Value, s.Reason)
		default:
			lines = append(lines, fmt.Sprintf("tag %d", s.Tag))
			continue
		}
		add := func(f sflow.Field, format string, args ...any) {
			if s.Has&f != 0 {
				line += fmt.Sprintf(format, args...)
			}
		}
		add(sflow.HasHeader, " header %d %d %d %x", s.Protocol, s.FrameLen, s.Stripped, s.Header)
		ip, n := &s.IP, 16
		if ip.Version == 4 {
			n = 4
		}
		add(sflow.HasIP, " ip %d %d %d %x %x %d %d %d %d", n, ip.Length, ip.Proto, ip.Src[16-n:], ip.Dst[16-n:], ip.SrcPort, ip.DstPort, ip.TCPFlags, ip.Class)
		add(sflow.HasSwitch, " switch %d %d %d %d", s.InVLAN, s.InPriority, s.OutVLAN, s.OutPriority)
		add(sflow.HasQueue, " queue %d", s.Queue)
		add(sflow.HasACL, " acl %d %q %d", s.ACL, s.ACLName, s.ACLDirection)
		add(sflow.HasFunction, " function %q", s.Function)
		add(sflow.HasDelay, " delay %d", s.Delay)
		add(sflow.HasDepth, " depth %d", s.Depth)
		add(sflow.HasTrap, " trap %q %q", s.Group, s.Trap)
		add(sflow.HasLinuxReason, " linux %q", s.LinuxReason)
		add(sflow.HasTime, " time %d", s.Time)
		i := &s.Interface
		add(sflow.HasInterface, " if %s", strings.Trim(fmt.Sprint([]any{i.Index, i.Type, i.Speed, i.Direction, i.Status, i.InOctets, i.InUnicast, i.InMulticast, i.InBroadcast, i.InDiscards,
			i.InErrors, i.InUnknown, i.OutOctets, i.OutUnicast, i.OutMulticast, i.OutBroadcast, i.OutDiscards, i.OutErrors, i.Promiscuous}), "[]"))
		add(sflow.HasPortName, " name %q", s.PortName)
		lines = append(lines, line+fmt.Sprintf(" skipped %d", s.Skipped))
	}
	return lines, rd.Err.Reason != 0
}

// Both read the same of made datagrams, and of those with bytes changed and cut off.
func TestSFlow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 28))
	for i := range 20_000 {
		b := RandomSFlow(rnd, true)
		if i >= 10_000 {
			for range 1 + rnd.IntN(3) {
				b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
			}
			b = b[:len(b)-4*rnd.IntN(3)]
		}
		equalSFlow(t, b, i < 10_000)
	}
}

func equalSFlow(t testing.TB, b []byte, good bool) {
	got, failed := product(b)
	want, err := sFlow(b)
	if failed != (err != nil) || !slices.Equal(got, want) || good && failed {
		t.Fatalf("%x: failed %t, want %v\n%s\nwant\n%s", b, failed, err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func FuzzSFlow(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 29))
	for range 20 {
		f.Add(RandomSFlow(rnd, true))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, failed := product(b)
		want, err := sFlow(b)
		if failed != (err != nil) || !slices.Equal(got, want) {
			t.Fatalf("%q, failed %t, want %q, %v", got, failed, want, err)
		}
	})
}
